"""spgraph.csgraph on a GPU: CuPy's matrices and arrays go in, and results stay there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from csgraph_cases import check_paths
from scipy.sparse import csgraph as theirs

import spgraph.csgraph as ours
from spgraph import generators

pytestmark = pytest.mark.gpu


def there(S: Any) -> Any:
    """A SciPy matrix as CuPy's."""
    import cupyx.scipy.sparse

    return getattr(cupyx.scipy.sparse, f"{S.format}_matrix")(S)


def here(found: Any) -> Any:
    """What lies on the device, and only that, as NumPy's or SciPy's."""
    import cupy
    import cupyx.scipy.sparse

    assert isinstance(found, cupy.ndarray) or cupyx.scipy.sparse.issparse(found), type(found)
    return found.get()


def same(found: Any, expected: Any) -> None:
    """Equal sparse results, entry by entry."""
    found = scipy.sparse.csr_array(here(found))
    expected = scipy.sparse.csr_array(expected)
    for S in (found, expected):
        S.sort_indices()
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.data, expected.data)


def graph(n: int = 60, density: float = 0.06, seed: int = 1) -> Any:
    chance = np.random.default_rng(seed)
    S = scipy.sparse.random_array((n, n), density=density, rng=chance, format="csr")
    S.data = np.ceil(9 * S.data)
    return S


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("unweighted", [True, False])
@pytest.mark.parametrize("name", ["dijkstra", "bellman_ford", "johnson"])
def test_shortest_paths(name: str, directed: bool, unweighted: bool) -> None:
    S = graph()
    options = {"directed": directed, "unweighted": unweighted, "indices": [3, 40, -1]}
    expected = getattr(theirs, name)(S, **options)
    found, parent = getattr(ours, name)(there(S), return_predecessors=True, **options)
    assert parent.dtype == np.int32
    found, parent = here(found), here(parent)
    np.testing.assert_array_equal(found, expected)
    for s, d, p in zip([3, 40, 59], found, parent, strict=True):
        check_paths(S, directed, [s], d, p, unweighted)


@pytest.mark.parametrize("limit", [np.inf, 9.0])
def test_the_nearest_of_several(limit: float) -> None:
    S, indices = graph(), [0, 7, 7, 31]
    expected = theirs.dijkstra(S, indices=indices, min_only=True, limit=limit)
    distance, parent, origin = map(
        here,
        ours.dijkstra(
            there(S), indices=indices, min_only=True, limit=limit, return_predecessors=True
        ),
    )
    np.testing.assert_array_equal(distance, expected)
    np.testing.assert_array_equal(check_paths(S, True, indices, distance, parent), origin)


def test_of_several_shortest_paths_predecessors_and_source_are_of_one() -> None:
    """Vertex 4 has one over 2, from source 1, and one over 3, from source 0."""
    S = scipy.sparse.csr_array((np.ones(4), ([0, 1, 2, 3], [3, 2, 4, 4])), shape=(5, 5))
    distance, parent, origin = map(
        here, ours.dijkstra(there(S), indices=[0, 1], min_only=True, return_predecessors=True)
    )
    np.testing.assert_array_equal(check_paths(S, True, [0, 1], distance, parent), origin)


@pytest.mark.parametrize("name", ["bellman_ford", "johnson"])
def test_lengths_of_either_sign(name: str) -> None:
    S = graph()
    height = np.random.default_rng(2).integers(-9, 9, S.shape[0])
    S.data += np.repeat(height, np.diff(S.indptr)) - height[S.indices]
    np.testing.assert_allclose(here(getattr(ours, name)(there(S))), getattr(theirs, name)(S))
    S.data[:] = -1
    with pytest.raises(ours.NegativeCycleError):
        getattr(ours, name)(there(S))


@pytest.mark.parametrize("name", ["bellman_ford", "johnson", "floyd_warshall"])
def test_rounding_is_no_negative_cycle(name: str) -> None:
    for seed in range(6):
        chance = np.random.default_rng(seed)
        height = chance.uniform(-2e7, 2e7, 14)
        there_is = (chance.random((14, 14)) < 0.5) & ~np.eye(14, dtype=bool)
        lengths = np.where(there_is, height[:, None] - height, 0)
        found = here(getattr(ours, name)(there(scipy.sparse.csr_array(lengths))))
        np.testing.assert_allclose(found, height[:, None] - height, atol=1e-6)


def test_missing_and_infinite_lengths() -> None:
    S = graph()
    S.data[::7], S.data[3::7], S.data[5::9] = np.nan, np.inf, 0
    np.testing.assert_array_equal(here(ours.dijkstra(there(S))), theirs.dijkstra(S))


@pytest.mark.parametrize("n", [1, 31, 32, 100, 257])
@pytest.mark.parametrize("directed", [True, False])
def test_all_pairs(n: int, directed: bool) -> None:
    S = graph(n, min(1, 4 / n))
    expected = theirs.floyd_warshall(S, directed)
    dense = theirs.csgraph_to_dense(S)
    import cupy

    for given in (there(S), cupy.asarray(dense)):
        distance, parent = ours.floyd_warshall(given, directed, return_predecessors=True)
        np.testing.assert_array_equal(here(distance), expected)
        along = here(ours.construct_dist_matrix(given, parent, directed))
        np.testing.assert_array_equal(along, expected)
        if not hasattr(given, "format"):
            np.testing.assert_array_equal(given.get(), dense)
    with pytest.raises(ours.NegativeCycleError):
        ours.floyd_warshall(cupy.asarray([[0, -1.0], [-1.0, 0]]))
    with pytest.raises(ValueError, match="lead around a cycle or out of the graph"):
        ours.construct_dist_matrix(there(graph(n + 1)), cupy.full((n + 1,) * 2, n + 1, np.int32))


