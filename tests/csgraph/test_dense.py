"""All pairs, conversions and Laplacians of spgraph.csgraph beside SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from csgraph_cases import SIGNED, check_paths, graphs, rows_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import csgraph as theirs
from two_devices import CudaArray, on, two_devices  # noqa: F401

import spgraph.csgraph as ours
from spgraph.csgraph.all_pairs import _lengths
from spgraph.csgraph.paths import _fastest
from tests.csgraph.test_traversals import same

NAN, INF = np.nan, np.inf
G = np.array([[0, 3, 3, 0, 0], [0, 0, 0, 2, 4], [0, 0, 0, 0, 0], [1, 0, 0, 0, 0], [2, 0, 0, 2, 0]])
DENSE = {
    "int": G,
    "float": G.astype(float),
    "list": G.tolist(),
    "holes": np.array([[0, 1, INF], [-INF, 0, NAN], [2, 1e-9, 0]]),
    "full": np.ones((3, 3)),
    "empty": np.zeros((3, 3)),
    "matrix": np.asmatrix(G),
    "masked": np.ma.masked_equal(G.astype(float), 3),
    "bool": G > 0,
    "fortran": np.asfortranarray(G),
}

# --- all pairs ------------------------------------------------------------------------------------


@settings(max_examples=80)
@given(graphs(), st.booleans(), st.booleans(), st.booleans())
def test_floyd_warshall(S: Any, directed: bool, unweighted: bool, dense: bool) -> None:
    graph = theirs.csgraph_to_dense(S, INF) if dense else S
    options = {"directed": directed, "unweighted": unweighted}
    expected, before = theirs.floyd_warshall(graph, return_predecessors=True, **options)
    distance, parent = ours.floyd_warshall(graph, return_predecessors=True, **options)
    np.testing.assert_array_equal(distance, expected)
    np.testing.assert_array_equal(ours.floyd_warshall(graph, **options), expected)
    assert parent.dtype == np.int32
    np.testing.assert_array_equal(parent < 0, before < 0)
    edges = ours.csgraph_from_dense(graph, null_value=INF) if dense else S
    if dense:
        edges.data[edges.data == 0] = INF  # zeros of a dense graph are no edges
    if not unweighted:
        for s in range(S.shape[0]):
            check_paths(edges, directed, [s], distance[s], parent[s])


@pytest.mark.parametrize("n", [1, 63, 64, 65, 150])
@pytest.mark.parametrize("signed", [False, True])
def test_floyd_warshall_in_blocks(n: int, signed: bool) -> None:
    chance = np.random.default_rng(n)
    S = scipy.sparse.random_array((n, n), density=min(1, 6 / n), rng=chance, format="csr")
    S.data = np.ceil(9 * S.data)
    if signed:
        height = chance.integers(-9, 9, n)
        S.data += np.repeat(height, np.diff(S.indptr)) - height[S.indices]
    distance, parent = ours.floyd_warshall(S, return_predecessors=True)
    np.testing.assert_array_equal(distance, theirs.floyd_warshall(S))
    np.testing.assert_array_equal(ours.floyd_warshall(S), distance)
    for s in {0, n // 2, n - 1}:
        check_paths(S, True, [s], distance[s], parent[s])
    np.testing.assert_array_equal(ours.construct_dist_matrix(S, parent), distance)


@settings(max_examples=60)
@given(graphs(SIGNED, most=5), st.booleans())
def test_floyd_warshall_of_either_sign(S: Any, directed: bool) -> None:
    try:
        expected = theirs.floyd_warshall(S, directed=directed)
    except theirs.NegativeCycleError:
        with pytest.raises(ours.NegativeCycleError, match="Negative cycle in nodes"):
            ours.floyd_warshall(S, directed=directed)
        return
    np.testing.assert_array_equal(ours.floyd_warshall(S, directed=directed), expected)


def test_overwrite() -> None:
    for kind in (np.ascontiguousarray, np.asfortranarray):
        graph = kind(G.astype(float))
        kept = graph.copy()
        found = ours.floyd_warshall(graph)
        np.testing.assert_array_equal(graph, kept)
        over = ours.floyd_warshall(graph, overwrite=True)
        assert np.shares_memory(over, graph) == (kind is np.ascontiguousarray)
        np.testing.assert_array_equal(over, found)
        np.testing.assert_array_equal(over, theirs.floyd_warshall(G))


@pytest.mark.parametrize("form", [form for form in DENSE if form not in ("fortran", "list")])
@pytest.mark.parametrize("directed", [True, False])
def test_all_pairs_of_every_form(form: str, directed: bool) -> None:
    graph = DENSE[form]
    expected, before = theirs.floyd_warshall(graph, directed, return_predecessors=True)
    found, parent = ours.floyd_warshall(graph, directed, return_predecessors=True)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(parent, before)  # no two paths are equally long here
    assert type(found) is type(parent) is np.ndarray
    np.testing.assert_array_equal(
        ours.construct_dist_matrix(graph, before, directed),
        theirs.construct_dist_matrix(graph, before, directed),
    )


@settings(max_examples=60)
@given(graphs(), st.booleans(), st.sampled_from([INF, NAN, -1]), st.data())
def test_construct_dist_matrix(
    S: Any, directed: bool, null_value: float, data: st.DataObject
) -> None:
    """Along predecessors of any kind but cycles: a vertex follows one of a smaller id."""
    n = S.shape[0]
    before = np.full((n, n), -9999, np.int32)
    for j in range(1, n):
        before[:, j] = data.draw(
            st.lists(st.sampled_from([-9999, *range(j)]), min_size=n, max_size=n)
        )
    for graph in (S, theirs.csgraph_to_dense(S)):
        np.testing.assert_array_equal(
            ours.construct_dist_matrix(graph, before, directed, null_value),
            theirs.construct_dist_matrix(graph, before, directed, null_value),
        )


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("form", ["float", "matrix", "masked"])
def test_construct_dist_matrix_leaves_the_graph(form: str, directed: bool) -> None:
    """SciPy writes infinity to the positions without an edge of a directed graph of float64."""
    graph = np.array(DENSE[form], np.float64, order="K", subok=True)
    before = theirs.floyd_warshall(graph, directed, return_predecessors=True)[1]
    held = np.asarray(graph.data if form == "masked" else graph)
    kept = held.copy()
    held.setflags(write=False)
    graph.setflags(write=False)
    found = ours.construct_dist_matrix(graph, before, directed)
    np.testing.assert_array_equal(found, theirs.floyd_warshall(graph, directed))
    np.testing.assert_array_equal(held, kept)


def test_bad_predecessors() -> None:
    before = np.full((5, 5), -9999, np.int32)
    with pytest.raises(ValueError, match="must have the same shape"):
        ours.construct_dist_matrix(G, before[:4])
    with pytest.raises(TypeError, match="expected an array of int32, got int64"):
        ours.construct_dist_matrix(G, before.astype(np.int64))
    for library, error in ((ours, TypeError), (theirs, (TypeError, ValueError))):
        # the type is looked at before the shape, as by SciPy from 1.16 on
        with pytest.raises(error):
            library.construct_dist_matrix(G, before[:4].astype(float))
    # SciPy never comes back from the first, and reads anywhere for the others
    for cycle in ([-9999, 2, 1, -9999, -9999], [-9999, 5, 0, 0, 0], [-9999, -3, 0, 0, 0]):
        before[0] = cycle
        with pytest.raises(ValueError, match="lead around a cycle or out of the graph"):
            ours.construct_dist_matrix(G, before)


# --- conversions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", DENSE)
@pytest.mark.parametrize("null_value", [0, 1, None, NAN, INF])
@pytest.mark.parametrize("null", [(True, True), (False, True), (True, False)])
def test_from_dense(form: str, null_value: Any, null: tuple[bool, bool]) -> None:
    graph = DENSE[form]
    options = (null_value, *null)
    same(ours.csgraph_from_dense(graph, *options), theirs.csgraph_from_dense(graph, *options))
    found = ours.csgraph_masked_from_dense(graph, *options)
    expected = theirs.csgraph_masked_from_dense(graph, *options)
    assert found.dtype == expected.dtype and found._baseclass is expected._baseclass
    np.testing.assert_array_equal(np.ma.getmaskarray(found), np.ma.getmaskarray(expected))
    np.testing.assert_array_equal(found.data, expected.data)
    assert found.fill_value == expected.fill_value
    same(ours.csgraph_from_masked(found), theirs.csgraph_from_masked(expected))


def test_masked_from_dense_shares_memory_on_demand() -> None:
    graph = G.astype(float)
    assert np.shares_memory(ours.csgraph_masked_from_dense(graph, copy=False).data, graph)
    assert not np.shares_memory(ours.csgraph_masked_from_dense(graph).data, graph)


@settings(max_examples=60)
@given(graphs(), st.sampled_from([0, INF, NAN, -1, 2.5]), st.sampled_from(["csr", "csc", "lil"]))
def test_to_dense(S: Any, null_value: float, form: str) -> None:
    S = S.asformat(form)
    found = ours.csgraph_to_dense(S, null_value)
    assert found.dtype == np.float64 and found.flags.c_contiguous
    np.testing.assert_array_equal(found, theirs.csgraph_to_dense(S, null_value))
    masked, expected = ours.csgraph_to_masked(S), theirs.csgraph_to_masked(S)
    np.testing.assert_array_equal(masked.mask, expected.mask)
    np.testing.assert_array_equal(masked.filled(-1), expected.filled(-1))
    assert masked.fill_value == expected.fill_value


def test_bad_conversions() -> None:
    coo = scipy.sparse.coo_array(G)
    oblong = scipy.sparse.csr_array(np.ones((2, 3)))
    for library in (ours, theirs):
        for name in ("csgraph_to_dense", "csgraph_to_masked"):
            for graph, message in (
                (G, "csgraph must be sparse"),
                (coo, "csgraph must be lil, csr, or csc format"),
                (oblong, "csgraph should be a square matrix"),
            ):
                with pytest.raises(ValueError, match=message):
                    getattr(library, name)(graph)
        for name in ("csgraph_from_dense", "csgraph_masked_from_dense", "csgraph_from_masked"):
            with pytest.raises(ValueError, match="graph should have two dimensions"):
                getattr(library, name)(np.ma.ones(3))
            with pytest.raises(ValueError, match="graph should be a square array"):
                getattr(library, name)(np.ma.ones((2, 3)))


# --- Laplacians: SciPy's own suite has a thousand cases -------------------------------------------


@settings(max_examples=60)
@given(
    graphs(lengths=(0.0, 1.0, 2.5, 4.0)),
    st.sampled_from(["csr", "csc", "coo", "lil", "dia", "bsr", "dense"]),
    st.tuples(*[st.booleans()] * 3),
    st.sampled_from(["array", "lo", "function"]),
    st.sampled_from([None, np.float32]),
)
def test_laplacian(S: Any, kind: str, flags: tuple[bool, ...], form: str, dtype: Any) -> None:
    assume(S.nnz > 0 or kind != "dia")  # of which SciPy makes no sum
    S.sum_duplicates()
    graph = S.toarray() if kind == "dense" else S.asformat(kind)
    normed, out, symmetrized = flags
    options: dict[str, Any] = {"use_out_degree": out, "symmetrized": symmetrized, "form": form}
    options |= {"normed": normed, "return_diag": True, "dtype": dtype}
    expected, diagonal = theirs.laplacian(graph, **options)
    found, degrees = ours.laplacian(graph, **options)
    np.testing.assert_array_equal(degrees, diagonal)
    assert degrees.dtype == diagonal.dtype
    if form != "array":
        v = np.random.default_rng(1).random((S.shape[0], 2))
        apply = (lambda L: L(v)) if form == "function" else (lambda L: L @ v)
        np.testing.assert_allclose(apply(found), apply(expected))
        # of a single vector too, which SciPy's function spreads to a matrix
        alone = found(v[:, 0]) if form == "function" else found @ v[:, 0]
        np.testing.assert_allclose(alone, apply(expected)[:, 0])
    elif kind == "dense":
        np.testing.assert_array_equal(found, expected)
    else:
        assert type(found) is type(expected) and found.dtype == expected.dtype
        np.testing.assert_array_equal(found.toarray(), expected.toarray())


def test_laplacian_keeps_its_argument_and_adds_up_repetitions() -> None:
    S = rows_of(3, [(0, 1, 5.0), (0, 1, 2.0), (1, 2, 4.0), (1, 1, 3.0)])
    before = S.data.copy()
    found = ours.laplacian(S)
    np.testing.assert_array_equal(found.toarray(), theirs.laplacian(S.copy()).toarray())
    np.testing.assert_array_equal(S.data, before)
    assert isinstance(ours.laplacian(scipy.sparse.csr_matrix(S)), scipy.sparse.coo_matrix)


@pytest.mark.parametrize("short", ["int8", "int16"])
@pytest.mark.parametrize("dtype", [None, "int32", "float32"])
def test_degrees_of_short_integers_fit_a_longer_type(short: str, dtype: str | None) -> None:
    """The diagonal was cut off to the type of the graph before it became `dtype`."""
    most = np.iinfo(short).max
    S = scipy.sparse.csr_array(np.array([[0, most, 7], [most, 0, 0], [3, 0, 0]], short))
    found, degree = ours.laplacian(S, dtype=dtype, return_diag=True)
    expected, theirs_too = theirs.laplacian(S.copy(), dtype=dtype, return_diag=True)
    np.testing.assert_array_equal(found.toarray(), expected.toarray())
    np.testing.assert_array_equal(degree, theirs_too)
    assert found.dtype == expected.dtype


def test_bad_laplacians() -> None:
    for library in (ours, theirs):
        with pytest.raises(ValueError, match="csgraph must be a square matrix or array"):
            library.laplacian(np.ones((2, 3)))
        with pytest.raises(ValueError, match="Invalid form: 'x'"):
            library.laplacian(G, form="x")


@pytest.mark.parametrize("blocksize", [(1, 1), (2, 2), (4, 4)])
def test_zeros_that_fill_blocks_are_no_edges(blocksize: tuple[int, int]) -> None:
    dense = np.eye(4)
    graph = scipy.sparse.bsr_array(dense, blocksize=blocksize)
    assert ours.connected_components(graph, directed=False)[0] == 4
    assert np.isinf(ours.dijkstra(graph)).sum() == 12
    assert np.array_equal(graph.toarray(), dense) and graph.blocksize == blocksize


def test_flags_of_a_dense_graph_on_a_gpu_are_no_index(
    two_devices: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CuPy counts those in a C int, and raises OverflowError from 46,341 vertices on."""

    def refusing(method: Any) -> Any:
        def run(self: Any, at: Any, *value: Any) -> Any:
            if getattr(at, "dtype", np.dtype(int)).kind == "b":
                raise OverflowError
            return method(self, at, *value)

        return run

    for name in ("__getitem__", "__setitem__"):
        monkeypatch.setattr(CudaArray, name, refusing(getattr(CudaArray, name)))
    for graph in (DENSE["float"], -DENSE["float"], DENSE["holes"], DENSE["full"], DENSE["empty"]):
        given = on(0, graph.astype(float))
        np.testing.assert_array_equal(_lengths(given, True).get(), _lengths(graph, True))
        for indices in (None, [0]):
            assert _fastest(given, indices) == _fastest(graph.astype(float), indices)
