"""The five Graph500 checks accept right trees and name what is wrong with wrong ones."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import spgraph.validation as validation
from spgraph.containers import Matrix, Vector
from spgraph.errors import DimensionMismatch, IndexOutOfBound
from spgraph.validation import validate_bfs

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")


def matrix(n: int, edges: list[tuple[int, int]], *, symmetric: bool = False) -> Matrix:
    rows, columns = np.array(edges, np.int64).reshape(-1, 2).T
    if symmetric:
        rows, columns = np.concatenate([rows, columns]), np.concatenate([columns, rows])
    S = scipy.sparse.csr_array((np.ones(rows.size), (rows, columns)), shape=(n, n))
    return Matrix.from_scipy(S)


def vector(values: list[int]) -> Vector:
    return Vector.from_dense(np.array(values, np.int64), missing=-1)


def tree(n: int, edges: list[tuple[int, int]], source: int) -> tuple[list[int], list[int]]:
    """Levels and parents by NetworkX, -1 where unreached."""
    G = nx.DiGraph()
    G.add_nodes_from(range(n))
    G.add_edges_from(edges)
    level, parent = [-1] * n, [-1] * n
    level[source], parent[source] = 0, source
    for u, v in nx.bfs_edges(G, source):
        level[v], parent[v] = level[u] + 1, u
    return level, parent


def checks(
    A: Matrix, source: int, level: list[int], parent: list[int], **options: int
) -> list[int]:
    return [f.check for f in validate_bfs(A, source, vector(level), vector(parent), **options)]


# 0 - 1 - 2 - 3 and 0 - 4 - 3, undirected; 5 - 6 apart
EDGES = [(0, 1), (1, 2), (2, 3), (0, 4), (4, 3), (5, 6)]
LEVEL = [0, 1, 2, 2, 1, -1, -1]
PARENT = [0, 0, 1, 4, 0, -1, -1]


@pytest.fixture
def A() -> Matrix:
    return matrix(7, EDGES, symmetric=True)


def test_right_tree_passes(A: Matrix) -> None:
    assert validate_bfs(A, 0, vector(LEVEL), vector(PARENT)) == []


@given(st.data())
def test_every_tree_of_networkx_passes(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 12))
    vertex = st.integers(0, n - 1)
    edges = data.draw(st.lists(st.tuples(vertex, vertex), max_size=40))
    source = data.draw(vertex)
    level, parent = tree(n, edges, source)
    assert checks(matrix(n, edges), source, level, parent) == []


@given(st.data())
def test_every_changed_level_or_foreign_parent_is_found(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 10))
    vertex = st.integers(0, n - 1)
    edges = data.draw(st.lists(st.tuples(vertex, vertex), min_size=1, max_size=30))
    source = data.draw(vertex)
    level, parent = tree(n, edges, source)
    changed = data.draw(vertex)
    if data.draw(st.booleans()):
        level[changed] = data.draw(st.integers(-1, n).filter(lambda x: x != level[changed]))
    else:
        right = {u for u, v in edges if v == changed and level[u] == level[changed] - 1}
        right |= {source} if changed == source else set()
        right |= {-1} if level[changed] < 0 else set()
        parent[changed] = data.draw(st.integers(-1, n - 1).filter(lambda x: x not in right))
    assert checks(matrix(n, edges), source, level, parent)


@pytest.mark.parametrize(
    ("level", "parent", "check", "message"),
    [
        (LEVEL, [1, 0, 1, 4, 0, -1, -1], 1, "source 0 has parent 1; expected itself"),
        (LEVEL, [0, 0, 3, 2, 0, -1, -1], 1, "vertex 2 does not lead to source 0"),
        (LEVEL, [0, 0, 1, 9, 0, -1, -1], 1, "vertex 3 has parent 9, which is no vertex of 7"),
        (LEVEL, [0, 0, 1, 4, -1, -1, -1], 1, "vertex 4 has level 1 and lacks a parent"),
        ([0, 1, 2, 2, -1, -1, -1], PARENT, 1, "vertex 4 has parent 0 and lacks a level"),
        ([1, 2, 3, 3, 2, -1, -1], PARENT, 2, "source 0 is at level 1; expected level 0"),
        ([0, 1, 3, 2, 1, -1, -1], PARENT, 2, "vertex 2 at level 3 has parent 1 at level 1"),
        ([0, 1, 2, 3, 1, -1, -1], [0, 0, 1, 2, 0, -1, -1], 3, "edge (4, 3) leads from level 1"),
        ([0, 1, 2, -1, 1, -1, -1], [0, 0, 1, -1, 0, -1, -1], 4, "to vertex 3, which was not"),
        (LEVEL, [0, 0, 4, 4, 0, -1, -1], 5, "vertex 2 has parent 4, but no edge leads from 4 to 2"),
    ],
)
def test_each_check_names_its_vertex(
    A: Matrix, level: list[int], parent: list[int], check: int, message: str
) -> None:
    failures = validate_bfs(A, 0, vector(level), vector(parent))
    found = {failure.check: failure.message for failure in failures}
    assert message in found[check]
    assert [failure.check for failure in failures] == sorted(found)


def test_a_directed_edge_counts_one_way() -> None:
    A = matrix(3, [(0, 1), (2, 0)])
    assert checks(A, 0, [0, 1, -1], [0, 0, -1]) == []
    assert checks(A, 0, [0, 1, 1], [0, 0, 0]) == [5]


def test_edges_that_leave_the_last_level_are_free(A: Matrix) -> None:
    level, parent = [0, 1, -1, -1, 1, -1, -1], [0, 0, -1, -1, 0, -1, -1]
    assert checks(A, 0, level, parent) == [4]
    assert checks(A, 0, level, parent, max_depth=1) == []


def test_the_pass_over_the_edges_does_not_depend_on_its_pieces(
    A: Matrix, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = vector([0, 1, 2, 3, 1, -1, -1]), vector([0, 0, 4, 2, 0, -1, -1])
    expected = validate_bfs(A, 0, *wrong)
    assert [failure.check for failure in expected] == [3, 5]
    for chunk in range(1, A.nvals + 1):
        monkeypatch.setattr(validation, "CHUNK", chunk)
        assert validate_bfs(A, 0, *wrong) == expected
        assert validate_bfs(A, 0, vector(LEVEL), vector(PARENT)) == []


def test_a_long_path_and_a_long_cycle() -> None:
    n = 1000
    A = matrix(n, [(i, i + 1) for i in range(n - 1)], symmetric=True)
    level, parent = list(range(n)), [0, *range(n - 1)]
    assert checks(A, 0, level, parent) == []
    parent[500] = 501
    assert checks(A, 0, level, parent)[:2] == [1, 2]


def test_bad_input(A: Matrix) -> None:
    with pytest.raises(IndexOutOfBound, match="source: expected a vertex from 0 to 6, got 7"):
        validate_bfs(A, 7, vector(LEVEL), vector(PARENT))
    with pytest.raises(DimensionMismatch, match="parent: expected size 7, the rows of A, got 3"):
        validate_bfs(A, 0, vector(LEVEL), vector([0, 0, 0]))
    with pytest.raises(DimensionMismatch, match="A: expected a square matrix, got 2 x 3"):
        wide = Matrix.from_scipy(scipy.sparse.csr_array((2, 3)))
        validate_bfs(wide, 0, vector([0, 1]), vector([0, 0]))
