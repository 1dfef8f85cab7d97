"""Closeness centrality on every device, against NetworkX."""

from __future__ import annotations

import numpy as np
import pytest
from dependencies_cases import matrix, networkx_of, same
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph.algorithms.closeness_centrality import closeness_centrality
from spgraph.errors import IndexOutOfBound
from spgraph.iterations import path_dependencies as loops

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")


LONG = [pytest.param(graph, marks=pytest.mark.long) for graph in ("path", "cycle", "rmat 8")]


@pytest.mark.parametrize("graph", ["one", "two components", "acyclic", *LONG])
def test_equals_networkx(graph: str, device: str) -> None:
    A = matrix(graph).to(device)
    G = networkx_of(graph)
    for improved in (True, False):
        expected = nx.closeness_centrality(G, wf_improved=improved)
        got = closeness_centrality(A, wf_improved=improved)
        same(got, np.array([expected[v] for v in range(A.nrows)]))


def test_some_vertices(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "BATCH", 600)
    A = matrix("rmat 8").to(device)
    got = closeness_centrality(A, sources=[200, 7, 31, 7])
    assert got.to("cpu").to_coo()[0].tolist() == [7, 31, 200]
    everywhere = closeness_centrality(A).to_numpy()
    np.testing.assert_array_equal(got.to("cpu").to_coo()[1], everywhere[[7, 31, 200]])
    assert closeness_centrality(sg.Matrix.empty(0, 0).to(device)).size == 0
    with pytest.raises(IndexOutOfBound, match="closeness_centrality: sources"):
        closeness_centrality(A, sources=[256])
