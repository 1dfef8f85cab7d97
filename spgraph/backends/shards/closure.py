"""Closures over shards: how much a shard counts in a round, and what it finds."""

from __future__ import annotations

from typing import NamedTuple

from spgraph.containers.storage.arrays import Array

# how many numbers a shard counts in a round, beside one for each shard
COUNTS = 8


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
