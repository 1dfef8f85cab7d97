"""Searches over shards: what kernels count, and what they find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from spgraph.containers.storage.arrays import Array

# what a shard counts in a round, in this order: the vertices that it has found, their out-edges,
# how many of them have in-edges, and long rows that `pull` has left to `pull_rows`; and from SENT
# on, for each shard, how many of its vertices `compact` sends it
VERTICES, EDGES, COVERED, WAITING, SENT = range(5)


def counts_of(shards: int) -> int:
    """How many numbers a shard counts."""
    return SENT + shards


class SearchShard(Protocol):
    """What a search in rounds asks of the kernels of one shard, `SearchShard` of a backend.

    A method that takes `round_` counts: `counts_of(shards)` numbers, which reach the host's memory
    each above 16 bits of the round's number, and `counts`. Bitmaps have `words` words for each
    shard. Nothing waits for the device.
    """

    number: int  # among all shards
    words: int
    own: Array  # the bitmap of the frontier's own vertices, where it is not a queue
    entry: int  # elements of an entry of a list
    value: Array  # of the own vertices, as many as bits in `own`, while a search runs
    counts: Array

    def begin(self, sources: Array, values: Array | None, round_: int) -> None:
        """Begin at the own vertices `sources`, counted from 0, with their `values`."""

    def take(self) -> tuple[Array, Array, Array]:
        """(levels, values, one bit an own vertex), which the shard keeps no longer."""

    def pull(self, frontier: Array, values: Array | None, depth: int, round_: int) -> None:
        """The open vertices look for the frontier, a bitmap of all, which has these `values`, by
        position in the bitmap, if products look at any; the next one is in `own`.
        """

    def pull_rows(
        self, frontier: Array, values: Array | None, rows: int, depth: int, round_: int
    ) -> None:
        """The same for the `rows` long ones that `pull` has left."""

    def convert(self, round_: int) -> None:
        """The frontier in `own` becomes a queue."""

    def mark(self, vertices: int) -> None:
        """The queue of so many is the frontier in `own`."""

    def push_list(self, vertices: int, edges: int, capacity: int) -> Array:
        """What the frontier's edges reach, as a flat array of one length for equal `capacity`."""

    def settle_list(self, came: Array, depth: int, round_: int) -> None:
        """Own vertices in the lists of all shards are found, and become the queue."""

    def push_bits(self, vertices: int, edges: int) -> Array:
        """A bitmap of all vertices: what is visited, and what the frontier reaches."""

    def settle_bits(self, came: Array, depth: int, round_: int) -> None:
        """Own vertices in bitmaps of all vertices, one a shard, or in the own part of their union,
        are found; they are the frontier in `own`.
        """

    def forget(self) -> None:
        """The last search has failed: nothing that it has left is used by the next."""

    def compact(self, capacity: int, round_: int) -> None:
        """What `push_bits` has reached, `capacity` vertices at most, becomes a list for each shard;
        how many each gets is counted.
        """

    def sent(self, sizes: Sequence[int]) -> list[Array]:
        """Those lists, of so many vertices, as flat arrays."""

    def settle_own(self, came: Array | None, depth: int, round_: int) -> None:
        """Own vertices in what all shards have sent to this one are found, and become the queue."""


class Found(NamedTuple):
    """One shard's part of a search, on its device: levels and values of the vertices whose bit is
    set in `visited`, undefined elsewhere. `visited_copy` has the same bits in memory of its own, so
    that the levels and the values may each own a bitmap. Levels alone have neither.

    `num_visited()` is how many they are; it waits for all devices, and raises CommunicationError if
    one of them was lost.
    """

    level: Array
    value: Array | None
    visited: Array
    visited_copy: Array | None
    num_visited: Callable[[], int]
