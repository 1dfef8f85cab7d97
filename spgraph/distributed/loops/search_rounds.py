"""Search in rounds that the host drives: in each level one thread launches the kernels of all
shards of this process, then the communicator exchanges the frontier. For GPUs of several processes,
and for GPUs of one process that cannot write into each other's memory.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from spgraph import direction as directions
from spgraph.backends.shards.graph import GraphRows, ShardedGraph
from spgraph.backends.shards.search import (
    COVERED,
    EDGES,
    SENT,
    VERTICES,
    WAITING,
    SearchShard,
    counts_of,
)
from spgraph.containers import Vector
from spgraph.containers.storage.arrays import Array, array_module, device_of, on_device
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange import host_counters
from spgraph.distributed.loops import peers
from spgraph.semirings import TypedSemiring

PUSH, PULL = 1, 2  # in the trace
LIST_EDGES = 4096  # up to so many edges of a shard's frontier, found vertices travel as a list
# up to so many bytes for each shard, bitmaps are gathered in one exchange; a reduce-scatter is two
GATHER_BYTES = 1 << 25


def search(
    A: DistributedMatrix,
    T: DistributedMatrix | None,
    start: DistributedVector,
    semiring: TypedSemiring | None,
    direction: str,
    max_depth: int,
    trace: bool,
) -> tuple[DistributedVector, DistributedVector | None, np.ndarray | None]:
    """As `search` of a backend.

    A level costs one exchange of vertices and one wait for the counts of all shards; with several
    processes the counts are a second exchange, and where products look at values of the frontier,
    a pull gathers those of all vertices. The first search of a graph prepares it.
    """
    placement = A.device
    direction = "push" if T is None else direction
    first = peers.sparse_entries(start)
    rounds = rounds_of(A, T, semiring)
    with rounds.lock:
        try:
            rows = rounds.run(first, direction, max_depth)
        except BaseException:  # the state that shards keep is that of an unfinished level
            for shard in rounds.shards:
                shard.forget()
            raise
        found = [shard.take() for shard in rounds.shards]
        reached = rounds.total[list(placement.local)].tolist()

    def vector(which: int, dtype: np.dtype | None = None) -> DistributedVector:
        parts = []
        for part, nvals, start_of in zip(found, reached, first, strict=True):
            values = part[which]
            if dtype is not None and values.dtype != dtype:  # parents
                with on_device(device_of(values)):
                    values = peers.widened(values, *start_of, dtype)
            with on_device(device_of(values)):  # each Vector has bits of its own
                bits = part[2].copy() if which else part[2]
            parts.append(Vector._of(values.size, values, bits=bits, nvals=nvals))
        return DistributedVector(A.nrows, parts, placement)

    value = None if semiring is None else vector(1, semiring.dtype)
    return vector(0), value, np.array(rows, np.int64).reshape(-1, 4) if trace else None


def rounds_of(
    A: DistributedMatrix, T: DistributedMatrix | None, semiring: TypedSemiring | None
) -> Rounds:
    """The Rounds of searches over A for levels, for parents, or for the values of a semiring; made
    once, and kept with the graph. All of them share the memory of the shards.
    """
    parents = semiring is not None and peers.finds_parents(semiring)
    key = parents, None if parents else semiring
    kept: dict[Any, Rounds] = peers.sharded_graph(A, T).plans("search in rounds", key)
    found = kept.get(key)
    if found is None:  # another thread may forget it, or make one too
        found = kept[key] = Rounds(A, T, *key)
    return found


class Rounds(host_counters.Rounds):
    """The local shards of a graph with the state of a search, and the loop over its levels: for
    `parents`, or for the sums of a semiring, or for neither.
    """

    def __init__(
        self,
        A: DistributedMatrix,
        T: DistributedMatrix | None,
        parents: bool,
        semiring: TypedSemiring | None,
    ) -> None:
        placement = A.device
        graph = peers.sharded_graph(A, T)
        super().__init__(placement, counts_of(placement.num_shards), graph)
        self.values, self.semiring = parents or semiring is not None, semiring
        # whether the first edge that reaches a vertex decides what it gets
        self.first = semiring is None or semiring.add.any
        self.looks_at_values = semiring is not None and semiring.multiply.uses("x")
        self.edges, self.symmetric = A.nvals, graph.symmetric
        rows: Sequence[tuple[Array, Array] | None] = [None] * len(graph.shards)
        self.findable = A.nrows
        if T is not None:
            rows, counts = zip(*self.leading_and_nonempty(graph), strict=True)
            self.findable = placement.total(counts)
        self.shards: list[SearchShard] = placement.map(
            lambda k, rows: placement.kernels.SearchShard(
                *(graph, k, placement.local[k], rows),
                *(self.values, semiring, self.host_counters[k]),
            ),
            rows,
        )
        self.words = self.shards[0].words
        self.list_edges = max(LIST_EDGES, A.nrows // 32)

    def leading_and_nonempty(self, graph: ShardedGraph) -> list[tuple[tuple[Array, Array], int]]:
        """The result of the backend's `leading_and_nonempty` for each local shard, kept with the
        graph.
        """
        name = "rows of values, in rounds" if self.values else "rows of levels, in rounds"
        if name not in graph.derived:
            graph.derived[name] = self.new_rows(graph)
        return graph.derived[name]

    def new_rows(self, graph: ShardedGraph) -> list[tuple[tuple[Array, Array], int]]:
        """The same, with the degrees of all vertices where levels alone are sought."""
        each, find = self.placement.map, self.placement.kernels.leading_and_nonempty
        if self.values:
            return each(lambda k, shard: find(shard), graph.shards)
        degrees = each(
            lambda k, shard: (shard.indptr[1:] - shard.indptr[:-1]).astype(np.int64), graph.shards
        )
        sizes = [end - begin for begin, end in itertools.pairwise(graph.offsets)]
        of_all = self.communicator.all_gather(degrees, sizes=sizes)

        def own(k: int, shard: GraphRows, counts: Array) -> tuple[tuple[Array, Array], int]:
            xp = array_module(counts)
            indptr = xp.zeros(counts.size + 1, np.int64)
            xp.cumsum(counts, out=indptr[1:])
            return find(shard, indptr)

        return each(own, graph.shards, of_all)

    # --- the iteration ----------------------------------------------------------------------------

    def run(
        self, start: Sequence[tuple[Array, Array]], direction: str, max_depth: int
    ) -> list[tuple[int, int, int, int]]:
        """Search from `start`, (vertices, values) of each local shard; the rows of the trace.

        The shards keep the levels and values; `total` is how many vertices each of all shards has
        found.
        """
        began = time.perf_counter()
        self.next_round()
        for shard, (sources, values) in zip(self.shards, start, strict=True):
            shard.begin(sources, values if self.values else None, self.round)
        counts = self.counts()
        self.total = counts[:, VERTICES].copy()
        left, open_edges = self.findable - int(counts[:, COVERED].sum()), self.edges
        depth, way, frontier, rows = 0, PUSH, None, []
        while depth < max_depth and left > 0:
            vertices, edges = int(counts[:, VERTICES].sum()), int(counts[:, EDGES].sum())
            if not vertices or not edges:
                break
            open_edges -= edges
            last, way = way, self.choose(direction, way, edges, left, open_edges)
            depth += 1
            if way == PULL:
                if frontier is None:
                    for shard in self.shards:
                        shard.mark(int(counts[shard.number, VERTICES]))
                    frontier = self.gather_frontier()
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

    def choose(self, direction: str, last: int, edges: int, left: int, open_edges: int) -> int:
        """PUSH or PULL for the next level: every process decides from the same counts."""
        if direction != "auto":
            return PULL if direction == "pull" else PUSH
        totals = (edges, last == PUSH, left, open_edges, self.edges, self.symmetric)
        return PULL if directions.search_pulls(*totals, self.values, self.first) else PUSH

    def pull(self, frontier: list[Array], depth: int) -> tuple[np.ndarray, list[Array]]:
        """(counts of a level that unvisited vertices pull, the next frontier as `gather_frontier`
        gives it).
        """
        self.next_round()
        values = self.gather_values()
        for shard, whole, held in zip(self.shards, frontier, values, strict=True):
            shard.pull(whole, held, depth, self.round)
        following = self.gather_frontier()  # most often the next level is a pull, too
        counts = self.counts()
        if counts[:, WAITING].any():
            self.next_round()
            for shard, whole, held in zip(self.shards, frontier, values, strict=True):
                rows = int(counts[shard.number, WAITING])
                shard.pull_rows(whole, held, rows, depth, self.round)
            following = self.gather_frontier()
            counts = counts + self.counts()
        return counts, following

    def push(self, counts: np.ndarray, depth: int, queued: bool) -> np.ndarray:
        """The counts of a level that the frontier pushes. `counts` are those of the frontier, which
        the shards hold as queues if `queued`, else as bitmaps.
        """
        if not queued:
            self.next_round()
            for shard in self.shards:
                shard.convert(self.round)
        own = counts[:, [VERTICES, EDGES]].tolist()
        most = int(counts[:, EDGES].max())
        if most <= self.list_edges:
            capacity = 1 << (most - 1).bit_length()
            lists = []
            for shard in self.shards:
                vertices, edges = own[shard.number]
                lists.append(shard.push_list(vertices, edges, capacity))
            return self.settle_lists(lists, depth)
        marked = [shard.push_bits(*own[shard.number]) for shard in self.shards]
        self.next_round()
        if self.values:
            for shard in self.shards:
                shard.compact(most, self.round)
            sent = self.counts()[:, SENT:].tolist()
            came = self.exchange(lambda shard, own: shard.sent(own), sent, self.shards[0].entry)
            self.next_round()
            for shard, own in zip(self.shards, came, strict=True):
                shard.settle_own(own, depth, self.round)
            return self.counts()
        size = self.communicator.num_shards * self.words
        if 4 * size * self.communicator.num_shards <= GATHER_BYTES:
            received = self.communicator.all_gather(
                marked, sizes=[size] * self.communicator.num_shards
            )
        else:
            received = self.communicator.reduce_scatter(
                marked, [self.words] * self.communicator.num_shards, "or"
            )
        for shard, bits in zip(self.shards, received, strict=True):
            shard.settle_bits(bits, depth, self.round)
        return self.counts()

    def settle_lists(self, lists: list[Array], depth: int) -> np.ndarray:
        """Gather the lists of found vertices, of equal length, from all shards; each shard visits
        those that it owns. The counts.
        """
        self.next_round()
        received = self.communicator.all_gather(
            lists, sizes=[lists[0].size] * self.communicator.num_shards
        )
        for shard, lists_of_all in zip(self.shards, received, strict=True):
            shard.settle_list(lists_of_all, depth, self.round)
        return self.counts()

    def gather_frontier(self) -> list[Array]:
        """The bitmap of the whole frontier, on the device of each local shard."""
        sizes = [self.words] * self.communicator.num_shards
        return self.communicator.all_gather([shard.own for shard in self.shards], sizes=sizes)

    def gather_values(self) -> Sequence[Array | None]:
        """The values of the vertices of all shards, on the device of each local shard; None where
        products look at none.
        """
        if not self.looks_at_values:
            return [None] * len(self.shards)
        sizes = [32 * self.words] * self.communicator.num_shards
        return self.communicator.all_gather([shard.value for shard in self.shards], sizes=sizes)
