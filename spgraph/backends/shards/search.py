"""Searches over shards: how much a shard counts in a round, and what it finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from spgraph.containers.storage.arrays import Array

# how many numbers a shard counts in a round, beside one for each shard
COUNTS = 4


class Found(NamedTuple):
    """One shard's part of a search, on its device: levels and values of the vertices whose bit is
    set in `visited`, undefined elsewhere. `visited_copy` has the same bits in memory of its own, so
    that the levels and the values may each own a bitmap. Levels alone have neither.

    `num_visited` is how many they are, or a function that waits for all devices, and raises
    CommunicationError if one of them was lost.
    """

    level: Array
    value: Array | None
    visited: Array
    visited_copy: Array | None
    num_visited: Callable[[], int] | int
