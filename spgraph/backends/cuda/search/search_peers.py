"""The peer form of breadth-first search: one cooperative kernel on each of several GPUs of this
process, which exchange their frontiers by writing into each other's memory.

The host allocates the results from CuPy's pool, looks whether a device still works, and launches:
no copy, no fill, and nothing that waits. With two devices `sg.bfs` returns after 0.12 ms; the first
kernel begins before that and waits for the last one.

On two H200, Kronecker graph of 2^24 vertices and 1.02e9 edges, in microseconds: a barrier of the
blocks of one GPU 1.2, of all GPUs 2.6; a small level 4.6 and 3.8 for its exchange; a level that
pushes 46 vertices with 678290 edges 55 (push 12, send 4, settle 20), with parents 100; pulls 114
and 40; last levels, where hardly anything is open, 10 to 12. Settling and pulling read a few bytes
here and there of what memory delivers in 64, the rest are fixed costs.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from types import ModuleType

import numpy as np

from spgraph.backends.cuda.exchange.buffers import DEADLINE, Launching, raise_lost
from spgraph.backends.cuda.runtime import jit
from spgraph.backends.cuda.search.search import DIRECTIONS
from spgraph.backends.cuda.search.search_peers_plan import Plan, planned
from spgraph.backends.shards.graph import ShardedGraph
from spgraph.backends.shards.search import Found
from spgraph.containers.storage.arrays import Array, array_module, index_dtype, move, words

# levels, parents, the bits of the visited vertices, and a copy of these: as in Found
Results = tuple[Array, Array | None, Array, Array | None]


def search_peers(
    graph: ShardedGraph,
    buffers: Launching,
    sources: Sequence[Array | int | None],
    values: Sequence[Array | int | None] | None,
    *,
    direction: str = "auto",
    max_depth: int,
    trace: bool = False,
    deadline: float = DEADLINE,
) -> tuple[list[Found], np.ndarray | None]:
    """(each shard's part, rows of the trace): breadth-first search from `sources`, which shard p
    owns as its own numbers 0, 1, ... (as many as its vertices) with the parents `values[p]`; None:
    levels only. The sources of a shard are an array, one number, or None.

    The parent of a vertex is the least user's id among its neighbours of the level before. The
    trace, of shard 0, has a row (direction, frontier, edges, nanoseconds) for each level, and costs
    a second run. One launch a device; nothing is read back but for a trace.

    Raises ValueError where ids or the direction need what the shards do not have.
    """
    peers = len(graph.shards)
    transposed = graph.shards[0].t_indptr is not None
    if not transposed and direction == "pull":
        raise ValueError(
            "search: exchange='peer': direction 'pull' needs the transpose of the shards"
        )
    with buffers.lock:
        plan = planned(graph, buffers, values is not None)
        limit = np.uint64(int(deadline * 1e9))
        way = np.int32(DIRECTIONS[direction if transposed else "push"])
        kind = index_dtype(graph.size)
        ids = graph.shards[0].indices.dtype
        parents = [None] * peers if values is None else values
        starts = [
            source_arguments(own, its, ids, kind) for own, its in zip(sources, parents, strict=True)
        ]
        counts = [start[-1] for start in starts]
        total, first = sum(counts), counts.index(max(counts))
        rows: list[Array] = [jit.NULL] * peers
        levels = 0
        for again in range(1 + trace):
            found, results = [], []
            for p, shard in enumerate(graph.shards):
                xp = array_module(shard.indptr)
                with jit.device(shard.indptr):
                    found.append(results_of(xp, plan.vertices[p], kind, values is not None))
                    results.append(xp.empty(3, np.int64))
                    if again:
                        rows[p] = xp.zeros((max(1, levels), 4), np.int64)
            limits = (total, way, max_depth, limit)
            launch(plan, buffers, found, results, starts, limits, rows, first)
            totals = functools.cache(functools.partial(read, buffers, results, deadline))
            if trace:
                levels = totals()[0][1]
        parts = [
            Found(*part, functools.partial(lambda p, totals: totals()[p][0], p, totals))
            for p, part in enumerate(found)
        ]
    return parts, move(rows[0], "cpu")[:levels] if trace else None


def launch(
    plan: Plan,
    buffers: Launching,
    found: Sequence[Results],
    results: Sequence[Array],
    starts: Sequence[tuple[Array, Array, int, int, int]],
    limits: tuple[int, np.int32, int, np.uint64],
    rows: Sequence[Array],
    first: int,
) -> None:
    """Launch the kernel of every shard once, that of shard `first` before the others."""
    arguments = []
    for p, made in enumerate(found):
        pointers = (jit.NULL if array is None else array for array in made)
        arguments.append((plan.given[p], *pointers, results[p], *starts[p], *limits, rows[p]))
    try:
        buffers.launch(plan.kernels, plan.grids, plan.threads, arguments, plan.shared, first)
    except BaseException:  # kernels may wait for others that were never launched
        buffers.forget()
        raise


def results_of(xp: ModuleType, n: int, kind: np.dtype, parents: bool) -> Results:
    """Memory for the results of a shard of n vertices, as in Found."""
    level, visited = xp.empty(n, kind), xp.empty(words(n), np.uint32)
    if not parents:
        return level, None, visited, None
    return level, xp.empty(n, kind), visited, xp.empty(words(n), np.uint32)


def source_arguments(
    own: Array | int | None, values: Array | int | None, ids: np.dtype, kind: np.dtype
) -> tuple[Array, Array, int, int, int]:
    """What a kernel takes for the sources of a shard: two arrays, two numbers, how many."""
    if own is None:
        return jit.NULL, jit.NULL, 0, 0, 0
    if isinstance(own, int):
        return jit.NULL, jit.NULL, own, values or 0, 1
    assert not isinstance(values, int)
    with jit.device(own):
        given = jit.NULL if values is None else values.astype(kind, copy=False)
        return own.astype(ids, copy=False), given, 0, 0, int(own.size)


def read(buffers: Launching, results: Sequence[Array], deadline: float) -> list[tuple[int, int]]:
    """(vertices visited, levels) of each shard; waits for all."""
    host = [move(result, "cpu").tolist() for result in results]
    lost = [state for _, _, state in host if state != 0]
    if lost:
        with buffers.lock:
            buffers.forget()
        raise_lost("search", buffers, lost, deadline)
    return [(visited, depth) for visited, depth, _ in host]
