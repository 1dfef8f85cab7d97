"""The closure in rounds that the host drives: one thread launches the kernels of all shards of this
process, and the communicator carries what improves to the shards that own it. The form for GPUs of
several processes, or of one where they do not write each other's memory.

A round is one launch on each GPU, some 15 microseconds each, the wait for its counts, and, if
anything is to be sent, one exchange of pairs (id, value), each vertex of others once, 12 bytes with
ids of 32 and values of 64 bits: at least 120 microseconds, most of them the host's. A cut ends with
all values at all shards once, 8 bytes a vertex. Each shard keeps a value, a pair, and 5 bits for
each vertex of all. On two H200s, distances over weights from 1 to 64: 32 rounds and 11.9 ms on
kron25_16 (one GPU 12.3, peers 8.9; composed of operations it took 271), 29 and 9.2 ms on
rmat_n24_32 (9.8, 7.2; 394), at 1.2 relaxations an edge.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from spgraph.backends.cuda.closure.closure_rounds import (
    BEGIN,
    BEST,
    BEST_HIGH,
    BUCKETS,
    EDGES,
    FLAGS,
    FOUND,
    HEEDED,
    LOOKED,
    LOST,
    PULLS,
    QUEUED,
    SENT,
    SOURCES,
    UNDERCUT,
    WAS_UNDERCUT,
    Shard,
    counts_of,
)
from spgraph.containers import Vector
from spgraph.containers.arrays import on_device
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange.host_counters import counts_of_round, host_mapped
from spgraph.distributed.loops import peers
from spgraph.errors import ConvergenceError
from spgraph.semirings import TypedSemiring

CROWD = 1 << 19  # edges in a shard's queue from which on it hears of others before it goes on
# a cut begins at a queue of so many edges and this part of all; so often at most
CUT_EDGES, CUT_SHARE, CUTS = 1 << 21, 20, 3
THIN = 1 << 23  # after the bulk: edges of a round below which buckets grow wider


def closure(A: Any, start: Any, semiring: TypedSemiring, delta: Any) -> DistributedVector:
    """As `closure` of a backend. A round costs one launch on each GPU, the wait for its counts and
    one exchange if there is anything to send; one exchange more for the counts of several
    processes. The first closure of a graph over a semiring prepares it.
    """
    found = closed(A, start, semiring, delta)
    parts = [Vector(values.size, values, bits=bits) for values, bits in found.parts]
    x = DistributedVector(A.nrows, parts, A.device)
    if not found.settled:
        raise ConvergenceError(
            f"closure: {semiring.name} has not come to rest after {A.nrows} rounds over {A.nrows} "
            "vertices; its products improve on their operands without end",
            x,
        )
    return x


def closed(A: Any, start: Any, semiring: TypedSemiring, delta: Any) -> Rounds:
    """The rounds that a closure took: its parts, and how many edges were looked at."""
    placement = A.device
    sign = 0 if delta is None or semiring.dtype == np.bool_ else sign_of(semiring)
    rounds = prepared(A, semiring, sign)
    first = []
    for device, shard in zip(placement.devices, start.shards, strict=True):
        with on_device(device):
            own = shard.to_sparse()
            first.append((own._indices, own._values))
    with rounds.lock:
        rounds.run(first, delta)
    return rounds


def sign_of(semiring: TypedSemiring) -> int:
    """1 if less is better, -1 if more is."""
    return {"min": 1, "max": -1}[semiring.add.name]


def prepared(A: Any, semiring: TypedSemiring, sign: int) -> Rounds:
    """What closures of A over a semiring need; kept with A until another semiring comes, as it
    takes much memory.
    """
    graph = peers.weighted(A)
    kept = graph.derived.get("rounds")
    if kept is None or (kept.semiring, kept.sign) != (semiring, sign):
        graph.derived.pop("rounds", None)
        kept = graph.derived["rounds"] = Rounds(A, graph, semiring, sign)
    return kept


class Rounds:
    """The shards of a graph in this process, and how they come to a closure together."""

    def __init__(self, A: Any, graph: Any, semiring: TypedSemiring, sign: int) -> None:
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
        self.shards: list[Shard] = placement.map(
            lambda k, _: Shard(
                graph, k, placement.local[k], self.edges, semiring, sign != 0, self.host_counters[k]
            ),
            graph.shards,
        )

    # --- the iteration ----------------------------------------------------------------------------

    def run(self, start: Sequence[tuple[Any, Any]], delta: Any) -> None:
        """The closure from `start`, vertices and values of each local shard."""
        for shard, (sources, values) in zip(self.shards, start, strict=True):
            shard.begin(sources, values)
        none = self.identity
        self.limit = self.before = self.cut = self.floor = none
        self.came: list[Any] = [None] * len(self.shards)
        self.relaxations = self.launches = self.cuts = 0
        self.settled, self.undercut, self.bulk = True, False, False
        self.before = self.best(self.launch(BEGIN))
        self.limit = self.behind(self.before, delta)
        counts: np.ndarray | None = self.launch(SOURCES)
        while counts is not None:
            edges, rounds = self.relaxations - int(counts[:, LOOKED].sum()), self.launches - 1
            self.settle(counts, delta)
            if not self.sign or not self.settled:
                break
            edges, rounds = self.relaxations - edges, self.launches - rounds
            if self.bulk and edges < THIN * self.communicator.num_shards * rounds:
                delta *= 2
            counts = self.advance(delta)
        self.parts = [shard.take() for shard in self.shards]

    def settle(self, counts: np.ndarray, delta: Any) -> None:
        """Rounds until no vertex is near, after one that has told `counts`."""
        for _ in range(self.vertices + 1):
            if not counts[:, QUEUED].any() and not counts[:, HEEDED].any():
                return
            edges = int(counts[:, EDGES].sum())
            large = edges >= CUT_EDGES and edges * CUT_SHARE >= self.edges
            self.bulk = self.bulk or large
            if large and self.sign and self.pulls and not self.is_cutting and self.cuts < CUTS:
                self.cut, self.floor = self.behind(self.limit, delta), self.before
                self.cuts += 1
            counts = self.launch(0)
        self.settled = False

    def advance(self, delta: Any) -> np.ndarray | None:
        """The counts of the first round of the next bucket that is not empty; None if all is
        settled.
        """
        while True:
            action = BUCKETS
            if self.is_cutting and not self.better(self.limit, self.cut):
                action |= PULLS
                self.gather()
            following = self.behind(self.limit, delta)
            if self.is_cutting and not action & PULLS and self.better(self.cut, following):
                following = self.cut
            counts = self.launch(action, following)
            if action & PULLS:
                self.cut = self.identity
            if counts[:, FOUND].any():
                self.before, self.limit = self.limit, following
                return counts
            # nothing within one width: the next limit starts from the best that is left
            best = self.best(counts)
            if best == self.identity and not self.is_cutting:
                return None
            all_cut = self.is_cutting and not self.better(best, self.cut)
            self.before, self.limit = self.limit, self.cut if all_cut else best

    def gather(self) -> None:
        """The values of all vertices come to all shards."""
        if any(came is not None for came in self.came):
            self.launch(0)
        sizes = np.diff(self.offsets).tolist()
        every = self.communicator.all_gather([shard.part for shard in self.shards], sizes=sizes)
        for k, (shard, x) in enumerate(zip(self.shards, every, strict=True)):
            shared = any(x is other for other in every[:k])
            shard.x = x.copy() if shared else x

    def launch(self, action: int, following: Any = None) -> np.ndarray:
        """The counts of a round, a row for each of all shards; what was sent in it is under way."""
        self.round += 1
        self.launches += 1
        action |= UNDERCUT if self.undercut else 0
        limits = (self.limit, self.limit if following is None else following, self.cut, self.floor)
        for shard, came in zip(self.shards, self.came, strict=True):
            shard.launch(action, limits, CROWD, came, self.round)
        counts = self.counts()
        if (counts[:, FLAGS] & LOST).any():
            raise RuntimeError(
                "closure: a barrier between a kernel's blocks timed out; its result is void"
            )
        self.undercut = self.undercut or bool((counts[:, FLAGS] & WAS_UNDERCUT).any())
        self.relaxations += int(counts[:, LOOKED].sum())
        self.came = self.exchanged(counts[:, SENT:])
        return counts

    def exchanged(self, sent: np.ndarray) -> list[Any]:
        """What came to each local shard, where sent[p, q] pairs go from shard p to shard q."""
        if not sent.any():
            return [None] * len(self.shards)
        parts = [b.sent(sent[b.number].tolist(), self.offsets) for b in self.shards]
        sizes = [(b.pair * sent[:, b.number]).tolist() for b in self.shards]
        came = []
        for shard, row in zip(
            self.shards, self.communicator.all_to_all(parts, sizes=sizes), strict=True
        ):
            pieces = [piece for piece in row if piece.size]
            if len(pieces) > 1:
                with on_device(self.device_of(shard)) as xp:
                    pieces = [xp.concatenate(pieces)]
            came.append(pieces[0] if pieces else None)
        return came

    def device_of(self, shard: Shard) -> str:
        return self.communicator.devices[shard.number - self.communicator.local.start]

    # --- values -----------------------------------------------------------------------------------

    @property
    def is_cutting(self) -> bool:
        """Whether products that reach `cut` are not followed."""
        return bool(self.cut != self.identity)

    def better(self, a: Any, b: Any) -> bool:
        return bool(a < b if self.sign > 0 else a > b)

    def best(self, counts: np.ndarray) -> Any:
        """The best value that all shards tell of."""
        if not self.sign:
            return self.identity
        told = counts.astype(np.uint64)
        bits = told[:, BEST] | told[:, BEST_HIGH] << np.uint64(32)
        values = bits.astype(f"u{self.dtype.itemsize}").view(self.dtype)
        return values.min() if self.sign > 0 else values.max()

    def behind(self, value: Any, delta: Any) -> Any:
        """The limit one width behind a value."""
        if not self.sign or value == self.identity:
            return self.identity
        return beyond(value, delta, self.sign, self.dtype)

    # --- counts -----------------------------------------------------------------------------------

    def counts(self) -> np.ndarray:
        """What the kernels of this round have counted, a row for each of all shards."""
        return counts_of_round(self.host_counters, self.round, self.shards, self.communicator)


def beyond(best: Any, delta: Any, sign: int, dtype: np.dtype) -> Any:
    """The limit a `delta` behind the best value, and at least the next number."""
    if dtype.kind == "f":
        limit = dtype.type(best + sign * dtype.type(min(delta, float(np.finfo(dtype).max))))
        return np.nextafter(best, dtype.type(sign * np.inf)) if limit == best else limit
    ends = np.iinfo(dtype)
    return dtype.type(min(max(int(best) + sign * max(int(delta), 1), ends.min), ends.max))
