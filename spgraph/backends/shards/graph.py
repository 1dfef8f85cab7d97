"""A graph in shards, as the kernels of all loops take it."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from spgraph.containers.storage.arrays import Array

# plans that a graph keeps of each loop: semirings of a user's own may be many
MOST_PLANS = 64


class GraphRows(NamedTuple):
    """The rows that one device owns: of A, and of its transpose (None: loops can only push).
    Columns are ids of all shards' vertices; `ids`, if they are not the user's own, are the user's
    ids of *all* vertices, on this device. Values have one element where all entries of A have the
    same; they are None for loops that look at none.
    """

    indptr: Array
    indices: Array
    t_indptr: Array | None = None
    t_indices: Array | None = None
    ids: Array | None = None
    values: Any = None
    t_values: Any = None


@dataclasses.dataclass(eq=False)
class ShardedGraph:
    """A graph in shards: shard p owns the vertices from offsets[p] to offsets[p + 1]. `shards` are
    those of this process.

    `iso` says that all entries have one value. The rows of the transpose ascend by the user's ids,
    so that the first parent found is the least. `symmetric` says that A is its own transpose, which
    helps to choose directions; that both are one array says it too. Types are the same in all
    shards, and so is what is None. `derived` keeps what loops make once; those in rounds hold
    `lock`, for all of them share the memory of shards.
    """

    offsets: Sequence[int]
    shards: Sequence[GraphRows]
    iso: bool = False
    symmetric: bool = False
    derived: dict[Any, Any] = dataclasses.field(default_factory=dict)
    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)

    @property
    def size(self) -> int:
        """The number of vertices."""
        return int(self.offsets[-1])

    @property
    def sizes(self) -> list[int]:
        """How many vertices each shard owns."""
        return [int(end - begin) for begin, end in itertools.pairwise(self.offsets)]

    @property
    def edges(self) -> int:
        """The number of entries of A in the shards of this process."""
        return sum(int(shard.indices.size) for shard in self.shards)

    def plans(self, loop: str, asked: object) -> dict[Any, Any]:
        """The plans of a loop, by what was asked for; has space for that of `asked`: the oldest is
        forgotten where there are MOST_PLANS. Other threads may forget or add some at any time.
        """
        plans: dict[Any, Any] = self.derived.setdefault(f"plans of {loop}", {})
        if asked not in plans:
            for oldest in list(plans)[: max(0, len(plans) + 1 - MOST_PLANS)]:
                plans.pop(oldest, None)
        return plans
