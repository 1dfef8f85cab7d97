"""Orders, trees and components of spgraph.csgraph beside SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from csgraph_cases import LENGTHS, edges_of, graphs, rows_of
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csgraph as theirs

import spgraph.csgraph as ours
from spgraph import generators
from spgraph.algorithms import bfs
from spgraph.csgraph import graphs as reading
from spgraph.csgraph import spanning_tree, traversal
from spgraph.csgraph.graphs import rows_of as read

G = np.array([[0, 1, 2, 0, 0], [1, 0, 0, 0, 3], [2, 0, 0, 7, 0], [0, 0, 7, 0, 1], [0, 3, 0, 1, 0]])
CLASSES = {
    "csr_array": scipy.sparse.csr_array(G),
    "csr_matrix": scipy.sparse.csr_matrix(G),
    "coo_array": scipy.sparse.coo_array(G),
    "coo_matrix": scipy.sparse.coo_matrix(G),
    "lil_matrix": scipy.sparse.lil_matrix(G),
    "csc_array": scipy.sparse.csc_array(G),
    "dense": G,
    "list": G.tolist(),
    "matrix": np.asmatrix(G),
    "masked": np.ma.masked_equal(G, 0),
    "long index": scipy.sparse.csr_array(
        (G[G > 0], np.nonzero(G)[1].astype(np.int64), np.append(0, np.cumsum((G > 0).sum(1))))
    ),
}


def same(found: Any, expected: Any) -> None:
    """Equal compressed rows: class, types, arrays but for the order within a row."""
    assert type(found) is type(expected) and found.shape == expected.shape
    found, expected = found.copy(), expected.copy()
    found.sort_indices()
    expected.sort_indices()
    for name in ("indptr", "indices", "data"):
        ours_, theirs_ = getattr(found, name), getattr(expected, name)
        assert ours_.dtype == theirs_.dtype
        np.testing.assert_array_equal(ours_, theirs_)


# --- breadth first --------------------------------------------------------------------------------


@settings(max_examples=80)
@given(graphs(), st.booleans(), st.integers(0, 8), st.sampled_from(["csr", "csc"]))
def test_breadth_first_order_is_scipys(S: Any, directed: bool, start: int, form: str) -> None:
    start %= S.shape[0]
    S = S.asformat(form)
    order, parent = ours.breadth_first_order(S, start, directed)
    expected = theirs.breadth_first_order(S, start, directed)
    assert order.dtype == parent.dtype == np.int32
    np.testing.assert_array_equal(order, expected[0])
    np.testing.assert_array_equal(parent, expected[1])
    alone = ours.breadth_first_order(S, start, directed, return_predecessors=False)
    np.testing.assert_array_equal(alone, order)
    tree = ours.breadth_first_tree(S, start, directed)
    same(tree, theirs.breadth_first_tree(S, start, directed))


@pytest.mark.parametrize("few", [0, 1 << 20])
def test_breadth_first_order_of_a_large_graph(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "FEW", few)
    S = generators.kronecker(12, 8, seed=3).to_scipy().astype(np.float64)
    start = int(np.argmax(np.diff(S.indptr)))
    for directed in (True, False):
        found = ours.breadth_first_order(S, start, directed)
        for mine, other in zip(found, theirs.breadth_first_order(S, start, directed), strict=True):
            np.testing.assert_array_equal(mine, other)
        np.testing.assert_array_equal(
            ours.dijkstra(S, directed, start), theirs.dijkstra(S, directed, start)
        )
        same(
            ours.breadth_first_tree(S, start, directed),
            theirs.breadth_first_tree(S, start, directed),
        )


@settings(max_examples=25)
@given(graphs(), st.booleans())
def test_what_runs_on_a_gpu_is_an_order_too(S: Any, directed: bool) -> None:
    order, parent = traversal.by_levels(read(S, directed), 0, directed)
    reached, expected = theirs.breadth_first_order(S, 0, directed)
    assert order[0] == 0 and sorted(order) == sorted(reached)
    level = bfs(traversal.pattern(read(S, directed), directed), 0).level.to_numpy(fill=-1)
    assert (np.diff(level[order]) >= 0).all()
    assert ((parent >= 0) == (expected >= 0)).all()
    edges = {(u, v) for u, v, _ in edges_of(S, directed)}
    for v in np.flatnonzero(parent >= 0).tolist():
        assert (int(parent[v]), v) in edges and level[parent[v]] == level[v] - 1


@pytest.mark.parametrize(
    ("start", "error"),
    [
        (-1, OverflowError),
        (2**40, OverflowError),
        ("a", TypeError),
        (None, TypeError),
        ([0], TypeError),
    ],
)
def test_bad_starts(start: Any, error: type[Exception]) -> None:
    for library in (ours, theirs):
        for name in ("breadth_first_order", "breadth_first_tree"):
            with pytest.raises(error):
                getattr(library, name)(G, start)
    with pytest.raises(ValueError, match="expected 0 <= i_start < 5, got 5"):
        ours.breadth_first_order(G, 5)


@pytest.mark.parametrize("start", [np.array(1), np.bool(True), True, 1.5, np.int8(1)], ids=repr)
def test_starts_of_other_types(start: Any) -> None:
    for found, expected in zip(
        ours.breadth_first_order(G, start), theirs.breadth_first_order(G, start), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


# --- trees ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", CLASSES)
@pytest.mark.parametrize("directed", [True, False])
def test_classes_of_trees(form: str, directed: bool) -> None:
    graph = CLASSES[form]
    before = theirs.breadth_first_order(graph, 0, directed)[1]
    same(ours.breadth_first_tree(graph, 0, directed), theirs.breadth_first_tree(graph, 0, directed))
    same(ours.depth_first_tree(graph, 0, directed), theirs.depth_first_tree(graph, 0, directed))
    same(
        ours.reconstruct_path(graph, before, directed),
        theirs.reconstruct_path(graph, before, directed),
    )
    same(ours.minimum_spanning_tree(graph), theirs.minimum_spanning_tree(graph))


@settings(max_examples=60)
@given(graphs(), st.booleans(), st.data())
def test_reconstruct_path(S: Any, directed: bool, data: st.DataObject) -> None:
    """Also along edges that there are not."""
    n = S.shape[0]
    before = data.draw(st.lists(st.sampled_from([-9999, *range(n)]), min_size=n, max_size=n))
    for kind in (np.int32, np.int64):
        before = np.array(before, kind)
        found = ours.reconstruct_path(S, before, directed)
        expected = theirs.reconstruct_path(S.copy(), before, directed)
        same(found, expected)


@pytest.mark.parametrize(
    ("before", "error"),
    [
        (np.zeros(5), ValueError),
        (np.zeros(5, bool), ValueError),
        (None, ValueError),
        (np.zeros((5, 5), int), ValueError),
        (3, IndexError),
        ([-1, 0], IndexError),
        ([-1, 0, 0, 0, 5], IndexError),
    ],
)
def test_bad_predecessors(before: Any, error: type[Exception]) -> None:
    """The classes of SciPy 1.18; SciPy 1.17 takes some of them."""
    with pytest.raises(error, match="predecessors: expected"):
        ours.reconstruct_path(scipy.sparse.csr_array(G), before)
    if error is ValueError:
        with pytest.raises(ValueError, match="integral"):
            ours.reconstruct_path(G, before)


# --- spanning trees -------------------------------------------------------------------------------


@settings(max_examples=100)
@given(graphs(lengths=(*LENGTHS, -1.0, -0.0)), st.booleans())
def test_minimum_spanning_tree_is_scipys(S: Any, overwrite: bool) -> None:
    expected = theirs.minimum_spanning_tree(S)
    before = S.data.copy()
    same(ours.minimum_spanning_tree(S, overwrite=overwrite), expected)
    np.testing.assert_array_equal(S.data, before)


@settings(max_examples=30)
@given(graphs(lengths=LENGTHS))
def test_what_runs_on_a_gpu_is_the_same_tree(S: Any) -> None:
    same(spanning_tree.ranked(read(S)), theirs.minimum_spanning_tree(S))


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_minimum_spanning_tree_of_larger_graphs(dtype: str) -> None:
    for A in (generators.kronecker(11, 8, seed=2), generators.grid(40, 50)):
        S = A.to_scipy().astype(np.float64)
        S.data[:] = np.random.default_rng(3).integers(0, 50, S.nnz)
        S = S.astype(dtype)
        same(ours.minimum_spanning_tree(S), theirs.minimum_spanning_tree(S))


def test_small_entries_of_a_dense_graph_are_none() -> None:
    graph = np.array([[0, 1e-9, 2e-8], [0, 0, 1.0], [0, 0, 0]])
    for name in ("minimum_spanning_tree", "csgraph_from_dense"):
        same(getattr(ours, name)(graph), getattr(theirs, name)(graph))


# --- components -----------------------------------------------------------------------------------


def once(S: Any) -> Any:
    """The same edges, each once."""
    made = scipy.sparse.csr_array((np.ones(S.nnz), S.indices, S.indptr), shape=S.shape, copy=True)
    made.sum_duplicates()
    return made


def parts(label: Any) -> set[frozenset[int]]:
    """The vertices of each component."""
    return {frozenset(np.flatnonzero(label == name).tolist()) for name in np.unique(label)}


@settings(max_examples=100)
@given(graphs(), st.booleans(), st.sampled_from(["weak", "strong", "Strong"]))
def test_components_are_scipys(S: Any, directed: bool, connection: str) -> None:
    count, label = ours.connected_components(S, directed, connection)
    # SciPy's strong walk never ends on some graphs that hold an edge twice
    expected = theirs.connected_components(once(S), directed, connection)
    assert count == expected[0] and type(count) is int and label.dtype == np.int32
    if connection == "weak" or not directed:
        np.testing.assert_array_equal(label, expected[1])
    assert parts(label) == parts(expected[1]) and set(label) == set(range(count))
    assert ours.connected_components(S, directed, connection, return_labels=False) == count


def test_strong_components_of_repeated_edges_come_to_an_end() -> None:
    columns = [[2, 5, 6], [3, 3, 5], [3, 2, 3, 6, 4], [6, 2], [], [3, 2], [0]]
    S = rows_of(7, [(i, j, 1.0) for i, row in enumerate(columns) for j in row])
    count, label = ours.connected_components(S, connection="strong")
    assert count == 3 and parts(label) == {
        frozenset({0, 2, 3, 5, 6}),
        frozenset({1}),
        frozenset({4}),
    }


def test_strong_components_of_large_graphs() -> None:
    chance = np.random.default_rng(4)
    for n, edges in ((3000, 3300), (3000, 9000), (100_000, 150_000)):
        ends = chance.integers(0, n, (2, edges))
        S = scipy.sparse.csr_array((np.ones(edges), tuple(ends)), shape=(n, n))
        count, label = ours.connected_components(S, connection="strong")
        expected = theirs.connected_components(S, connection="strong")
        assert count == expected[0]
        assert len(np.unique(label.astype(np.int64) * n + expected[1])) == count
    path = scipy.sparse.diags_array([np.ones(n - 1)], offsets=[1]).tocsr()
    np.testing.assert_array_equal(
        ours.connected_components(path, connection="strong")[1], np.arange(n)[::-1]
    )


@pytest.mark.parametrize("form", [form for form in CLASSES if form != "list"])
def test_components_of_every_form(form: str) -> None:
    for connection in ("weak", "strong"):
        count, label = ours.connected_components(CLASSES[form], connection=connection)
        expected = theirs.connected_components(CLASSES[form], connection=connection)
        assert count == expected[0] and parts(label) == parts(expected[1])


def test_many_components() -> None:
    S = rows_of(100_000, [(i, i + 1, 1.0) for i in range(0, 99_999, 3)])
    for connection in ("weak", "strong"):
        count, label = ours.connected_components(S, connection=connection)
        expected = theirs.connected_components(S, connection=connection)
        assert count == expected[0]
        assert len(np.unique(label.astype(np.int64) * 100_000 + expected[1])) == count


def test_no_vertices() -> None:
    for graph in (scipy.sparse.csr_array((0, 0)), np.zeros((0, 0))):
        for connection in ("weak", "strong"):
            count, label = ours.connected_components(graph, connection=connection)
            assert count == 0 and label.shape == (0,) and label.dtype == np.int32
        assert ours.minimum_spanning_tree(graph).shape == (0, 0)


def test_bad_components() -> None:
    for library in (ours, theirs):
        with pytest.raises(ValueError, match="connection must be 'weak' or 'strong'"):
            library.connected_components(G, connection="other")
        for graph in (np.ones((2, 3)), scipy.sparse.csr_array(np.ones((2, 3))), np.ones(3)):
            for name in ("connected_components", "minimum_spanning_tree"):
                with pytest.raises(ValueError):
                    getattr(library, name)(graph)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float32", "float64"])
@pytest.mark.parametrize("directed", [True, False])
def test_repeated_edges_in_any_order_of_every_type(dtype: str, directed: bool) -> None:
    """SciPy converts all types but float64, which sorts rows and adds up what is repeated."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        n = int(rng.integers(2, 9))
        ends = rng.integers(0, n, (3 * n, 2)).tolist()
        S = rows_of(n, [(i, j, float(rng.integers(1, 4))) for i, j in ends])
        S = scipy.sparse.csr_array((S.data.astype(dtype), S.indices, S.indptr), shape=(n, n))
        before = S.indices.copy(), S.data.copy()
        start = int(rng.integers(n))
        order, parent = ours.breadth_first_order(S, start, directed)
        expected = theirs.breadth_first_order(S.copy(), start, directed)
        assert order.tolist() == expected[0].tolist() and parent.tolist() == expected[1].tolist()
        for name in ("breadth_first_tree", "depth_first_tree"):
            made = getattr(ours, name)(S, start, directed)
            tree = getattr(theirs, name)(S.copy(), start, directed)
            assert np.array_equal(made.toarray(), tree.toarray()), name
        for name in ("dijkstra", "bellman_ford", "johnson"):
            found = getattr(ours, name)(S, directed=directed)
            assert np.array_equal(found, getattr(theirs, name)(S.copy(), directed=directed))
        tree = theirs.minimum_spanning_tree(S.copy())
        assert ours.minimum_spanning_tree(S).sum() == tree.sum()
        assert np.array_equal(S.indices, before[0]) and np.array_equal(S.data, before[1])
