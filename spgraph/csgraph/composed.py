"""Shortest paths by the closure over min and plus, for graphs on a GPU: one search after the other,
each on the whole device. On the CPU `spgraph.backends.cpu.traversals` runs one search per thread.

The functions here take the same rows as those and give the same results, on the device of the rows.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, Self

import numpy as np

from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import Array, array_module, move, on_device, unpack_bits
from spgraph.csgraph.graphs import NULL, Rows, traversals
from spgraph.errors import ConvergenceError
from spgraph.iterations import closure, dag_edges, search
from spgraph.operations import ewise_add
from spgraph.semirings import BinaryOp, Semiring, binary, min_plus, min_secondi, monoid


@functools.cache
def signed() -> Semiring:
    """min_plus for lengths of either sign; the closure over the built-in one refuses negatives."""
    plus = BinaryOp.from_expressions("signed_plus", python="x + y", cuda="x + y")
    return Semiring(monoid.min, plus)


def lengths_of(rows: Rows, directed: bool, unweighted: bool) -> Matrix:
    """The Matrix of lengths. Edges of NaN or infinite length are dropped; of parallel edges the
    shortest counts, and in an undirected graph those of both directions are parallel.
    """
    with on_device(rows.matrix().device) as xp:
        if unweighted:
            A = rows.canonical(xp.ones(rows.indices.size))
        else:
            values = rows.lengths().astype(np.float64, copy=False)
            known = values < np.inf
            if not bool(known.all()):
                places = xp.zeros(values.size + 1, rows.indptr.dtype)
                xp.cumsum(known, dtype=places.dtype, out=places[1:])
                rows = rows._replace(indptr=places[rows.indptr], indices=rows.indices[known])
                values = values[known]
            A = rows.canonical(values)
    return A if directed else ewise_add(A, A._T, binary.min)


class Searches(NamedTuple):
    """Searches for shortest paths: number b starts from all of starts[bounds[b]:bounds[b + 1]]
    together, and ends at `limit`. Asked for are distances, and perhaps the `parents` of vertices
    and their `origins`, the nearest starts.
    """

    starts: np.ndarray
    bounds: np.ndarray
    limit: float = np.inf
    parents: bool = False
    origins: bool = False

    @classmethod
    def from_each(cls, starts: np.ndarray, parents: bool) -> Self:
        """A search from each of the starts."""
        # a kernel is compiled for each type of truth
        return cls(starts, np.arange(starts.size + 1), parents=bool(parents))


def shortest(A: Matrix, searches: Searches, semiring: Semiring) -> tuple[Array, Array, Array, bool]:
    """(distances, parents, origins, whether a cycle of negative length is reached): a row for each
    search. Infinity and -9999 stand for vertices that are not reached within the limit; results not
    asked for have no columns.
    """
    starts, bounds, limit, parents, origins = searches
    n, k = A.nrows, len(bounds) - 1
    with on_device(A.device) as xp:
        distance = xp.full((k, n), np.inf)
        parent = xp.full((k if parents else 1, n if parents else 0), NULL, np.int32)
        origin = xp.full((k if origins else 1, n if origins else 0), NULL, np.int32)
        for b in range(k):
            ids = xp.unique(xp.asarray(starts[bounds[b] : bounds[b + 1]]).astype(A._indices.dtype))
            if ids.size == 0:
                continue
            zero = Vector._of(n, xp.zeros(ids.size), indices=ids, nvals=ids.size)
            found, failed = _fixed_point(A, zero, semiring)
            if failed:
                return distance, parent, origin, True
            distance[b] = _dense(found, np.inf)
            if parents or origins:
                above = _tree(A, found, ids, semiring)
            if parents:
                parent[b] = above
            if origins:
                origin[b] = _ends(above, ids)
            if limit < np.inf:
                far = distance[b] > limit
                distance[b][far] = np.inf
                for found_ids in (parent, origin):
                    if found_ids.size:
                        found_ids[b][far] = NULL
        return distance, parent, origin, False


def _tree(A: Matrix, distance: Vector, roots: Array, semiring: Semiring) -> Array:
    """The parent of each vertex in a tree of shortest paths from the roots, which have none."""
    start = Vector._of(A.nrows, roots.copy(), indices=roots, nvals=roots.size)
    tree = search(dag_edges(A, distance, semiring), start, min_secondi).value
    assert tree is not None
    above = _dense(tree, NULL)
    above[roots] = NULL
    return above


def _fixed_point(A: Matrix, start: Vector, semiring: Semiring) -> tuple[Vector, bool]:
    """(distances, whether a cycle of negative length is reached, so that they are none)."""
    try:
        return closure(A, start, semiring), False
    except ConvergenceError as error:
        x: Any = error.result
    # a cycle of length zero may fail to converge because of rounding alone
    here = A.to("cpu")
    arrays = here._indptr, here._indices, here._expanded_values()
    starts = move(start.to_sparse()._indices, "cpu")
    _, _, cycles = traversals(here._indices).bellman_ford(
        arrays, None, starts, np.array([0, starts.size])
    )
    return x, bool(cycles.any())


def _ends(parent: Array, starts: Array) -> Array:
    """The one of `starts` that the predecessors of each vertex lead to; NULL if none."""
    xp = array_module(parent)
    above = xp.where(parent == NULL, xp.arange(parent.size, dtype=parent.dtype), parent)
    while True:  # pointer doubling
        further = above[above]
        if not bool((further != above).any()):
            break
        above = further
    begins = xp.zeros(parent.size, bool)
    begins[starts] = True
    return xp.where(begins[above], above, NULL)


def _dense(v: Vector, fill: float) -> Array:
    """The values of a Vector on its device, `fill` where there is no entry."""
    v = v.to_bitmap()
    if v._bits is None:
        return v._values
    return array_module(v._values).where(unpack_bits(v._bits, v.size), v._values, fill)


def shortest_over(rows: Rows, directed: bool, unweighted: bool) -> tuple[Matrix, Semiring]:
    """(the Matrix of lengths, min_plus or, if some are negative, its variant for those)."""
    A = lengths_of(rows, directed, unweighted)
    negative = A.nvals > 0 and bool((A._values < 0).any())
    return A, signed() if negative else min_plus
