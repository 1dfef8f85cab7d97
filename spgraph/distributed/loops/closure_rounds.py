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

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from spgraph.backends.shards.closure import (
    BEGIN,
    BEST,
    BEST_HIGH,
    BUCKETS,
    EDGES,
    FLAGS,
    FOUND,
    LOOKED,
    LOST,
    NEAR,
    PULLS,
    QUEUED,
    SENT,
    SOURCES,
    UNDERCUT,
    WAS_UNDERCUT,
    ClosureGraph,
    ClosureShard,
    counts_of,
)
from spgraph.containers import Vector
from spgraph.containers.storage.arrays import Array, on_device
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange.host_counters import counts_of_round, host_mapped
from spgraph.distributed.loops import peers
from spgraph.errors import ConvergenceError
from spgraph.semirings import TypedSemiring

Scalar = Any  # a NumPy scalar of the semiring's type: NumPy's types of numbers share no order

# a shard goes on alone while its queue has fewer edges; then it exchanges before the next step
SATURATED_EDGES = 1 << 19
# a push-pull threshold is set where the queues have so many edges, and this part (1 / 20) of all
# edges; so often in one closure
THRESHOLD_EDGES, THRESHOLD_SHARE, MAX_THRESHOLDS = 1 << 21, 20, 3
# after the largest bucket, buckets become wider where a round has fewer edges for each shard
WIDENING_EDGES = 1 << 23


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
    parts = [Vector(values.size, values, bits=bits) for values, bits in found.parts]
    x = DistributedVector(A.nrows, parts, A.device)
    if not found.settled:
        raise ConvergenceError(
            f"closure: {semiring.name} has not converged after {A.nrows} rounds over {A.nrows} "
            "vertices; its products improve on their operands without end",
            x,
        )
    return x


def run_closure(
    A: DistributedMatrix,
    start: DistributedVector,
    semiring: TypedSemiring,
    delta: float | int | None,
) -> Rounds:
    """The Rounds after a closure: `parts` are the values, `relaxations` the edges that it read."""
    placement = A.device
    sign = 0 if delta is None or semiring.dtype == np.bool_ else order_of(semiring)
    rounds = rounds_of(A, semiring, sign)
    first = []
    for device, shard in zip(placement.devices, start.shards, strict=True):
        with on_device(device):
            own = shard.to_sparse()
            first.append((own._indices, own._values))
    with rounds.lock:
        rounds.run(first, delta)
    return rounds


def order_of(semiring: TypedSemiring) -> int:
    """1 where less is better, -1 where more is."""
    return {"min": 1, "max": -1}[semiring.add.name]


def rounds_of(A: DistributedMatrix, semiring: TypedSemiring, sign: int) -> Rounds:
    """The Rounds of closures of A over a semiring; kept with A, only those of the last semiring, as
    they take much memory.
    """
    graph = peers.closure_graph(A)
    kept = graph.derived.get("rounds")
    if kept is None or (kept.semiring, kept.sign) != (semiring, sign):
        graph.derived.pop("rounds", None)
        kept = graph.derived["rounds"] = Rounds(A, graph, semiring, sign)
    return kept


