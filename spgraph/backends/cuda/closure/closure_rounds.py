"""The closure in rounds that the host drives: in each round every shard launches its kernels, then
the communicator sends improved values to the owners of their vertices. For GPUs that
cannot write into each other's memory, as those of several hosts.

A round is one launch on each GPU, some 15 microseconds each, the wait for its counts, and, if there
is anything to send, one all-to-all of pairs (id, value), one for each improved vertex of another
shard, 12 bytes with ids of 32 and values of 64 bits. Pairs that travelled with the counts of every
round saved a quarter of the collectives and no time. While a large bucket is pushed, products
beyond a push-pull threshold are not followed; at its end all values are gathered by all shards
once, 8 bytes a vertex, and the vertices beyond it pull. Each shard keeps a value, a pair, and 5
bits for each vertex of the whole graph.

On two H200s, distances over weights from 1 to 64: 32 rounds and 11.9 ms on kron25_16 (one GPU 12.3,
peers 8.9; composed of operations it took 271), 29 and 9.2 ms on rmat_n24_32 (9.8, 7.2; 394), at 1.2
relaxations an edge.
"""

from __future__ import annotations

import functools
import operator
from typing import Any, NamedTuple

import numpy as np

from spgraph.backends.cuda.closure.closure import THREADS, block_bytes, program, types_of, widths_of
from spgraph.backends.cuda.closure.closure_peers import given_fields, shard_arrays
from spgraph.backends.cuda.exchange.plan import block, check_counts, kernel_of
from spgraph.backends.cuda.runtime import jit
from spgraph.backends.shards import Steps
from spgraph.backends.shards.closure import COUNTS, Part
from spgraph.backends.shards.graph import ShardedGraph
from spgraph.containers.storage.arrays import Array, array_module, words
from spgraph.semirings import TypedSemiring

# bytes of a RoundControl beside its words for each shard
CONTROL = 512
# What a launch does beside relaxing what is queued, as bits: it stores the start's values; queues
# its vertices; queues the vertices up to the next limit, after a pull where the push-pull threshold
# ends. UNDERCUT says that a vertex became better than the floor while there was a threshold. They
# are as in kernels/shards/closure_rounds_state.cuh.
RELAX, BEGIN, SOURCES, BUCKETS, UNDERCUT = 0, 1, 2, 4, 8
# What a shard counts, as in kernels/shards/closure_rounds_state.cuh: queued vertices and their
# edges; pairs sent that are before the limit; edges read; vertices of a new bucket; flags; the best
# value that waits, its low and its high bits; the pairs for each shard.
QUEUED, EDGES, NEAR, LOOKED, FOUND, FLAGS, BEST, BEST_HIGH, SENT = range(COUNTS + 1)
# Flags, as in kernels/shards/closure_rounds_state.cuh: as UNDERCUT, in this shard; a barrier
# between the blocks timed out: all counts are void.
# And if all shards say so: where no vertex waits, this bucket was the last; where none waits, the
# threshold ends before the next bucket; where one waits, the bucket will never settle.
WAS_UNDERCUT, LOST, LAST, ENDS_THRESHOLD, UNSETTLED = 1, 2, 4, 8, 16


class Totals(NamedTuple):
    """Of the round before, over all shards: vertices of a new bucket, edges of the queues, edges
    that were read, and the best value that waits.
    """

    found: int
    edges: int
    looked: int
    best: Any  # a NumPy scalar of the semiring's type


def pair_words(values: np.dtype, ids: np.dtype) -> int:
    """The 32-bit words of a pair of a vertex and a value."""
    return max(values.itemsize, 4) // 4 + ids.itemsize // 4


