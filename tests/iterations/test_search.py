"""The search loop and BFS, on every device, against dense loops, SciPy and the composed form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from fixtures_device import device  # noqa: F401
from scipy.sparse import csgraph
from search_cases import GRAPHS, check_against_dense, check_index_types, matrix, start_value

import spgraph as sg
from spgraph.iterations.level_search import composed, search
from spgraph.semirings import any_pair, any_secondi, lor_land, min_plus, min_secondi, plus_first
from spgraph.validation import validate_bfs

DIRECTIONS = ("auto", "push", "pull")
RINGS = (any_pair, min_secondi, any_secondi, plus_first, min_plus)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("ring", RINGS, ids=repr)
@pytest.mark.parametrize("graph", GRAPHS)
def test_search_equals_dense_loops(graph: str, ring: Any, direction: str, device: str) -> None:
    check_against_dense(graph, ring, direction, device)


@pytest.mark.parametrize("max_depth", [0, 1, 2, 5])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_max_depth(direction: str, max_depth: int, device: str) -> None:
    for graph in ("path", "skewed both", "many sources"):
        check_against_dense(graph, min_secondi, direction, device, max_depth)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_thread_counts_agree(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small graphs run on one thread; here they are made to share."""
    from spgraph.backends.cpu.runtime import pool

    monkeypatch.setattr(pool, "processors", lambda: 3)
    monkeypatch.setattr(pool, "threads_for", lambda work: threads)
    pool.close()
    try:
        for graph in GRAPHS:
            for ring in (any_pair, min_secondi, plus_first):
                for direction in DIRECTIONS:
                    check_against_dense(graph, ring, direction, "cpu")
    finally:
        pool.close()


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_index_types(index: Any, device: str) -> None:
    A = sg.generators.kronecker(9, 8)
    S = scipy.sparse.csr_array((np.ones(A.nvals), A.indices, A.indptr), shape=A.shape)
    S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
    B = sg.Matrix.from_scipy(S, symmetric=True).to(device)
    assert B.indices.dtype == index and B.indptr.dtype == index
    level, parent = sg.bfs(B, 5)
    same_level, same_parent = sg.bfs(A, 5)
    assert level.to("cpu").isequal(same_level) and parent.to("cpu").isequal(same_parent)
    assert parent.dtype == index and level.dtype == np.int32


@pytest.mark.parametrize("offsets", [np.int32, np.int64])
@pytest.mark.parametrize("ids", [np.int32, np.int64])
def test_index_types_of_a_directed_graph(ids: Any, offsets: Any, device: str) -> None:
    """Those of the transpose are the smallest, whatever the matrix has."""
    check_index_types(ids, offsets, device)


# each is compiled in both forms: the others are compared with dense loops above
FUSED = [any_pair, min_secondi, lor_land]
FUSED += [pytest.param(ring, marks=pytest.mark.full) for ring in (plus_first, min_plus)]


@pytest.mark.parametrize("ring", FUSED, ids=repr)
@pytest.mark.parametrize(
    "graph", ["skewed both", "sparse directed", "two components", "many sources"]
)
def test_fused_equals_composed(graph: str, ring: Any, device: str) -> None:
    A = matrix(graph).to(device)
    n = A.nrows
    kind = bool if ring in (any_pair, lor_land) else np.int64 if ring == min_plus else np.int32
    sources = range(0, n, 97)
    start = sg.Vector.from_coo(
        np.array(sources),
        np.array([start_value(ring, s) for s in sources], kind),
        size=n,
        device=device,
    )
    slow = composed(A, start, ring)
    for direction in DIRECTIONS:
        fast = search(A, start, ring, direction=direction)
        assert fast.level.isequal(slow.level)
        if fast.value is not None:
            assert fast.value.isequal(slow.value, check_dtype=True)