def test_overwrite() -> None:
    import cupy

    dense = cupy.asarray(theirs.csgraph_to_dense(graph()))
    kept = dense.copy()
    ours.floyd_warshall(dense)
    assert bool((dense == kept).all())
    assert ours.floyd_warshall(dense, overwrite=True).data.ptr == dense.data.ptr


@pytest.mark.parametrize("method", ["auto", "FW", "D", "BF", "J"])
def test_methods(method: str) -> None:
    S = graph()
    np.testing.assert_array_equal(here(ours.shortest_path(there(S), method)), theirs.dijkstra(S))


@pytest.mark.parametrize("directed", [True, False])
def test_breadth_first(directed: bool) -> None:
    S = graph()
    order, parent = map(here, ours.breadth_first_order(there(S), 5, directed))
    expected, before = theirs.breadth_first_order(S, 5, directed)
    assert order.dtype == parent.dtype == np.int32 and order[0] == 5
    assert sorted(order) == sorted(expected)
    np.testing.assert_array_equal(parent < 0, before < 0)
    level = theirs.dijkstra(S, directed, indices=5, unweighted=True)
    assert (np.diff(level[order]) >= 0).all()
    tree = ours.breadth_first_tree(there(S), 5, directed)
    same(tree, theirs.reconstruct_path(S, parent, directed))
    expected = theirs.reconstruct_path(S, before, directed)
    same(ours.reconstruct_path(there(S), before, directed), expected)


@pytest.mark.parametrize("connection", ["weak", "strong"])
def test_components(connection: str) -> None:
    S = graph(200, 0.008)
    count, label = ours.connected_components(there(S), connection=connection)
    expected = theirs.connected_components(S, connection=connection)
    assert count == expected[0] and label.dtype == np.int32
    pairs = set(zip(here(label).tolist(), expected[1].tolist(), strict=True))
    assert len(pairs) == count  # the same parts, by names of their own
    assert ours.connected_components(there(S), connection=connection, return_labels=False) == count


def test_minimum_spanning_tree() -> None:
    for S in (graph(), graph(300, 0.01)):
        same(ours.minimum_spanning_tree(there(S)), theirs.minimum_spanning_tree(S))


@pytest.mark.parametrize("normed", [True, False])
@pytest.mark.parametrize("symmetrized", [True, False])
def test_laplacian(normed: bool, symmetrized: bool) -> None:
    import cupy

    S = graph()
    options = {"normed": normed, "symmetrized": symmetrized, "return_diag": True}
    expected, degrees = theirs.laplacian(S.copy(), **options)
    for given in (there(S), cupy.asarray(S.toarray())):
        found, diagonal = ours.laplacian(given, **options)
        np.testing.assert_allclose(here(diagonal), degrees)
        np.testing.assert_allclose(
            found.toarray().get() if hasattr(found, "toarray") else found.get(), expected.toarray()
        )
        v = cupy.ones((S.shape[0], 2))
        times, _ = ours.laplacian(given, form="function", **options)
        np.testing.assert_allclose(here(times(v)), expected @ v.get(), atol=1e-12)
        operator, _ = ours.laplacian(given, form="lo", **options)
        np.testing.assert_allclose(here(operator @ v), expected @ v.get(), atol=1e-12)


def test_conversions() -> None:
    import cupy

    dense = theirs.csgraph_to_dense(graph())
    dense[0, :3] = np.nan, np.inf, 1e-9
    for options in ({}, {"null_value": np.inf}, {"null_value": 1, "nan_null": False}):
        same(
            ours.csgraph_from_dense(cupy.asarray(dense), **options),
            theirs.csgraph_from_dense(dense, **options),
        )
    S = graph()
    S.data /= 3  # numbers that float32 does not hold: CuPy's minimum.at rounds to those
    for null_value in (0, np.inf):
        for given in (there(S), there(S.tocsc())):
            np.testing.assert_array_equal(
                here(ours.csgraph_to_dense(given, null_value)),
                theirs.csgraph_to_dense(S, null_value),
            )


def test_what_stays_on_the_cpu_says_so() -> None:
    S = there(graph())
    for call in (
        lambda: ours.csgraph_to_masked(S),
        lambda: ours.csgraph_masked_from_dense(S.toarray()),
        lambda: ours.depth_first_order(S, 0),
        lambda: ours.maximum_flow(S, 0, 1),
        lambda: ours.yen(S, 0, 1, 1),
    ):
        with pytest.raises(TypeError, match=r"\.get\(\)"):
            call()


def test_a_large_graph() -> None:
    A = generators.kronecker(16, 16)
    S = A.to_scipy().astype(np.float64)
    S.data[:] = np.random.default_rng(1).integers(1, 50, S.nnz)
    start = int(np.argmax(np.diff(S.indptr)))
    D = there(scipy.sparse.csr_matrix(S))
    np.testing.assert_array_equal(
        here(ours.dijkstra(D, indices=start)), theirs.dijkstra(S, indices=start)
    )
    assert ours.connected_components(D)[0] == theirs.connected_components(S)[0]
    same(ours.minimum_spanning_tree(D), theirs.minimum_spanning_tree(S))
