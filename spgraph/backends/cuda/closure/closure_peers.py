"""The peer form of the closure: one cooperative kernel on each of several GPUs, which
send improved values by writing into each other's memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spgraph.backends.cuda.closure.closure import (
    THREADS,
    block_bytes,
    kernel_arrays,
    program,
    types_of,
    widths_of,
    working_arrays,
)
from spgraph.backends.cuda.exchange.buffers import (
    BARRIER_BYTES,
    INBOX_BYTES,
    Launching,
    Plan,
    fetch_results,
)
from spgraph.backends.cuda.exchange.plan import check, peer_plan, places_of, planned
from spgraph.backends.cuda.runtime import jit
from spgraph.backends.shards.buffers import forgotten_on_failure
from spgraph.backends.shards.closure import Part
from spgraph.backends.shards.graph import GraphRows, ShardedGraph
from spgraph.containers.storage.arrays import Array, array_module, words
from spgraph.semirings import TypedSemiring

# bytes of a PeerControl, as in kernels/shards/closure_peers_state.cuh; words of a launch's result
CONTROL, RESULT = 512, 5
# vertices that fit the inbox for one sender; more come in several rounds
INBOX = 1 << 22


def closure_peers(
    graph: ShardedGraph,
    buffers: Launching,
    sources: Sequence[Array],
    values: Sequence[Array],
    semiring: TypedSemiring,
    delta: float | int | None,
    reach: float | int | None = None,
) -> list[Part]:
    """x = start + x A, least fixed point, where start has `values[k]` at `sources[k]`, vertices
    that the k-th local shard owns as its own numbers 0, 1, ... (each at most once).

    `semiring`, `delta` and `reach` are as for `closure`; positions are ids of all shards' vertices.
    One launch a device, and one read-back of 40 bytes.

    Nothing is settled where a bucket was not within as many rounds as there are vertices. Raises
    CommunicationError where a device did not come to a barrier; ValueError for shards that cannot
    run.
    """
    first, ordered = graph.shards[0], delta is not None
    types = types_of(first.indptr, first.indices, first.values)
    with buffers.lock:
        plan = planned("closure", graph, buffers, (semiring, types, ordered), new_plan)
        with forgotten_on_failure(buffers):
            limit = np.uint64(int(buffers.deadline * 1e9))
            widths = widths_of(delta, reach, semiring.dtype)
            arguments, results, found = [], [], []
            for k, (p, shard) in enumerate(zip(buffers.local, graph.shards, strict=True)):
                xp = array_module(shard.indptr)
                with jit.device(shard.indptr):
                    own = graph.sizes[p]
                    x, bits = xp.empty(own, semiring.dtype), xp.empty(words(own), np.uint32)
                    result = xp.empty(RESULT, np.int64)
                    given = values[k].astype(semiring.dtype, copy=False)
                    ids = sources[k].astype(shard.indices.dtype, copy=False)
                results.append(result)
                found.append((x, bits))
                arguments.append(
                    (plan.given[k], x, bits, result, ids, given, ids.size, *widths, limit)
                )
            buffers.launch(plan, arguments)
        states = fetch_results("closure", buffers, results)
    return [
        Part(*part, reached, looked, not unsettled)
        for part, (reached, looked, _, unsettled, _) in zip(found, states, strict=True)
    ]


def new_plan(
    graph: ShardedGraph,
    buffers: Launching,
    asked: tuple[TypedSemiring, tuple[tuple[str, str], ...], bool],
) -> Plan:
    """A plan, with the memory that it reserves on every device, for what `program` is given."""
    semiring, types, ordered = asked
    sizes = check("closure", graph, buffers, graph.size)
    first, n, dtype = graph.shards[0], graph.size, semiring.dtype
    kinds = (first.indices.dtype, first.indptr.dtype)
    capacity = min(INBOX, max(4096, *sizes))
    parts = memory_offsets(sizes, n, (*kinds, dtype), capacity)
    text = program(semiring, types, ordered, THREADS, len(sizes))

    def fields(k: int, p: int, known: dict[str, Any]) -> dict[str, Any]:
        own = {name: known[name] for name in shard_arrays(n, sizes[p], *kinds)}
        made = given_fields(graph, p, graph.shards[k], known["edges"], own)
        made |= {"memory": known["memory"], "inbox_ids": parts[p]["ids"]}
        made |= {"inbox_values": parts[p]["values"], "whole": parts[p]["whole"]}
        made |= {"capacity": capacity, "barrier": known["barrier"], "control": known["control"]}
        return made

    compiled = ("closure_peers", text, THREADS, block_bytes(dtype, *kinds))
    key = ("closure", tuple(sizes), kinds, dtype)
    return peer_plan(graph, buffers, compiled, key, parts, fields)


def shard_arrays(
    n: int, own: int, ids: np.dtype, offsets: np.dtype
) -> dict[str, tuple[int, np.dtype]]:
    """As `working_arrays`, with the bitmaps of the vertices of other shards that have improved."""
    word = np.dtype(np.uint32)
    marks = {"changed": (words(n), word), "groups": (words(words(n)), word)}
    return working_arrays(n, own, ids, offsets) | marks


def given_fields(
    graph: ShardedGraph, number: int, shard: GraphRows, edges: int, working: Mapping[str, Any]
) -> dict[str, Any]:
    """The fields of GivenShard in kernels/shards/closure_shards_state.cuh, for shard `number`;
    `edges` are those of all shards, `working` the arrays of `shard_arrays`, or their addresses.
    """
    fields = kernel_arrays(shard, edges, graph.sizes[number], graph.iso, working)
    return {**fields, "me": number, "border": list(graph.offsets)}


def memory_offsets(
    sizes: Sequence[int], n: int, kinds: tuple[np.dtype, ...], capacity: int
) -> list[dict[str, int]]:
    """The byte offsets in each shard's memory; areas that peers write have the same in all."""
    ids, values = kinds[0].itemsize, kinds[2].itemsize
    peers, result = len(sizes), []
    inbox = 2 * peers * capacity if peers > 1 else 0
    for own in sizes:
        parts = {
            "inbox": INBOX_BYTES,
            "ids": inbox * ids,
            "values": inbox * values,
            "whole": n * values,
            "barrier": BARRIER_BYTES,
            "control": CONTROL,
        }
        working = shard_arrays(n, own, *kinds[:2])
        parts |= {name: size * kind.itemsize for name, (size, kind) in working.items()}
        result.append(places_of(parts))
    return result
