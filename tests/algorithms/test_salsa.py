"""SALSA on every device, against shares of edges."""

from __future__ import annotations

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401
from scipy.sparse import csgraph
from search_cases import matrix, weighted_graph

from spgraph.algorithms import salsa

LONG = pytest.param("skewed both", marks=pytest.mark.long)


@pytest.mark.parametrize("name", ["dense directed", "two components", "star out", LONG])
def test_it_is_the_share_of_edges_in_each_component(name: str, device: str) -> None:
    """Lempel and Moran, proposition 6: within a component of the graph of hubs and authorities the
    walker stands on a vertex in proportion to its degree; components share by their hubs.
    """
    A = matrix(name)
    D = A.to_scipy().toarray() != 0
    n = A.nrows
    both = np.block([[np.zeros((n, n)), D], [D.T, np.zeros((n, n))]])
    part = csgraph.connected_components(both)[1]
    out, into = D.sum(axis=1), D.sum(axis=0)
    hubs = np.bincount(part[:n][out > 0], minlength=part.max() + 1) / (out > 0).sum()
    edges = np.bincount(part[:n], weights=out, minlength=part.max() + 1)
    found = salsa(A.to(device), tol=1e-12, max_iter=20_000)
    for vector, degree, place in ((found.hub, out, part[:n]), (found.authority, into, part[n:])):
        expected = hubs[place] * degree / np.maximum(edges[place], 1)
        np.testing.assert_allclose(vector.to_numpy(), expected, atol=1e-8)
        assert vector.to_numpy().sum() == pytest.approx(1, abs=1e-12)


def test_weights(device: str) -> None:
    A = weighted_graph(60, 900)
    D = A.to_scipy().toarray()
    found = salsa(A.to(device), tol=1e-13, max_iter=20_000, weighted=True)
    out, into = D.sum(axis=1), D.sum(axis=0)
    np.testing.assert_allclose(found.hub.to_numpy(), out / out.sum(), atol=1e-9)
    np.testing.assert_allclose(found.authority.to_numpy(), into / into.sum(), atol=1e-9)
