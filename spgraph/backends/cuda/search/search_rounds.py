"""Search in rounds that the host drives: in each level every shard launches its kernels, then the
communicator exchanges the frontier. For GPUs that cannot write into each other's memory, as those
of several hosts.

A level ends with the counts of all shards, for which the host waits; what the next one will most
likely need travels with them, in one launch: the frontier for a pull, else what a short frontier
reaches. Longer pushes exchange once more, and where products look at values of the frontier, a pull
gathers those of all vertices.
"""

from __future__ import annotations

import itertools
import operator
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from spgraph import direction as directions
from spgraph.backends.cuda.exchange.plan import block, check_counts
from spgraph.backends.cuda.runtime import jit
from spgraph.backends.cuda.search.search import LONG_ROW
from spgraph.backends.cuda.search.search_peers import (
    Values,
    first_decides,
    row_fields,
    shards_program,
    values_of,
)
from spgraph.backends.shards import Steps
from spgraph.backends.shards.graph import GraphRows, ShardedGraph
from spgraph.backends.shards.search import COUNTS, Found, SearchRequest
from spgraph.containers.storage.arrays import Array, array_module, index_dtype, words

# as in kernels/shards/search_rounds.cu
THREADS = 256
AHEAD_VERTICES, AHEAD = 1024, 4096
BATCH = 8  # words that a warp takes at a time: many more shares than warps run at once
LIST_EDGES = 4096  # up to so many edges of a shard's frontier, found vertices travel as a list
# up to so many bytes for each shard, bitmaps are gathered in one exchange; a reduce-scatter is two
GATHER_BYTES = 1 << 25
# what a shard counts in a round, in this order: the vertices that it has found, their out-edges,
# how many of them have in-edges, and long rows that `pull` has left to `pull_rows`; and from SENT
# on, for each shard, how many of its vertices `compact` sends it
VERTICES, EDGES, COVERED, WAITING, SENT = range(COUNTS + 1)

Rows = list[list[int]]  # the counts of all shards
Trace = list[tuple[int, int, int, int]]
Level = tuple[Rows, list[int], Array | None]  # its counts, their sums, what has come with them


class Memory:
    """What searches of a graph need on a shard's device whatever they find, kept with the graph:
    only one at a time runs. `nothing` says of which type and value the partial sums are that
    `partial` is full of.
    """

    def __init__(self, arrays: GraphRows, words: int, shards: int) -> None:
        xp, size = array_module(arrays.indptr), arrays.indptr.size - 1
        self.own = xp.empty(words, np.uint32)
        self.queue = xp.empty(size, arrays.indices.dtype)
        self.offset = xp.empty(size, arrays.indptr.dtype)
        self.counts = xp.empty(COUNTS + shards, np.int64)
        self.control = xp.zeros(2 + COUNTS + shards, np.int64)
        self.list = xp.empty(2 * (1 + AHEAD), np.int64)  # entries have at most two words
        # what kernels have pushed ahead, and two arrays each for the bits and the lists of all
        # shards that come with counts: kernels may read one while the next comes
        self.ahead = xp.empty_like(self.list)
        self.bits = [xp.zeros(shards * words, np.uint32) for _ in range(2)]
        self.lists = [xp.zeros(shards * self.ahead.size, np.int64) for _ in range(2)]
        self.visited_next: Array | None = None
        self.partial: Any = jit.NULL
        self.nothing: tuple[str, bytes] | None = None


