"""Trusses on every device, against NetworkX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401
from networkx_cases import GRAPHS, TRIANGLES, case, triangular

import spgraph as sg
from spgraph.algorithms.k_truss import k_truss
from spgraph.errors import DimensionMismatch, DomainMismatch

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")


def check(found: sg.Matrix, graph: nx.Graph, k: int) -> None:
    """The edges are those of NetworkX's truss, both ways, each with the number of its triangles."""
    expected = nx.k_truss(graph, k)
    triangles = {
        (i, j): len(set(expected[i]) & set(expected[j]))
        for edge in expected.edges
        for i, j in (edge, edge[::-1])
    }
    rows, columns, values = (array.tolist() for array in found.to("cpu").to_coo())
    assert found.dtype == np.int64 and found.symmetric
    assert dict(zip(zip(rows, columns, strict=True), values, strict=True)) == triangles


@pytest.mark.parametrize("k", [2, 3, 4, 6])
@pytest.mark.parametrize("name", GRAPHS)
def test_equals_networkx(name: str, k: int, device: str) -> None:
    S, both = case(name)
    check(k_truss(sg.Matrix.from_scipy(S).to(device), k), both, k)


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("name", TRIANGLES)
def test_graphs_of_triangles(name: str, loops: bool, device: str) -> None:
    G, A = triangular(name, loops)
    for k in (3, 4, 5):
        check(k_truss(A.to(device), k), G, k)


def test_an_edge_goes_only_after_others_went(device: str) -> None:
    # a strip of triangles beside a complete graph: each round takes the outermost edges
    G = nx.complete_graph(5)
    for v in range(5, 30):
        G.add_edges_from([(v - 1, v), (v - 2, v)])
    A = sg.Matrix.from_networkx(G, weight=None).to(device)
    check(k_truss(A, 4), G, 4)
    assert k_truss(A, 3).nvals == A.nvals and k_truss(A, 4).nvals == 20


# a narrow type with a sign and one without are counted in int64: 256 would be 0 in each
@pytest.mark.parametrize("kind", ["bool", "int8", "uint8", "float32"])
def test_values_are_not_looked_at(kind: str, device: str) -> None:
    G = nx.complete_bipartite_graph(2, 256)
    G.add_edge(0, 1)  # in 256 triangles, every other edge in one
    rows, columns, _ = sg.Matrix.from_networkx(G, weight=None).to_coo()
    values = (np.arange(rows.size) % 3).astype(kind)
    A = sg.Matrix.from_coo(rows, columns, values, nrows=len(G), ncols=len(G)).to(device)
    check(k_truss(A, 3), G, 3)
    assert k_truss(A, 4).nvals == 0


def test_no_vertices_what_matrix_takes_and_bad_arguments(device: str) -> None:
    assert k_truss(sg.Matrix.empty(0, 0, device=device), 3).shape == (0, 0)
    S, _ = case("directed")
    assert k_truss(S, 3).isequal(k_truss(sg.Matrix.from_scipy(S), 3))
    assert k_truss(S, 2**62).nvals == 0
    bad: Any
    for bad in (3.0, True, "3", None):
        with pytest.raises(DomainMismatch, match="k_truss: k: expected an integer, got"):
            k_truss(S, bad)
    for bad in (1, -1, 2**63):
        with pytest.raises(ValueError, match="k_truss: k: expected an integer"):
            k_truss(S, bad)
    with pytest.raises(DimensionMismatch, match="k_truss: A: expected a square matrix"):
        k_truss(sg.Matrix.empty(2, 3), 3)
