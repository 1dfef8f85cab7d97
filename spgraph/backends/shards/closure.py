"""Closures over shards: what kernels count, and what they find."""

from __future__ import annotations

from typing import Any, NamedTuple

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


class Part(NamedTuple):
    """One shard's values, on its device, identities at vertices whose bit in `bits` is not set; how
    many bits are set, if that is known; how many edges the shard looked at; and whether all buckets
    of all shards have settled.
    """

    values: Array
    bits: Array
    reached: int | None
    relaxations: int
    settled: bool
