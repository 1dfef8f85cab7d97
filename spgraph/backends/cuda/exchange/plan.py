"""What a loop in one launch on each of several GPUs needs, made once for a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from spgraph.backends.cuda.exchange.buffers import MOST_PEERS, Launching
from spgraph.backends.cuda.runtime import jit
from spgraph.backends.shards.graph import ShardedGraph
from spgraph.containers.storage.arrays import Array

R = TypeVar("R")


class Plan(NamedTuple):
    """What every launch of a loop over a graph with the same buffers needs."""

    layout: object
    sizes: list[int]  # bytes of each device's buffer
    memory: list[int]  # their addresses; what follows is of the local shards
    kernels: list[jit.Kernel]
    grids: list[int]
    threads: int  # of a block
    shared: int
    given: list[Array]  # what the kernel calls Given


def planned(
    loop: str,
    graph: ShardedGraph,
    buffers: Launching,
    asked: R,
    new: Callable[[ShardedGraph, Launching, R], Plan],
) -> Plan:
    """The plan of a loop for what is asked; `new` makes it, with all that has to be compiled,
    loaded or allocated for it.
    """
    plans = graph.plans(loop, asked)
    plan = plans.get(asked)
    if plan is None or buffers.reserve(plan.layout, plan.sizes) is not plan.memory:
        plan = plans[asked] = new(graph, buffers, asked)
    return plan


def check(loop: str, graph: ShardedGraph, buffers: Launching, ids: int) -> None:
    """Raise where the loop cannot run: ids of columns go up to `ids`."""
    peers, name = len(graph.offsets) - 1, f"{loop}: exchange='peer'"
    if not 1 <= peers <= MOST_PEERS:
        raise ValueError(f"{name}: expected 1 to {MOST_PEERS} shards, got {peers}")
    if len(buffers.devices) != peers:
        raise ValueError(
            f"{name}: expected a device for each of {peers} shards, "
            f"got {len(buffers.devices)} devices"
        )
    if ids > np.iinfo(graph.shards[0].indices.dtype).max:
        raise ValueError(f"{name}: expected column ids of 64 bits for {graph.size} vertices")
    for shard in graph.shards:
        check_counts(loop, shard.indptr.size - 1, shard.indices.size, " of a shard")


def check_counts(loop: str, vertices: int, edges: int, of: str = "") -> None:
    """ValueError where a queue cannot count so many vertices and edges, those `of` a shard."""
    if vertices.bit_length() + edges.bit_length() > 64:
        raise ValueError(
            f"{loop}: expected at most 64 bits for a vertex and an edge{of}, "
            f"got {vertices} vertices, {edges} edges"
        )


def places_of(sizes: Mapping[str, int]) -> dict[str, int]:
    """Where parts of so many bytes lie in a shard's memory, and its `end`."""
    ends = np.cumsum([-(-size // 256) * 256 for size in sizes.values()]).tolist()
    return dict(zip((*sizes, "end"), (0, *ends), strict=True))


def on_each_device(
    graph: ShardedGraph, load: Callable[[int], jit.Kernel], threads: int, shared: int
) -> tuple[list[jit.Kernel], list[int]]:
    """(the kernel that `load` gives for a device, how many blocks run there) for each local
    shard.
    """
    kernels, grids = [], []
    for shard in graph.shards:
        with jit.device(shard.indptr):
            kernels.append(load(jit.current_device()))
            grids.append(jit.occupancy(kernels[-1], threads, shared))
    return kernels, grids


def launch(
    plan: Plan, buffers: Launching, arguments: Sequence[tuple[object, ...]], first: int = 0
) -> None:
    """Launch the kernel of every local shard once, that of shard `first` before the others."""
    buffers.launch(plan.kernels, plan.grids, plan.threads, arguments, plan.shared, first)
