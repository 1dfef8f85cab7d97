"""The peer form of breadth-first search: one cooperative kernel on each of several GPUs,
which exchange their frontiers by writing into each other's memory.

The host allocates the results from CuPy's pool, looks whether a device still works, and launches:
no copy, no fill, and nothing that waits.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from types import ModuleType

import numpy as np

from spgraph.backends.cuda.exchange.buffers import DEADLINE, Launching, fetch_results
from spgraph.backends.cuda.exchange.plan import planned
from spgraph.backends.cuda.runtime import jit
from spgraph.backends.cuda.search.search import DIRECTIONS
from spgraph.backends.cuda.search.search_peers_plan import new_plan, values_of
from spgraph.backends.shards.buffers import forgotten_on_failure
from spgraph.backends.shards.graph import ShardedGraph
from spgraph.backends.shards.search import Found
from spgraph.containers.storage.arrays import Array, array_module, index_dtype, move, words
from spgraph.semirings import TypedSemiring


def search_peers(
    graph: ShardedGraph,
    buffers: Launching,
    rows: Sequence[tuple[Array, Array] | None],
    findable: int,
    sources: Sequence[Array | int | None],
    values: Sequence[Array | np.generic | int | None] | None,
    semiring: TypedSemiring | None,
    direction: str,
    max_depth: int,
    trace: bool = False,
    *,
    deadline: float = DEADLINE,
) -> tuple[list[Found], np.ndarray | None]:
    """(each local shard's part, rows of the trace): breadth-first search from `sources`, which the
    k-th of them owns as its own numbers 0, 1, ... (as many as its vertices) with the values
    `values[k]`; None: levels only. The sources of a shard are an array; or, where there is one in
    all, a number for the shard that owns it and None for the others.

    The value of another vertex is the sum over the edges that reach it from the level before, in
    `semiring`; without one, the least user's id among those neighbours. The trace is that of the
    first local shard, and costs a second run. One launch a device; nothing else is read back.

    `rows` are those of `leading_and_nonempty`, None where shards have no transposes, which can only
    push; `findable` is how many rows have entries in all. Raises ValueError where ids need more
    bits than the shards have.
    """
    ids, kind = graph.shards[0].indices.dtype, index_dtype(graph.size)
    sought = None if values is None else values_of(semiring, graph, kind)
    dtype = None if sought is None else sought.semiring.dtype
    given = [None] * len(sources) if values is None else values
    way, new = DIRECTIONS[direction], functools.partial(new_plan, rows, findable)
    with buffers.lock:
        plan = planned("search", graph, buffers, sought, new)
        with forgotten_on_failure(buffers):
            starts = [
                source_arguments(*own, ids, dtype) for own in zip(sources, given, strict=True)
            ]
            counts, number = [start[-1] for start in starts], 1  # of all sources
            if not (sources[0] is None or isinstance(sources[0], int)):
                number = int(buffers.gather(np.array([sum(counts)])).sum())
            limits = (number, way, max_depth, np.uint64(int(deadline * 1e9)))
            levels, traces = 0, [jit.NULL] * len(starts)
            for again in range(1 + trace):
                found, results, calls = [], [], []
                for k, shard in enumerate(graph.shards):
                    xp = array_module(shard.indptr)
                    with jit.device(shard.indptr):
                        found.append(results_of(xp, shard.indptr.size - 1, kind, dtype))
                        results.append(xp.empty(3, np.int64))
                        traces[k] = xp.zeros((max(1, levels), 4), np.int64) if again else jit.NULL
                    made = (jit.NULL if array is None else array for array in found[k])
                    calls.append((plan.given[k], *made, results[k], *starts[k], *limits, traces[k]))
                buffers.launch(plan, calls, counts.index(max(counts)))
                launched = ("search", buffers, results, deadline)
                totals = functools.cache(functools.partial(fetch_results, *launched))
                levels = totals()[0][1] if trace else 0
    visited = [functools.partial(lambda k, of: of()[k][0], k, totals) for k in range(len(found))]
    parts = [Found(*part, number) for part, number in zip(found, visited, strict=True)]
    return parts, move(traces[0], "cpu")[:levels] if trace else None


def results_of(
    xp: ModuleType, n: int, kind: np.dtype, dtype: np.dtype | None
) -> tuple[Array, Array | None, Array, Array | None]:
    """Memory for the results of a shard of n vertices, as in Found: levels of type `kind`, and
    values of type `dtype` if there are any.
    """
    level, visited = xp.empty(n, kind), xp.empty(words(n), np.uint32)
    if dtype is None:
        return level, None, visited, None
    return level, xp.empty(n, dtype), visited, xp.empty(words(n), np.uint32)


def source_arguments(
    own: Array | int | None,
    values: Array | np.generic | int | None,
    ids: np.dtype,
    dtype: np.dtype | None,
) -> tuple[Array, Array, int, int, int]:
    """What a kernel takes for the sources of a shard: two arrays, a number and the bits of its
    value, how many. `dtype` is the type of values, None if there are none.
    """
    if own is None:
        return jit.NULL, jit.NULL, 0, 0, 0
    if isinstance(own, int):
        bits = 0
        if dtype is not None:
            bits = int(np.asarray(values).astype(dtype).view(f"i{dtype.itemsize}"))
        return jit.NULL, jit.NULL, own, bits, 1
    assert not isinstance(values, int | np.generic)
    with jit.device(own):  # another type is another array, made where the first one is
        given = jit.NULL
        if dtype is not None and values is not None:
            given = values.astype(dtype, copy=False)
        return own.astype(ids, copy=False), given, 0, 0, int(own.size)
