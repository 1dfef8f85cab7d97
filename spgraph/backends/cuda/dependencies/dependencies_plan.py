"""How shards go about the levels of a source of dependencies: functions of a few counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# of what a shard counts: words before the rungs, the one among them that says how many levels it
# has, and the words of a rung, as in kernels/dependencies_steps.cuh
HEAD, LEVELS_AT, RUNG = 8, 2, 3
# a step of push in steps of pull: it tests a level, and adds to memory
PUSH_STEP = 3
# what it costs to add up sums of other devices, a vertex, and to meet: through shared rooms, and by
# lists
SUM_STEP, MEETING, MEETING_LISTS = 7, 1 << 20, 1 << 23
# bytes of values that stay in the cache, and edges that a part of a row should have
CACHED, LONG_PART = 1 << 24, 16
# edges a vertex from which marks of those that a pull looks for pay, and how rare these are
MARKED_EDGES, RARE = 4, 16
# edges of a level, of each shard, that one launch pulls along and settles; and vertices beside that
# level, for each of its edges, whose values then stay with their owners
SMALL_EDGES, UNREAD = 1 << 14, 8


class Step(NamedTuple):
    """What is done for one level; the same in all shards."""

    depth: int
    back: int  # 1: backward, sums come along out-edges from the level behind; 0: along in-edges
    pushed: bool  # sums are pushed, from the vertices of the level beside
    pulled: bool  # sums are pulled; neither: nothing comes
    small: bool  # one launch pulls and settles
    marked: bool  # the pull looks for so few vertices that marks of them pay
    phases: int  # parts that the pull cuts rows into, so that what it looks up stays in the cache
    read: bool  # the pull reads values where their owners keep them
    awaited: bool  # other shards look at the values of this level,
    given: bool  # which go to them
    sizes: list[int]  # how many vertices of the level each shard owns


class Plan(NamedTuple):
    """How all shards go about the levels of a source."""

    levels: int
    # of each shard and level: how many of its vertices, out-edges and in-edges lie before
    rungs: np.ndarray
    steps: list[Step]

    @classmethod
    def of(cls, counts: Sequence[np.ndarray], n: int, shared: bool) -> Plan | int:
        """From what all shards have counted of n vertices; `shared` says that they write into each
        other's rooms. If they have counted too few levels: how many there are.
        """
        shards, levels = len(counts), max(int(own[LEVELS_AT]) for own in counts)
        if HEAD + RUNG * (levels + 1) > counts[0].size:
            return levels
        rungs = np.empty((shards, levels + 1, RUNG), np.int64)
        for own, told in zip(rungs, counts, strict=True):
            deepest = int(told[LEVELS_AT])
            own[: deepest + 1] = told[HEAD : HEAD + RUNG * (deepest + 1)].reshape(-1, RUNG)
            own[deepest + 1 :] = own[deepest]
        parts = np.diff(rungs, axis=1)
        totals, sizes = parts.sum(axis=0), parts[:, :, 0].T.tolist()
        steps = _steps(totals, sizes, 0, n, shared) + _steps(totals[::-1], sizes, 1, n, shared)
        return cls(levels, rungs, steps)

    @property
    def looks_at_levels(self) -> bool:
        """Whether any step has to know levels of other shards' vertices."""
        return any(step.pushed or step.marked for step in self.steps)


def _steps(
    totals: np.ndarray, sizes: list[list[int]], back: int, n: int, shared: bool
) -> list[Step]:
    """The steps of one direction. `totals` are vertices, out-edges and in-edges of the levels in
    the order of the steps: to the first nothing comes, and the source's is no step.
    """
    levels, shards = len(totals), len(sizes[0])
    # along which edges a push goes and a pull comes
    vertices, going, coming = totals[:, 0], totals[:, 1 + back], totals[:, 2 - back]
    more = np.zeros_like(vertices)
    if shards > 1:
        more = SUM_STEP * vertices + shards * (MEETING if shared else MEETING_LISTS)
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
        # in lists of paths those that are too many are noticed: they always travel
        return pulled(i + 1) or not (shared or back)

    def step(i: int) -> Step:
        d = levels - 1 - i if back else i
        how = pulled(i), small(i), marked(i), phases(i), read(i)
        given = awaited(i) and not read(i + 1)
        return Step(d, back, pushed[i], *how, awaited(i), given, sizes[d])

    return [step(i) for i in range(1 - back, end)]
