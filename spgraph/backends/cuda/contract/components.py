"""Components of a graph in shards: what one shard does on its device. Nothing is read back.

Messages are arrays of 64-bit words on the device, with up to `capacity` pairs of labels, of one
length for all shards.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from spgraph.backends.cuda.contract.contract import Forest
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.backends.cuda.search.search_rows import nonempty
from spgraph.backends.shards import Steps
from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import Array, array_module, index_dtype, words

# as in kernels/components.cu, in 64-bit words
HEAD, REPORT = 3, 2


@dataclasses.dataclass(frozen=True)
class Form:
    """What messages hold behind their head: `bits` 64-bit words of bits, then up to `capacity`
    pairs of labels.
    """

    bits: int
    capacity: int
    label: np.dtype

    @property
    def size(self) -> int:
        """The 64-bit words of a message."""
        return HEAD + self.bits + self.capacity * (2 * self.label.itemsize // 8)

    def box(self, messages: Array, places: Array | None = None) -> tuple[Any, ...]:
        """The arguments that stand for messages in a launch: they lie one after the other in
        `messages`, or at the addresses `places`.
        """
        where = jit.NULL if places is None else places
        return messages, where, self.size, self.bits, self.capacity

    def boxes(self, messages: Array, places: Array | None = None) -> tuple[Any, ...]:
        """The same behind the number of messages."""
        number = messages.size // self.size if places is None else places.size
        return number, *self.box(messages, places)


class Shard:
    """The rows that a shard owns of a graph of `size` vertices, from the internal id `first` on.
    `nonempty` has a bit for each: whether it has edges.

    `ids` are the user's ids of own vertices, `internal_ids` the internal ones of all; None where
    both are the same.
    """

    def __init__(
        self, matrix: Matrix, size: int, first: int, ids: Array | None, internal_ids: Array | None
    ) -> None:
        self.matrix, self.size = matrix, size
        self.label = index_dtype(size)
        nowhere = (jit.NULL if array is None else array for array in (ids, internal_ids))
        self.own = (size, first, matrix.nrows, *nowhere)  # as kernels take it
        types = {"I": matrix._indices.dtype, "O": matrix._indptr.dtype, "L": self.label}
        self.text = preamble.types(**types)
        self.nonempty = nonempty(matrix._indptr)[0]

    def run(self, name: str, work: int, *arguments: object) -> None:
        """Launch a kernel with a thread for each item of work, or as many as run at once."""
        jit.resident(jit.kernel("components", name, self.text), work, *arguments)

    def pairs_words(self, capacity: int) -> int:
        """The 64-bit words of the message of `around`."""
        return self.pairs_form(capacity).size

    def pairs_form(self, capacity: int) -> Form:
        """The form of messages that are pairs of labels."""
        return Form(0, capacity, self.label)

    def around(
        self,
        visited: Array,
        message: Array,
        places: Array,
        capacity: int,
        round_: int,
        host_counter: int,
    ) -> Steps[Array]:
        """The labels of own vertices after a search for the giant component, which has found those
        in the bitmap `visited`, by the edges that are left. Shards meet when each has written its
        own to `message`; all of them are at the addresses `places`. The host-mapped word at the
        address `host_counter` becomes a count of the round: 1 if the labels are void, of this shard
        or, where shards are in several processes, of any.
        """
        A, form, xp = self.matrix, self.pairs_form(capacity), array_module(message)
        table = xp.empty(self.size, self.label)  # by users' ids; only ends of edges are touched
        message[:HEAD] = 0
        rows = (A._indptr, A._indices, visited, self.nonempty, table)
        self.run("outside", A.nrows // 32 + 1, *self.own, *rows, *form.box(message))
        yield "meet", None
        boxes, report = form.boxes(message, places), xp.zeros(REPORT, np.int64)
        # lists are short: a launch for all of the capacity would take longer than they do
        self.run("begin", capacity // 16, *self.own, visited, table, *boxes, report)
        self.run("join", capacity // 16, table, *boxes, jit.NULL)
        yield "meet_processes", None
        label = xp.empty(A.nrows, self.label)
        found = (visited, self.nonempty, table, *boxes, label, report, round_, host_counter)
        self.run("settle", label.size // 4 + 1, *self.own, *found)
        return label

    def forests(
        self, matrix: Matrix, number: int, shards: int, sampled: bool, capacity: int
    ) -> Steps[tuple[Array, Array]]:
        """(labels of own vertices, the length of the longest list of all shards, which may be more
        than fitted: then labels are void) for shard `number` of so many. `matrix` has its rows and
        the whole's shape. If `sampled`, two edges of each vertex are followed first, for which the
        graph has to be symmetric; then the others, but for rows of one giant component, the same at
        all shards.
        """
        forest = Forest(matrix)
        forest.sample()
        if not sampled:  # the giants of two shards need not be one component
            forest.rest(undirected=False)
        longest = array_module(forest.label).zeros(1, np.int64)
        boxes = yield from self._exchange(forest, number, shards, capacity, longest)
        if sampled:
            self.run("agree", 1, forest.label, *boxes, forest.giant)
            forest.compress(vote=False)
            forest.rest(undirected=True)
            yield from self._exchange(forest, number, shards, capacity, longest)
        label = array_module(longest).empty(self.matrix.nrows, self.label)
        self.run("finish", label.size, *self.own, forest.label, label)
        return label, longest

    def _exchange(
        self, forest: Forest, number: int, shards: int, capacity: int, longest: Array
    ) -> Steps[tuple[Any, ...]]:
        """Send to all shards the roots of others' vertices in the forest of the own rows, and merge
        into it what these have sent and what the owners return about that. `longest` rises to the
        length of the longest list. Returns the arguments that stand for the first messages.
        """
        roots = Form((words(self.size) + 1) // 2, capacity, self.label)
        pairs, label, xp = self.pairs_form(capacity), forest.label, array_module(longest)
        message, named = xp.empty(roots.size, np.int64), xp.zeros(words(self.size), np.uint32)
        message[:HEAD] = 0
        sent = (label, forest.giant, named, *roots.box(message))
        self.run("send_roots", self.size, *self.own, *sent)
        came = roots.boxes((yield "gather", (message, [message.size] * shards)))
        links, work = xp.zeros(pairs.size, np.int64), max(self.matrix.nrows, capacity)
        self.run("receive_roots", work, *self.own, number, label, *came, links, capacity)
        answers = yield "gather", (links, [links.size] * shards)
        self.run("join", capacity, label, *pairs.boxes(answers), longest)
        return came
