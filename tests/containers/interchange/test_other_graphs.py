"""Graphs of NetworkX and igraph and containers of python-graphblas, in and out."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import spgraph as sg
from spgraph.errors import DimensionMismatch, DomainMismatch

# entry 0 at (2, 2), vertex 4 without edges
D = sg.Matrix.from_coo([0, 0, 1, 2, 3], [1, 2, 0, 2, 1], [2.0, 3, 2, 0, 5], nrows=5, ncols=5)
U = sg.Matrix.from_coo([0, 1, 1, 2, 3], [1, 0, 2, 1, 3], [2, 2, 7, 7, 4], nrows=5, ncols=5)


@pytest.fixture
def igraph() -> Any:
    return pytest.importorskip("igraph")


@pytest.fixture
def gb() -> Any:
    return pytest.importorskip("graphblas")


@pytest.mark.parametrize("library", ["networkx", "igraph"])
@pytest.mark.parametrize("A", [D, U, D.pattern(), U.pattern(), sg.Matrix.empty(3, 3), D.T])
def test_out_and_in(library: str, A: sg.Matrix) -> None:
    pytest.importorskip(library, reason="pip install 'spgraph[dev]'")
    G = getattr(A, f"to_{library}")()
    assert G.is_directed() is not A.is_symmetric()
    B = sg.Matrix(G)
    assert B.isequal(A) and B.shape == A.shape
    assert B.symmetric is (True if A.is_symmetric() else None)
    if A.nvals and not (A.dtype == bool and library == "networkx"):
        assert B.dtype == A.dtype
    both = getattr(A, f"to_{library}")(directed=True)
    assert both.is_directed() and sg.Matrix(both).isequal(A)
    bare = getattr(A, f"to_{library}")(weight=None)
    assert sg.Matrix(bare).isequal(A.pattern("int64"))
    other = getattr(A, f"to_{library}")(weight="length")
    from_library = getattr(sg.Matrix, f"from_{library}")
    assert from_library(other, weight="length").isequal(A)
    assert from_library(other, weight=None).isequal(A.pattern())


def test_what_networkx_gets() -> None:
    networkx = pytest.importorskip("networkx", reason="pip install 'spgraph[dev]'")
    G = D.to_networkx(names=["a", "b", "c", "d", "e"])
    assert type(G) is networkx.DiGraph and list(G) == ["a", "b", "c", "d", "e"]
    assert G["a"]["c"] == {"weight": 3.0} and type(G["a"]["c"]["weight"]) is float
    assert G["c"]["c"] == {"weight": 0.0} and G.number_of_edges() == 5
    H = U.to_networkx(names=np.array([10, 20, 30, 40, 50]))
    assert type(H) is networkx.Graph and H.number_of_edges() == 3 and next(iter(H)) == 10
    assert type(next(iter(H))) is int and H[40][40] == {"weight": 4} and H.degree(50) == 0
    A, ids = sg.from_edges({"source": ["x", "y"], "target": ["y", "z"]})
    assert list(A.to_networkx(names=ids).edges) == [("x", "y"), ("y", "z")]
    assert "weight" not in D.to_networkx(weight=None)[0][1]


def test_multigraphs_sum_parallel_edges() -> None:
    networkx = pytest.importorskip("networkx", reason="pip install 'spgraph[dev]'")
    for kind in (networkx.MultiGraph, networkx.MultiDiGraph):
        G = kind()
        G.add_nodes_from("abc")
        G.add_weighted_edges_from([("a", "b", 2), ("a", "b", 3), ("b", "b", 4)])
        G.add_edge("a", "c")  # without a weight: 1
        expected = np.array([[0, 5, 1], [0, 4, 0], [0, 0, 0]])
        both = expected + expected.T - np.diag(expected.diagonal())
        assert sg.Matrix(G).toarray().tolist() == (expected if G.is_directed() else both).tolist()


def test_a_loop_of_infinite_weight() -> None:
    networkx = pytest.importorskip("networkx", reason="pip install 'spgraph[dev]'")
    for kind in (networkx.Graph, networkx.MultiGraph, networkx.DiGraph):
        G = kind()
        G.add_weighted_edges_from([(0, 0, np.inf), (0, 1, 2.0)])
        A = sg.Matrix(G)
        assert A[0, 0] == np.inf and A.nvals == (2 if G.is_directed() else 3)


def test_of_igraph(igraph: Any) -> None:
    ends, weights = [(0, 1), (0, 1), (1, 1), (0, 2)], [2.0, 3, 4, 1]
    for directed in (True, False):
        G = igraph.Graph(n=4, edges=ends, directed=directed)
        counts = np.array([[0, 2, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
        sums = np.array([[0, 5, 1, 0], [0, 4, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
        if not directed:
            counts, sums = (x + x.T - np.diag(x.diagonal()) for x in (counts, sums))
        A = sg.Matrix(G)
        assert A.toarray().tolist() == counts.tolist() and A.symmetric is (not directed or None)
        G.es["weight"] = weights
        assert sg.Matrix(G).toarray().tolist() == sums.tolist()
        G.es["weight"] = ["a", 1, 2, None]
        with pytest.raises(DomainMismatch, match="from_igraph: weight: expected a number"):
            sg.Matrix(G)
    G = D.to_igraph(names=list("abcde"))
    assert G.vs["name"] == list("abcde") and G.es["weight"] == [2.0, 3.0, 2.0, 0.0, 5.0]
    assert sg.Matrix(igraph.Graph()).shape == (0, 0)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "float64"])
def test_containers_of_graphblas(gb: Any, dtype: str) -> None:
    for A in (D.astype(dtype), U.astype(dtype).T, D.pattern(dtype), sg.Matrix.empty(2, 3, dtype)):
        M = A.to_graphblas()
        assert M.dtype == gb.dtypes.lookup_dtype(dtype) and M.shape == A.shape
        rows, columns, values = M.to_coo()
        assert [rows.tolist(), columns.tolist(), values.tolist()] == [
            x.tolist() for x in A.to_coo()
        ]
        B = sg.Matrix(M)
        assert B.isequal(A, check_dtype=True) and B.indices.dtype == np.int32
        B[0, 0] = 1
        assert M.isequal(A.to_graphblas())
        v = A[0]
        w = v.to_graphblas()
        assert w.size == v.size and sg.Vector(w).isequal(v, check_dtype=True)
    assert D.pattern().to_graphblas().ss.is_iso and sg.Matrix(D.pattern().to_graphblas()).iso
    by_columns = gb.Matrix.from_csc([0, 1, 3], [1, 0, 2], np.array([4, 5, 6], dtype), nrows=3)
    assert sg.Matrix(by_columns).toarray().T.tolist() == by_columns.T.new().to_dense(0).tolist()


def test_operations_take_those_of_graphblas(gb: Any) -> None:
    M = D.to_graphblas()
    assert sg.mxm(M, M).isequal(D @ D) and sg.bfs(M, 0).level.isequal(sg.bfs(D, 0).level)
    huge = gb.Vector.from_coo([2**40], [3], size=2**50)
    assert [*iter(sg.Vector(huge))] == [(2**40, 3)] and sg.Vector(huge).to_graphblas().isequal(huge)
    with pytest.raises(DomainMismatch, match="Matrix: x: dtype: expected bool"):
        sg.Matrix(gb.Matrix.from_coo([0], [0], [1j]))


def test_shards_and_mistakes() -> None:
    pytest.importorskip("networkx", reason="pip install 'spgraph[dev]'")
    assert sg.Matrix(D.distribute(2).to_networkx()).isequal(D)
    for call, error, message in (
        (lambda: sg.Matrix([[1, 2]]).to_networkx(), DimensionMismatch, "square Matrix, got 1 x 2"),
        (lambda: D.to_networkx(names="ab"), DimensionMismatch, "names: expected one for each of 5"),
        (lambda: D.to_networkx(names="aabcd"), ValueError, "names: expected distinct"),
        (lambda: D.to_networkx(directed=False), ValueError, "directed: .* not symmetric"),
    ):
        with pytest.raises(error, match=f"to_networkx: .*{message}"):
            call()


@pytest.mark.gpu
def test_from_a_gpu() -> None:
    pytest.importorskip("networkx", reason="pip install 'spgraph[dev]'")
    assert sg.Matrix(D.to("cuda").to_networkx()).isequal(D)


@pytest.mark.parametrize(
    ("method", "library", "install"),
    [
        ("to_networkx", "networkx", r"'spgraph\[networkx\]'"),
        ("to_igraph", "igraph", r"'spgraph\[igraph\]'"),
        ("to_graphblas", "graphblas", r"'python-graphblas\[default\]'"),
        ("to_torch", "torch", "torch"),
        ("to_jax", "jax", "jax"),
    ],
)
def test_libraries_that_are_missing(
    method: str, library: str, install: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ModuleNotFoundError, match=f"{method}: needs .* pip install {install}$"):
        getattr(D, method)()
    assert sg.Matrix([[1]]).nvals == 1  # a module that is None stands for no library


@pytest.mark.parametrize("library", ["networkx", "igraph"])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, None, 2], "got None for 1 of 3; weight=None makes a pattern"),
        ([None, None, None], "got None for 3 of 3"),
        (["2", 1, 3], "got '2'"),
        ([[1], [2], [3]], r"got \[1\]"),
        ([[1], [2, 3], 3], r"got \[1\]"),
        ([1j, 2, 3], "got 1j"),
        ([2**64, 1, 3], f"got {2**64}"),
        ([2**53 + 1, 0.5, 3], f"integers that float64 holds, .* got {2**53 + 1}"),
        ([np.float32(0.5), 2**53 + 1, 3], f"integers that float64 holds, .* got {2**53 + 1}"),
    ],
)
def test_weights_that_are_refused(library: str, weights: list[Any], message: str) -> None:
    """Each for directed graphs and others."""
    module = pytest.importorskip(library, reason="pip install 'spgraph[dev]'")
    ends = [(0, 1), (1, 2), (2, 2)]
    for directed in (True, False):
        if library == "igraph":
            G = module.Graph(ends, directed=directed)
            G.es["weight"] = weights
        else:
            G = module.DiGraph() if directed else module.Graph()
            for (u, v), value in zip(ends, weights, strict=True):
                G.add_edge(u, v, weight=value)
        with pytest.raises(DomainMismatch, match=f"from_{library}: weight: expected .*{message}"):
            sg.Matrix(G)
        assert getattr(sg.Matrix, f"from_{library}")(G, weight=None).dtype == bool


def test_parallel_edges_of_networkx_do_not_wrap_around() -> None:
    networkx = pytest.importorskip("networkx", reason="pip install 'spgraph[dev]'")
    for kind in (networkx.MultiGraph, networkx.MultiDiGraph):
        G = kind([(0, 1, {"weight": np.int8(100)}), (0, 1, {"weight": np.int8(100)})])
        with pytest.raises(OverflowError, match="expected numbers that int8 holds, got about 200"):
            sg.Matrix(G)
        G = kind([(0, 0, {"weight": 1}), (0, 0, {"weight": 2**63 - 2})])
        assert sg.Matrix(G)[0, 0] == 2**63 - 1


def test_nodes_of_networkx() -> None:
    networkx = pytest.importorskip("networkx", reason="pip install 'spgraph[dev]'")
    G = networkx.DiGraph([("a", "b"), ("b", "c")])
    A = sg.Matrix.from_networkx(G, nodelist=(node for node in "cb"))
    assert A.to_dense().tolist() == [[0, 0], [1, 0]]
    assert sg.Matrix.from_networkx(G, nodelist=[]).shape == (0, 0)
    for nodes, got in ((["a", "x"], "'x', which is none"), (["a", "a"], "one of them twice")):
        for given in (G, networkx.DiGraph()):
            with pytest.raises(ValueError, match="nodelist: expected distinct nodes of G, got"):
                sg.Matrix.from_networkx(given, nodelist=nodes)
        with pytest.raises(ValueError, match=got):
            sg.Matrix.from_networkx(G, nodelist=nodes)
