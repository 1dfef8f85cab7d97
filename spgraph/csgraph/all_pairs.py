"""Distances between all pairs of vertices: Floyd-Warshall, and along given predecessors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import NegativeCycleError

from spgraph.containers.storage.arrays import Array, array_module
from spgraph.csgraph.conversions import csgraph_masked_from_dense, csgraph_to_dense
from spgraph.csgraph.graphs import NULL, Rows, known, traversals
from spgraph.csgraph.kinds import GraphLike, flags, is_gpu, is_sparse
from spgraph.csgraph.potentials import potentials


def floyd_warshall(
    csgraph: GraphLike,
    directed: bool = True,
    return_predecessors: bool = False,
    unweighted: bool = False,
    overwrite: bool = False,
) -> Array | tuple[Array, Array]:
    """The distances between all pairs of vertices, along edges of positive or negative length: an
    N x N array of float64, infinite where there is no path; with `return_predecessors` the pair of
    it and an N x N array of int32, where [i, j] is the vertex before j on a shortest path from i,
    -9999 if there is none.

    `csgraph` is a graph in any form that SciPy accepts; in a dense one zeros, NaN and infinity are
    not edges, and with `overwrite` a dense array of float64 in C order is overwritten by the
    distances. Of parallel edges the shortest counts; in an undirected graph (`directed=False`)
    those of both directions are parallel. With `unweighted` every edge has length 1. On a GPU
    results stay there.

    Sums are formed in another order than SciPy's and may differ by rounding. If there are several
    shortest paths, predecessors may differ from SciPy's, whose documentation leaves them open.

    Raises NegativeCycleError for a cycle of negative length, ValueError for a graph that is not
    square.

    Source: Floyd, "Algorithm 97: shortest path" (1962); in blocks: Venkataraman, Sahni,
    Mukhopadhyaya, "A blocked all-pairs shortest-paths algorithm" (2003).

    >>> from spgraph.csgraph import floyd_warshall
    >>> floyd_warshall([[0, 1, 5], [0, 0, 2], [0, 0, 0]])
    array([[ 0.,  1.,  3.],
           [inf,  0.,  2.],
           [inf, inf,  0.]])
    """
    flags(
        "floyd_warshall",
        directed=directed,
        return_predecessors=return_predecessors,
        unweighted=unweighted,
        overwrite=overwrite,
    )
    distance = _lengths(csgraph := known(csgraph), copy=not overwrite)
    xp, n = array_module(distance), distance.shape[0]
    if not is_sparse(csgraph):
        distance[distance == 0] = np.inf
    if unweighted:
        distance[~xp.isinf(distance)] = 1
    distance.reshape(-1)[:: n + 1] = 0
    if not directed:
        xp.minimum(distance, distance.T.copy(), out=distance)
    parents = None
    if return_predecessors:
        ids = xp.arange(n, dtype=np.int32)[:, None]
        parents = xp.where(xp.isinf(distance), np.int32(NULL), ids).astype(np.int32)
        parents.reshape(-1)[:: n + 1] = NULL
    if n:
        _relax_all(distance, parents)
    wrong = xp.flatnonzero(xp.diagonal(distance) < 0)
    if wrong.size:
        raise NegativeCycleError(f"Negative cycle in nodes {wrong}")
    return distance if parents is None else (distance, parents)


def _relax_all(distance: Array, parents: Array | None) -> None:
    """Replace lengths by distances; those of either sign by means of potentials, so that rounding
    adds up to no negative cycle.
    """
    potential = _potential(distance)
    if potential is not None:
        distance += potential[:, None]
        distance -= potential
        array_module(distance).maximum(distance, 0, out=distance)
    traversals(distance).floyd_warshall(distance, parents)
    if potential is not None:
        distance -= potential[:, None]
        distance += potential


def _potential(distance: Array) -> Array | None:
    """Johnson's potentials, where some length is negative; None where there is a negative cycle."""
    xp, n = array_module(distance), distance.shape[0]
    if not bool((distance < 0).any()):
        return None
    there = distance < np.inf
    indptr = xp.zeros(n + 1, np.int64)
    xp.cumsum(there.sum(axis=1), out=indptr[1:])
    indices = (xp.flatnonzero(there) % n).astype(np.int32)
    rows = Rows(n, indptr, indices, distance[there], type(distance))
    try:
        found = potentials(rows, True)
    except NegativeCycleError:
        return None
    return found if bool(xp.isfinite(found).all()) else None