class Rounds:
    """The local shards of a graph with their values, and the loop over the rounds of a closure."""

    def __init__(
        self, A: DistributedMatrix, graph: ClosureGraph, semiring: TypedSemiring, sign: int
    ) -> None:
        placement = A.device
        self.lock = threading.Lock()
        self.communicator, self.offsets = placement.communicator, graph.offsets
        self.vertices, self.edges = A.nrows, A.nvals
        self.semiring, self.sign = semiring, sign
        self.dtype, self.pulls = semiring.dtype, graph.shards[0].t_indptr is not None
        self.identity = self.dtype.type(semiring.add.identity)
        number = counts_of(placement.num_shards)
        self.host_counters = host_mapped((len(graph.shards), number), graph.shards[0].indptr)
        self.round = 0
        self.shards: list[ClosureShard] = placement.map(
            lambda k, _: placement.kernels.ClosureShard(
                graph, k, placement.local[k], self.edges, semiring, sign != 0, self.host_counters[k]
            ),
            graph.shards,
        )

    # --- the iteration ----------------------------------------------------------------------------

    def run(self, start: Sequence[tuple[Array, Array]], delta: float | int | None) -> None:
        """The closure from `start`, (vertices, values) of each local shard."""
        for shard, (sources, values) in zip(self.shards, start, strict=True):
            shard.begin(sources, values)
        none = self.identity
        self.limit = self.before = self.threshold = self.floor = none
        self.received: list[Array | None] = [None] * len(self.shards)
        self.relaxations = self.launches = self.thresholds = 0
        self.settled, self.undercut, self.bulk = True, False, False
        self.before = self.best(self.launch(BEGIN))
        self.limit = self.limit_after(self.before, delta)
        counts: np.ndarray | None = self.launch(SOURCES)
        while counts is not None:
            edges, rounds = self.relaxations - int(counts[:, LOOKED].sum()), self.launches - 1
            self.settle(counts, delta)
            if not self.sign or not self.settled:
                break
            edges, rounds = self.relaxations - edges, self.launches - rounds
            assert delta is not None
            if self.bulk and edges < WIDENING_EDGES * self.communicator.num_shards * rounds:
                delta *= 2
            counts = self.advance(delta)
        self.parts = [shard.take() for shard in self.shards]

    def settle(self, counts: np.ndarray, delta: float | int | None) -> None:
        """Rounds until no vertex of the bucket waits, after one that has given `counts`."""
        for _ in range(self.vertices + 1):
            if not counts[:, QUEUED].any() and not counts[:, NEAR].any():
                return
            edges = int(counts[:, EDGES].sum())
            large = edges >= THRESHOLD_EDGES and edges * THRESHOLD_SHARE >= self.edges
            self.bulk = self.bulk or large
            able = self.sign and self.pulls and self.thresholds < MAX_THRESHOLDS
            if large and able and not self.has_threshold:
                self.threshold, self.floor = self.limit_after(self.limit, delta), self.before
                self.thresholds += 1
            counts = self.launch(0)
        self.settled = False

    def advance(self, delta: float | int | None) -> np.ndarray | None:
        """The counts of the first round of the next bucket that is not empty; None if all vertices
        are settled.
        """
        while True:
            action = BUCKETS
            if self.has_threshold and not self.better(self.limit, self.threshold):
                action |= PULLS
                self.gather()
            following = self.limit_after(self.limit, delta)
            if self.has_threshold and not action & PULLS and self.better(self.threshold, following):
                following = self.threshold
            counts = self.launch(action, following)
            if action & PULLS:
                self.threshold = self.identity
            if counts[:, FOUND].any():
                self.before, self.limit = self.limit, following
                return counts
            # the bucket is empty: the next one begins at the best value that is left
            best = self.best(counts)
            if best == self.identity and not self.has_threshold:
                return None
            all_beyond = self.has_threshold and not self.better(best, self.threshold)
            self.before, self.limit = self.limit, self.threshold if all_beyond else best

    def gather(self) -> None:
        """Gather the values of all vertices on the devices of all shards."""
        if any(received is not None for received in self.received):
            self.launch(0)
        sizes = np.diff(self.offsets).tolist()
        gathered = self.communicator.all_gather([shard.part for shard in self.shards], sizes=sizes)
        for k, (shard, x) in enumerate(zip(self.shards, gathered, strict=True)):
            shared = any(x is other for other in gathered[:k])
            shard.x = x.copy() if shared else x

    def launch(self, action: int, following: Scalar | None = None) -> np.ndarray:
        """Run one round; its counts, a row for each of all shards. The pairs that it sends are in
        `received` for the next round.
        """
        self.round += 1
        self.launches += 1
        action |= UNDERCUT if self.undercut else 0
        limits = (
            self.limit,
            self.limit if following is None else following,
            self.threshold,
            self.floor,
        )
        for shard, received in zip(self.shards, self.received, strict=True):
            shard.launch(action, limits, SATURATED_EDGES, received, self.round)
        counts = self.counts()
        if (counts[:, FLAGS] & LOST).any():
            raise RuntimeError(
                "closure: a barrier between a kernel's blocks timed out; its result is void"
            )
        self.undercut = self.undercut or bool((counts[:, FLAGS] & WAS_UNDERCUT).any())
        self.relaxations += int(counts[:, LOOKED].sum())
        self.received = self.exchange_pairs(counts[:, SENT:])
        return counts

    def exchange_pairs(self, sent: np.ndarray) -> list[Array | None]:
        """The pairs that each local shard receives, None for no pair; sent[p, q] is how many go
        from shard p to shard q.
        """
        if not sent.any():
            return [None] * len(self.shards)
        parts = [b.sent(sent[b.number].tolist(), self.offsets) for b in self.shards]
        sizes = [(b.pair * sent[:, b.number]).tolist() for b in self.shards]
        received: list[Array | None] = []
        for shard, row in zip(
            self.shards, self.communicator.all_to_all(parts, sizes=sizes), strict=True
        ):
            pieces = [piece for piece in row if piece.size]
            if len(pieces) > 1:
                with on_device(self.device_of(shard)) as xp:
                    pieces = [xp.concatenate(pieces)]
            received.append(pieces[0] if pieces else None)
        return received

    def device_of(self, shard: ClosureShard) -> str:
        return self.communicator.devices[shard.number - self.communicator.local.start]

    # --- values -----------------------------------------------------------------------------------

    @property
    def has_threshold(self) -> bool:
        """Whether there is a threshold, beyond which products are not followed."""
        return bool(self.threshold != self.identity)

    def better(self, a: Scalar, b: Scalar) -> bool:
        return bool(a < b if self.sign > 0 else a > b)

    def best(self, counts: np.ndarray) -> Scalar:
        """The best value that waits on any shard, from the counts of a round."""
        if not self.sign:
            return self.identity
        counted = counts.astype(np.uint64)
        bits = counted[:, BEST] | counted[:, BEST_HIGH] << np.uint64(32)
        values = bits.astype(f"u{self.dtype.itemsize}").view(self.dtype)
        return values.min() if self.sign > 0 else values.max()

    def limit_after(self, value: Scalar, delta: float | int | None) -> Scalar:
        """The end of a bucket that begins at `value`: one width beyond it."""
        if not self.sign or value == self.identity:
            return self.identity
        assert delta is not None
        return next_limit(value, delta, self.sign, self.dtype)

    # --- counts -----------------------------------------------------------------------------------

    def counts(self) -> np.ndarray:
        """The counts of this round, a row for each of all shards."""
        return counts_of_round(self.host_counters, self.round, self.shards, self.communicator)


def next_limit(best: Scalar, delta: float | int, sign: int, dtype: np.dtype) -> Scalar:
    """The end of a bucket that begins at `best`: `delta` beyond it, or the next number of the type
    where `delta` is less than that.
    """
    if dtype.kind == "f":
        limit = dtype.type(best + sign * dtype.type(min(delta, float(np.finfo(dtype).max))))
        return np.nextafter(best, dtype.type(sign * np.inf)) if limit == best else limit
    ends = np.iinfo(dtype)
    return dtype.type(min(max(int(best) + sign * max(int(delta), 1), ends.min), ends.max))
