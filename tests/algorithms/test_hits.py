"""HITS on every device, against NetworkX and the singular value decomposition."""

from __future__ import annotations

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401
from networkx_cases import listed, networkx_of
from search_cases import weighted_graph

import spgraph as sg
from spgraph.algorithms import hits

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")


@pytest.mark.parametrize("weighted", [False, True])
def test_equals_networkx(weighted: bool, device: str) -> None:
    A = weighted_graph(120, 1500)
    hub, authority = nx.hits(networkx_of(A, weighted), tol=1e-14)
    found = hits(A.to(device), weighted=weighted, tol=1e-12, max_iter=500)
    np.testing.assert_allclose(found.hub.to_numpy(), listed(hub), atol=1e-9)
    np.testing.assert_allclose(found.authority.to_numpy(), listed(authority), atol=1e-9)
    assert found.hub.device == found.authority.device == A.to(device).device


def test_it_is_a_singular_pair(device: str) -> None:
    A = sg.generators.kronecker(9, 8, symmetric=False)
    found = hits(A.to(device), tol=1e-12, max_iter=500)
    u, _, v = np.linalg.svd(A.to_scipy().toarray().astype(float))
    for vector, expected in ((found.hub, abs(u[:, 0])), (found.authority, abs(v[0]))):
        np.testing.assert_allclose(vector.to_numpy(), expected / expected.sum(), atol=1e-9)
