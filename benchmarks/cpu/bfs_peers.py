"""Breadth-first search in the libraries that spgraph is measured against on the CPU.

Each function here takes a symmetric scipy.sparse.csr_array, makes the library's own graph of it and
returns the library's `System`s. What a search returns is the library's own result: turning it into
an array of levels is not timed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse import csgraph


class System(NamedTuple):
    """One way to search a graph: `search(source)` is timed, the rest reads its result."""

    name: str
    search: Callable[[int], Any]
    levels: Callable[[Any, int], np.ndarray]  # -1 where unreached
    parents: Callable[[Any], np.ndarray] | None = None  # -1 where unreached
    prepare: Callable[[], Any] | None = None  # untimed, before each series of calls
    threads: int | None = None  # None: as many as spgraph


def scipy_systems(S: scipy.sparse.csr_array, threads: int) -> list[System]:
    """SciPy: one thread, order and predecessors; levels are not part of its answer."""
    # its own types, so that it converts nothing in a call
    own = scipy.sparse.csr_array(
        (np.ones(S.nnz), S.indices.astype(np.int32), S.indptr.astype(np.int32)), shape=S.shape
    )

    def search(source: int) -> Any:
        return csgraph.breadth_first_order(own, source, directed=True)

    return [System("scipy", search, _levels_of_order, lambda result: _predecessors(*result))]


def networkit_systems(S: scipy.sparse.csr_array, threads: int) -> list[System]:
    """NetworKit: its BFS has one thread, whatever the setting, and gives distances."""
    import networkit

    networkit.setNumberOfThreads(threads)
    upper = scipy.sparse.triu(S, format="coo")
    ends = (upper.row.astype(np.uint64), upper.col.astype(np.uint64))
    graph = networkit.GraphFromCoo(ends, n=S.shape[0])
    graph.sortEdges()

    def search(source: int) -> Any:
        return networkit.distance.BFS(graph, source, storePaths=False).run()

    def levels(result: Any, source: int) -> np.ndarray:
        distances = np.asarray(result.getDistances(asarray=True))
        return np.where(distances < S.shape[0], distances, -1).astype(np.int64)

    return [System("networkit", search, levels)]


def graphblas_systems(S: scipy.sparse.csr_array, threads: int) -> list[System]:
    """python-graphblas (SuiteSparse): LAGraph's push-pull search, levels or parents."""
    import graphblas

    A = graphblas.Matrix.ss.import_csr(
        nrows=S.shape[0],
        ncols=S.shape[1],
        indptr=S.indptr.astype(np.uint64),
        col_indices=S.indices.astype(np.uint64),
        values=np.ones(1, bool),
        is_iso=True,
        sorted_cols=True,
    )
    degree = graphblas.Vector.from_dense(np.diff(S.indptr).astype(np.int64))

    def system(name: str, parents: bool, use: int) -> System:
        return System(
            name,
            lambda source: _push_pull(A, degree, source, parents),
            lambda result, source: result.to_dense(-1).astype(np.int64),
            (lambda result: result.to_dense(-1).astype(np.int64)) if parents else None,
            lambda: graphblas.ss.config.__setitem__("nthreads", use),
            use,
        )

    made = []
    # SuiteSparse's barriers can cost more than the second thread brings: both are measured
    for use in sorted({1, threads}, reverse=True):
        suffix = "" if use == threads else f" {use} thread"
        made += [
            system(f"graphblas{suffix}", False, use),
            system(f"graphblas parents{suffix}", True, use),
        ]
    return made


def _push_pull(A: Any, degree: Any, source: int, parents: bool) -> Any:
    """LAGraph's BreadthFirstSearch for A == A.T, with its heuristic and its three constants.

    Beamer, Asanovic, Patterson 2012; Mattson et al., "LAGraph", 2019; Davis, "Algorithm 1000", 2019
    and the source of LAGr_BreadthFirstSearch, version 1.1.
    """
    from graphblas import Vector, dtypes, monoid, semiring

    n, kind = A.nrows, dtypes.INT32
    over = semiring.ss.any_secondi[kind] if parents else semiring.any_pair[bool]
    found, q = Vector(kind, n), Vector(kind if parents else bool, n)
    frontier_degree = Vector(dtypes.INT64, n)
    found[source] = source if parents else 0
    q[source] = source if parents else True
    unexplored, frontier, last, depth = A.nvals, 1, 0, 0
    push, pulled, choose = True, False, True
    while frontier:
        depth += 1
        if choose and push:
            growing = frontier > last
            if unexplored < n:  # little is left: push to the end
                choose = False
            elif pulled:
                push = not (growing and frontier > n / 8)
            else:
                frontier_degree(q.S, replace=True) << degree
                edges = frontier_degree.reduce(monoid.plus).get(0)
                unexplored -= edges
                push = not (growing and edges > unexplored / 8)
        elif choose and frontier < last and frontier <= n / 512:
            push = True
        pulled = pulled or not push
        q.ss.config["sparsity_control"] = "sparse" if push else "bitmap"
        if not push:
            found.ss.config["sparsity_control"] = "bitmap"
        product = q.vxm(A, over) if push else A.mxv(q, over)
        q(~found.S, replace=True) << product
        last, frontier = frontier, q.nvals
        found(q.S) << (q if parents else depth)
    return found


def _levels_of_order(result: Any, source: int) -> np.ndarray:
    """Levels from SciPy's order of visits, in which the parents' places ascend."""
    order, predecessors = result
    place = np.empty(predecessors.size, np.int64)
    place[order] = np.arange(order.size)
    above = place[predecessors[order[1:]]]
    levels = np.full(predecessors.size, -1, np.int64)
    first, last, depth = 0, 1, 0
    while first < last:
        levels[order[first:last]] = depth
        first, last, depth = last, 1 + int(np.searchsorted(above, last)), depth + 1
    return levels


def _predecessors(order: np.ndarray, predecessors: np.ndarray) -> np.ndarray:
    parents = np.full(predecessors.size, -1, np.int64)
    parents[order] = predecessors[order]
    parents[order[0]] = order[0]
    return parents


PEERS = {
    "scipy": scipy_systems,
    "networkit": networkit_systems,
    "graphblas": graphblas_systems,
}
