"""The traversals of spgraph.csgraph on the CPU: sequential searches, several of them in parallel.

Graphs are three arrays, `indptr, indices, values`; rows may be unsorted and may have parallel
edges. For edges that are followed in both directions, the rows of the transpose are passed, too.
"""

from __future__ import annotations

import numpy as np

from spgraph.backends.cpu.runtime import jit, pool
from spgraph.backends.cpu.traversals.spanning_forest import kept_edges, parts_of

# masks of the index into `values`: with ONE all edges read values[0], with EACH edge e reads
# values[e]
ONE, EACH = np.uint64(0), np.uint64(2**64 - 1)
# side of a tile of distances: three tiles fit into a core's cache
BLOCK = 64
# stands for "no vertex"
NULL = -9999

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


def dijkstra(
    rows: Rows,
    back: Rows | None,
    starts: np.ndarray,
    bounds: np.ndarray,
    limit: float,
    parents: bool,
    origins: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(distances, parents, origins) by Dijkstra's algorithm: row b is a search from all vertices
    starts[bounds[b]:bounds[b + 1]] together, and `origins` are the nearest of them. Vertices not
    reached within `limit` have infinity and -9999; results not asked for have no columns.

    If `rows` have one value, it is the length of all edges. Each search is run by one thread.
    """
    n, k = rows[0].size - 1, bounds.size - 1
    threads = min(k, pool.threads_for(k * (n + rows[1].size))) or 1
    distance = np.full((k, n), np.inf)
    parent = np.full((k if parents else 1, n if parents else 0), NULL, np.int32)
    origin = np.full((k if origins else 1, n if origins else 0), NULL, np.int32)
    keys = np.empty((threads, n))
    heaps, places = np.empty((threads, n), np.int32), np.zeros((threads, n), np.int32)
    keep = _keep(rows)
    pool.launch(
        jit.module("dijkstra", "").dijkstra,
        threads,
        *(np.zeros(1, np.int64), starts, bounds, *rows, *(back or rows), keep, back is not None),
        *(limit, distance, parent, origin, parents, origins, keys, heaps, places),
    )
    return distance, parent, origin


def bellman_ford(
    rows: Rows, back: Rows | None, starts: np.ndarray, bounds: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(distances, parents, failed) by the Bellman-Ford algorithm, for lengths of either sign;
    arguments as for `dijkstra`. failed[b] is true if search b reaches a cycle of negative length.
    """
    n, k = rows[0].size - 1, bounds.size - 1
    threads = min(k, pool.threads_for(k * (n + rows[1].size))) or 1
    distance = np.full((k, n), np.inf)
    parent = np.full((k, n), NULL, np.int32)
    failed = np.zeros(k, np.uint8)
    lasts = np.empty((threads, n))
    queues = np.empty((threads, 2, n), np.int32)
    marks = np.empty((threads, n), np.uint8)
    colors = np.empty((threads, n), np.int32)
    pool.launch(
        jit.module("bellman_ford", "").bellman_ford,
        threads,
        *(np.zeros(1, np.int64), starts, bounds, *rows, *(back or rows), _keep(rows)),
        *(back is not None, distance, parent, failed, lasts, queues, marks, colors),
    )
    return distance, parent, failed.view(bool)


def breadth_first_order(rows: Rows, back: Rows | None, start: int) -> tuple[np.ndarray, np.ndarray]:
    """(the vertices reachable from `start` in breadth-first order, the predecessor of each vertex
    or -9999). By one thread.
    """
    n = rows[0].size - 1
    order, parent = np.empty(n, np.int32), np.full(n, NULL, np.int32)
    count = np.zeros(1, np.int64)
    back = back or rows
    arrays = (*rows[:2], *back[:2], back is not rows, order, parent, count)
    pool.launch(jit.module("breadth_first_order", "").breadth_first_order, 1, start, *arrays)
    parent[start] = NULL
    return order[: int(count[0])], parent


def strong_components(rows: Rows) -> tuple[int, np.ndarray]:
    """(number of strong components, the component of each vertex), numbered in the order in which
    the search completes them. By one thread.
    """
    label = np.zeros(rows[0].size - 1, np.int32)
    return number_components(*rows[:2], label), label


def number_components(indptr: np.ndarray, indices: np.ndarray, label: np.ndarray) -> int:
    """The number of strong components among vertices with the `label` 0, which becomes the number
    of their component; other vertices have the label n and are not looked at.
    """
    n = label.size
    root, at = np.empty(n, np.uint8), np.empty(n, indptr.dtype)
    path, count = np.empty(n, label.dtype), np.zeros(1, np.int64)
    kernel = jit.module("strong_components", "").strong_components
    pool.launch(kernel, 1, indptr, indices, label, root, at, path, count)
    return int(count[0])


def spanning_forest(rows: Rows) -> np.ndarray:
    """Whether each edge is in the minimum spanning forest. Of equal weights the first edge is
    preferred; NaN is greater than all numbers.
    """
    return kept_edges(rows, parts_of(rows[0]), EACH, False)[: rows[1].size].view(bool)


def path_lengths(
    graph: np.ndarray, parents: np.ndarray, missing: float
) -> tuple[np.ndarray, np.ndarray]:
    """(N x N distances along `parents`, an array of one flag: whether some parents form a cycle or
    are not vertices); `missing` for pairs without a path.
    """
    n = graph.shape[0]
    distance, failed = np.empty((n, n)), np.zeros(1, np.uint8)
    threads = min(pool.threads_for(n * n), n)
    chains, stamps = np.zeros((2, threads, n), np.int32)
    arrays = (graph.reshape(-1), parents.reshape(-1), n, missing, distance.reshape(-1))
    pool.launch(
        jit.module("path_lengths", "").path_lengths, threads, *arrays, chains, stamps, failed
    )
    return distance, failed


def floyd_warshall(distance: np.ndarray, parents: np.ndarray | None) -> None:
    """Replace the lengths of edges in `distance` by distances, in place, and update `parents` if
    given.
    """
    n = distance.shape[0]
    flat = np.empty(0, np.int32) if parents is None else parents.reshape(-1)
    threads = min(pool.threads_for(n * n * n), max(1, n // BLOCK))
    kernel = jit.module("floyd_warshall", "").floyd_warshall
    pool.launch(kernel, threads, distance.reshape(-1), flat, parents is not None, n, BLOCK)


def _keep(rows: Rows) -> np.uint64:
    return ONE if rows[2].size == 1 else EACH
