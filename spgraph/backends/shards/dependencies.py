"""What the shards of a graph do for each level of a source of dependencies: push or pull, and in
which form. All shards come to the same plan, from the counts of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spgraph.containers.storage.arrays import Array

# what a shard counts: the words before its level ranges, which of them is the number of levels, and
# the words of a LevelRange
HEAD, LEVELS_AT, RANGE_WORDS = 8, 2, 3
# costs, in edges of a pull: of an edge of a push, which is a test and an atomic more; of a vertex
# whose sums of all devices are added up; of a synchronisation of all devices, where they write into
# shared workspaces, and where they send lists
PUSH_STEP = 3
SUM_STEP, BARRIER, BARRIER_LISTS = 7, 1 << 20, 1 << 23
# bytes of values that stay in the cache, and edges that a part of a row should have
CACHED, LONG_PART = 1 << 24, 16
# a pull along more than MARKED_EDGES edges a vertex, of which less than one in RARE vertices has a
# value, tests marks of these first
MARKED_EDGES, RARE = 4, 16
# edges of a level, of each shard, up to which one launch does both the pull and what follows; and
# the vertices of the neighbouring level, for each of these edges, beyond which their values are
# read where their owners keep them instead of being sent
SMALL_EDGES, UNREAD = 1 << 14, 8


class Workspace(NamedTuple):
    """Where a shard keeps values of the vertices of all shards, as kernels take it."""

    own: int  # the address of `workspace_words` words
    all: Array  # the addresses of all that the shard writes to, its own too; on the device
    shared: bool  # whether these are the workspaces of all shards
    firsts: Array  # the first vertex of each shard, on the device
    held: Array | None = None  # the array that holds the workspace


class Step(NamedTuple):
    """What is done for one level; the same in all shards."""

    depth: int
    back: int  # 1: backward, sums come along out-edges from the next level; 0: along in-edges
    pushed: bool  # sums are pushed, from the vertices of the neighbouring level
    pulled: bool  # sums are pulled; neither: they are zero
    small: bool  # one launch pulls and computes the values
    marked: bool  # the pull tests marks of the few vertices that have values
    phases: int  # parts that the pull cuts rows into, so that the values it reads stay in the cache
    read: bool  # the pull reads values in the workspaces of their owners
    awaited: bool  # other shards need the values of this level
    published: bool  # the values of this level are sent to them
    sizes: list[int]  # how many vertices of the level each shard owns


class Plan(NamedTuple):
    """What all shards do for the levels of a source."""

    levels: int
    # of each shard and level: how many of its vertices, out-edges and in-edges lie before it
    ranges: np.ndarray
    steps: list[Step]

    @classmethod
    def of(cls, counts: Sequence[np.ndarray], n: int, shared: bool) -> Plan | int:
        """The plan for n vertices, from the counts of all shards; `shared` says that they write
        into each other's workspaces. The number of levels, where the counts are of fewer.
        """
        shards, levels = len(counts), max(int(own[LEVELS_AT]) for own in counts)
        if HEAD + RANGE_WORDS * (levels + 1) > counts[0].size:
            return levels
        ranges = np.empty((shards, levels + 1, RANGE_WORDS), np.int64)
        for own, counted in zip(ranges, counts, strict=True):
            deepest = int(counted[LEVELS_AT])
            words = counted[HEAD : HEAD + RANGE_WORDS * (deepest + 1)]
            own[: deepest + 1] = words.reshape(-1, RANGE_WORDS)
            own[deepest + 1 :] = own[deepest]
        parts = np.diff(ranges, axis=1)
        totals, sizes = parts.sum(axis=0), parts[:, :, 0].T.tolist()
        steps = _steps(totals, sizes, 0, n, shared) + _steps(totals[::-1], sizes, 1, n, shared)
        return cls(levels, ranges, steps)

    @property
    def looks_at_levels(self) -> bool:
        """Whether any step has to know levels of other shards' vertices."""
        return any(step.pushed or step.marked for step in self.steps)


def _steps(
    totals: np.ndarray, sizes: list[list[int]], back: int, n: int, shared: bool
) -> list[Step]:
    """The steps of one direction. `totals` are the vertices, out-edges and in-edges of the levels,
    in the order of the steps. Nothing comes to the first of them; the source's level is no step.
    """
    levels, shards = len(totals), len(sizes[0])
    # along which edges a push goes and a pull comes
    vertices, going, coming = totals[:, 0], totals[:, 1 + back], totals[:, 2 - back]
    more = np.zeros_like(vertices)
    if shards > 1:
        more = SUM_STEP * vertices + shards * (BARRIER if shared else BARRIER_LISTS)
    pushed = [False, *(PUSH_STEP * going[:-1] + more[1:] < coming[1:]).tolist(), False]
    many, edges, end = vertices.tolist(), coming.tolist(), levels - back

    def pulled(i: int) -> bool:
        return 0 < i < end and not pushed[i]

    def small(i: int) -> bool:
        return pulled(i) and edges[i] <= SMALL_EDGES * shards

    def read(i: int) -> bool:
        # an owner must not push to the next level meanwhile
        able = shared and shards > 1 and small(i) and not pushed[i + 1]
        return able and many[i - 1] > UNREAD * edges[i]

    def marked(i: int) -> bool:
        return pulled(i) and edges[i] > MARKED_EDGES * n and RARE * many[i - 1] < n

    def phases(i: int) -> int:
        if edges[i] < n:
            return 1
        return min(-(-8 * n // CACHED), edges[i] // (LONG_PART * many[i]))

    def awaited(i: int) -> bool:
        # numbers of paths that leave float64 are noticed in their lists: these are always sent
        return pulled(i + 1) or not (shared or back)

    def step(i: int) -> Step:
        d = levels - 1 - i if back else i
        how = pulled(i), small(i), marked(i), phases(i), read(i)
        published = awaited(i) and not read(i + 1)
        return Step(d, back, pushed[i], *how, awaited(i), published, sizes[d])

    return [step(i) for i in range(1 - back, end)]