@pytest.mark.parametrize("ring", [any_pair, min_secondi], ids=repr)
def test_graphs_of_all_types_of_values_share_a_compiled_kernel(
    ring: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spgraph.backends.cpu.runtime import jit

    found = []

    def module(stem: str, preamble: str) -> Any:
        found.append(original(stem, preamble))
        return found[-1]

    original = jit.module
    monkeypatch.setattr(jit, "module", module)
    A = matrix("sparse directed")
    start = sg.Vector.unit(1, 1, size=A.nrows, dtype=A.index_dtype)
    first = search(A, start, ring)
    compiled = list(found[-1].search.signatures)
    for values in (True, 0.5, np.arange(A.nvals, dtype=np.float32)):
        rows, columns, _ = A.to_coo()
        B = sg.Matrix.from_coo(rows, columns, values, nrows=A.nrows, ncols=A.ncols)
        assert search(B, start, ring).level.isequal(first.level)
    searches = {id(each) for each in found if hasattr(each, "search")}
    assert len(searches) == 1 and list(found[-1].search.signatures) == compiled


def test_values_of_the_matrix_count(device: str) -> None:
    """min_plus in levels: the least sum over the shortest paths in edges, not the shortest
    distance.
    """
    rows, columns, weights = [0, 0, 1, 2, 0], [1, 2, 3, 3, 3], [5, 1, 1, 1, 100]
    A = sg.Matrix.from_coo(rows, columns, weights, nrows=4, ncols=4).to(device)
    start = sg.Vector.from_coo([0], [0], size=4, device=device)
    for direction in DIRECTIONS:
        assert search(A, start, min_plus, direction=direction).value.to_numpy().tolist() == [
            0,
            5,
            1,
            100,
        ]
    B = sg.Matrix.from_coo([0, 0, 1, 2], [1, 2, 3, 3], [5, 1, 1, 9], nrows=4, ncols=4).to(device)
    for direction in DIRECTIONS:
        assert search(B, start, min_plus, direction=direction).value.to_numpy().tolist() == [
            0,
            5,
            1,
            6,
        ]


@pytest.mark.parametrize("scale", [6, 10, 13])
def test_bfs_is_a_valid_graph500_tree(scale: int, device: str) -> None:
    A = sg.generators.kronecker(scale, 16, seed=scale)
    sources = np.flatnonzero(np.diff(A.indptr))[[0, 7, -1]]
    G = A.to(device)
    for source in sources.tolist():
        for direction in DIRECTIONS:
            level, parent = sg.bfs(G, source, direction=direction)
            result = sg.BFS(level.to("cpu"), parent.to("cpu"))
            assert validate_bfs(A, source, result.level, result.parent) == []
            alone = sg.bfs(G, source, parents=False, direction=direction)
            assert alone.parent is None and alone.level.isequal(level)


def test_parents_are_the_least(device: str) -> None:
    A = sg.generators.kronecker(10, 8, seed=3)
    level, parent = sg.bfs(A.to(device), 1)
    levels, parents = level.to_numpy(fill=-1), parent.to_numpy(fill=-1)
    rows, columns, _ = A.to_coo()
    on_shortest_path = (levels[rows] >= 0) & (levels[columns] == levels[rows] + 1)
    least = np.full(A.nrows, A.nrows)
    np.minimum.at(least, columns[on_shortest_path], rows[on_shortest_path])
    found = levels > 0
    np.testing.assert_array_equal(parents[found], least[found])
    assert parents[1] == 1


@pytest.mark.parametrize("directed", [False, True])
def test_levels_equal_scipy(directed: bool, device: str) -> None:
    S = scipy.sparse.random_array((3000, 3000), density=0.001, format="csr", rng=5)
    S = S if directed else (S + S.T).tocsr()
    expected = csgraph.dijkstra(S, unweighted=True, indices=17)
    level = sg.bfs(sg.Matrix.from_scipy(S).to(device), 17).level.to_numpy(fill=-1)
    np.testing.assert_array_equal(level, np.where(np.isinf(expected), -1, expected))


def test_trace_rows(device: str) -> None:
    A = sg.generators.kronecker(12, 16).to(device)
    source = 17
    start = sg.Vector.unit(source, True, size=A.nrows, dtype=bool, device=device)
    found = search(A, start, any_pair, trace=True)
    plain = search(A, start, any_pair)
    assert plain.trace is None and plain.level.isequal(found.level)
    levels = found.level.to_numpy(fill=-1)
    sizes = np.bincount(levels[levels >= 0])
    assert [row.frontier for row in found.trace] == sizes.tolist()
    assert [row.depth for row in found.trace] == list(range(len(found.trace)))
    degrees = np.diff(A.to("cpu").indptr)
    for row in found.trace:
        if row.direction == "push" and row.depth < len(sizes) - 1:
            assert row.edges == degrees[levels == row.depth].sum()
        assert row.edges >= 0 and 0 <= row.seconds < 10
    assert "pull" in {row.direction for row in found.trace}
    for forced in ("push", "pull"):
        rows = search(A, start, any_pair, direction=forced, trace=True).trace
        assert {row.direction for row in rows} == {forced}


def test_a_scipy_matrix_needs_no_transpose(monkeypatch: pytest.MonkeyPatch) -> None:
    """A directed matrix that lives for one call is only pushed."""
    from spgraph.containers import views

    def refuse(A: Any) -> Any:
        raise AssertionError("transposed")

    S = scipy.sparse.random_array((2000, 2000), density=0.02, format="csr", rng=1)
    expected = sg.bfs(sg.Matrix.from_scipy(S), 0)
    monkeypatch.setattr(views, "transposed", refuse)
    level, parent = sg.bfs(S, 0)
    assert level.isequal(expected.level) and parent.isequal(expected.parent)


def test_start_without_entries(device: str) -> None:
    A = matrix("path").to(device)
    found = search(A, sg.Vector.empty(64, np.int32, device=device), min_secondi, trace=True)
    assert found.level.nvals == 0 and found.value.nvals == 0 and found.trace == []


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda A: sg.bfs(A, 64), IndexError, "bfs: source: expected 0 <= source < 64, got 64"),
        (lambda A: sg.bfs(A, -1), IndexError, "got -1"),
        (lambda A: sg.bfs(A, 1.0), TypeError, "bfs: source: expected an integer, got 1.0"),
        (lambda A: sg.bfs(A, True), TypeError, "got True"),
        (lambda A: sg.bfs(A, None), TypeError, "got None"),
        (
            lambda A: sg.bfs(np.ones((2, 3)), 0),
            ValueError,
            "bfs: A: expected a square matrix, got 2 x 3",
        ),
        (
            lambda A: sg.bfs(A, 0, direction="up"),
            ValueError,
            "direction: expected 'auto', 'push' or 'pull', got 'up'",
        ),
        (
            lambda A: sg.bfs(A, 0, max_depth=-2),
            ValueError,
            "max_depth: expected an integer >= 0 or None, got -2",
        ),
        (lambda A: sg.bfs(A, 0, max_depth=1.5), ValueError, "max_depth"),
        (lambda A: sg.bfs("graph", 0), TypeError, "A: expected a Matrix"),
        (
            lambda A: search(A, sg.Vector.empty(5), any_pair),
            ValueError,
            "search: start.size 5 != A.nrows 64",
        ),
        (
            lambda A: search(A, sg.Vector.empty(64), "min"),
            TypeError,
            "semiring: expected a Semiring",
        ),
    ],
)
def test_bad_input(call: Any, error: type[Exception], message: str) -> None:
    A = matrix("path")
    with pytest.raises(error, match=message.replace("(", r"\(").replace(")", r"\)")):
        call(A)
    assert sg.bfs(A, 0).level.nvals == 64  # everything is still usable


