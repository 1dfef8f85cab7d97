"""Johnson's potentials, which make all lengths non-negative; and rows as CPU kernels take them."""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import NegativeCycleError

from spgraph.containers.storage.arrays import Array
from spgraph.csgraph.composed import Searches, shortest, shortest_over
from spgraph.csgraph.graphs import Rows, traversals

UNIT = np.ones(1)

Arrays = tuple[Array, Array, Array]


def arrays_of(rows: Rows, directed: bool, unweighted: bool) -> tuple[Arrays, Arrays | None]:
    """(the arrays of the rows, those of the transpose or None): edges of an undirected graph are
    followed in both directions.
    """
    values = UNIT if unweighted else rows.lengths()
    arrays = (rows.indptr, rows.indices, values)
    if directed:
        return arrays, None
    back = rows.transposed(values=not unweighted)
    return arrays, (back.indptr, back.indices, UNIT if unweighted else back.values)


def potentials(rows: Rows, directed: bool) -> Array:
    """Johnson's potentials: for every vertex the least length of a path that ends there, from any
    vertex: at most 0.
    """
    everywhere, once = np.arange(rows.n, dtype=np.int32), np.array([0, rows.n])
    if rows.on_gpu:
        A, semiring = shortest_over(rows, directed, False)
        distance, _, _, failed = shortest(A, Searches(everywhere, once), semiring)
    else:
        arrays, back = arrays_of(rows, directed, False)
        distance, _, cycles = traversals(rows.indices).bellman_ford(arrays, back, everywhere, once)
        failed = bool(cycles.any())
    if failed:
        raise NegativeCycleError("Negative cycle detected")
    return distance[0]
