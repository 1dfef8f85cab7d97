"""The kernels of a search in rounds that the host drives, and what one shard keeps for them: on
CuPy arrays, without any communication.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from spgraph.backends.cuda.exchange.given import block
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.backends.cuda.search.search import LONG_ROW
from spgraph.backends.cuda.search.search_peers_plan import (
    Values,
    row_fields,
    values_of,
    values_preamble,
)
from spgraph.backends.shards.graph import GraphRows, ShardedGraph
from spgraph.backends.shards.search import SearchShard, counts_of
from spgraph.containers.storage.arrays import Array, array_module, index_dtype, words
from spgraph.semirings import TypedSemiring

# as in kernels/shards/search_rounds.cu
THREADS = 256
AHEAD_VERTICES, AHEAD = 1024, 4096
BATCH = 8  # words that a warp takes at a time: many more shares than warps run at once


class Memory:
    """What searches of a graph need on a shard's device whatever they find, kept with the graph:
    only one at a time runs. `nothing` says of which type and value the partial sums are that
    `partial` is full of.
    """

    def __init__(self, arrays: GraphRows, words: int, counts: int) -> None:
        xp, size = array_module(arrays.indptr), arrays.indptr.size - 1
        self.own = xp.empty(words, np.uint32)
        self.queue = xp.empty(size, arrays.indices.dtype)
        self.offset = xp.empty(size, arrays.indptr.dtype)
        self.counts = xp.empty(counts, np.int64)
        self.control = xp.zeros(2 + counts, np.int64)
        self.list = xp.empty(2 * (1 + AHEAD), np.int64)  # entries have at most two words
        self.visited_next: Array | None = None
        self.partial: Any = jit.NULL
        self.nothing: tuple[str, bytes] | None = None


class Shard(SearchShard):
    """Local shard k of a graph on its device, `number` among all, and what searches need beside its
    arrays. With `values` they find the sums of a semiring, or, for None, the least parents.
    `host_counters`, of `counts_of(shards)` words, is host-mapped memory that kernels write.

    A method that launches a kernel takes the number of the round if the kernel counts: the counts
    then reach `host_counters`, each above 16 bits of that number, and `counts`.
    """

    def __init__(
        self,
        graph: ShardedGraph,
        k: int,
        number: int,
        rows: tuple[Array, Array] | None,
        values: bool,
        semiring: TypedSemiring | None,
        host_counters: np.ndarray,
    ) -> None:
        arrays, offsets = graph.shards[k], graph.offsets
        self.number, self.arrays, self.rows = number, arrays, rows
        self.xp = array_module(arrays.indptr)
        self.num_shards = len(offsets) - 1
        sizes = [b - a for a, b in itertools.pairwise(offsets)]
        self.size = sizes[number]
        self.words = max(words(size) for size in sizes)  # in bitmaps, of every shard
        self.label = index_dtype(graph.size)
        self.sought = values_of(semiring, graph, self.label) if values else None
        self.dtype = self.label if self.sought is None else self.sought.semiring.dtype
        # an entry of a list is a vertex, and its value beside it
        self.entry = 1 if self.sought is None else 2
        self.item = np.dtype(f"i{max(self.label.itemsize, self.dtype.itemsize)}")
        ids, rows_of = arrays.indices.dtype, arrays.indptr.dtype
        if self.size.bit_length() + arrays.indices.size.bit_length() > 64:
            raise ValueError(
                "search: expected at most 64 bits for a vertex and an edge of a shard, "
                f"got {self.size} vertices, {arrays.indices.size} edges"
            )
        places = index_dtype(32 * self.words * self.num_shards)
        kinds = (ids.str, rows_of.str, self.label.str, places.str)
        shape = (self.num_shards, THREADS, LONG_ROW, AHEAD_VERTICES, AHEAD)
        text = program(shape, kinds, self.sought)
        with jit.device(arrays.indptr):
            kernels = ["clear", "begin", "convert", "mark", "push_list", "settle_list", "push_bits"]
            kernels += ["compact"] if self.sought else ["settle_bits"]
            kernels += [] if rows is None else ["pull", "pull_rows"]
            self.kernels = {name: jit.kernel("search_rounds", name, text) for name in kernels}
            self.grid = jit.occupancy(self.kernels["push_bits"], THREADS)
            place = ("memory of searches in rounds", k)
            if place not in graph.derived:
                graph.derived[place] = Memory(arrays, self.words, counts_of(self.num_shards))
            self.memory: Memory = graph.derived[place]
            self.own, self.counts = self.memory.own, self.memory.counts
            leading, nonempty = (None, None) if rows is None else rows
            fields = row_fields(arrays, leading, nonempty)
            fields |= {"me": number, "words": self.words, "first": list(offsets)}
            names = ("own", "queue", "offset", "control", "counts")
            fields |= {"ids": arrays.ids} | {name: getattr(self.memory, name) for name in names}
            fields |= {"host_counters": host_counters}
            self.given = block(fields, self.xp)
            self.is_ahead = False  # the kernel that made the queue may have pushed it already

    def run(self, name: str, work: int, *arguments: object, most: int = 0) -> None:
        """Launch a kernel with a thread for each item of work, up to `most` blocks of threads, or
        as many as run at once.
        """
        grid = min(max(1, -(-work // THREADS)), most or self.grid)
        with jit.device(self.given):
            self.kernels[name]((grid,), (THREADS,), (self.given, *self.found, *arguments))

    # --- a search ---------------------------------------------------------------------------------

    def begin(self, sources: Array, values: Array | None, round_: int) -> None:
        """Begin at the own vertices `sources`, counted from 0, with their `values`."""
        with jit.device(self.given):
            self.level = self.xp.empty(self.size, self.label)
            # as long as the bitmap of the own vertices, so that all shards' can be gathered
            self.value = self.xp.empty(32 * self.words if self.sought else 0, self.dtype)
            self.visited = self.xp.empty(self.num_shards * self.words, np.uint32)
            sources = sources.astype(self.arrays.indices.dtype, copy=False)
            given = jit.NULL if values is None else values.astype(self.dtype, copy=False)
        self.found = (self.level, self.value, self.visited)
        self.run("clear", max(self.size, self.visited.size))
        self.run("begin", sources.size, sources, given, sources.size, self.memory.list, round_)
        self.is_ahead = True

    def take(self) -> tuple[Array, Array, Array]:
        """(levels, values, one bit an own vertex: whether it was found), which it keeps no
        longer.
        """
        first = self.number * self.words
        visited = self.visited[first : first + words(self.size)]
        made = (self.level, self.value[: self.size], visited)
        del self.level, self.value, self.visited, self.found
        return made

    def pull(self, frontier: Array, values: Array | None, depth: int, round_: int) -> None:
        """The open vertices look for the frontier, a bitmap of all, which has these values; the
        next one is in `own`.
        """
        label, work = self.label.type(depth), 32 * -(-self.words // BATCH)
        held = jit.NULL if values is None else values
        # the device hands out shares as it gets to them
        self.run("pull", work, frontier, held, BATCH, label, round_, most=work)

    def pull_rows(
        self, frontier: Array, values: Array | None, rows: int, depth: int, round_: int
    ) -> None:
        """The same for the `rows` long ones that `pull` has left."""
        work = self.grid * THREADS if rows else 0
        held = jit.NULL if values is None else values
        self.run("pull_rows", work, frontier, held, rows, self.label.type(depth), round_)

    def convert(self, round_: int) -> None:
        """After a pull, before a push: the frontier in `own` becomes a queue."""
        self.run("convert", self.words, round_)
        self.is_ahead = False

    def mark(self, vertices: int) -> None:
        """After a push, before a pull: the queue of so many is the frontier in `own`."""
        self.run("mark", vertices, vertices)

    def push_list(self, vertices: int, edges: int, capacity: int) -> Array:
        """What the `edges` edges of the frontier's own `vertices` reach, as one flat array for the
        communicator, with room for `capacity` entries.
        """
        held = self.memory.list
        made, short = self.list_of(capacity), vertices <= AHEAD_VERTICES and edges <= AHEAD
        if not (self.is_ahead and short and self.memory.list is held):
            self.run("push_list", edges, made, vertices, edges)
        return made

    def settle_list(self, came: Array, depth: int, round_: int) -> None:
        """Own vertices in the lists of all shards are found."""
        stride = came.size // (self.num_shards * self.entry)
        self._settle(came, self.num_shards, stride, -1, depth, round_)

    def settle_own(self, came: Array | None, depth: int, round_: int) -> None:
        """Own vertices in what shards have sent to this one alone are found; None: nothing."""
        length = 0 if came is None else came.size // self.entry
        self._settle(self.memory.list if came is None else came, 1, 0, length, depth, round_)

    def _settle(
        self, came: Array, lists: int, stride: int, length: int, depth: int, round_: int
    ) -> None:
        arguments = (came, lists, stride, length, self.label.type(depth), self.memory.list, round_)
        self.run("settle_list", max(stride, length), *arguments)
        self.is_ahead = True

    def push_bits(self, vertices: int, edges: int) -> Array:
        """A bitmap of all vertices: what is visited, and what the frontier reaches."""
        memory = self.memory
        with jit.device(self.given):
            if memory.visited_next is None:
                memory.visited_next = self.xp.empty_like(self.visited)
            if self.sought:
                none = 0 if self.sought.parents else self.sought.semiring.add.identity
                nothing = (self.dtype.str, np.asarray(none, self.dtype).tobytes())
                if memory.nothing != nothing:
                    memory.partial = None  # is free before as much is asked for
                    memory.partial = self.xp.full(32 * self.visited.size, none, self.dtype)
                    memory.nothing = nothing
            self.xp.copyto(memory.visited_next, self.visited)
        self.run("push_bits", max(vertices, edges), *self.marked, vertices, edges)
        return memory.visited_next

    @property
    def marked(self) -> tuple[Array, Array]:
        """What push_bits writes: a bitmap, and the sums of the products that reach its vertices."""
        return self.memory.visited_next, self.memory.partial if self.sought else jit.NULL

    def forget(self) -> None:
        """After a search that has failed: partial sums may be left of it."""
        self.memory.nothing = None

    def settle_bits(self, came: Array, depth: int, round_: int) -> None:
        """Own vertices in bitmaps of all vertices, one a shard, or in the own part of their union,
        are found.
        """
        parts, stride, first = 1, 0, 0
        if came.size > self.words:
            parts, stride, first = self.num_shards, self.visited.size, self.number * self.words
        label = self.label.type(depth)
        arguments = (self.memory.visited_next, came, parts, stride, first, label, round_)
        self.run("settle_bits", self.visited.size, *arguments)
        self.is_ahead = False

    def compact(self, capacity: int, round_: int) -> None:
        """What push_bits has reached becomes a list for each shard, of `capacity` vertices at
        most.
        """
        self.stride = min(capacity, 32 * self.words)
        made = self.list_of(self.num_shards * self.stride)
        self.run("compact", self.words, *self.marked, made, self.stride, round_)

    def sent(self, sizes: Sequence[int]) -> list[Array]:
        """Those lists, of so many vertices, as flat arrays."""
        made, width = self.list_of(self.num_shards * self.stride), self.entry * self.stride
        return [made[width * q :][: self.entry * size] for q, size in enumerate(sizes)]

    def list_of(self, capacity: int) -> Array:
        """The list with room for so many entries beside its length; as it is if it has that."""
        size = (1 + capacity) * self.entry
        needed = -(-size * self.item.itemsize // 8)
        if self.memory.list.size < needed:
            with jit.device(self.given):
                self.memory.list = self.xp.empty(needed, np.int64)
        return self.memory.list.view(self.item)[:size]


@functools.lru_cache(maxsize=1024)
def program(shape: tuple[int, ...], kinds: tuple[str, ...], sought: Values | None) -> str:
    """The preamble of kernels/shards/search_rounds.cu."""
    names = ("PEERS", "THREADS", "LONG_ROW", "AHEAD_VERTICES", "AHEAD")
    text = preamble.constants(**dict(zip(names, shape, strict=True)))
    text += values_preamble(sought, kinds[2])
    return text + preamble.types(**{k: np.dtype(v) for k, v in zip("IOLQ", kinds, strict=True)})