@pytest.mark.gpu
def test_start_on_another_device() -> None:
    with pytest.raises(RuntimeError, match=r"start is on cpu, A on cuda:0"):
        search(matrix("path").to("cuda"), sg.Vector.empty(64), any_pair)


@pytest.mark.gpu
def test_long_rows_and_deep_graphs_on_a_gpu() -> None:
    """Rows beyond what one warp takes, frontiers that outgrow a block, more levels than a grid
    could meet for.
    """
    n = 300_000
    hub = np.arange(5, n - 5)
    path = np.arange(n - 10, n - 1)
    rows, columns = np.r_[np.zeros(hub.size, int), path], np.r_[hub, path + 1]
    A = sg.Matrix.from_coo(
        np.r_[rows, columns], np.r_[columns, rows], nrows=n, ncols=n, symmetric=True
    )
    B = sg.generators.grid(3, 40_000)
    for graph, source in ((A, n - 1), (A, 0), (B, 0)):
        expected = sg.bfs(graph, source)
        for direction in DIRECTIONS:
            level, parent = sg.bfs(graph.to("cuda"), source, direction=direction)
            assert level.to("cpu").isequal(expected.level) and parent.to("cpu").isequal(
                expected.parent
            )


@pytest.mark.gpu
@pytest.mark.parametrize("ring", [any_pair, min_secondi, plus_first], ids=repr)
def test_large_graph_equals_cpu(ring: Any) -> None:
    A = sg.generators.kronecker(18, 16)
    G = A.to("cuda")
    for source in np.flatnonzero(np.diff(A.indptr))[[3, 1000, -5]].tolist():
        one = 1.0 if ring == plus_first else source
        start = sg.Vector.from_coo([source], [one], size=A.nrows)
        expected = search(A, start, ring)
        for direction in DIRECTIONS:
            found = search(G, start.to("cuda"), ring, direction=direction)
            assert found.level.to("cpu").isequal(expected.level)
            if found.value is not None:
                assert found.value.to("cpu").isequal(expected.value)
