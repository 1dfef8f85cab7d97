"""Eigenvector centrality on every device, against NetworkX and dense algebra."""

from __future__ import annotations

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401
from networkx_cases import listed, networkx_of
from search_cases import matrix, weighted_graph

from spgraph.algorithms import eigenvector_centrality

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")


@pytest.mark.parametrize("weighted", [False, True])
def test_equals_networkx(weighted: bool, device: str) -> None:
    A = weighted_graph(120, 1500)
    weight = "weight" if weighted else None
    expected = nx.eigenvector_centrality(networkx_of(A), tol=1e-13, max_iter=5000, weight=weight)
    found = eigenvector_centrality(A.to(device), tol=1e-13, max_iter=5000, weighted=weighted)
    np.testing.assert_allclose(found.to_numpy(), listed(expected), atol=1e-10)


@pytest.mark.parametrize(
    "name",
    ["star both", "complete", "cycle", "loop", "one", pytest.param("path", marks=pytest.mark.long)],
)
def test_small_graphs(name: str, device: str) -> None:
    A = matrix(name)
    x = eigenvector_centrality(A.to(device), tol=1e-12, max_iter=100_000).to_numpy()
    D = A.to_scipy().toarray().astype(float)
    value = x @ (x @ D)
    np.testing.assert_allclose(x @ D, value * x, atol=1e-4)
    assert np.linalg.norm(x) == pytest.approx(1)
