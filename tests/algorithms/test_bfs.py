"""BFS on every device, against SciPy, NumPy and the rules of Graph500; real graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from fixtures_device import device  # noqa: F401
from scipy.sparse import csgraph
from search_cases import matrix

import spgraph as sg
from spgraph.validation import validate_bfs

DIRECTIONS = ("auto", "push", "pull")


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


@pytest.mark.parametrize("scale", [6, 10, pytest.param(13, marks=pytest.mark.long)])
def test_it_is_a_valid_graph500_tree(scale: int, device: str) -> None:
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


@pytest.mark.parametrize("parents", [True, False])
@pytest.mark.parametrize("shards", [None, 2])
def test_a_trace_counts_what_each_level_holds(
    parents: bool, shards: int | None, device: str
) -> None:
    A = sg.generators.kronecker(8, 8, seed=3).to(device)
    G = A if shards is None else A.distribute(shards, devices=[device] * shards)
    plain = sg.bfs(G, 1, parents=parents)
    found = sg.bfs(G, 1, parents=parents, trace=True)
    assert found._fields == ("level", "parent", "trace") and plain._fields == ("level", "parent")
    level = found.level.to_numpy(fill=-1)
    np.testing.assert_array_equal(level, plain.level.to_numpy(fill=-1))
    assert (found.parent is None) == (plain.parent is None) == (not parents)
    assert [row.frontier for row in found.trace] == np.bincount(level[level >= 0]).tolist()
    assert [row.depth for row in found.trace] == list(range(level.max() + 1))
    assert {row.direction for row in found.trace} <= {"push", "pull"}
    assert sum(row.edges for row in found.trace) > 0


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


def test_a_scipy_matrix_needs_no_transpose(monkeypatch: pytest.MonkeyPatch) -> None:
    """A directed matrix that lives for one call is only pushed."""
    from spgraph.containers.methods import views

    def refuse(A: Any) -> Any:
        raise AssertionError("transposed")

    S = scipy.sparse.random_array((2000, 2000), density=0.02, format="csr", rng=1)
    expected = sg.bfs(sg.Matrix.from_scipy(S), 0)
    monkeypatch.setattr(views, "transposed", refuse)
    level, parent = sg.bfs(S, 0)
    assert level.isequal(expected.level) and parent.isequal(expected.parent)


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


@pytest.mark.parametrize(
    "name", ["usa-road-NY.gr.xz", "usa-road-BAY.mtx.gz", "soc-Epinions1.txt.gz"]
)
def test_real_graphs(name: str, device: str, shared_data: Path) -> None:
    A = sg.read(shared_data / name)
    S, G = A.to_scipy().astype(np.float64), A.to(device)
    for source in (0, 1234, 70_000):
        expected = csgraph.dijkstra(S, unweighted=True, indices=source)
        for direction in ("auto", "push"):
            level, parent = sg.bfs(G, source, direction=direction)
            levels = level.to_numpy(fill=-1)
            np.testing.assert_array_equal(levels, np.where(np.isinf(expected), -1, expected))
            parents = parent.to_numpy(fill=-1)
            found = np.flatnonzero(levels > 0)
            np.testing.assert_array_equal(levels[parents[found]], levels[found] - 1)


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
            "^bfs: direction: expected 'auto', 'push' or 'pull', got 'up'",
        ),
        (
            lambda A: sg.bfs(A, 0, max_depth=-2),
            ValueError,
            "^bfs: max_depth: expected an integer >= 0 or None, got -2",
        ),
        (lambda A: sg.bfs(A, 0, max_depth=1.5), ValueError, "max_depth"),
        (lambda A: sg.bfs("graph", 0), TypeError, "A: expected a Matrix"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], message: str) -> None:
    A = matrix("path")
    with pytest.raises(error, match=message):
        call(A)
    assert sg.bfs(A, 0).level.nvals == 64  # everything is still usable
