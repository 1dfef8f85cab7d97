"""Triangles and clustering coefficients against NetworkX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph.errors import DimensionMismatch

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")

GRAPHS: dict[str, Any] = {
    "one": lambda: nx.empty_graph(1),
    "no edges": lambda: nx.empty_graph(5),
    "path": lambda: nx.path_graph(9),
    "star": lambda: nx.star_graph(40),
    "cycle of three": lambda: nx.cycle_graph(3),
    "complete": lambda: nx.complete_graph(20),
    "two components": lambda: nx.disjoint_union(nx.complete_graph(5), nx.cycle_graph(4)),
    "grid": lambda: nx.triangular_lattice_graph(6, 6),
    "random": lambda: nx.gnp_random_graph(120, 0.1, seed=3),
    "power law": lambda: nx.barabasi_albert_graph(400, 6, seed=4),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("loops", [False, True])
def test_equals_networkx(name: str, loops: bool, device: str) -> None:
    G = nx.convert_node_labels_to_integers(GRAPHS[name]())
    A = sg.Matrix.from_networkx(G, weight=None)
    if loops:
        S = A.to_scipy().astype(np.int64) + scipy.sparse.eye_array(A.nrows, dtype=np.int64)
        A = sg.Matrix.from_scipy(S.tocsr(), symmetric=True)
    A = A.to(device)
    assert sg.triangle_count(A) == sum(nx.triangles(G).values()) // 3
    expected = nx.clustering(G)
    found = sg.clustering(A)
    assert found.storage == "full" and found.dtype == np.float64
    assert np.allclose(found.to_numpy(), [expected[v] for v in G], rtol=1e-15)


def test_directions_and_values_do_not_matter(device: str) -> None:
    G = nx.gnp_random_graph(80, 0.15, seed=1, directed=True)
    A = sg.Matrix.from_networkx(G).to(device)
    both = G.to_undirected()
    assert sg.triangle_count(A) == sum(nx.triangles(both).values()) // 3
    assert np.allclose(sg.clustering(A).to_numpy(), [nx.clustering(both)[v] for v in G])
    heavy = A.dup(np.float32)
    heavy._values[:] = 0.0  # an entry of value zero is an edge all the same
    assert sg.triangle_count(heavy) == sg.triangle_count(A)


def test_kronecker_graph_against_scipy(device: str) -> None:
    A = sg.generators.kronecker(11, 16)
    L = scipy.sparse.tril(A.to_scipy().astype(np.int64), -1, format="csr")
    assert sg.triangle_count(A.to(device)) == int((L @ L.T).multiply(L).sum())


def test_bad_input() -> None:
    for call in (sg.triangle_count, sg.clustering):
        assert call(sg.Matrix.empty(0, 0)) is not None
        with pytest.raises(DimensionMismatch, match=f"{call.__name__}: A: expected a square"):
            call(sg.Matrix.empty(2, 3))
