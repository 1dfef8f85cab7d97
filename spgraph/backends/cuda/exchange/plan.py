"""What a loop in one launch on each of several GPUs needs, made once for a graph."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from spgraph.backends.cuda.exchange.buffers import MOST_PEERS, Launching, Plan
from spgraph.backends.cuda.runtime import jit
from spgraph.backends.shards.graph import ShardedGraph

R = TypeVar("R")


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


@functools.lru_cache(maxsize=1024)
def kernel_of(stem: str, text: str, device_id: int, shared: int) -> jit.Kernel:
    """The kernel `stem` of the file of that name, on the current device."""
    kernel = jit.kernel(stem, stem, text, cooperative=True)
    kernel.max_dynamic_shared_size_bytes = shared
    return kernel


def kernels_and_grids(
    graph: ShardedGraph, name: str, text: str, threads: int, shared: int, nothing: tuple[Any, ...]
) -> tuple[list[jit.Kernel], list[int]]:
    """(the kernel `name` of the file of that name, how many blocks of it run) on the device of each
    local shard. It is launched once with the arguments `nothing`: a driver may load a kernel only
    while the device is idle, and a grid that waits for a peer's never is.
    """
    kernels, grids = [], []
    for shard in graph.shards:
        with jit.device(shard.indptr):
            kernels.append(_loaded(name, text, jit.current_device(), threads, shared, nothing))
            grids.append(jit.occupancy(kernels[-1], threads, shared))
    return kernels, grids


@functools.lru_cache(maxsize=1024)
def _loaded(
    name: str, text: str, device_id: int, threads: int, shared: int, nothing: tuple[Any, ...]
) -> jit.Kernel:
    kernel = kernel_of(name, text, device_id, shared)
    kernel((1,), (threads,), nothing, shared_mem=shared)
    return kernel