def construct_dist_matrix(
    graph: GraphLike, predecessors: npt.ArrayLike, directed: bool = True, null_value: float = np.inf
) -> Array:
    """The distances between all pairs of vertices along given paths: an N x N array of float64.

    predecessors[i, j] is the vertex before j on the path from i, -9999 if there is none, an N x N
    array of int32, as functions for shortest paths return it. Pairs without a path get
    `null_value`; if the predecessors of j end at another vertex than i, the distance is that from
    there. Lengths are read from `graph` as by `floyd_warshall`; in an undirected graph
    (`directed=False`) the lesser of both directions. `graph` is never changed.

    Raises TypeError for predecessors of another type, ValueError for shapes that differ, for a
    graph that is not square, and for predecessors that are not vertices or form a cycle.

    >>> import numpy as np
    >>> from spgraph.csgraph import construct_dist_matrix
    >>> before = np.array([[-9999, 0, 1], [-9999, -9999, 1], [-9999] * 3], np.int32)
    >>> construct_dist_matrix([[0, 1, 5], [0, 0, 2], [0, 0, 0]], before)
    array([[ 0.,  1.,  3.],
           [inf,  0.,  2.],
           [inf, inf,  0.]])
    """
    flags("construct_dist_matrix", directed=directed)
    lengths = _lengths(graph, copy=True)  # positions without an edge are written
    xp, n = array_module(lengths), lengths.shape[0]
    given: Array = predecessors if is_gpu(predecessors) else np.asarray(predecessors)
    if given.dtype != np.int32:
        raise TypeError(f"predecessors: expected an array of int32, got {given.dtype}")
    if given.shape != lengths.shape:
        raise ValueError(
            "graph and predecessors must have the same shape, "
            f"got {lengths.shape} and {given.shape}"
        )
    if not directed:
        lengths[lengths == 0] = np.inf
        xp.minimum(lengths, lengths.T.copy(), out=lengths)
    if n == 0:
        return lengths
    distance, failed = traversals(lengths).path_lengths(
        lengths, xp.ascontiguousarray(xp.asarray(given)), float(null_value)
    )
    if failed[0]:
        raise ValueError(
            "predecessors: expected vertices, or -9999, that lead to the start of their row; "
            "some lead around a cycle or out of the graph"
        )
    return distance


def _lengths(graph: Any, copy: bool) -> Array:
    """A dense array of float64 in C order, infinite where there is no edge."""
    graph = known(graph)
    if is_sparse(graph):
        if is_gpu(graph) or graph.format in ("lil", "csr", "csc"):
            return csgraph_to_dense(graph.tocsr(), null_value=np.inf)
        raise ValueError(f"csgraph must be lil, csr, or csc format, got {graph.format}")
    if is_gpu(graph):
        return _lengths_of_cupy(graph, copy)
    if np.ma.isMaskedArray(graph):
        dense, mask = np.array(graph.data, np.float64, copy=copy or None), np.ma.getmaskarray(graph)
    else:
        masked = csgraph_masked_from_dense(graph, copy=copy)
        dense, mask = np.asarray(masked.data, np.float64), np.ma.getmaskarray(masked)
    dense[mask] = np.inf
    if dense.ndim != 2:
        raise ValueError("compressed-sparse graph must be 2-D")
    if dense.shape[0] != dense.shape[1]:
        raise ValueError("compressed-sparse graph must be shape (N, N)")
    return np.ascontiguousarray(dense)


def _lengths_of_cupy(graph: Array, copy: bool) -> Array:
    if graph.ndim != 2 or graph.shape[0] != graph.shape[1]:
        raise ValueError("graph should be a square array")
    xp = array_module(graph)
    dense = xp.array(graph, np.float64, copy=copy, order="C")
    # CuPy counts flags that are an index in a C int, and raises OverflowError from 2**31 on
    xp.copyto(dense, np.inf, where=xp.isclose(dense, 0.0) | xp.isnan(dense) | xp.isinf(dense))
    return dense
