"""Brandes' dependencies of sources on vertices, over shards: on GPUs by kernels, level by level;
otherwise made of operations.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from spgraph.backends.shards.dependencies import Plan, Steps, Workspace
from spgraph.containers import Vector
from spgraph.containers.storage.arrays import Array, address, array_module, on_device
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.placement import Placement
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange.collectives import tag_graph
from spgraph.distributed.exchange.in_step import ByCommunicator, ByPeers, run
from spgraph.distributed.loops import peers
from spgraph.distributed.loops.search import search
from spgraph.distributed.loops.single_device import single_device_of
from spgraph.operations import assign, ewise_add, ewise_mult, mxv, select, vxm
from spgraph.semirings import (
    BinaryOp,
    Monoid,
    Semiring,
    binary,
    indexunary,
    plus_first,
    plus_second,
)

# numbers of paths up to this one have inverses in float64
MOST = 1e290

R = TypeVar("R")


class Numbers(NamedTuple):
    """How numbers of paths are stored: as they are, or as logarithms where they overflow float64.
    The semirings and operators compute with what is stored.
    """

    forward: Semiring
    backward: Semiring
    zero: float
    one: float
    times: BinaryOp
    over: BinaryOp
    one_more: Callable[[Array], Array]  # 1 + d, for an array d, in stored form
    plain: Callable[[Array], Array]  # the numbers themselves


@functools.cache
def plain_numbers() -> Numbers:
    """Numbers as they are."""
    return Numbers(
        forward=plus_first,
        backward=plus_second,
        zero=0.0,
        one=1.0,
        times=binary.times,
        over=binary.truediv,
        one_more=lambda d: d + 1.0,
        plain=np.positive,  # a copy
    )


@functools.cache
def logarithms() -> Numbers:
    """Logarithms: a sum of numbers is log(exp(x) + exp(y))."""
    add = BinaryOp.from_expressions(
        "log_plus",
        python="x if y == -math.inf else max(x, y) + math.log1p(math.exp(-abs(x - y)))",
        cuda="y == -INFINITY ? x : fmax(x, y) + log1p(exp(-fabs(x - y)))",
    )
    plus = Monoid(add, -np.inf, None)
    return Numbers(
        forward=Semiring(plus, binary.first),
        backward=Semiring(plus, binary.second),
        zero=-np.inf,
        one=0.0,
        times=binary.plus,
        over=binary.minus,
        one_more=lambda d: np.logaddexp(0.0, d),
        plain=np.exp,
    )


def dependencies(
    A: DistributedMatrix,
    T: DistributedMatrix | None,
    sources: np.ndarray,
    level: DistributedVector | None,
) -> DistributedVector:
    """As `dependencies` of a backend: the sum for all `sources`; or with a `level`, that of the
    only vertex of level 0, along the edges of A.

    On GPUs kernels compute it, on all shards in step or on a single GPU where that is faster.
    Without kernels (on the CPU), with a `level` (betweenness of weighted graphs), and for sources
    whose numbers of paths overflow float64 it is made of operations, which takes ten times as long.
    """
    tag_graph(A)
    placement, n = A.device, A.nrows
    if one := single_device_of(A):
        whole_level = None if level is None else one.gather(level)
        return one.scatter(
            placement.backend(0).dependencies(one.whole, one.whole.T, sources, whole_level)
        )
    score = placement.filled(0.0, size=n, dtype=np.float64)
    if level is None and placement.has("dependencies_shard"):
        sources = in_shards(A, T, sources, [shard._values for shard in score.shards])
    for source in sources.tolist():
        adjacent = level is None
        levels = _levels_from(A, T, source) if level is None else level
        found = _of_source(A, levels, adjacent, plain_numbers())
        if found is None:
            found = _of_source(A, levels, adjacent, logarithms())
        assert found is not None  # logarithms do not overflow
        assign(score, found, accum=binary.plus)
    return score


def _levels_from(
    A: DistributedMatrix, T: DistributedMatrix | None, source: int
) -> DistributedVector:
    """The level of each vertex in a search from `source`."""
    start = A.device.unit(source, True, size=A.nrows, dtype=np.bool_)
    return search(A, T, start, None, True, "auto", A.nrows, False)[0]


# --- shards in step -------------------------------------------------------------------------------


def in_shards(
    A: DistributedMatrix, T: DistributedMatrix | None, sources: np.ndarray, scores: Sequence[Array]
) -> np.ndarray:
    """Add the dependencies to `scores`, arrays of the local shards. Returned are the sources whose
    numbers of paths overflow float64, for which nothing is added.

    A source takes a search, one copy to the host, and for each level in each direction one
    exchange, two where values are pushed along edges. GPUs that write into each other's memory only
    synchronise for that: kernels write values into the workspaces of all GPUs, of 36 bytes a vertex
    of the whole graph, which are kept with A. Otherwise lists of values go through the
    communicator.
    """
    placement, n = A.device, A.nrows
    graph = peers.sharded_graph(A, T)
    inside = placement.partition(n).to_internal(sources)
    reports = _on_each(placement, lambda k, xp: xp.zeros(max(1, sources.size), np.uint8))
    memory = placement.peers
    exchange = ByCommunicator(placement.communicator) if memory is None else ByPeers(memory)
    with contextlib.nullcontext() if memory is None else memory.lock:
        workspaces = _workspaces(A, graph.offsets)
        for j, (source, place) in enumerate(zip(sources.tolist(), inside.tolist(), strict=True)):
            level = _levels_from(A, T, source)
            if memory is not None:  # the values of the source before have been read
                memory.barrier()
            steps: list[Steps] = [
                placement.kernels.dependencies_shard(
                    *(edges, graph.offsets, p, workspaces[k], level.unchecked[k], place, scores[k]),
                    reports[k][j : j + 1],
                )
                for k, (p, edges) in enumerate(zip(placement.local, graph.shards, strict=True))
            ]
            _run(placement, n, steps, exchange)
        lost = placement.communicator.fetch(reports)[0][: sources.size]
        if sources.size:
            _ = level.shards  # raises if a device was lost, in this search or an earlier one
    return sources[lost > 0]


def _on_each(placement: Placement, make: Callable[[int, ModuleType], R]) -> list[R]:
    """make(k, NumPy or CuPy) for each local shard k, on its device."""
    made = []
    for k, device in enumerate(placement.devices):
        with on_device(device) as xp:
            made.append(make(k, xp))
    return made


def _workspaces(A: DistributedMatrix, offsets: Sequence[int]) -> list[Workspace]:
    """The workspaces of the local shards; those that other devices write to are kept with A."""
    placement, words = A.device, A.device.kernels.workspace_words(A.nrows)
    shared = placement.peers is not None
    if placement.peers is not None:
        if "dependencies" not in A._derived:
            A._derived["dependencies"] = placement.kernels.PeerBuffers(placement.peers.devices)
        places = A._derived["dependencies"].reserve(words, [8 * words] * placement.num_shards)

    def workspace(k: int, xp: ModuleType) -> Workspace:
        firsts = xp.asarray(offsets, np.int64)
        if shared:
            return Workspace(places[k], xp.asarray(places, np.int64), True, firsts)
        held = xp.empty(words)
        return Workspace(address(held), xp.full(1, address(held), np.int64), False, firsts, held)

    return _on_each(placement, workspace)


def _run(
    placement: Placement, n: int, steps: Sequence[Steps], exchange: ByCommunicator | ByPeers
) -> None:
    """Run the steps of all local shards of a graph with n vertices."""

    def answers(request: str, data: list[Any]) -> Sequence[Any]:
        if request != "plan":
            return getattr(exchange, request)(data)
        plan = Plan.of(_of_all(placement, data), n, placement.peers is not None)
        return [plan] * len(data)

    run(steps, placement.devices, answers)


def _of_all(placement: Placement, parts: list[Array]) -> list[np.ndarray]:
    """The counts of all shards, on the host; `parts` are those of the local shards."""
    comm = placement.communicator
    if comm.processes == 1:
        return comm.fetch(parts)
    gathered = comm.all_gather(parts, sizes=[parts[0].size] * comm.num_shards)
    return list(comm.fetch(gathered)[0].reshape(comm.num_shards, -1))


# --- out of operations ----------------------------------------------------------------------------


def _of_source(
    A: DistributedMatrix, level: DistributedVector, adjacent: bool, numbers: Numbers
) -> Vector | None:
    """The dependencies of one source; None if its numbers of paths overflow `numbers`. `adjacent`
    says that only A's edges to the next level are on shortest paths; else all edges of A are.
    """
    n, device = A.nrows, A.device
    deepest = int(level._value_range()[1])
    levels = [select(level, indexunary.valueeq, depth) for depth in range(deepest + 1)]
    paths = [_constant(levels[0], numbers.one)]
    total = paths[0]
    for at in levels[1:]:
        # p<level> = p plus.first A
        came = vxm(paths[-1], A, numbers.forward, mask=at.S if adjacent else None)
        if not adjacent:
            total = ewise_add(total, came, numbers.forward.monoid)
            came = ewise_mult(total, at, binary.first)
        paths.append(came)
    if numbers.zero == 0.0 and not max(p._value_range()[1] for p in paths) < MOST:
        return None
    score = Vector.empty(n, np.float64, device=device)
    share = Vector.empty(n, np.float64, device=device)
    for p in paths[:0:-1]:
        # d<level> = p * (A plus.second share); share = (1 + d) / p
        carried = ewise_mult(mxv(A, share, numbers.backward, mask=p.S), p, numbers.times)
        d = ewise_add(_constant(p, numbers.zero), carried, binary.second)
        assign(score, d._with_values(numbers.plain), mask=d.S)
        near = ewise_mult(d._with_values(numbers.one_more), p, numbers.over)
        share = near if adjacent else ewise_add(share, near, binary.second)
    return score


def _constant(v: Vector, value: float) -> Vector:
    """`value` at the entries of v."""
    return v._with_values(lambda x: array_module(x).full(x.size, value))