class Shard:
    """Shard `number` of a graph, number k of those of this process, with the kernels and arrays of
    closures over `semiring`, in buckets if `ordered`. `edges` are those of all shards. Kernels
    count into `counts` and `host_counters`, words of the host's memory: COUNTS, and one for each
    shard.
    """

    x: Array  # the values of the vertices of all shards

    def __init__(
        self,
        graph: ShardedGraph,
        k: int,
        number: int,
        edges: int,
        semiring: TypedSemiring,
        ordered: bool,
        host_counters: np.ndarray,
    ) -> None:
        arrays, n, shards = graph.shards[k], graph.size, len(graph.offsets) - 1
        self.number, self.offsets, self.ordered, self.round = number, graph.offsets, ordered, 0
        self.add, self.dtype = semiring.add, semiring.dtype
        self.identity = self.dtype.type(semiring.add.identity)
        self.first = int(graph.offsets[number])
        self.sizes, self.size = graph.sizes, n
        self.own = self.sizes[number]
        ids, rows = arrays.indices.dtype, arrays.indptr.dtype
        check_counts("closure", self.own, arrays.indices.size, " of a shard")
        types = types_of(arrays.indptr, arrays.indices, arrays.values)
        text = program(semiring, types, ordered, THREADS, shards)
        self.xp, self.arrays = array_module(arrays.indptr), arrays
        self.pair = pair_words(self.dtype, ids)
        self.shared = block_bytes(self.dtype, ids, rows)
        device = jit.current_device()
        self.kernel = kernel_of("closure_rounds", text, device, self.shared)
        self.ends = jit.kernel("closure_rounds", "closure_ends", text, cooperative=True)
        self.grid = jit.occupancy(self.kernel, THREADS, self.shared)
        # kept with the graph: of closures over several semirings only one runs at a time
        place = ("memory of closures in rounds", k, self.pair)
        working = shard_arrays(n, self.own, ids, rows)
        if place not in graph.derived:
            sizes = working | {
                "pairs": (self.pair * n, np.dtype(np.uint32)),
                "control": (CONTROL // 8 + shards, np.dtype(np.int64)),
                "counts": (COUNTS + shards, np.dtype(np.int64)),
            }
            graph.derived[place] = {name: self.xp.empty(*size) for name, size in sizes.items()}
        held = self.held = graph.derived[place]
        fields = given_fields(graph, number, arrays, edges, {name: held[name] for name in working})
        fields |= {name: held[name] for name in ("pairs", "control", "counts")}
        self.given = block(fields | {"host_counters": host_counters}, self.xp)

    def closure(
        self,
        sources: Array,
        values: Array,
        delta: float | int | None,
        reach: float | int | None = None,
    ) -> Steps[Part]:
        """The closure that has `values` at the own vertices `sources`, counted from 0; `delta` is
        the width of its buckets, `reach` (None: delta) how far beyond a large one is pushed. What
        the limits of buckets and the push-pull threshold become, the kernels decide, all alike,
        from the totals of the round before.
        """
        self.begin(sources, values, delta, reach)
        action: int | None = BEGIN
        totals, received, undercut, relaxations = Totals(0, 0, 0, self.identity), None, 0, 0
        while action is not None:
            self.launch(action | undercut, totals, received)
            each, sums, _ = yield "counts", (self.held["counts"], self.round, None)
            some = functools.reduce(operator.or_, (row[FLAGS] for row in each))
            every = functools.reduce(operator.and_, (row[FLAGS] for row in each))
            if some & LOST:
                raise RuntimeError(
                    "closure: a barrier between a kernel's blocks timed out; its result is void"
                )
            undercut |= UNDERCUT if some & WAS_UNDERCUT else 0
            # kernels ask for the best value after the start, and after a bucket that was empty
            asked = action & (BEGIN | BUCKETS) and not sums[FOUND]
            best = self.best(each) if asked else self.identity
            totals = Totals(sums[FOUND], sums[EDGES], sums[LOOKED], best)
            relaxations += each[self.number][LOOKED]
            is_sent = any(sums[SENT:])
            received = None
            if is_sent:
                sizes = [self.pair * row[SENT + self.number] for row in each]
                whole = self.xp.empty(sum(sizes), np.uint32)
                received = yield "send", (self.sent(each[self.number][SENT:]), sizes, whole)
            action = SOURCES if action == BEGIN else following(sums, every, is_sent)
            if action == BUCKETS and every & ENDS_THRESHOLD:
                own = self.x[self.first : self.first + self.own]
                self.x = yield "gather_own", (own, self.sizes)
        waits = sums[QUEUED] or sums[NEAR]
        return self.take(relaxations, not (waits and every & UNSETTLED))

    def begin(
        self,
        sources: Array,
        values: Array,
        delta: float | int | None,
        reach: float | int | None,
    ) -> None:
        """Take the start."""
        self.x = self.xp.empty(self.size, self.dtype)
        self.held["control"].fill(0)
        sources = sources.astype(self.arrays.indices.dtype, copy=False)
        self.start = (sources, values.astype(self.dtype, copy=False), sources.size)
        self.nothing = self.xp.empty(0, np.uint32)
        self.widths = widths_of(delta, reach, self.dtype)

    def launch(self, action: int, totals: Totals, received: Array | None) -> None:
        """Run one round as far as the shard can alone. `received` are the pairs that others have
        sent, or None.
        """
        self.round += 1
        received = self.nothing if received is None else received
        inputs = self.given, action, self.x, *self.widths, *totals
        arguments = (*inputs, received, received.size // self.pair, *self.start, self.round)
        self.kernel((self.grid,), (THREADS,), arguments, shared_mem=self.shared)

    def best(self, rows: list[list[int]]) -> Any:
        """The best value that waits on any shard, from the counts of a round."""
        if not self.ordered:
            return self.identity
        bits = np.array([row[BEST] | row[BEST_HIGH] << 32 for row in rows], np.uint64)
        values = bits.astype(f"u{self.dtype.itemsize}").view(self.dtype)
        return values.min() if self.add.name == "min" else values.max()

    def sent(self, numbers: list[int]) -> list[Array]:
        """The pairs for each shard, of which there are `numbers`."""
        begins = (self.pair * int(first) for first in self.offsets[:-1])
        both = zip(begins, numbers, strict=True)
        return [self.held["pairs"][a : a + self.pair * number] for a, number in both]

    def take(self, relaxations: int, settled: bool) -> Part:
        """What was found, which the shard keeps no longer."""
        values = self.xp.empty(self.own, self.dtype)
        found = self.xp.empty(words(self.own), np.uint32)
        grid = min(self.grid, max(1, -(-self.own // THREADS)))
        arguments = (self.first, self.own, self.x, self.held["bits"], values, found)
        self.ends((grid,), (THREADS,), arguments)
        del self.x, self.start
        return Part(values, found, None, relaxations, settled)


def following(sums: list[int], flags: int, is_sent: bool) -> int | None:
    """The action of the next round, from the sums of the counts of one, the flags that all shards
    say, and whether anything was sent; None where there is none.
    """
    if sums[QUEUED] or sums[NEAR]:
        return None if flags & UNSETTLED else RELAX
    if flags & LAST:
        return None
    # values that were sent have to join those that are gathered; all processes do the same
    return RELAX if flags & ENDS_THRESHOLD and is_sent else BUCKETS
