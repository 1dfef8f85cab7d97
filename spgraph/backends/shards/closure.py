"""Closures over shards: what kernels count, and what they find."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from spgraph.containers.storage.arrays import Array

# What a launch does beside relaxing what is queued, as bits: it stores the start's values; queues
# its vertices; queues the vertices up to the next limit, after a pull where the push-pull threshold
# ends. UNDERCUT says that a vertex became better than the floor while there was a threshold.
RELAX, BEGIN, SOURCES, BUCKETS, UNDERCUT = 0, 1, 2, 4, 8
# What a shard counts, in this order: queued vertices and their edges; pairs sent that are before
# the limit; edges read; vertices of a new bucket; flags; the best value that waits, its low and its
# high bits; the pairs for each shard.
QUEUED, EDGES, NEAR, LOOKED, FOUND, FLAGS, BEST, BEST_HIGH, SENT = range(9)
# Flags: as UNDERCUT, in this shard; a barrier between the blocks timed out: all counts are void.
# And if all shards say so: where no vertex waits, this bucket was the last; where none waits, the
# threshold ends before the next bucket; where one waits, the bucket will never settle.
WAS_UNDERCUT, LOST, LAST, ENDS_THRESHOLD, UNSETTLED = 1, 2, 4, 8, 16


def counts_of(shards: int) -> int:
    """How many counts a shard publishes after a launch."""
    return SENT + shards


class Totals(NamedTuple):
    """Of the round before, over all shards: vertices of a new bucket, edges of the queues, edges
    that were read, and the best value that waits.
    """

    found: int
    edges: int
    looked: int
    best: Any  # a NumPy scalar of the semiring's type


class ClosureShard(Protocol):
    """What a closure in rounds asks of the kernels of one shard, `ClosureShard` of a backend. Its
    counts, as many as `counts_of` says, reach the host's memory each above 16 bits of the round's
    number, and `counts`. Nothing waits for the device.
    """

    number: int  # among all shards
    pair: int  # the 32-bit words of a pair of a vertex and a value
    x: Array  # the values of the vertices of all shards
    counts: Array

    def begin(self, sources: Array, values: Array, delta: float | int | None) -> None:
        """Begin a closure with `values` at the own vertices `sources`, counted from 0; `delta` is
        the width of its buckets.
        """

    def launch(self, action: int, totals: Totals, received: Array | None, round_: int) -> None:
        """Run one round as far as the shard can alone. `received` are the pairs that others have
        sent, or None. From `totals` all shards decide alike about limits and thresholds.
        """

    def sent(self, numbers: list[int], offsets: Sequence[int]) -> list[Array]:
        """The pairs for each shard, of which there are `numbers`."""

    @property
    def part(self) -> Array:
        """The values of the own vertices."""

    def take(self) -> tuple[Array, Array]:
        """(the values of the own vertices, a bit for each that has an entry), which the shard keeps
        no longer.
        """


class Part(NamedTuple):
    """One shard's values, on its device, identities at vertices whose bit in `bits` is not set; how
    many bits are set, and how many edges the shard looked at.
    """

    values: Array
    bits: Array
    reached: int
    relaxations: int


class Closed(NamedTuple):
    """The parts of all shards, and the number of barriers."""

    parts: list[Part]
    rounds: int

    @property
    def relaxations(self) -> int:
        """How many edges all shards looked at."""
        return sum(part.relaxations for part in self.parts)
