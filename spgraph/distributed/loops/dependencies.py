"""Brandes' dependencies of sources on vertices, over shards: on GPUs by kernels, level by level;
otherwise made of operations.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from types import ModuleType

import numpy as np

from spgraph.backends.loops import LevelSearch
from spgraph.backends.shards.buffers import forgotten_on_failure
from spgraph.backends.shards.dependencies import Plan, Workspace
from spgraph.containers.storage.arrays import Array
from spgraph.containers.storage.device_memory import address
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.placement import Placement
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange.collectives import tag_graph
from spgraph.distributed.exchange.lockstep import ByCommunicator, ByPeers, run
from spgraph.distributed.loops.search import search
from spgraph.distributed.loops.sharded_graph import sharded_graph
from spgraph.distributed.loops.single_device import single_device_of
from spgraph.iterations.path_dependencies import composed_dependencies
from spgraph.operations import assign
from spgraph.semirings import binary


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
        return one.run("dependencies", T, sources, level)
    score = placement.filled(0.0, size=n, dtype=np.float64)
    if level is None and placement.has("dependencies_shard"):
        sources = in_shards(A, T, sources, [shard._values for shard in score.shards])
    if sources.size:
        assign(score, composed_dependencies(A, T, sources, level), accum=binary.plus)
    return score


def _levels_from(
    A: DistributedMatrix, T: DistributedMatrix | None, source: int
) -> DistributedVector:
    """The level of each vertex in a search from `source`."""
    start = A.device.unit(source, True, size=A.nrows, dtype=np.bool_)
    return search(A, T, start, LevelSearch(A.nrows))[0]


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
    graph = sharded_graph(A, T)
    inside = placement.partition(n).to_internal(sources)
    comm, many = placement.communicator, max(1, sources.size)
    reports = comm.on_each(lambda xp: xp.zeros(many, np.uint8))
    memory = placement.peers
    exchange = ByCommunicator(comm) if memory is None else ByPeers(memory)

    def plan(counts: list[Array]) -> list[Plan | int]:
        return [Plan.of(_of_all(placement, counts), n, memory is not None)] * len(counts)

    with contextlib.ExitStack() as held:
        if memory is not None:
            held.enter_context(memory.lock)
        workspaces = _workspaces(A, graph.offsets)
        if memory is not None:
            held.enter_context(forgotten_on_failure(memory))
        for j, (source, place) in enumerate(zip(sources.tolist(), inside.tolist(), strict=True)):
            level = _levels_from(A, T, source)
            if memory is not None:  # the values of the source before have been read
                memory.barrier()
            steps = [
                placement.kernels.dependencies_shard(
                    *(edges, graph.offsets, p, workspaces[k], level.unchecked[k], place, scores[k]),
                    reports[k][j : j + 1],
                )
                for k, (p, edges) in enumerate(zip(placement.local, graph.shards, strict=True))
            ]
            run(steps, placement.devices, exchange, plan=plan)
        lost = comm.fetch(reports)[0][: sources.size]
        if memory is not None:
            memory.check()
        if sources.size:
            _ = level.shards  # raises if a device was lost, in this search or an earlier one
    return sources[lost > 0]


def _workspaces(A: DistributedMatrix, offsets: Sequence[int]) -> list[Workspace]:
    """The workspaces of the local shards; those that other devices write to are kept with A."""
    placement, words = A.device, A.device.kernels.workspace_words(A.nrows)
    shared = placement.peers is not None
    if placement.peers is not None:
        if "dependencies" not in A._derived:
            A._derived["dependencies"] = placement.peers.another()
        places = A._derived["dependencies"].reserve(words, [8 * words] * placement.num_shards)

    def workspace(xp: ModuleType, p: int) -> Workspace:
        firsts = xp.asarray(offsets, np.int64)
        if shared:
            return Workspace(places[p], xp.asarray(places, np.int64), True, firsts)
        held = xp.empty(words)
        return Workspace(address(held), xp.full(1, address(held), np.int64), False, firsts, held)

    return placement.communicator.on_each(workspace, placement.local)


def _of_all(placement: Placement, parts: list[Array]) -> list[np.ndarray]:
    """The counts of all shards, on the host; `parts` are those of the local shards."""
    comm = placement.communicator
    if comm.processes == 1:
        return comm.fetch(parts)
    gathered = comm.all_gather(parts, sizes=[parts[0].size] * comm.num_shards)
    return list(comm.fetch(gathered)[0].reshape(comm.num_shards, -1))
