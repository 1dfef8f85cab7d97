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


class Shard:
    """The rows that a shard owns of a graph of `size` vertices, from the inner id `first` on.
    `nonempty` has a bit for each: whether it has edges.

    `ids` are the user's ids of own vertices, `places` the inner ids of all; None where both are the
    same.
    """

    def __init__(
        self, matrix: Matrix, size: int, first: int, ids: Array | None, places: Array | None
    ) -> None:
        self.matrix, self.size = matrix, size
        self.label = index_dtype(size)
        nowhere = (jit.NULL if array is None else array for array in (ids, places))
        self.own = (size, first, matrix.nrows, *nowhere)  # as kernels take it
        offsets = matrix._indptr.dtype
        self.text = preamble.types(I=matrix._indices.dtype, O=offsets, L=self.label)
        self.kernels: dict[str, tuple[jit.Kernel, int]] = {}
        xp = array_module(matrix._indptr)
        self.nonempty, count = xp.empty(words(matrix.nrows), np.uint32), xp.zeros(1, np.int64)
        kernel = jit.kernel("nonempty", "nonempty", preamble.types(O=offsets))
        work = 32 * self.nonempty.size
        jit.sweep(kernel, work, matrix.nrows, matrix._indptr, self.nonempty, count)

    def run(self, name: str, work: int, *arguments: object) -> None:
        """Launch a kernel with a thread for each item of work, or as many as run at once."""
        if name not in self.kernels:
            kernel = jit.kernel("components", name, self.text)
            self.kernels[name] = kernel, jit.occupancy(kernel)
        kernel, most = self.kernels[name]
        kernel((min(max(1, -(-work // jit.BLOCK)), most),), (jit.BLOCK,), arguments)

    def pairs_words(self, capacity: int) -> int:
        """The 64-bit words of a message that `outside` and `receive_roots` make."""
        return self.pairs_form(capacity).size

    def pairs_form(self, capacity: int) -> Form:
        """The form of the messages that `outside` and `receive_roots` make."""
        return Form(0, capacity, self.label)

    def roots_form(self, capacity: int) -> Form:
        """The form of the messages that `send_roots` makes."""
        return Form((words(self.size) + 1) // 2, capacity, self.label)

    # --- by the giant component -------------------------------------------------------------------

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
        table = self.outside(visited, message, capacity)
        yield "meet", None
        report = self.join_edges(visited, table, message, places, capacity)
        yield "meet_processes", None
        box = (places.size, *self.pairs_form(capacity).box(message, places))
        label = array_module(table).empty(self.matrix.nrows, self.label)
        arguments = (visited, self.nonempty, table, *box, label, report, round_, host_counter)
        self.run("settle", label.size // 4 + 1, *self.own, *arguments)
        return label

    def outside(self, visited: Array, message: Array, capacity: int) -> Array:
        """Write the edges of the own vertices that are not in the bitmap `visited` to `message`.
        Returns memory for the labels of all ends of such edges, by user's ids, for `settle`.
        """
        A = self.matrix
        table = array_module(message).empty(self.size, self.label)  # only ends of edges are touched
        message[:HEAD] = 0
        box = self.pairs_form(capacity).box(message)
        arguments = (A._indptr, A._indices, visited, self.nonempty, table, *box)
        self.run("outside", A.nrows // 32 + 1, *self.own, *arguments)
        return table

    def join_edges(
        self, visited: Array, table: Array, message: Array, places: Array, capacity: int
    ) -> Array:
        """Unite the ends of the edges that all shards listed. Returns a report for `settle`."""
        report = array_module(table).zeros(REPORT, np.int64)
        box = (places.size, *self.pairs_form(capacity).box(message, places))
        # lists are short: a launch for all of the capacity would take longer than they do
        self.run("begin", capacity // 16, *self.own, visited, table, *box, report)
        self.run("join", capacity // 16, table, *box, jit.NULL)
        return report

    # --- any graph --------------------------------------------------------------------------------

    def forests(
        self, matrix: Matrix, number: int, shards: int, sampled: bool, capacity: int
    ) -> Steps[tuple[Array, Array]]:
        """(labels of own vertices, the length of the longest list of all shards, which may be more
        than fitted: then labels are void) for shard `number` of so many. `matrix` has its rows and
        the whole's shape. If `sampled`, two edges of each vertex are followed first, for which the
        graph has to be symmetric.
        """
        forest = self.forest(matrix, sampled)
        longest = array_module(forest.label).zeros(1, np.int64)
        came = yield from self._exchange(forest, number, shards, capacity, longest)
        if sampled:
            self.follow(forest, came, capacity)
            yield from self._exchange(forest, number, shards, capacity, longest)
        return self.finish(forest), longest

    def _exchange(
        self, forest: Forest, number: int, shards: int, capacity: int, longest: Array
    ) -> Steps[Array]:
        """Send the roots of others' vertices to their owners, and merge into the forest the pairs
        of roots that the owners send to all: the first messages of all shards.
        """
        roots = self.send_roots(forest, capacity)
        came = yield "gather", (roots, [roots.size] * shards)
        links = self.receive_roots(forest, number, came, capacity)
        answers = yield "gather", (links, [links.size] * shards)
        self.join(forest, answers, longest, capacity)
        return came

    def forest(self, matrix: Matrix, sampled: bool) -> Forest:
        """The components of the own rows, a matrix of the whole's shape; if `sampled`, of two edges
        of each vertex, for `follow` to go on from.
        """
        forest = Forest(matrix)
        forest.sample()
        if not sampled:  # the giants of two shards need not be one component
            forest.rest(undirected=False)
        return forest

    def send_roots(self, forest: Forest, capacity: int) -> Array:
        """The message to all shards: the roots that other shards' vertices have in `forest`, the
        components of the own rows (rows of others are empty there).
        """
        form, xp = self.roots_form(capacity), array_module(forest.label)
        message, named = xp.empty(form.size, np.int64), xp.zeros(words(self.size), np.uint32)
        message[:HEAD] = 0
        box = form.box(message)
        self.run("send_roots", self.size, *self.own, forest.label, forest.giant, named, *box)
        return message

    def receive_roots(self, forest: Forest, me: int, came: Array, capacity: int) -> Array:
        """Merge the roots that all shards have sent into the forest of shard `me`. Returns the
        message to all shards about what that has changed.
        """
        form, answer = self.roots_form(capacity), self.pairs_form(capacity)
        links = array_module(came).zeros(answer.size, np.int64)
        box = (came.size // form.size, *form.box(came))
        work = max(self.matrix.nrows, capacity)
        self.run("receive_roots", work, *self.own, me, forest.label, *box, links, capacity)
        return links

    def join(self, forest: Forest, answers: Array, report: Array, capacity: int) -> None:
        """Merge what all shards returned from `receive_roots` into the forest. `report` rises to
        the length of the longest list, which may be more than fitted.
        """
        form = self.pairs_form(capacity)
        box = (answers.size // form.size, *form.box(answers))
        self.run("join", capacity, forest.label, *box, report)

    def follow(self, forest: Forest, came: Array, capacity: int) -> None:
        """Follow the other edges of a symmetric graph, after the roots of a sample of the edges
        were exchanged; not those of the rows of one giant component, the same at all shards.
        """
        form = self.roots_form(capacity)
        box = (came.size // form.size, *form.box(came))
        self.run("agree", 1, forest.label, *box, forest.giant)
        forest.compress(vote=False)
        forest.rest(undirected=True)

    def finish(self, forest: Forest) -> Array:
        """The labels of own vertices."""
        label = array_module(forest.label).empty(self.matrix.nrows, self.label)
        self.run("finish", label.size, *self.own, forest.label, label)
        return label
