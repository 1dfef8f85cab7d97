"""Searches over shards: what is asked for, how much a shard counts in a round, what it finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from spgraph.containers.storage.arrays import Array
from spgraph.semirings import TypedSemiring

# how many numbers a shard counts in a round, beside one for each shard
COUNTS = 4


class SearchRequest(NamedTuple):
    """A breadth-first search from `sources`, which the local shards own; each has a value for them,
    or `values` is None, and levels alone are sought.

    The value of another vertex is the sum over the edges that reach it from the level before, in
    `semiring`; without one, the least user's id among those neighbours.

    A shard owns the vertices 0, 1, ..., as many as it has. Its sources are an array; or, where
    there is one in all and kernels run in one launch, a number for the shard that owns it and None
    for the others. `rows` are what pulls look at first, as `leading_and_nonempty` gives it for each
    local shard, None where shards have no transposes, which can only push; `findable` is how many
    rows of all shards have entries. `trace` asks for a row for each level.
    """

    rows: Sequence[tuple[Array, Array] | None]
    findable: int
    sources: Sequence[Array | int | None]
    values: Sequence[Array | np.generic | int | None] | None
    semiring: TypedSemiring | None
    direction: str
    max_depth: int
    trace: bool = False


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
