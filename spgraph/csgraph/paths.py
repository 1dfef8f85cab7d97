"""Shortest paths from some vertices: Dijkstra, Bellman and Ford, Johnson."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.sparse.csgraph import NegativeCycleError

from spgraph.containers.arrays import Array, array_module
from spgraph.csgraph import composed
from spgraph.csgraph.all_pairs import floyd_warshall
from spgraph.csgraph.graphs import Rows, from_pydata, rows_of, traversals, vertices_of
from spgraph.csgraph.kinds import is_gpu, is_sparse

UNIT = np.ones(1)

Arrays = tuple[Array, Array, Array]


def shortest_path(
    csgraph: Any,
    method: str = "auto",
    directed: bool = True,
    return_predecessors: bool = False,
    unweighted: bool = False,
    overwrite: bool = False,
    indices: Any = None,
) -> Any:
    """The distances between vertices, by one of the functions below.

    `method` is "D" (`dijkstra`), "BF" (`bellman_ford`), "J" (`johnson`), "FW" (`floyd_warshall`,
    which takes no `indices`) or "auto": "FW" for a dense graph of which all pairs are asked for,
    else "J" for one with negative lengths, else "D". Everything else is as there.

    Raises ValueError for another method and for "FW" with `indices`.

    >>> from spgraph.csgraph import shortest_path
    >>> shortest_path([[0, 1, 5], [0, 0, 2], [0, 0, 0]], indices=0)
    array([0., 1., 3.])
    """
    csgraph = from_pydata(csgraph)
    if method == "auto":
        method = _fastest(csgraph, indices)
    options = {"directed": directed, "return_predecessors": return_predecessors}
    options["unweighted"] = unweighted
    if method == "FW":
        if indices is not None:
            raise ValueError("Cannot specify indices with method == 'FW'.")
        return floyd_warshall(csgraph, overwrite=overwrite, **options)
    if method == "D":
        return dijkstra(csgraph, indices=indices, **options)
    if method == "BF":
        return bellman_ford(csgraph, indices=indices, **options)
    if method == "J":
        return johnson(csgraph, indices=indices, **options)
    raise ValueError(f"unrecognized method '{method}': expected 'auto', 'FW', 'D', 'BF' or 'J'")


def dijkstra(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
    limit: float = np.inf,
    min_only: bool = False,
) -> Any:
    """The distances from the vertices `indices` (None: all) along edges of lengths >= 0.

    An array of float64 of the shape of `indices` and one more axis for the vertices, infinite where
    no path of at most `limit` leads; with `return_predecessors` the pair of it and an int32 array:
    the vertex before the last on a shortest path, -9999 where there is none. `min_only` measures
    from the nearest of the `indices`: one row, and with predecessors a third array, which of them
    that is.

    `csgraph` is a graph as SciPy takes it, or on a GPU as CuPy has it; results lie where it does.
    Of several edges between two vertices the shortest counts, in an undirected graph
    (`directed=False`) of those of both directions; edges of NaN or of infinite length lead nowhere.
    `unweighted` takes every edge for one of length 1.

    Distances are SciPy's to the last bit. Where several shortest paths exist SciPy's documentation
    leaves predecessors and sources open, and they may be others here. Lengths below zero give a
    warning, as in SciPy, and on the CPU results that may be wrong, as there; on a GPU they are
    those of `bellman_ford`.

    On the CPU each walk from a vertex is one thread's, and several of them run side by side.

    Raises ValueError for a graph that is not square, `indices` outside of it, a negative `limit`.

    >>> from spgraph.csgraph import dijkstra
    >>> dijkstra([[0, 1, 5], [0, 0, 2], [0, 0, 0]], indices=0, return_predecessors=True)
    (array([0., 1., 3.]), array([-9999,     0,     1], dtype=int32))
    """
    rows = rows_of(csgraph, directed)
    if _has_negative(rows):
        warnings.warn(
            "Graph has negative weights: dijkstra will give inaccurate results if the graph "
            "contains negative cycles. Consider johnson or bellman_ford.",
            stacklevel=2,
        )
    starts, shape = vertices_of(indices, rows.n)
    limit = float(limit)
    if limit < 0:
        raise ValueError(f"limit must be >= 0, got {limit}")
    bounds = np.array([0, starts.size]) if min_only else np.arange(starts.size + 1)
    wants = return_predecessors
    distance, parent, origin = _shortest(
        rows, directed, unweighted, starts, bounds, limit, wants, wants and min_only
    )
    shape = (rows.n,) if min_only else (*shape, rows.n)
    found = distance.reshape(shape)
    if not wants:
        return found
    if min_only:
        return found, parent.reshape(shape), origin.reshape(shape)
    return found, parent.reshape(shape)


def bellman_ford(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
) -> Any:
    """The distances from the vertices `indices` (None: all) along edges of lengths of either sign.

    Arguments and results are those of `dijkstra`, without `limit` and `min_only`. Raises
    NegativeCycleError where one of the `indices` reaches a cycle of negative length, as any edge of
    negative length is in an undirected graph; ValueError as `dijkstra` does.

    Without negative lengths this is `dijkstra`. Otherwise only what got better is looked at again,
    and a cycle is noticed when predecessors lead around it.

    >>> from spgraph.csgraph import bellman_ford
    >>> bellman_ford([[0, 4, 1], [0, 0, 0], [0, -2, 0]], indices=0)
    array([ 0., -1.,  1.])
    """
    rows = rows_of(csgraph, directed)
    starts, shape = vertices_of(indices, rows.n)
    bounds = np.arange(starts.size + 1)
    if unweighted or not _has_negative(rows):
        distance, parent, _ = _shortest(
            rows, directed, unweighted, starts, bounds, np.inf, return_predecessors, False
        )
    elif rows.on_gpu:
        A, ring = composed.shortest_over(rows, directed, unweighted)
        distance, parent, _, failed = composed.shortest(
            A, starts, bounds, np.inf, return_predecessors, False, ring
        )
        if failed:
            raise NegativeCycleError("Negative cycle detected")
    else:
        arrays, back = _arrays(rows, directed, False)
        distance, parent, cycles = traversals(rows.indices).bellman_ford(
            arrays, back, starts, bounds
        )
        if cycles.any():
            first = int(starts[cycles.argmax()])
            raise NegativeCycleError(f"Negative cycle detected on node {first}")
    shape = (*shape, rows.n)
    found = distance.reshape(shape)
    return (found, parent.reshape(shape)) if return_predecessors else found


def johnson(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
) -> Any:
    """The distances from the vertices `indices` (None: all) along edges of lengths of either sign,
    for many vertices: one walk of `bellman_ford` makes all lengths non-negative, and then each
    vertex has a walk of `dijkstra`.

    Arguments and results are those of `dijkstra`, without `limit` and `min_only`. Raises
    NegativeCycleError where there is a cycle of negative length anywhere; ValueError as `dijkstra`
    does.

    >>> from spgraph.csgraph import johnson
    >>> johnson([[0, 4, 1], [0, 0, 0], [0, -2, 0]])
    array([[ 0., -1.,  1.],
           [inf,  0., inf],
           [inf, -2.,  0.]])
    """
    rows = rows_of(csgraph, directed)
    starts, shape = vertices_of(indices, rows.n)
    bounds = np.arange(starts.size + 1)
    height = None
    if not unweighted and _has_negative(rows):
        height = _heights(rows, directed)
        rows = _lifted(rows, height)
    distance, parent, _ = _shortest(
        rows, directed, unweighted, starts, bounds, np.inf, return_predecessors, False
    )
    if height is not None:
        distance += height
        distance -= height[array_module(height).asarray(starts)][:, None]
    shape = (*shape, rows.n)
    found = distance.reshape(shape)
    return (found, parent.reshape(shape)) if return_predecessors else found


def _shortest(
    rows: Rows,
    directed: bool,
    unweighted: bool,
    starts: np.ndarray,
    bounds: np.ndarray,
    limit: float,
    parents: bool,
    origins: bool,
) -> tuple[Array, Array, Array]:
    if not rows.on_gpu:
        arrays, back = _arrays(rows, directed, unweighted)
        return traversals(rows.indices).dijkstra(
            arrays, back, starts, bounds, limit, parents, origins
        )
    A, ring = composed.shortest_over(rows, directed, unweighted)
    *found, failed = composed.shortest(A, starts, bounds, limit, parents, origins, ring)
    if failed:
        raise NegativeCycleError("Negative cycle detected")
    return found[0], found[1], found[2]


def _arrays(rows: Rows, directed: bool, unweighted: bool) -> tuple[Arrays, Arrays | None]:
    """The arrays of a walk, and those of the transpose where edges are gone both ways."""
    values = UNIT if unweighted else rows.lengths()
    arrays = (rows.indptr, rows.indices, values)
    if directed:
        return arrays, None
    back = rows.transposed(values=not unweighted)
    return arrays, (back.indptr, back.indices, UNIT if unweighted else back.values)


def _has_negative(rows: Rows) -> bool:
    if rows.values.size == 0 or rows.values.dtype.kind in "bu":
        return False
    least = rows.values.min()
    # NaN is the least of all, and says nothing of the others
    return bool(least < 0) or (bool(least != least) and bool((rows.values < 0).any()))


def _heights(rows: Rows, directed: bool) -> Array:
    """For every vertex the least length of a walk that ends there, from anywhere: at most 0."""
    everywhere, once = np.arange(rows.n, dtype=np.int32), np.array([0, rows.n])
    if rows.on_gpu:
        A, ring = composed.shortest_over(rows, directed, False)
        distance, _, _, failed = composed.shortest(A, everywhere, once, np.inf, False, False, ring)
    else:
        arrays, back = _arrays(rows, directed, False)
        distance, _, cycles = traversals(rows.indices).bellman_ford(arrays, back, everywhere, once)
        failed = bool(cycles.any())
    if failed:
        raise NegativeCycleError("Negative cycle detected")
    return distance[0]


def _lifted(rows: Rows, height: Array) -> Rows:
    """The rows with lengths as seen from the heights of their ends: none is negative, but for what
    rounding leaves.
    """
    ends = rows.matrix().row_indices()
    values = rows.lengths() + height[ends] - height[rows.indices]
    return rows._replace(values=values)


def _fastest(csgraph: Any, indices: Any) -> str:
    """The method for what the graph is like."""
    if is_sparse(csgraph):
        n, count = csgraph.shape[0], csgraph.nnz
        edges = csgraph.data if csgraph.format in ("csr", "csc", "coo") else csgraph.tocoo().data
    elif np.ma.isMaskedArray(csgraph):
        n, count, edges = csgraph.shape[0], csgraph.count(), csgraph.compressed()
    else:
        dense = csgraph if is_gpu(csgraph) else np.asarray(csgraph)
        if dense.ndim != 2:
            raise ValueError("graph should have two dimensions")
        edges = dense[abs(dense) < np.inf]
        edges = edges[edges != 0]
        n, count = dense.shape[0], edges.size
    if indices is None and count >= n * n / 4:
        return "FW"
    return "J" if bool((edges < 0).any()) else "D"
