"""Brandes' dependencies of a graph in shards: the steps of one shard for one source, between which
the shards exchange levels, sums and values.

Beside the search a source costs, on every device: a fill of 32 bytes a vertex of the whole graph, a
sort of its own vertices by level, one read-back; and in each direction, for every level, one to
three launches and a synchronisation of all devices, two of these after a push. The value of a
vertex is sent to each other device once in each direction at most, and its sum once to its owner
after a push. Two H200s take 8 to 10 ms a source of 10^9 entries through shared workspaces, 8 to 12
by lists through NCCL; where levels are many the host is the limit, with some 100 microseconds for
each, forward and back.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

import numpy as np

from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.backends.shards import Steps
from spgraph.backends.shards.dependencies import HEAD, RANGE_WORDS, Plan, Step, Workspace
from spgraph.backends.shards.graph import GraphRows
from spgraph.containers import Vector
from spgraph.containers.storage.arrays import Array, array_module, words
from spgraph.containers.storage.device_memory import address

THREADS = 1024  # of a block of the cooperative kernel
# as in kernels/dependencies_shard.cu
BACK, COLLECT, PUBLISH, READ = 1, 2, 4, 8
# edges that a thread takes, where there are too few for all threads
EDGES = 4
# levels that are counted at first, and those whose level ranges are read back at once
LEVELS, FEW = 1 << 14, 64
SHALLOW = 255  # levels that fit a byte, neighbour the value that says that there is none


def workspace_words(n: int) -> int:
    """The 64-bit words of a workspace: four rows for n vertices, a word, levels of 32 bits."""
    return 4 * n + 1 + (n + 1) // 2


def dependencies_shard(
    edges: GraphRows,
    offsets: Sequence[int],
    number: int,
    workspace: Workspace,
    level: Vector,
    source: int,
    score: Array,
    report: Array,
) -> Steps[None]:
    """Add to `score` the dependency of `source` on the vertices of one shard. Where numbers of
    paths leave float64, `report`, one uint8, becomes 1 and nothing is added.

    Shard p owns the vertices from offsets[p] to offsets[p + 1]; this one is `number`. `level` are
    the levels that a search has found for its vertices, which it may write to.

    Of the others it also requests ("plan", words): the Plan made of the words of all shards, or the
    number of levels where too few were counted; by then all shards have asked.

    Where workspaces are shared there are no lists: when the generator goes on, everything that
    others wrote to this shard's workspace has to be there.
    """
    shard = _Shard(edges, offsets, number, workspace, level.to_bitmap(), score)
    answer = yield "plan", shard.order_by_level(source, LEVELS)
    if isinstance(answer, int):
        if answer > LEVELS:
            shard.order_by_level(source, answer)
        answer = yield "plan", shard.counts(answer)
    plan: Plan = answer
    shard.follow(plan)
    if plan.looks_at_levels:
        yield from shard.share_levels()
    if not workspace.shared:
        yield from shard.join_orders()
    for step in plan.steps:
        received = None
        if step.pushed:
            shard.push(step)
            received = yield "reduce", shard.pack(step)
        values = shard.settle(step, received, report)
        if step.awaited:
            shard.take_values(step, (yield "gather", values))


class _Shard:
    """The arrays of a shard, and the launches of each step."""

    plan: Plan
    text: str  # the preamble of the kernels
    kernels: dict[str, jit.Kernel]
    ranges: list[list[int]]  # of this shard
    levels: int  # where the levels of all vertices lie
    ids: Array  # the vertices of all shards by level, where workspaces are not shared

    def __init__(
        self,
        edges: GraphRows,
        offsets: Sequence[int],
        number: int,
        workspace: Workspace,
        level: Vector,
        score: Array,
    ) -> None:
        self.xp = xp = array_module(edges.indptr)
        self.edges, self.offsets, self.number, self.workspace = edges, offsets, number, workspace
        self.first, self.n = int(offsets[number]), int(offsets[-1])
        self.own = int(offsets[number + 1]) - self.first
        self.level, self.score = level, score
        self.shards = np.int32(workspace.all.size)  # whose workspaces this one writes to
        assert edges.t_indptr is not None
        self.order = xp.empty(self.own, edges.indices.dtype)
        self.offset = xp.empty(self.own + 1, edges.indptr.dtype)
        same = edges.t_indptr is edges.indptr
        self.t_offset = self.offset if same else xp.empty_like(self.offset)

    # --- before the first level -------------------------------------------------------------------

    def order_by_level(self, source: int, most: int) -> Array:
        """Clear the workspace and sort the shard's vertices by level; what `Plan` reads, of up to
        FEW levels. Where there are more than `most` it says how many, and nothing is sorted.
        """
        xp, edges, level = self.xp, self.edges, self.level
        text = program(*self._types(), level._values.dtype.str)
        kernel = jit.kernel("dependencies_order", "order_shard", text, cooperative=True)
        blocks = jit.occupancy(kernel, THREADS)
        self.words = xp.zeros(HEAD + RANGE_WORDS * (max(most, FEW) + 1), np.int64)
        kernel(
            (blocks,),
            (THREADS,),
            (
                *(self.own, self.first, self.n, source, edges.indptr, edges.t_indptr),
                *(jit.NULL if level._bits is None else level._bits, level._values, most),
                *(self.order, self.offset, self.t_offset, self.words[HEAD:]),
                *(xp.empty(most, np.int64), xp.empty(2 * blocks, np.int64)),
                *(self.workspace.own, self.words),
            ),
        )
        return self.counts(FEW)

    def counts(self, levels: int) -> Array:
        """What `Plan` reads, of so many levels."""
        return self.words[: HEAD + RANGE_WORDS * (levels + 1)]

    def follow(self, plan: Plan) -> None:
        """Prepare the steps of a plan."""
        self.plan, self.ranges = plan, plan.ranges[self.number].tolist()
        self.kind = np.dtype(np.uint8 if plan.levels <= SHALLOW else np.int32)
        self.levels = self.workspace.own + 8 * (4 * self.n + 1)
        self.kernels = {}
        searched = self.level._values.dtype.str
        self.text = program(*self._types(), self.kind.str, searched=searched)

    def _types(self) -> tuple[str, str]:
        return self.edges.indices.dtype.str, self.edges.indptr.dtype.str

    def share_levels(self) -> Steps[None]:
        """Get the levels of all vertices, which pushes test: in lists, or written to workspaces."""
        shared, level = self.workspace.shared, self.level._values
        out = self.xp.empty(0 if shared else self.own, self.kind)
        to = (self.shards, self.workspace.all, 8 * (4 * self.n + 1), jit.NULL if shared else out)
        self._sweep("publish_levels", self.own, self.own, self.first, level, *to)
        sizes = [b - a for a, b in itertools.pairwise(self.offsets)]
        self.whole = yield "gather", None if shared else (out, sizes)
        if not shared:
            self.levels = address(self.whole)

    def join_orders(self) -> Steps[None]:
        """Join the vertices of all shards: level by level, and in each level shard after shard."""
        own, sizes = self.order[: self.ranges[-1][0]], self.plan.ranges[:, -1, 0].tolist()
        every = yield "gather", (own, sizes)
        starts = self.plan.ranges[:, :, 0]
        sizes = np.diff(starts, axis=1)
        self.begins = np.concatenate([[0], np.cumsum(sizes.sum(axis=0))]).tolist()
        targets = np.concatenate([[0], np.cumsum(sizes.T)])[:-1]
        lists = np.concatenate([[0], np.cumsum(starts[:, -1])])[:-1]
        self.ids = self.xp.empty_like(every)
        firsts = self.offsets[:-1]
        tables = [
            self.xp.asarray(np.ascontiguousarray(table, np.int64).ravel())
            for table in (firsts, lists, starts, targets)
        ]
        shape = np.int32(len(firsts)), self.plan.levels
        self._sweep("join_orders", every.size, every.size, every, *shape, *tables, self.ids)

    # --- a level ----------------------------------------------------------------------------------

    def row(self, number: int) -> int:
        """Where a row of the shard's workspace lies."""
        return self.workspace.own + 8 * self.n * number

    def sums(self, step: Step) -> int:
        """The row in which the sums of a level are added up."""
        return self.row((step.depth ^ step.back) & 1)

    def values(self, depth: int, back: int) -> int:
        """The row of the values of a level."""
        return self.row(2 * back + (depth & 1))

    def pull(self, step: Step) -> None:
        """Add up the sums of the shard's vertices of a level along their own edges."""
        d, back, neighbour = step.depth, step.back, step.depth + (1 if step.back else -1)
        x, sums = self.values(neighbour, back), self.sums(step) + 8 * self.first
        if step.marked:
            marks = self.xp.empty(words(self.n), np.uint32)
            self._sweep("mark_level", marks.size, self.n, self.levels, neighbour, marks)
            self._along("pull_marked", d, back, x, sums, marks)
        elif step.phases > 1:
            self._along_phases(step, x, sums)
        else:
            self._along("pull_level", d, back, x, sums)

    def push(self, step: Step) -> None:
        """Add to the sums of all shards' vertices of a level, along the edges of the shard's own
        vertices of the neighbouring level.
        """
        d, back, neighbour = step.depth, step.back, step.depth + (1 if step.back else -1)
        x = self.values(neighbour, back) + 8 * self.first
        self._along("push_level", neighbour, 1 - back, x, self.sums(step), self.levels, d)

    def _along(self, name: str, depth: int, out: int, *arguments: object) -> None:
        """Run a kernel over the out-edges or in-edges of the shard's vertices of a level."""
        first, last, begin, end = self._range(depth, out)
        if begin == end:
            return
        indptr, indices, offset = self._side(out)
        given = first, last, begin, end, indptr, indices, self.order, offset
        jit.resident(self.kernel(name), -(-(end - begin) // EDGES), *given, *arguments)

    def _along_phases(self, step: Step, x: int, sums: int) -> None:
        first, last, begin, end = self._range(step.depth, step.back)
        indptr, indices, offset = self._side(step.back)
        rows, phases = last - first, np.int32(step.phases)
        part = self.xp.empty(rows + 1, offset.dtype)
        self._sweep("cut_rows", rows, rows, offset[first:], begin, phases, part)
        edges, order = (end - begin) // step.phases, self.order[first:]
        given = rows, edges, indptr, indices, order, part, phases, x, sums
        jit.resident(self.kernel("pull_phases"), end - begin, *given)

    def _range(self, depth: int, out: int) -> tuple[int, int, int, int]:
        """The range of the shard's vertices of a level in the order, and that of their edges."""
        a, b, side = self.ranges[depth], self.ranges[depth + 1], 1 if out else 2
        return a[0], b[0], a[side], b[side]

    def _side(self, out: int) -> tuple[Array, Array, Array]:
        """Rows, columns, and running sums of the degrees: of out-edges, or of in-edges."""
        edges = self.edges
        if out:
            return edges.indptr, edges.indices, self.offset
        return edges.t_indptr, edges.t_indices, self.t_offset

    def settle(
        self, step: Step, received: Array | None, report: Array
    ) -> tuple[Array, list[int]] | None:
        """The values of the shard's vertices of a level, from their sums, which a pull adds up
        first where the step has one: written to all workspaces that are shared, or a list. The last
        level writes `report`, too.
        """
        workspace, last = self.workspace, step.back and step.depth == 1
        if step.pulled and not step.small:
            self.pull(step)
        first, end, *edges = self._range(step.depth, step.back)
        how = step.back * BACK + step.published * PUBLISH + step.read * READ
        how += (step.pushed and workspace.shared) * COLLECT
        listed = step.awaited and not workspace.shared
        out = self.xp.empty(end - first) if listed else None
        if end > first or last:
            arguments = (
                *(first, end, self.order, self.first, self.n, step.depth, np.int32(how)),
                *(self.shards, workspace.all, workspace.own, jit.NULL if out is None else out),
                *(self.score, report if last else jit.NULL),
            )
            if step.small:
                many, rows = edges[1] - edges[0], self._side(step.back)[:2]
                threads = max(many, 4 * (end - first))
                self._sweep("small_level", threads, *arguments, many, *rows, workspace.firsts)
            else:
                received = jit.NULL if received is None else received
                self._sweep("settle_shard", end - first, *arguments, received)
        return None if out is None else (out, step.sizes)

    def pack(self, step: Step) -> tuple[Array, list[int]] | None:
        """The shard's sums of the vertices of a level of all shards, as a list."""
        if self.workspace.shared:
            return None
        ids = self.ids[self.begins[step.depth] : self.begins[step.depth + 1]]
        out = self.xp.empty(ids.size)
        self._sweep("pack", ids.size, ids.size, ids, self.sums(step), out)
        return out, step.sizes

    def take_values(self, step: Step, every: Array) -> None:
        """The values of the vertices of a level of all shards, where they came as a list."""
        if self.workspace.shared:
            return
        ids = self.ids[self.begins[step.depth] : self.begins[step.depth + 1]]
        flag = jit.NULL if step.back else self.row(4)
        values = self.values(step.depth, step.back)
        self._sweep("unpack", ids.size, ids.size, ids, every, values, flag)

    def kernel(self, name: str) -> jit.Kernel:
        if name not in self.kernels:
            self.kernels[name] = jit.kernel("dependencies_shard", name, self.text)
        return self.kernels[name]

    def _sweep(self, name: str, threads: int, *arguments: object) -> None:
        jit.sweep(self.kernel(name), threads, *arguments)


@functools.cache
def program(
    ids: str, offsets: str, levels: str, extended: bool = False, searched: str | None = None
) -> str:
    """The preamble of all kernels of dependencies, for the types of I, O and L, and of S, those of
    the levels that a search has found, where a kernel converts them.
    """
    types = {"I": ids, "O": offsets, "L": levels} | ({"S": searched} if searched else {})
    text = preamble.types(**{name: np.dtype(kind) for name, kind in types.items()})
    return text + preamble.constants(EXTENDED=extended)
