"""Search in rounds that the host drives: one thread launches the kernels of all shards of this
process, and the communicator carries frontiers between them. The form for GPUs of several
processes, or of one where they do not write each other's memory.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from spgraph import direction as directions
from spgraph.backends.cuda.search.search_rounds import (
    COUNTS,
    COVERED,
    EDGES,
    VERTICES,
    WAITING,
    Shard,
    leading_and_nonempty,
)
from spgraph.containers import Vector
from spgraph.containers.arrays import array_module, device_of, on_device
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange.host_counters import counts_of_round, host_mapped
from spgraph.distributed.loops import peers
from spgraph.semirings import TypedSemiring

PUSH, PULL = 1, 2  # in the trace
# what a step of push costs, in probes of a pull: with parents; and with levels only, where a pull
# looks at the hubs among the neighbours first
PUSH_STEP, PUSH_STEP_HUBS = 2.0, 4.0
STAY = 65536  # frontier edges that turning a bitmap into a queue is worth
FEW = 4096  # edges of a shard's frontier that always travel as a list
FOLD = 1 << 25  # bytes of bitmaps that each shard may get to spare one of two exchanges


def search(
    A: Any,
    T: Any,
    start: Any,
    semiring: TypedSemiring | None,
    direction: str,
    max_depth: int,
    trace: bool,
) -> tuple[Vector, Vector | None, Any]:
    """As `search` of a backend: levels, or the least parents too.

    A level costs one exchange and the wait for its counts, of one process; one exchange more for
    the counts of several. The first search of a graph prepares it.
    """
    placement = A.device
    rounds = prepared(A, T, semiring is not None)
    direction = "push" if T is None else direction
    first = []
    for device, shard in zip(placement.devices, start.shards, strict=True):
        with on_device(device):
            own = shard.to_sparse()
            first.append((own._indices, own._values))
    with rounds.lock:
        try:
            rows = rounds.run(first, direction, max_depth)
        except BaseException:  # what shards keep is as an unfinished level left it
            A._derived.pop(name_of(T, semiring is not None), None)
            raise
        found = [shard.take() for shard in rounds.shards]
        reached = rounds.total[list(placement.local)].tolist()

    def vector(which: int, dtype: Any = None) -> DistributedVector:
        parts = []
        for part, nvals in zip(found, reached, strict=True):
            values = part[which]
            if dtype is not None and values.dtype != dtype:
                with on_device(device_of(values)):
                    values = values.astype(dtype)
            with on_device(device_of(values)):  # each Vector has bits of its own
                bits = part[2].copy() if which else part[2]
            parts.append(Vector(values.size, values, bits=bits, nvals=nvals))
        return DistributedVector(A.nrows, parts, placement)

    value = None if semiring is None else vector(1, semiring.dtype)
    return vector(0), value, np.array(rows, np.int64).reshape(-1, 4) if trace else None


def name_of(T: Any, parents: bool) -> str:
    """Under which name a Matrix keeps what its searches need."""
    return f"rounds of {'parents' if parents else 'levels'}{'' if T is None else ', both ways'}"


def prepared(A: Any, T: Any, parents: bool) -> Rounds:
    """What searches of A need; kept with A."""
    name = name_of(T, parents)
    if name not in A._derived:
        A._derived[name] = Rounds(A, T, parents)
    return A._derived[name]


class Rounds:
    """The shards of a graph in this process, and how they search together."""

    def __init__(self, A: Any, T: Any, parents: bool) -> None:
        placement = A.device
        self.lock = threading.Lock()
        self.communicator, self.map, self.parents = placement.communicator, placement.map, parents
        graph = peers.graph(A, T)
        self.edges, self.symmetric = A.nvals, graph.symmetric
        rows: Sequence[Any] = [None] * len(graph.shards)
        self.findable = A.nrows
        if T is not None:
            rows, counts = zip(*self.leading_and_nonempty(graph), strict=True)
            self.findable = placement.total(counts)
        self.host_counters = host_mapped((len(graph.shards), COUNTS), graph.shards[0].indptr)
        self.round = 0
        self.shards = placement.map(
            lambda k, arrays: Shard(
                graph.offsets, placement.local[k], arrays, rows[k], parents, self.host_counters[k]
            ),
            graph.shards,
        )
        self.words = self.shards[0].words
        self.few = max(FEW, A.nrows // 32)

    def leading_and_nonempty(self, graph: Any) -> list[Any]:
        """What `search_rounds.leading_and_nonempty` gives for every shard."""
        if self.parents:
            return self.map(lambda k, shard: leading_and_nonempty(shard), graph.shards)
        degrees = self.map(
            lambda k, shard: (shard.indptr[1:] - shard.indptr[:-1]).astype(np.int64), graph.shards
        )
        sizes = [end - begin for begin, end in itertools.pairwise(graph.offsets)]
        every = self.communicator.all_gather(degrees, sizes=sizes)

        def own(k: int, shard: Any, counts: Any) -> Any:
            xp = array_module(counts)
            indptr = xp.zeros(counts.size + 1, np.int64)
            xp.cumsum(counts, out=indptr[1:])
            return leading_and_nonempty(shard, indptr)

        return self.map(own, graph.shards, every)

    # --- the iteration ----------------------------------------------------------------------------

    def run(
        self, start: Sequence[tuple[Any, Any]], direction: str, max_depth: int
    ) -> list[tuple[int, int, int, int]]:
        """The rows of the trace of a search from `start`, vertices and values of each local shard.

        What was found is in the shards, and how many vertices of each of all shards in `total`.
        """
        began = time.perf_counter()
        self.next_round()
        for shard, (sources, values) in zip(self.shards, start, strict=True):
            shard.begin(sources, values if self.parents else None, self.round)
        counts = self.counts()
        self.total = counts[:, VERTICES].copy()
        left, open_ = self.findable - int(counts[:, COVERED].sum()), self.edges
        depth, way, frontier, rows = 0, PUSH, None, []
        while depth < max_depth and left > 0:
            vertices, edges = int(counts[:, VERTICES].sum()), int(counts[:, EDGES].sum())
            if not vertices or not edges:
                break
            open_ -= edges
            last, way = way, self.choose(direction, way, edges, left, open_)
            depth += 1
            if way == PULL:
                if frontier is None:
                    for shard in self.shards:
                        shard.mark(int(counts[shard.number, VERTICES]))
                    frontier = self.gather_own()
                counts, frontier = self.pull(frontier, depth)
            else:
                counts, frontier = self.push(counts, depth, queued=last == PUSH), None
            found = counts[:, VERTICES]
            self.total += found
            left -= int(found.sum())
            if found.any():
                now = time.perf_counter()
                rows.append((way, vertices, edges, int(1e9 * (now - began))))
                began = now
        return rows

    def choose(self, direction: str, last: int, edges: int, left: int, open_: int) -> int:
        """PUSH or PULL, from counts that every process has."""
        if direction != "auto":
            return PULL if direction == "pull" else PUSH
        step = PUSH_STEP if self.parents else PUSH_STEP_HUBS
        edges += 0 if last == PUSH else STAY
        # out-edges of open vertices are their in-edges only in a symmetric graph
        back = open_ if self.symmetric else self.edges
        pays = directions.pull_pays(edges, left / step, back / step, self.edges)
        return PULL if pays else PUSH

    def pull(self, frontier: list[Any], depth: int) -> tuple[np.ndarray, list[Any]]:
        """(counts, the next frontier at all shards)."""
        self.next_round()
        for shard, whole in zip(self.shards, frontier, strict=True):
            shard.pull(whole, depth, self.round)
        following = self.gather_own()  # most often one pull is followed by another
        counts = self.counts()
        if counts[:, WAITING].any():
            self.next_round()
            for shard, whole in zip(self.shards, frontier, strict=True):
                shard.pull_rows(whole, int(counts[shard.number, WAITING]), depth, self.round)
            following = self.gather_own()
            counts = counts + self.counts()
        return counts, following

    def push(self, counts: np.ndarray, depth: int, queued: bool) -> np.ndarray:
        """The counts after a level from the frontier that `counts` tell of, which is in the queues
        of its shards if `queued`.
        """
        if not queued:
            self.next_round()
            for shard in self.shards:
                shard.convert(self.round)
        own = counts[:, : EDGES + 1].tolist()
        most = int(counts[:, EDGES].max())
        if most <= self.few:
            room = 1 << (most - 1).bit_length()
            return self.settle_lists(
                [b.push_list(*own[b.number], room) for b in self.shards], depth
            )
        marked = [shard.push_bits(*own[shard.number]) for shard in self.shards]
        self.next_round()
        if self.parents:
            for shard in self.shards:
                shard.compact(most, self.round)  # all have room for what the longest takes
            room = int(self.counts()[:, VERTICES].max())
            return self.settle_lists([shard.list_of(room) for shard in self.shards], depth)
        size = self.communicator.num_shards * self.words
        if 4 * size * self.communicator.num_shards <= FOLD:
            came = self.communicator.all_gather(marked, sizes=[size] * self.communicator.num_shards)
        else:
            came = self.communicator.reduce_scatter(
                marked, [self.words] * self.communicator.num_shards, "or"
            )
        for shard, bits in zip(self.shards, came, strict=True):
            shard.settle_bits(bits, depth, self.round)
        return self.counts()

    def settle_lists(self, lists: list[Any], depth: int) -> np.ndarray:
        """The counts after all shards have taken what is theirs from everyone's lists."""
        self.next_round()
        came = self.communicator.all_gather(
            lists, sizes=[lists[0].size] * self.communicator.num_shards
        )
        for shard, every in zip(self.shards, came, strict=True):
            shard.settle_list(every, depth, self.round)
        return self.counts()

    def gather_own(self) -> list[Any]:
        """The bitmap of the whole frontier at every local shard."""
        sizes = [self.words] * self.communicator.num_shards
        return self.communicator.all_gather([shard.own for shard in self.shards], sizes=sizes)

    # --- counts -----------------------------------------------------------------------------------

    def next_round(self) -> None:
        self.round += 1

    def counts(self) -> np.ndarray:
        """What the kernels of this round have counted, a row for each of all shards."""
        return counts_of_round(self.host_counters, self.round, self.shards, self.communicator)
