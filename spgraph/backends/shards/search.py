"""Searches over shards: what kernels count, and what they find."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from spgraph.containers.storage.arrays import Array

# what a shard counts in a round, in this order: the vertices that it has found, their out-edges,
# how many of them have in-edges, and long rows that `pull` has left to `pull_rows`; and from SENT
# on, for each shard, how many of its vertices `compact` sends it
VERTICES, EDGES, COVERED, WAITING, SENT = range(5)


def counts_of(shards: int) -> int:
    """How many numbers a shard counts."""
    return SENT + shards


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
