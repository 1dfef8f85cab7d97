"""Shortest paths of spgraph.csgraph beside SciPy's: distances to the last bit, and predecessors
that are paths.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from csgraph_cases import SIGNED, check_paths, graphs, rows_of
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csgraph as theirs

import spgraph.csgraph as ours
from spgraph.csgraph import composed
from spgraph.csgraph.composed import Searches
from spgraph.csgraph.graphs import rows_of as read
from spgraph.errors import DomainMismatch, NegativeWeight

FUNCTIONS = ("dijkstra", "bellman_ford", "johnson")


def starts_of(n: int, seed: int) -> Any:
    """Indices of every shape."""
    chance = np.random.default_rng(seed)
    some = chance.integers(-n, n, 2 * (1 + seed % 2))
    return [None, int(some[0]), some, some.reshape(2, -1), []][seed % 5]


@settings(max_examples=60)
@given(graphs(), st.booleans(), st.booleans(), st.integers(0, 1000), st.sampled_from(FUNCTIONS))
def test_distances_are_scipys(
    S: Any, directed: bool, unweighted: bool, seed: int, name: str
) -> None:
    indices = starts_of(S.shape[0], seed)
    options = {"directed": directed, "indices": indices, "unweighted": unweighted}
    expected = getattr(theirs, name)(S, **options)
    found, parent = getattr(ours, name)(S, return_predecessors=True, **options)
    assert found.dtype == np.float64 and parent.dtype == np.int32 and parent.shape == found.shape
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(getattr(ours, name)(S, **options), expected)
    n = S.shape[0]
    starts = np.arange(n) if indices is None else np.atleast_1d(indices).reshape(-1)
    for s, d, p in zip(starts, found.reshape(-1, n), parent.reshape(-1, n), strict=True):
        check_paths(S, directed, [int(s) % n], d, p, unweighted)


@settings(max_examples=60)
@given(graphs(), st.booleans(), st.integers(0, 1000), st.sampled_from([0, 1, 2.5, 7, np.nan]))
def test_limits_and_the_nearest_of_several(S: Any, directed: bool, seed: int, limit: float) -> None:
    n = S.shape[0]
    indices = starts_of(n, seed)
    options = {"directed": directed, "indices": indices, "limit": limit}
    np.testing.assert_array_equal(ours.dijkstra(S, **options), theirs.dijkstra(S, **options))
    options |= {"min_only": True, "return_predecessors": True}
    expected = theirs.dijkstra(S, **options)
    distance, parent, origin = ours.dijkstra(S, **options)
    np.testing.assert_array_equal(distance, expected[0])
    starts = range(n) if indices is None else [int(s) % n for s in np.atleast_1d(indices).flat]
    ends = check_paths(S, directed, list(starts), distance, parent)
    np.testing.assert_array_equal(origin, ends)
    assert parent.dtype == origin.dtype == np.int32
    without = ours.dijkstra(S, **{**options, "return_predecessors": False})
    np.testing.assert_array_equal(without, distance)


@settings(max_examples=80)
@given(graphs(SIGNED), st.booleans(), st.integers(0, 1000), st.sampled_from(FUNCTIONS[1:]))
def test_lengths_of_either_sign(S: Any, directed: bool, seed: int, name: str) -> None:
    options = {"directed": directed, "indices": starts_of(S.shape[0], seed)}
    try:
        expected = getattr(theirs, name)(S, **options)
    except theirs.NegativeCycleError:
        with pytest.raises(ours.NegativeCycleError):
            getattr(ours, name)(S, **options)
        return
    found, parent = getattr(ours, name)(S, return_predecessors=True, **options)
    np.testing.assert_allclose(found, expected)
    n = S.shape[0]
    starts = options["indices"]
    starts = np.arange(n) if starts is None else np.atleast_1d(starts).reshape(-1)
    for s, d, p in zip(starts, found.reshape(-1, n), parent.reshape(-1, n), strict=True):
        check_paths(S, directed, [int(s) % n], d, p)


@pytest.mark.parametrize("name", FUNCTIONS[1:])
def test_negative_lengths_without_a_cycle(name: str) -> None:
    """Lengths as seen from heights: most are negative somewhere, no cycle is."""
    chance = np.random.default_rng(5)
    n = 60
    height = chance.integers(-50, 50, n)
    S = scipy.sparse.random_array((n, n), density=0.1, rng=chance, format="csr")
    rows = np.repeat(np.arange(n), np.diff(S.indptr))
    S.data = chance.integers(0, 9, S.nnz) + (height[rows] - height[S.indices]).astype(float)
    assert (S.data < 0).any()
    found, parent = getattr(ours, name)(S, return_predecessors=True)
    np.testing.assert_allclose(found, getattr(theirs, name)(S))
    for s in range(n):
        check_paths(S, True, [s], found[s], parent[s])


def as_seen_from_heights(n: int, height: np.ndarray, seed: int) -> Any:
    """A dense graph of lengths that are differences of heights: all cycles have the length 0."""
    S = scipy.sparse.random_array(
        (n, n), density=0.5, rng=np.random.default_rng(seed), format="coo"
    )
    rows, columns = S.coords
    data = height[rows] - height[columns]
    keep = rows != columns
    return scipy.sparse.csr_array((data[keep], (rows[keep], columns[keep])), shape=(n, n))


@pytest.mark.parametrize("name", [*FUNCTIONS[1:], "floyd_warshall"])
@pytest.mark.parametrize("scale", [1e4, 2e7, 1e12])
def test_rounding_is_no_negative_cycle(name: str, scale: float) -> None:
    """SciPy calls a cycle of length -4e-9 among lengths of 2e7 negative. One of -1 among integers
    is.
    """
    n = 14
    for seed in range(12):
        height = np.random.default_rng(seed).uniform(-scale, scale, n)
        S = as_seen_from_heights(n, height, seed)
        found = getattr(ours, name)(S)
        np.testing.assert_allclose(found, height[:, None] - height, atol=1e-13 * scale)
        W = as_seen_from_heights(n, np.trunc(height), seed)
        W.data[seed] -= 1
        with pytest.raises(ours.NegativeCycleError):
            getattr(ours, name)(W)


def test_rounding_is_no_negative_cycle_in_closures() -> None:
    """The form for GPUs, on the CPU."""
    for seed in range(6):
        height = np.random.default_rng(seed).uniform(-2e7, 2e7, 14)
        for less in (0, 1):
            S = as_seen_from_heights(14, height if not less else np.trunc(height), seed)
            S.data[seed] -= less
            A, semiring = composed.shortest_over(read(S), True, False)
            one = Searches(np.array([0]), np.array([0, 1]))
            distance, *_, failed = composed.shortest(A, one, semiring)
            assert failed == bool(less)
            if not less:
                np.testing.assert_allclose(distance[0], height[0] - height, atol=1e-6)


def test_cycles_are_noticed_at_once() -> None:
    """A long way into a short cycle: SciPy walks N rounds over all edges."""
    n = 200_000
    ends = np.append(np.arange(1, n), n - 3)
    data = np.append(np.ones(n - 1), -3.0)
    S = scipy.sparse.csr_array((data, (np.append(np.arange(n - 1), n - 1), ends)), shape=(n, n))
    with pytest.raises(ours.NegativeCycleError, match="on node 199000"):
        ours.bellman_ford(S, indices=n - 1000)
    T = S[-400:, -400:]
    with pytest.raises(ours.NegativeCycleError):
        ours.johnson(T)
    # before the cycle, and not into it
    U = S.copy()
    U.data[U.indptr[n - 500]] = np.inf
    assert ours.bellman_ford(U, indices=n - 600)[n - 500] == 100


def test_a_cycle_of_length_zero_by_rounding_is_none() -> None:
    S = rows_of(3, [(0, 1, 0.1), (1, 2, 0.2), (2, 0, -0.3), (0, 2, 5.0)])
    for name in FUNCTIONS[1:]:
        np.testing.assert_allclose(
            getattr(ours, name)(S), getattr(theirs, name)(S), rtol=1e-12, atol=1e-12
        )


@settings(max_examples=25)
@given(graphs(most=7), st.booleans(), st.booleans(), st.sampled_from([np.inf, 2.0]))
def test_closures_give_the_same(S: Any, directed: bool, unweighted: bool, limit: float) -> None:
    """What runs on a GPU, run on the CPU."""
    n = S.shape[0]
    A, semiring = composed.shortest_over(read(S, directed), directed, unweighted)
    for bounds in (np.arange(n + 1), np.array([0, n // 2 + 1])):
        starts = np.arange(n, dtype=np.int32)
        several = len(bounds) == 2
        searches = Searches(starts, bounds, limit, True, several)
        distance, parent, origin, failed = composed.shortest(A, searches, semiring)
        expected = theirs.dijkstra(
            S,
            directed=directed,
            unweighted=unweighted,
            limit=limit,
            indices=starts[: bounds[-1]],
            min_only=several,
        ).reshape(-1, n)
        assert not failed and distance.dtype == np.float64 and parent.dtype == np.int32
        np.testing.assert_array_equal(distance, expected)
        for b in range(len(bounds) - 1):
            group = starts[bounds[b] : bounds[b + 1]].tolist()
            ends = check_paths(S, directed, group, distance[b], parent[b], unweighted)
            if several:
                np.testing.assert_array_equal(origin[b], ends)


def test_closures_name_the_source_that_their_predecessors_lead_to() -> None:
    """Vertex 4 has shortest paths over 2, from source 1, and over 3, from source 0."""
    S = rows_of(5, [(1, 2, 1.0), (0, 3, 1.0), (2, 4, 1.0), (3, 4, 1.0)])
    A, semiring = composed.shortest_over(read(S), True, False)
    together = Searches(np.array([0, 1]), np.array([0, 2]), parents=True, origins=True)
    distance, parent, origin, _ = composed.shortest(A, together, semiring)
    assert distance.tolist() == [[0, 0, 1, 1, 2]]
    assert parent.tolist() == [[-9999, -9999, 1, 0, 2]] and origin.tolist() == [[0, 1, 1, 0, 1]]


def test_closures_of_either_sign() -> None:
    S = rows_of(3, [(0, 1, 4.0), (0, 2, 1.0), (2, 1, -2.0)])
    A, semiring = composed.shortest_over(read(S), True, False)
    found = composed.shortest(A, Searches.from_each(np.arange(3), True), semiring)
    np.testing.assert_array_equal(found[0], theirs.bellman_ford(S))
    S = rows_of(3, [(0, 1, 1.0), (1, 2, -3.0), (2, 0, 1.0)])
    A, semiring = composed.shortest_over(read(S), True, False)
    searches = Searches.from_each(np.arange(3), False)
    assert composed.shortest(A, searches, semiring)[3]
    with pytest.raises(NegativeWeight):
        composed.shortest(A, searches, composed.min_plus)


# --- graphs in every form -------------------------------------------------------------------------

G = np.array([[0, 3, 3, 0, 0], [0, 0, 0, 2, 4], [0, 0, 0, 0, 0], [1, 0, 0, 0, 0], [2, 0, 0, 2, 0]])
FORMS = {
    "list": G.tolist(),
    "matrix": np.asmatrix(G),
    "masked": np.ma.masked_equal(G, 0),
    "infinite": np.where(G == 0, np.inf, G),
    "nan": np.where(G == 0, np.nan, G),
    "fortran": np.asfortranarray(G, dtype=float),
    **{
        kind: scipy.sparse.csr_array(G).asformat(kind) for kind in "csr csc coo lil bsr dok".split()
    },
    "csr_matrix": scipy.sparse.csr_matrix(G),
    **{name: scipy.sparse.csr_array(G.astype(name)) for name in "bool uint8 float32 g".split()},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("directed", [True, False])
def test_every_form(form: str, directed: bool) -> None:
    graph = FORMS[form]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in FUNCTIONS:
            found = getattr(ours, name)(graph, directed=directed)
            np.testing.assert_array_equal(found, getattr(theirs, name)(graph, directed=directed))
            assert type(found) is np.ndarray


def test_index_types_and_read_only_arrays() -> None:
    S = scipy.sparse.csr_array(G.astype(float))
    for kind in (np.int32, np.int64):
        T = scipy.sparse.csr_array(
            (S.data.copy(), S.indices.astype(kind), S.indptr.astype(kind)), shape=S.shape
        )
        for array in (T.data, T.indices, T.indptr):
            array.flags.writeable = False
        for directed in (True, False):
            np.testing.assert_array_equal(ours.dijkstra(T, directed), theirs.dijkstra(S, directed))


def test_complex_lengths_lose_their_imaginary_part() -> None:
    S = scipy.sparse.csr_array(G + 2j)
    with pytest.warns(np.exceptions.ComplexWarning):
        found = ours.dijkstra(S)
    np.testing.assert_array_equal(found, theirs.dijkstra(S.real))


def test_arrays_longer_than_their_entries() -> None:
    S = scipy.sparse.csr_array(G.astype(float))
    T = scipy.sparse.csr_array(S.shape)
    T.data, T.indices = np.append(S.data, [9.0, 9.0]), np.append(S.indices, [0, 0])
    T.indptr = S.indptr
    np.testing.assert_array_equal(ours.dijkstra(T), theirs.dijkstra(S))


@pytest.mark.parametrize("name", [*FUNCTIONS, "shortest_path", "floyd_warshall"])
def test_no_vertices(name: str) -> None:
    for graph in (scipy.sparse.csr_array((0, 0)), np.zeros((0, 0))):
        assert getattr(ours, name)(graph).shape == (0, 0)


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*FUNCTIONS, "shortest_path", "floyd_warshall"])
@pytest.mark.parametrize(
    "graph",
    [np.ones((2, 3)), scipy.sparse.csr_array(np.ones((2, 3))), np.ones(3), None],
    ids=["dense", "sparse", "1-D", "None"],
)
def test_what_is_not_square(name: str, graph: Any) -> None:
    for library in (ours, theirs):
        with pytest.raises(ValueError):
            getattr(library, name)(graph)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"indices": 5}, ValueError),
        ({"indices": [0, -6]}, ValueError),
        ({"indices": "a"}, ValueError),
        ({"limit": -1}, ValueError),
        ({"limit": "far"}, TypeError),
        ({"limit": "3"}, TypeError),
    ],
)
def test_bad_options(options: Any, error: Any) -> None:
    for library in (ours, theirs):
        with pytest.raises(error):
            library.dijkstra(G, **options)


def test_methods() -> None:
    for method in ("auto", "FW", "D", "BF", "J"):
        np.testing.assert_array_equal(ours.shortest_path(G, method), theirs.shortest_path(G))
    assert ours.NegativeCycleError is theirs.NegativeCycleError
    with pytest.raises(ValueError, match="unrecognized method 'x'"):
        ours.shortest_path(G, "x")
    with pytest.raises(ValueError, match="Cannot specify indices with method == 'FW'"):
        ours.shortest_path(G, "FW", indices=[0])
    signed = np.array([[0, -1.0, 0], [0, 0, 2], [0, 0, 0]])
    for graph in (signed, scipy.sparse.csr_array(signed), np.ma.masked_equal(signed, 0)):
        np.testing.assert_array_equal(
            ours.shortest_path(graph, indices=0), theirs.shortest_path(graph, indices=0)
        )


def test_negative_lengths_give_a_warning() -> None:
    S = scipy.sparse.csr_array(np.array([[0, -1.0, np.nan], [0, 0, 2], [0, 0, 0]]))
    with pytest.warns(UserWarning, match="Graph has negative weights") as seen:
        found = ours.dijkstra(S)
    assert seen[0].filename == __file__
    with pytest.warns(UserWarning):
        np.testing.assert_array_equal(found, theirs.dijkstra(S))


# --- memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int64"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_rows_are_read_where_they_lie(dtype: str, index: str) -> None:
    S = scipy.sparse.random_array((50, 50), density=0.2, rng=np.random.default_rng(1), format="csr")
    S = scipy.sparse.csr_array(
        ((9 * S.data).astype(dtype), S.indices.astype(index), S.indptr.astype(index)),
        shape=S.shape,
    )
    rows = read(S)
    for mine, given_ in zip(rows.arrays(), (S.indptr, S.indices, S.data), strict=True):
        assert np.shares_memory(mine, given_)
    assert rows.lengths() is rows.values
    A = rows.matrix()
    assert A._indptr is rows.indptr and A._indices is rows.indices and A._values is rows.values


@pytest.mark.parametrize("kind", [np.int64, np.uint64, np.float64])
def test_indices_are_looked_at_before_they_are_converted(kind: Any) -> None:
    D = np.array([[0, 1, 2], [0, 0, 3], [4, 0, 0]])
    for index in (2**32, 2**32 + 1, 3):
        for indices in (kind(index), np.array([0, index], kind), np.array([[index]], kind)):
            with pytest.raises(ValueError, match="indices out of range"):
                ours.dijkstra(D, indices=indices)
    with pytest.raises(ValueError, match="indices out of range"):
        ours.johnson(D, indices=np.array([np.nan, 0]))
    hidden = np.ma.array([0, 1], mask=[False, True])
    with pytest.raises(DomainMismatch, match="indices: expected an array without a mask"):
        ours.bellman_ford(D, indices=hidden)
    expected = theirs.dijkstra(D, indices=[[1, -1], [0, 2]])
    found = ours.dijkstra(D, indices=np.array([[1, -1], [0, 2]], np.int8))
    np.testing.assert_array_equal(found, expected)


def test_a_truth_of_numpy_asks_for_predecessors() -> None:
    D = np.array([[0, 1, 2], [0, 0, 3], [4, 0, 0]])
    expected = ours.dijkstra(D, return_predecessors=True)
    for truth in (np.True_, 1, np.array(1)):
        found = ours.dijkstra(D, return_predecessors=truth)
        assert all(map(np.array_equal, found, expected))
    for truth in (2, "yes", [0], object(), 1.0, np.array(2)):
        with pytest.raises(TypeError, match="dijkstra: return_predecessors: expected True or Fal"):
            ours.dijkstra(D, return_predecessors=truth)
