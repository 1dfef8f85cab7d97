"""The closure in rounds that the host drives: in each round one thread launches the kernels of all
shards of this process, then the communicator sends improved values to the owners of their vertices.
For GPUs of several processes, and for GPUs of one process that cannot write into each other's
memory.

A round is one launch on each GPU, some 15 microseconds each, the wait for its counts, and, if there
is anything to send, one all-to-all of pairs (id, value), one for each improved vertex of another
shard, 12 bytes with ids of 32 and values of 64 bits: at least 120 microseconds, most of them the
host's. While a large bucket is pushed, products beyond a push-pull threshold are not followed; at
its end all values are gathered by all shards once, 8 bytes a vertex, and the vertices beyond it
pull. Each shard keeps a value, a pair, and 5 bits for each vertex of the whole graph.

On two H200s, distances over weights from 1 to 64: 32 rounds and 11.9 ms on kron25_16 (one GPU 12.3,
peers 8.9; composed of operations it took 271), 29 and 9.2 ms on rmat_n24_32 (9.8, 7.2; 394), at 1.2
relaxations an edge.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spgraph.backends.shards.closure import (
    BEGIN,
    BEST,
    BEST_HIGH,
    BUCKETS,
    EDGES,
    ENDS_THRESHOLD,
    FLAGS,
    FOUND,
    LAST,
    LOOKED,
    LOST,
    NEAR,
    QUEUED,
    RELAX,
    SENT,
    SOURCES,
    UNDERCUT,
    UNSETTLED,
    WAS_UNDERCUT,
    ClosureShard,
    Totals,
    counts_of,
)
from spgraph.backends.shards.graph import ShardedGraph
from spgraph.containers import Vector
from spgraph.containers.storage.arrays import Array, on_device
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange import host_counters
from spgraph.distributed.loops import peers
from spgraph.errors import unsettled
from spgraph.semirings import TypedSemiring


def closure(
    A: DistributedMatrix,
    start: DistributedVector,
    semiring: TypedSemiring,
    delta: float | int | None,
) -> DistributedVector:
    """As `closure` of a backend. A round costs one launch on each GPU, one wait for the counts of
    all shards and, if there is anything to send, one exchange; with several processes the counts
    are another exchange. The first closure of a graph over a semiring prepares it.
    """
    found = run_closure(A, start, semiring, delta)
    parts = [Vector._of(values.size, values, bits=bits) for values, bits in found.parts]
    x = DistributedVector(A.nrows, parts, A.device)
    if not found.settled:
        raise unsettled(semiring.name, A.nrows, x)
    return x


def run_closure(
    A: DistributedMatrix,
    start: DistributedVector,
    semiring: TypedSemiring,
    delta: float | int | None,
) -> Outcome:
    """What the rounds of a closure have found."""
    rounds = rounds_of(A, semiring, delta is not None and semiring.dtype != np.bool_)
    first = peers.sparse_entries(start)
    with rounds.lock:  # another thread's closure of A uses the same Rounds
        return rounds.run(first, delta)


def rounds_of(A: DistributedMatrix, semiring: TypedSemiring, ordered: bool) -> Rounds:
    """The Rounds of closures of A over a semiring, kept with the graph. All of them share the
    memory of the shards.
    """
    graph, key = peers.closure_graph(A), (semiring, ordered)
    kept: dict[Any, Rounds] = graph.plans("closure in rounds", key)
    found = kept.get(key)
    if found is None:  # another thread may forget it, or make one too
        found = kept[key] = Rounds(A, graph, semiring, ordered)
    return found


class Outcome(NamedTuple):
    """Of each local shard its own values and a bit for each that has an entry; whether all buckets
    have settled; and how many edges all shards looked at.
    """

    parts: list[tuple[Array, Array]]
    settled: bool
    relaxations: int


class Rounds(host_counters.Rounds):
    """The local shards of a graph with their values, and the loop over the rounds of a closure."""

    def __init__(
        self, A: DistributedMatrix, graph: ShardedGraph, semiring: TypedSemiring, ordered: bool
    ) -> None:
        placement = A.device
        super().__init__(placement, counts_of(placement.num_shards), graph)
        self.offsets = graph.offsets
        self.semiring, self.ordered, self.dtype = semiring, ordered, semiring.dtype
        self.identity = self.dtype.type(semiring.add.identity)
        self.shards: list[ClosureShard] = placement.map(
            lambda k, _: placement.kernels.ClosureShard(
                graph, k, placement.local[k], A.nvals, semiring, ordered, self.host_counters[k]
            ),
            graph.shards,
        )

    # --- the iteration ----------------------------------------------------------------------------

    def run(self, start: Sequence[tuple[Array, Array]], delta: float | int | None) -> Outcome:
        """The closure from `start`, (vertices, values) of each local shard."""
        for shard, (sources, values) in zip(self.shards, start, strict=True):
            shard.begin(sources, values, delta)
        self.received: list[Array | None] = [None] * len(self.shards)
        self.relaxations, self.settled, self.undercut = 0, True, False
        self.totals = Totals(0, 0, 0, self.identity)
        action: int | None = BEGIN
        while action is not None:
            counts = self.launch(action)
            action = SOURCES if action == BEGIN else self.following(counts)
        parts = [shard.take() for shard in self.shards]
        return Outcome(parts, self.settled, self.relaxations)

    def following(self, rows: list[list[int]]) -> int | None:
        """The action of the next round, from the counts of one; None where there is none. What the
        limits of buckets and the push-pull threshold become, the kernels decide.
        """
        flags = functools.reduce(operator.and_, (row[FLAGS] for row in rows))
        if any(row[QUEUED] or row[NEAR] for row in rows):
            self.settled = not flags & UNSETTLED
            return RELAX if self.settled else None
        if flags & LAST:
            return None
        if flags & ENDS_THRESHOLD:
            # values that were sent have to join those that are gathered; `received` are only those
            # of this process, and all have to do the same
            if any(any(row[SENT:]) for row in rows):
                return RELAX
            self.gather()
        return BUCKETS

    def gather(self) -> None:
        """Gather the values of all vertices on the devices of all shards."""
        sizes = np.diff(self.offsets).tolist()
        gathered = self.communicator.all_gather([shard.part for shard in self.shards], sizes=sizes)
        for k, (shard, x) in enumerate(zip(self.shards, gathered, strict=True)):
            if any(x is other for other in gathered[:k]):
                with on_device(self.device_of(shard)):  # CuPy copies to the current device
                    x = x.copy()
            shard.x = x

    def launch(self, action: int) -> list[list[int]]:
        """Run one round; its counts, a row for each of all shards. The pairs that it sends are in
        `received` for the next round.
        """
        self.next_round()
        action |= UNDERCUT if self.undercut else 0
        for shard, received in zip(self.shards, self.received, strict=True):
            shard.launch(action, self.totals, received, self.round)
        # few numbers: NumPy would take longer than the launches
        rows: list[list[int]] = self.counts().tolist()
        found = edges = looked = flags = 0
        for row in rows:
            found, edges, looked = found + row[FOUND], edges + row[EDGES], looked + row[LOOKED]
            flags |= row[FLAGS]
        if flags & LOST:
            raise RuntimeError(
                "closure: a barrier between a kernel's blocks timed out; its result is void"
            )
        self.undercut = self.undercut or bool(flags & WAS_UNDERCUT)
        # kernels ask for the best value after the start, and after a bucket that was empty
        asked = action & (BEGIN | BUCKETS) and not found
        self.totals = Totals(found, edges, looked, self.best(rows) if asked else self.identity)
        self.relaxations += looked
        sent, pair = [row[SENT:] for row in rows], self.shards[0].pair
        self.received = self.exchange(lambda b, own: b.sent(own, self.offsets), sent, pair)
        return rows

    def device_of(self, shard: ClosureShard) -> str:
        return self.communicator.devices[shard.number - self.communicator.local.start]

    def best(self, rows: list[list[int]]) -> Any:
        """The best value that waits on any shard, from the counts of a round."""
        if not self.ordered:
            return self.identity
        bits = np.array([row[BEST] | row[BEST_HIGH] << 32 for row in rows], np.uint64)
        values = bits.astype(f"u{self.dtype.itemsize}").view(self.dtype)
        return values.min() if self.semiring.add.name == "min" else values.max()
