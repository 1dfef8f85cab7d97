"""Shortest paths from given vertices: Dijkstra, Bellman-Ford, Johnson."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import NegativeCycleError

from spgraph.containers.storage.arrays import Array, array_module
from spgraph.csgraph.all_pairs import floyd_warshall
from spgraph.csgraph.composed import Searches, shortest, shortest_over
from spgraph.csgraph.graphs import Rows, known, rows_of, traversals, vertices_of
from spgraph.csgraph.kinds import GraphLike, flags, is_gpu, is_sparse
from spgraph.csgraph.potentials import arrays_of, potentials


def shortest_path(
    csgraph: GraphLike,
    method: str = "auto",
    directed: bool = True,
    return_predecessors: bool = False,
    unweighted: bool = False,
    overwrite: bool = False,
    indices: npt.ArrayLike | None = None,
) -> Array | tuple[Array, ...]:
    """The distances between vertices, by one of the other functions; see there for the results.

    `method` is "D" (`dijkstra`), "BF" (`bellman_ford`), "J" (`johnson`), "FW" (`floyd_warshall`,
    which takes no `indices`) or "auto": "FW" for all pairs of a graph with at least N * N / 4
    edges, else "J" for one with negative lengths, else "D". `overwrite` is that of
    `floyd_warshall`; `csgraph`, `directed`, `return_predecessors` and `unweighted` are those of
    all.

    Raises ValueError for another method and for "FW" with `indices`, and what the method raises.

    >>> from spgraph.csgraph import shortest_path
    >>> shortest_path([[0, 1, 5], [0, 0, 2], [0, 0, 0]], indices=0)
    array([0., 1., 3.])
    """
    flags(
        "shortest_path",
        directed=directed,
        return_predecessors=return_predecessors,
        unweighted=unweighted,
        overwrite=overwrite,
    )
    csgraph = known(csgraph)
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
    csgraph: GraphLike,
    directed: bool = True,
    indices: npt.ArrayLike | None = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
    limit: float = np.inf,
    min_only: bool = False,
) -> Array | tuple[Array, ...]:
    """The distances from the vertices `indices` (None: all) along edges of lengths >= 0.

    An array of float64 of the shape of `indices` and one more axis for the N vertices, infinite
    where there is no path of at most `limit`; with `return_predecessors` the pair of it and an
    array of int32 of the same shape: the vertex before the last on a shortest path, -9999 if there
    is none. `min_only` measures the distance from the nearest of the `indices`: one row, and with
    predecessors a third array, the nearest of them.

    `csgraph` is a graph in any form that SciPy accepts, or CuPy's on a GPU, where results stay. Of
    parallel edges the shortest counts; in an undirected graph (`directed=False`) those of both
    directions are parallel. Edges of NaN or infinite length are ignored. With `unweighted` every
    edge has length 1.

    Distances are bitwise those of SciPy. If there are several shortest paths, predecessors and
    sources may differ from SciPy's, whose documentation leaves them open. Negative lengths give a
    warning; the results may then be wrong on the CPU, as in SciPy, and are those of `bellman_ford`
    on a GPU.

    On the CPU each search is run by one thread, and several searches run at the same time.

    Raises ValueError for a graph that is not square, `indices` out of range, a negative `limit`.

    Source: Dijkstra, "A note on two problems in connexion with graphs" (1959).

    >>> from spgraph.csgraph import dijkstra
    >>> dijkstra([[0, 1, 5], [0, 0, 2], [0, 0, 0]], indices=0, return_predecessors=True)
    (array([0., 1., 3.]), array([-9999,     0,     1], dtype=int32))
    """
    flags("dijkstra", directed=directed, unweighted=unweighted, min_only=min_only)
    flags("dijkstra", return_predecessors=return_predecessors)
    rows = rows_of(csgraph, directed)
    if _has_negative(rows):
        warnings.warn(
            "Graph has negative weights: dijkstra will give inaccurate results if the graph "
            "contains negative cycles. Consider johnson or bellman_ford.",
            stacklevel=2,
        )
    starts, shape = vertices_of(indices, rows.n)
    searches = Searches.from_each(starts, return_predecessors)
    searches = searches._replace(limit=_checked_limit(limit))
    if min_only:
        together = np.array([0, starts.size])
        searches = searches._replace(bounds=together, origins=searches.parents)
    distance, parent, origin = _shortest(rows, directed, unweighted, searches)
    if not min_only:
        return _shaped((*shape, rows.n), distance, parent, return_predecessors)
    found = _shaped((rows.n,), distance, parent, return_predecessors)
    return (*found, origin.reshape(rows.n)) if return_predecessors else found


def _checked_limit(limit: float) -> float:
    """`limit` as a float >= 0; TypeError and ValueError as in SciPy."""
    if isinstance(limit, str | bytes):
        raise TypeError(f"limit: must be real number, not {type(limit).__name__}")
    limit = float(limit)
    if limit < 0:
        raise ValueError(f"limit must be >= 0, got {limit}")
    return limit


def bellman_ford(
    csgraph: GraphLike,
    directed: bool = True,
    indices: npt.ArrayLike | None = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
) -> Array | tuple[Array, ...]:
    """The distances from the vertices `indices` (None: all) along edges of lengths of either sign.

    `csgraph`, `directed`, `return_predecessors`, `unweighted` and the results are those of
    `dijkstra`, without its `limit` and `min_only`. Raises NegativeCycleError if one of the
    `indices` reaches a cycle of negative length (in an undirected graph every edge of negative
    length is one); ValueError as `dijkstra` does.

    Without negative lengths this is `dijkstra`. Otherwise each round relaxes the edges of vertices
    whose distance the previous round improved; a negative cycle is detected when the predecessors
    form a cycle. A length that is negative by no more than the rounding of its sum is none, where
    SciPy calls everything below -1e-15 negative.

    Source: Bellman, "On a routing problem" (1958); Ford, "Network flow theory" (1956).

    >>> from spgraph.csgraph import bellman_ford
    >>> bellman_ford([[0, 4, 1], [0, 0, 0], [0, -2, 0]], indices=0)
    array([ 0., -1.,  1.])
    """
    flags(
        "bellman_ford",
        directed=directed,
        return_predecessors=return_predecessors,
        unweighted=unweighted,
    )
    rows = rows_of(csgraph, directed)
    starts, shape = vertices_of(indices, rows.n)
    searches = Searches.from_each(starts, return_predecessors)
    if unweighted or not _has_negative(rows):
        distance, parent, _ = _shortest(rows, directed, unweighted, searches)
    elif rows.on_gpu:
        A, semiring = shortest_over(rows, directed, unweighted)
        distance, parent, _, failed = shortest(A, searches, semiring)
        if failed:
            raise NegativeCycleError("Negative cycle detected")
    else:
        arrays, back = arrays_of(rows, directed, False)
        distance, parent, cycles = traversals(rows.indices).bellman_ford(
            arrays, back, starts, searches.bounds
        )
        if cycles.any():
            first = int(starts[cycles.argmax()])
            raise NegativeCycleError(f"Negative cycle detected on node {first}")
    return _shaped((*shape, rows.n), distance, parent, return_predecessors)


def johnson(
    csgraph: GraphLike,
    directed: bool = True,
    indices: npt.ArrayLike | None = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
) -> Array | tuple[Array, ...]:
    """The distances from the vertices `indices` (None: all) along edges of lengths of either sign;
    for many vertices faster than `bellman_ford`, which it runs once to make all lengths
    non-negative, before `dijkstra` from every vertex.

    `csgraph`, `directed`, `return_predecessors`, `unweighted` and the results are those of
    `dijkstra`, without its `limit` and `min_only`. Raises NegativeCycleError for a cycle of
    negative length anywhere; ValueError as `dijkstra` does.

    Source: Johnson, "Efficient algorithms for shortest paths in sparse networks" (1977).

    >>> from spgraph.csgraph import johnson
    >>> johnson([[0, 4, 1], [0, 0, 0], [0, -2, 0]])
    array([[ 0., -1.,  1.],
           [inf,  0., inf],
           [inf, -2.,  0.]])
    """
    flags(
        "johnson", directed=directed, return_predecessors=return_predecessors, unweighted=unweighted
    )
    rows = rows_of(csgraph, directed)
    starts, shape = vertices_of(indices, rows.n)
    potential = None
    if not unweighted and _has_negative(rows):
        potential = potentials(rows, directed)
        rows = _reweighted(rows, potential)
    searches = Searches.from_each(starts, return_predecessors)
    distance, parent, _ = _shortest(rows, directed, unweighted, searches)
    if potential is not None:
        distance += potential
        distance -= potential[array_module(potential).asarray(starts)][:, None]
    return _shaped((*shape, rows.n), distance, parent, return_predecessors)


def _shaped(
    shape: tuple[int, ...], distance: Array, parent: Array, return_predecessors: bool
) -> Any:
    """The distances, or the pair of these and the predecessors, in the shape of the vertices that
    the searches start from.
    """
    found = distance.reshape(shape)
    return (found, parent.reshape(shape)) if return_predecessors else found


def _shortest(
    rows: Rows, directed: bool, unweighted: bool, searches: Searches
) -> tuple[Array, Array, Array]:
    """(distances, parents, origins) of searches over lengths >= 0."""
    if not rows.on_gpu:
        arrays, back = arrays_of(rows, directed, unweighted)
        return traversals(rows.indices).dijkstra(arrays, back, *searches)
    A, semiring = shortest_over(rows, directed, unweighted)
    *found, failed = shortest(A, searches, semiring)
    if failed:
        raise NegativeCycleError("Negative cycle detected")
    return found[0], found[1], found[2]


def _has_negative(rows: Rows) -> bool:
    if rows.values.size == 0 or rows.values.dtype.kind in "bu":
        return False
    least = rows.values.min()
    # the minimum is NaN if any value is
    return bool(least < 0) or (bool(least != least) and bool((rows.values < 0).any()))


def _reweighted(rows: Rows, potential: Array) -> Rows:
    """The rows with lengths w(u, v) + potential[u] - potential[v]: at least 0, but for rounding."""
    ends = rows.matrix().row_indices()
    values = rows.lengths() + potential[ends] - potential[rows.indices]
    return rows._replace(values=array_module(values).maximum(values, 0))


def _fastest(csgraph: Any, indices: Any) -> str:
    """The method that 'auto' selects."""
    if is_sparse(csgraph):
        n, count = csgraph.shape[0], csgraph.nnz
        edges = csgraph.data if csgraph.format in ("csr", "csc", "coo") else csgraph.tocoo().data
    elif np.ma.isMaskedArray(csgraph):
        n, count, edges = csgraph.shape[0], csgraph.count(), csgraph.compressed()
    else:
        dense = csgraph if is_gpu(csgraph) else np.asarray(csgraph)
        if dense.ndim != 2:
            raise ValueError("graph should have two dimensions")
        is_edge = (abs(dense) < np.inf) & (dense != 0)
        # not dense[is_edge]: CuPy raises OverflowError for an index of 2**31 flags
        n, count = dense.shape[0], int(is_edge.sum())
        edges = array_module(dense).where(is_edge, dense, 0)
    if indices is None and count >= n * n / 4:
        return "FW"
    return "J" if bool((edges < 0).any()) else "D"
