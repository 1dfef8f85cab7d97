"""The five Graph500 checks accept right trees and name what is wrong with wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import spgraph as sg
from spgraph.containers import Matrix, Vector
from spgraph.errors import DimensionMismatch, DomainMismatch, IndexOutOfBound
from spgraph.validation import validate_bfs, validate_sssp

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


@pytest.mark.parametrize("wrong", ["a", 1.5, -1, True, [3], np.array([3]), np.float64(3), np.inf])
def test_a_depth_that_is_none(wrong: Any, A: Matrix) -> None:
    said = r"^validate_bfs: max_depth: expected an integer >= 0 or None, got "
    with pytest.raises(ValueError, match=said):
        validate_bfs(A, 0, vector(LEVEL), vector(PARENT), max_depth=wrong)


def test_integers_of_any_kind(A: Matrix) -> None:
    level, parent = vector(LEVEL), vector(PARENT)
    least = max(LEVEL)
    for kind in (int, np.int8, np.uint64, np.array):
        assert validate_bfs(A, kind(0), level, parent, max_depth=kind(least)) == []  # type: ignore[arg-type]
        found = validate_bfs(A, 0, level, parent, max_depth=kind(least - 1))  # type: ignore[arg-type]
        assert f"expected at most max_depth, {least - 1}" in found[0].message
    assert validate_bfs(A, 0, level, parent, max_depth=2**70) == []


def test_what_is_no_matrix() -> None:
    for check in (validate_bfs, validate_sssp):
        with pytest.raises(DomainMismatch, match=f"^{check.__name__}: A: expected a Matrix"):
            check(5, 0, vector(LEVEL), vector(PARENT))  # type: ignore[operator]


def test_a_parent_that_was_not_reached() -> None:
    """It would lie at the level -1 that stands for none."""
    A = matrix(3, [(2, 1)])
    failures = validate_bfs(A, 0, vector([0, 0, -1]), vector([0, 2, -1]))
    assert [f.message for f in failures] == [
        "vertex 1 at level 0 has parent 2 without a level; expected level -1"
    ]


def test_nothing_lies_below_the_last_level(A: Matrix) -> None:
    """The result of a search that did not stop at `max_depth`."""
    for G in (A, A.distribute(2)):
        failures = validate_bfs(G, 0, vector(LEVEL), vector(PARENT), max_depth=1)
        assert [f.message for f in failures] == [
            "vertex 2 is at level 2; expected at most max_depth, 1"
        ]
        assert validate_bfs(G, 0, vector(LEVEL), vector(PARENT), max_depth=2) == []


# --- entries of -1, and types that hold less than the sums ----------------------------------------


@pytest.mark.parametrize(
    ("dtype", "none"),
    [(np.int32, -1), (np.int64, -1), (np.float32, -1), (np.float32, np.nan), (np.float64, np.nan)],
)
@pytest.mark.parametrize("shards", [1, 3])
def test_entries_that_stand_for_none_hide_nothing(dtype: Any, none: float, shards: int) -> None:
    """An edge from a vertex with an entry of -1 brings less than all others."""
    edges = [(0, 1), (1, 2), (2, 0), (3, 4)]
    A = matrix(5, edges, symmetric=True).astype(np.float32 if dtype is np.float32 else np.int64)
    G: Any = A if shards == 1 else A.distribute(shards)

    def entry(*values: float) -> Vector:
        return Vector.from_dense(np.array(values, dtype), missing=None)

    no_parents = Vector.from_dense(np.array([0, -1, -1, -1, -1]), missing=None)
    right = Vector.from_dense(np.array([0, 0, 0, -1, -1]), missing=None)
    for check in (validate_bfs, validate_sssp):
        found = check(G, 0, entry(0, none, none, none, none), no_parents)
        assert [failure.check for failure in found] == [4]
        assert check(G, 0, entry(0, 1, 1, none, none), right) == []


@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize(
    ("weight", "kind", "distance", "dtype"),
    [
        (2**32 + 5, np.int64, 5, np.int32),  # 5, if it were cut to the type of distances
        (2**32 + 5, np.uint64, 5, np.uint32),
        (2**63 + 5, np.uint64, 5, np.int64),
        (2**64 - 1, np.uint64, 0, np.int64),
        (5.75, np.float64, 5, np.int64),
        (5.75, np.float32, 5, np.int32),
    ],
)
def test_weights_are_not_cut(
    weight: Any, kind: Any, distance: int, dtype: Any, shards: int
) -> None:
    A = Matrix.from_coo([0, 1], [1, 2], np.array([weight, 1], kind), nrows=3, ncols=3)
    G: Any = A if shards == 1 else A.distribute(shards)
    wrong = Vector.from_dense(np.array([0, distance, distance + 1], dtype))
    found = validate_sssp(G, 0, wrong, vector([0, 0, 1]))
    assert [failure.check for failure in found] == [2]
    assert "vertex 1 at distance" in found[0].message


@pytest.mark.parametrize("shards", [1, 2])
def test_sums_beyond_int64_hide_nothing(shards: int) -> None:
    """Edges of the largest weight lead from 1 to 2 and 3; sums that wrapped around were less than
    those of all other edges.
    """
    most = 2**63 - 1
    A = Matrix.from_coo([0, 1, 1, 0], [1, 2, 3, 2], [5, most, most, 7], nrows=4, ncols=4)
    G: Any = A if shards == 1 else A.distribute(shards)
    parent = vector([0, 0, 0, -1])
    assert [f.check for f in validate_sssp(G, 0, vector([0, 5, 7, -1]), parent)] == [4]
    found = validate_sssp(G, 0, vector([0, 5, -1, -1]), vector([0, 0, -1, -1]))
    assert [f.message for f in found] == [
        "edge (0, 2) leads to vertex 2, which was not reached, at distance 7"
    ]
    large = Matrix.from_coo([0, 1], [1, 2], np.array([2**54 + 1, 2], np.uint64), nrows=3, ncols=3)
    assert validate_sssp(large, 0, *sg.sssp(large, 0)) == []


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_shards_without_edges(shards: int) -> None:
    for edges in ([], [(0, 1)]):
        A = matrix(3, edges)
        G: Any = A if shards == 1 else A.distribute(shards)
        assert validate_bfs(G, 0, *sg.bfs(G, 0)) == []
        assert validate_sssp(G, 0, *sg.sssp(G, 0)) == []
        found = validate_sssp(G, 0, vector([0, -1, 1]), vector([0, -1, 0]))
        assert 5 in [failure.check for failure in found]


def test_what_is_no_tree_is_named(A: Matrix) -> None:
    level, parent = vector(LEVEL), vector(PARENT)
    halves = Vector.from_dense(np.array(PARENT, float), missing=-1)
    with pytest.raises(DomainMismatch, match="parent: expected vertices, integers, got float64"):
        validate_bfs(A, 0, level, halves)
    with pytest.raises(DomainMismatch, match="level: expected a Vector, got list"):
        validate_bfs(A, 0, LEVEL, parent)  # type: ignore[arg-type]
    with pytest.raises(DomainMismatch, match="source: expected an integer, got 0.5"):
        validate_bfs(A, 0.5, level, parent)  # type: ignore[arg-type]
    far = Vector.from_dense(np.array([0, 1, 2, np.inf, 1, -1, -1]), missing=-1)
    found = validate_bfs(A, 0, far, parent)
    wrong = "vertex 3 at level inf has parent 4 at level 1; expected level inf"
    assert wrong in [failure.message for failure in found]


# --- every check, everywhere ----------------------------------------------------------------------

PLACES = [
    "cpu",
    "3 shards",
    "random shards",
    pytest.param("cuda", marks=pytest.mark.gpu),
    pytest.param("shards of a gpu", marks=pytest.mark.gpu),
    pytest.param("two gpus", marks=pytest.mark.gpu),
]


def placed(A: Matrix, place: str) -> Any:
    if place == "two gpus":
        import gpus

        return A.distribute(2, devices=gpus.names(2))
    if place == "shards of a gpu":
        return A.distribute(2, devices="cuda:0", partition="random")
    if "shards" in place:
        return A.distribute(3, partition="random" if place == "random shards" else "edges")
    return A.to(place)


def weighted(dtype: Any = np.float32) -> Matrix:
    """A Kronecker graph with loops, weights of 0 and vertices without edges; of repeated edges the
    least weight counts.
    """
    pattern = sg.generators.kronecker(7, 4, self_loops=True)
    rows, columns, _ = pattern.to_coo()
    low, high = np.minimum(rows, columns), np.maximum(rows, columns)
    weights = (low * 7 + high * 13) % 16 / dtype(16 if dtype is np.float32 else 1)
    rows, columns = np.append(rows, rows), np.append(columns, columns)
    weights = np.append(weights, weights + dtype(1)).astype(dtype)
    return Matrix.from_coo(
        *(rows, columns, weights), dup_op="min", symmetric=True, nrows=128, ncols=128
    )


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_right_trees_pass(place: str, dtype: Any) -> None:
    A = weighted(dtype)
    assert (A.row_degrees().to_numpy() == 0).any() and (A.values == 0).any()
    G = placed(A, place)
    hub, alone = int(A.row_degrees().to_numpy().argmax()), int(A.row_degrees().to_numpy().argmin())
    for source in (hub, alone):
        assert validate_bfs(G, source, *sg.bfs(G, source)) == []
        distance, parent = sg.sssp(G, source)
        assert parent is not None
        assert validate_sssp(G, source, distance, parent) == []


def damaged(value: np.ndarray, parent: np.ndarray, source: int, A: Matrix) -> dict[str, Any]:
    """Trees with one fault each, by the check that finds it."""
    children = np.flatnonzero((value >= 0) & (np.arange(value.size) != source))
    far = int(children[value[children].argmax()])
    leaf = next(int(v) for v in children if not (parent == v).any())
    deep = next(int(v) for v in children if parent[v] != source and parent[v] != v)
    apart = int(np.flatnonzero(value < 0)[0])
    edges = set(zip(*(part.tolist() for part in A.to_coo()[:2]), strict=True))
    same = [
        u
        for u in np.flatnonzero(value >= 0).tolist()
        if (u, far) not in edges and value[u] == value[parent[far]]
    ]
    stranger = same[0] if same else int(np.flatnonzero(value == 0)[0])
    cycle = parent.copy()
    cycle[parent[deep]] = deep
    return {
        "1": (value, cycle),
        "2": (np.where(np.arange(value.size) == leaf, value + 1, value), parent),
        "3": ((value * 3).astype(value.dtype), parent),
        "4": (*(np.where(np.arange(value.size) == leaf, -1, x) for x in (value, parent)),),
        "5": (value, np.where(np.arange(value.size) == far, stranger, parent)),
        "1 apart": (np.where(np.arange(value.size) == apart, 0, value), parent),
        "2 source": (np.where(np.arange(value.size) == source, 1, value), parent),
    }


def entries(values: np.ndarray, at: Any) -> Vector:
    there = np.flatnonzero(values >= 0)
    return Vector.from_coo(there, values[there], size=values.size).to(at.device)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kernel", ["bfs", "sssp"])
def test_every_damage_is_found(place: str, kernel: str) -> None:
    A = weighted()
    G = placed(A, place)
    source = int(A.row_degrees().to_numpy().argmax())
    check: Any = validate_bfs if kernel == "bfs" else validate_sssp
    plain = [x.to_numpy(fill=-1) for x in getattr(sg, kernel)(A, source)]
    for name, (value, parent) in damaged(*plain, source, A).items():
        found = check(G, source, entries(value, G), entries(parent, G))
        assert int(name[0]) in [failure.check for failure in found], name
        assert found == check(A, source, entries(value, A), entries(parent, A)), name
        assert [failure.check for failure in found] == sorted({f.check for f in found})


def test_distances_of_a_directed_graph() -> None:
    A = matrix(4, [(0, 1), (1, 2), (0, 2), (3, 0)])
    A = A.astype(np.int64)
    assert validate_sssp(A, 0, vector([0, 1, 1, -1]), vector([0, 0, 0, -1])) == []
    for level, parent, message in (
        ([0, 1, 2, -1], [0, 0, 1, -1], "edge (0, 2) leads to vertex 2, at distance 2, at"),
        ([0, 0, 0, -1], [0, 0, 0, -1], "vertex 1 at distance 0 has parent 0 at distance 0; exp"),
        ([0, 1, -1, -1], [0, 0, -1, -1], "edge (0, 2) leads to vertex 2, which was not reached"),
        ([0, 1, 1, 1], [0, 0, 0, 2], "vertex 3 has parent 2, but no edge leads from 2 to 3"),
        ([0, 1, 1, -1], [0, 2, 1, -1], "vertex 1 does not lead to source 0 through its parents"),
        ([0, 1, 1, -1], [0, 0, -1, -1], "vertex 2 has distance 1 and lacks a parent"),
        ([0, 1, 1, -1], [0, 0, 9, -1], "vertex 2 has parent 9, which is no vertex of 4"),
    ):
        found = [f.message for f in validate_sssp(A, 0, vector(level), vector(parent))]
        assert any(message in each for each in found), found


Edges = dict[tuple[int, int], int]


def distances(n: int, edges: Edges, source: int) -> list[int]:
    """Those of shortest paths by Bellman and Ford, -1 where there is none."""
    found = [-1] * n
    found[source] = 0
    for _ in range(n):
        for (u, v), weight in edges.items():
            if found[u] >= 0 and not 0 <= found[v] <= found[u] + weight:
                found[v] = found[u] + weight
    return found


def is_right(n: int, edges: Edges, source: int, distance: list[int], parent: list[int]) -> bool:
    """Whether this is a tree of shortest paths, by its definition."""
    if distance != distances(n, edges, source) or parent[source] != source:
        return False
    for v in range(n):
        u, seen = parent[v], {v}
        if (u < 0) != (distance[v] < 0) or u >= n:
            return False
        if u < 0 or v == source:
            continue
        if (u, v) not in edges or distance[u] < 0 or distance[u] + edges[u, v] != distance[v]:
            return False
        while u not in seen and 0 <= u < n and u != source:
            seen.add(u)
            u = parent[u]
        if u != source:
            return False
    return True


@given(st.data())
def test_a_tree_of_shortest_paths_passes_exactly_if_it_is_one(data: st.DataObject) -> None:
    """With up to three changes of a right one: weights of 0, cycles, vertices left out or too many,
    distances that are only consistent with each other.
    """
    n = data.draw(st.integers(2, 7))
    vertex = st.integers(0, n - 1)
    pairs = data.draw(st.lists(st.tuples(vertex, vertex), min_size=1, max_size=16, unique=True))
    edges = {pair: data.draw(st.integers(0, 3)) for pair in pairs}
    source = data.draw(vertex)
    distance, parent = distances(n, edges, source), [-1] * n
    order = sorted((v for v in range(n) if distance[v] >= 0), key=lambda v: distance[v])
    parent[source] = source
    for _ in range(n):  # from the source outwards, so that edges of weight 0 make no cycle
        for v in order:
            near = [u for u in order if parent[u] >= 0 and (u, v) in edges]
            tight = [u for u in near if distance[u] + edges[u, v] == distance[v]]
            if parent[v] < 0 and tight:
                parent[v] = tight[0]
    assert is_right(n, edges, source, distance, parent)
    A = Matrix.from_coo(*zip(*pairs, strict=True), list(edges.values()), nrows=n, ncols=n)
    changes = data.draw(st.lists(st.tuples(st.booleans(), vertex, st.integers(-1, n)), max_size=3))
    for of_parent, v, value in [(True, source, source), *changes]:
        (parent if of_parent else distance)[v] = value
        found = validate_sssp(A, source, vector(distance), vector(parent))
        assert (found == []) == is_right(n, edges, source, distance, parent), (distance, parent)


def test_weights_of_zero_may_hide_a_cycle() -> None:
    A = Matrix.from_coo([0, 1, 2, 3], [1, 2, 1, 2], [1.0, 0.0, 0.0, 0.0], nrows=4, ncols=4)
    right = Vector.from_coo([0, 1, 2], [0.0, 1.0, 1.0], size=4)
    assert validate_sssp(A, 0, right, vector([0, 0, 1, -1])) == []
    found = validate_sssp(A, 0, right, vector([0, 2, 1, -1]))
    assert [failure.check for failure in found] == [1]


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize(
    ("dtype", "wrong"),
    [(np.int32, -7), (np.int64, -2), (np.float32, -1.5), (np.float64, -np.inf)],
)
def test_only_minus_one_stands_for_none(dtype: Any, wrong: float, shards: int) -> None:
    A = matrix(7, EDGES, symmetric=True)
    values, parent = np.array(LEVEL, dtype), Vector.from_dense(np.array(PARENT))
    B = A if shards == 1 else A.distribute(shards)
    to = (lambda v: v) if shards == 1 else (lambda v: v.to(B.device))
    for at in (5, 6):
        given = values.copy()
        given[at] = wrong
        for call, what in ((validate_bfs, "level"), (validate_sssp, "distance")):
            found = call(B, 0, to(Vector.from_dense(given)), to(parent))
            assert [fault.check for fault in found] == [1]
            assert f"vertex {at} has {what} {wrong:.17g}; expected one from 0 on" in str(found[0])
            assert call(B, 0, to(Vector.from_dense(values)), to(parent)) == []