class Shard:
    """Local shard k of a graph on its device, `number` among all, and what searches for what is
    `asked`, from any sources, need beside its arrays. `edges` are those of all shards. Kernels
    count into `counts` and `host_counters`, words of the host's memory: COUNTS, and one for each
    shard. Nothing waits for the device.
    """

    def __init__(
        self,
        graph: ShardedGraph,
        k: int,
        number: int,
        edges: int,
        asked: SearchRequest,
        host_counters: np.ndarray,
    ) -> None:
        semiring, rows, findable = asked.semiring, asked.rows[k], asked.findable
        arrays, sizes = graph.shards[k], graph.sizes
        self.number, self.arrays, self.edges, self.findable = number, arrays, edges, findable
        self.symmetric, self.round = graph.symmetric, 0
        self.xp = array_module(arrays.indptr)
        self.num_shards, self.size = len(sizes), sizes[number]
        self.words = max(words(size) for size in sizes)  # in bitmaps, of every shard
        self.list_edges = max(LIST_EDGES, graph.size // 32)
        self.label = index_dtype(graph.size)
        levels_alone = asked.values is None
        self.sought = None if levels_alone else values_of(semiring, graph, self.label)
        self.dtype = self.label if self.sought is None else self.sought.semiring.dtype
        self.first_hit = first_decides(self.sought)
        self.looks_at_values = semiring is not None and semiring.multiply.uses("x")
        # an entry of a list is a vertex, and its value beside it
        self.entry = 1 if self.sought is None else 2
        self.item = np.dtype(f"i{max(self.label.itemsize, self.dtype.itemsize)}")
        check_counts("search", self.size, arrays.indices.size, " of a shard")
        self.kernels = self._compiled(pulls=rows is not None)
        self.grid = jit.occupancy(self.kernels["push_bits"], THREADS)
        place = ("memory of searches in rounds", k)
        if place not in graph.derived:
            graph.derived[place] = Memory(arrays, self.words, self.num_shards)
        self.memory: Memory = graph.derived[place]
        # what travels with counts, and where it comes to: each time to the other one
        size = (1 + AHEAD) * self.entry
        self.ahead = self.memory.ahead.view(self.item)[:size]
        lists = [whole.view(self.item)[: size * self.num_shards] for whole in self.memory.lists]
        self.with_bits = itertools.cycle([(self.memory.own, whole) for whole in self.memory.bits])
        self.with_list = itertools.cycle([(self.ahead, whole) for whole in lists])
        fields = row_fields(arrays, *(rows or (None, None)))
        fields |= {"me": number, "words": self.words, "first": list(graph.offsets)}
        names = ("own", "queue", "offset", "control", "counts")
        fields |= {"ids": arrays.ids} | {name: getattr(self.memory, name) for name in names}
        fields |= {"host_counters": host_counters} | dict.fromkeys(("level", "value", "visited"))
        self.given = block(fields, self.xp)

    def _compiled(self, pulls: bool) -> dict[str, Any]:
        """The kernels by name, with those of pulls or without."""
        arrays, places = self.arrays, index_dtype(32 * self.words * self.num_shards)
        kinds = (arrays.indices.dtype, arrays.indptr.dtype, self.label, places)
        shape = (self.num_shards, THREADS, LONG_ROW, AHEAD_VERTICES, AHEAD)
        text = program(shape, tuple(kind.str for kind in kinds), self.sought)
        names = ["clear", "begin", "convert", "mark", "push_list", "settle_list", "push_bits"]
        names += ["compact"] if self.sought else ["settle_bits"]
        names += ["pull", "pull_rows"] if pulls else []
        return {name: jit.kernel("search_rounds", name, text) for name in names}

    def search(
        self, sources: Array, values: Array | None, direction: str, max_depth: int
    ) -> Steps[tuple[Found, Trace]]:
        """Search from the own vertices `sources`, counted from 0, with their `values`: what this
        shard has found, and a row (direction, frontier, edges, nanoseconds) for each level.
        """
        try:
            return (yield from self._levels(sources, values, direction, max_depth))
        except BaseException:  # partial sums may be left of a level that has not ended
            self.memory.nothing = None
            raise

    def _levels(
        self, sources: Array, values: Array | None, direction: str, max_depth: int
    ) -> Steps[tuple[Found, Trace]]:
        trace: Trace = []
        began = time.perf_counter()
        self.begin(sources, values)
        rows, totals, came = yield self._counts(self.with_list)
        visited = rows[self.number][VERTICES]
        left, open_edges = self.findable - totals[COVERED], self.edges
        depth, pulled, before, self.is_marked = 0, False, 1, False
        while depth < max_depth and left > 0 and totals[EDGES]:
            vertices, edges = totals[VERTICES], totals[EDGES]
            open_edges, queued = open_edges - edges, not pulled
            pulled = self.pulls(direction, edges, queued, left, open_edges)
            # a pull after this level is expected if its frontier grows as this one has grown
            grown = edges * edges // before
            self.expects_pull = self.pulls(direction, grown, True, left, open_edges)
            depth, before = depth + 1, edges
            level = self._pull if pulled else self._push
            rows, totals, came = yield from level(rows, queued, came, depth)
            visited += rows[self.number][VERTICES]
            left -= totals[VERTICES]
            if totals[VERTICES]:
                now = time.perf_counter()
                trace.append((1 + pulled, vertices, edges, int(1e9 * (now - began))))
                began = now
        return self.take(visited), trace

    def pulls(self, direction: str, edges: int, queued: bool, left: int, open_edges: int) -> bool:
        """Whether the next level is pulled: all shards decide from the same totals."""
        if direction != "auto":
            return direction == "pull"
        totals = (edges, queued, left, open_edges, self.edges, self.symmetric)
        return directions.search_pulls(*totals, self.sought is not None, self.first_hit)

    def _pull(self, rows: Rows, queued: bool, came: Array | None, depth: int) -> Steps[Level]:
        """A level in which open vertices look for the frontier, which is a queue or, in a bitmap of
        all vertices, has come with the counts: its counts, and the next frontier.
        """
        frontier = came
        if queued and not self.is_marked:
            frontier = yield self._gather(self.mark())
        self.is_marked = False
        values = jit.NULL
        if self.looks_at_values:
            values = yield "gather", (self.value, [32 * self.words] * self.num_shards)
        label, work = self.label.type(depth), 32 * -(-self.words // BATCH)
        # the device hands out shares as it gets to them
        self.count("pull", work, frontier, values, BATCH, label, most=work)
        # most often the next level is a pull, too
        rows, totals, following = yield self._counts(self.with_bits)
        if totals[WAITING]:
            waiting = rows[self.number][WAITING]
            work = self.grid * THREADS if waiting else 0
            self.count("pull_rows", work, frontier, values, waiting, label)
            more, sums, following = yield self._counts(self.with_bits)
            rows = [list(map(operator.add, *pair)) for pair in zip(rows, more, strict=True)]
            totals = list(map(operator.add, totals, sums))
        return rows, totals, following

    def _push(self, rows: Rows, queued: bool, came: Array | None, depth: int) -> Steps[Level]:
        """A level that the frontier pushes, which is a queue or the bitmap `own`: its counts, and
        what the next level is expected to need of all shards: the frontier, or lists of what a
        short one pushes. `rows` are the counts of the frontier, `came` what has come with these.
        """
        if not queued:
            self.count("convert", self.words)
        if self.is_marked:  # for a pull that was not to come
            self.memory.own.fill(0)
            came, self.is_marked = None, False
        most = max(row[EDGES] for row in rows)
        if most <= self.list_edges:
            yield from self._push_lists(rows, came if queued else None, depth)
        elif self.sought:
            yield from self._push_sums(rows, depth)
        else:
            yield from self._push_bitmaps(rows, depth)
        if self.expects_pull:
            self.is_marked = True
            self.mark()
            return (yield self._counts(self.with_bits))
        is_listed = self.sought or most <= self.list_edges
        return (yield self._counts(self.with_list if is_listed else None))

    def _push_lists(self, rows: Rows, came: Array | None, depth: int) -> Steps[None]:
        """A short push: all shards get a list of what each reaches, with values. `came` are those
        that have come with the counts, whole where frontiers are small.
        """
        vertices, edges = self._frontier(rows)
        most = max(row[EDGES] for row in rows)
        is_short = most <= AHEAD and max(row[VERTICES] for row in rows) <= AHEAD_VERTICES
        if not is_short or came is None:
            found = self.list_of(1 << (most - 1).bit_length())
            self.run("push_list", edges, found, vertices, edges)
            came = yield self._gather(found)
        length = came.size // self.num_shards // self.entry
        self.settle(came, self.num_shards, length, -1, depth)

    def _push_sums(self, rows: Rows, depth: int) -> Steps[None]:
        """A long push of values: each shard sums those of the vertices that it reaches, and sends
        the sums to their owners.
        """
        shards, (vertices, edges) = self.num_shards, self._frontier(rows)
        marked = self.push_bits(vertices, edges)
        stride = min(max(row[EDGES] for row in rows), 32 * self.words)
        lists, width = self.list_of(shards * stride), self.entry * stride
        self.count("compact", self.words, marked, self.memory.partial, lists, stride)
        rows, _, _ = yield self._counts()
        came, sizes = None, [[self.entry * number for number in row[SENT:]] for row in rows]
        if any(map(any, sizes)):
            to = [lists[width * q :][:size] for q, size in enumerate(sizes[self.number])]
            coming = [row[self.number] for row in sizes]
            came = yield "send", (to, coming, self.xp.empty(sum(coming), self.item))
        length = 0 if came is None else came.size // self.entry
        self.settle(self.ahead if came is None else came, 1, 0, length, depth)

    def _push_bitmaps(self, rows: Rows, depth: int) -> Steps[None]:
        """A long push without values: the union of the bitmaps of what the shards reach."""
        shards, (vertices, edges) = self.num_shards, self._frontier(rows)
        marked = self.push_bits(vertices, edges)
        size = marked.size
        if 4 * size * shards <= GATHER_BYTES:
            came, parts = (yield self._gather(marked)), (shards, size, self.number * self.words)
        else:
            came, parts = (yield "union", (marked, [self.words] * shards)), (1, 0, 0)
        self.count("settle_bits", size, marked, came, *parts, self.label.type(depth))

    def _frontier(self, rows: Rows) -> tuple[int, int]:
        """How many vertices the shard's own frontier has, and edges."""
        return rows[self.number][VERTICES], rows[self.number][EDGES]

    # --- launches ---------------------------------------------------------------------------------

    def run(self, name: str, work: int, *arguments: object, most: int = 0) -> None:
        """Launch a kernel with a thread for each item of work, up to `most` blocks of threads, or
        as many as run at once.
        """
        grid = min(max(1, -(-work // THREADS)), most or self.grid)
        self.kernels[name]((grid,), (THREADS,), (self.given, *arguments))

    def count(self, name: str, work: int, *arguments: object, most: int = 0) -> None:
        """Launch a kernel that counts, in a round of its own."""
        self.round += 1
        self.run(name, work, *arguments, self.round, most=most)

    def _gather(self, part: Array) -> tuple[str, Any]:
        """The request for the parts of all shards, each as long as this one."""
        return "gather", (part, [part.size] * self.num_shards)

    def _counts(self, parts: Iterator[tuple[Array, Array]] | None = None) -> tuple[str, Any]:
        """The request for the counts, and for the parts of all shards if there are any."""
        part = None if parts is None else next(parts)
        return "counts", (self.memory.counts, self.round, part)

    def begin(self, sources: Array, values: Array | None) -> None:
        """Visit the sources; the kernel that makes a queue may have pushed it already."""
        self.level = self.xp.empty(self.size, self.label)
        # as long as the bitmap of the own vertices, so that all shards' can be gathered
        self.value = self.xp.empty(32 * self.words if self.sought else 0, self.dtype)
        self.visited = self.xp.empty(self.num_shards * self.words, np.uint32)
        sources = sources.astype(self.arrays.indices.dtype, copy=False)
        given = jit.NULL
        if self.sought and values is not None:
            given = values.astype(self.dtype, copy=False)
        found = self.level, self.value, self.visited
        self.run("clear", max(self.size, self.visited.size), *found)
        self.count("begin", sources.size, sources, given, sources.size, self.ahead)

    def take(self, visited: int) -> Found:
        """What was found, which the shard keeps no longer."""
        first = self.number * self.words
        bits = self.visited[first : first + words(self.size)]
        value, copy = (self.value[: self.size], bits.copy()) if self.sought else (None, None)
        found = Found(self.level, value, bits, copy, visited)
        del self.level, self.value, self.visited
        return found

    def mark(self) -> Array:
        """The own part of the frontier, a queue, as bits."""
        self.run("mark", self.size)
        return self.memory.own

    def settle(self, came: Array, lists: int, stride: int, length: int, depth: int) -> None:
        """Own vertices in so many lists are found, and become the queue."""
        arguments = (came, lists, stride, length, self.label.type(depth), self.ahead)
        self.count("settle_list", max(stride, length), *arguments)

    def push_bits(self, vertices: int, edges: int) -> Array:
        """A bitmap of all vertices: what is visited, and what the frontier reaches; the sums of the
        products that reach it are in `partial`.
        """
        memory = self.memory
        if memory.visited_next is None:
            memory.visited_next = self.xp.empty_like(self.visited)
        if self.sought:
            none = self.sought.semiring.add.identity
            nothing = (self.dtype.str, np.asarray(none, self.dtype).tobytes())
            if memory.nothing != nothing:
                memory.partial = None  # is free before as much is asked for
                memory.partial = self.xp.full(32 * self.visited.size, none, self.dtype)
                memory.nothing = nothing
        self.xp.copyto(memory.visited_next, self.visited)
        partial = memory.partial if self.sought else jit.NULL
        work = (vertices, edges)
        self.run("push_bits", max(work), memory.visited_next, partial, *work)
        return memory.visited_next

    def list_of(self, capacity: int) -> Array:
        """The list with room for so many entries beside its length; as it is if it has that."""
        size = (1 + capacity) * self.entry
        needed = -(-size * self.item.itemsize // 8)
        if self.memory.list.size < needed:
            self.memory.list = self.xp.empty(needed, np.int64)
        return self.memory.list.view(self.item)[:size]


def program(shape: tuple[int, ...], kinds: tuple[str, ...], sought: Values | None) -> str:
    """The preamble of kernels/shards/search_rounds.cu."""
    return shards_program("PEERS THREADS LONG_ROW AHEAD_VERTICES AHEAD", shape, kinds, sought)
