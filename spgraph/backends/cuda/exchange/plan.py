"""What a loop in one launch on each of several GPUs needs, made once for a graph."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from spgraph.backends.cuda.exchange.buffers import MOST_PEERS, Launching, Plan
from spgraph.backends.cuda.runtime import jit
from spgraph.backends.shards.graph import ShardedGraph
from spgraph.containers.storage.arrays import Array, array_module
from spgraph.containers.storage.device_memory import address, places

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


def check(loop: str, graph: ShardedGraph, buffers: Launching, ids: int) -> list[int]:
    """The sizes of the shards. Raises where the loop cannot run: ids of columns go up to `ids`."""
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
    return graph.sizes


def check_counts(loop: str, vertices: int, edges: int, of: str = "") -> None:
    """ValueError where a queue cannot count so many vertices and edges, those `of` a shard."""
    if vertices.bit_length() + edges.bit_length() > 64:
        raise ValueError(
            f"{loop}: expected at most 64 bits for a vertex and an edge{of}, "
            f"got {vertices} vertices, {edges} edges"
        )


def places_of(sizes: Mapping[str, int]) -> dict[str, int]:
    """Where parts of so many bytes lie in a shard's memory, and its `end`."""
    return dict(zip((*sizes, "end"), places(*sizes.values()), strict=True))


def block(fields: Mapping[str, Any], xp: ModuleType) -> Array:
    """What the host tells a kernel once for a graph: a block of 8-byte fields in the device's
    memory. `fields` has the names of the kernel's struct and their order. One is an integer, an
    array, which stands for its address, None, a null pointer, or a list of these.
    """
    return xp.asarray(np.array([n for value in fields.values() for n in numbers(value)], np.int64))


def numbers(value: Any) -> list[int]:
    """The numbers of one field."""
    if isinstance(value, list | tuple):
        return [number for each in value for number in numbers(each)]
    if isinstance(value, int | np.integer | np.bool_):
        return [int(value)]
    return [address(value)]


@functools.lru_cache(maxsize=1024)
def kernel_of(stem: str, text: str, device_id: int, shared: int) -> jit.Kernel:
    """The kernel `stem` of the file of that name, on the current device, `device_id`: each device
    has its own, which the cache must not confuse.
    """
    kernel = jit.kernel(stem, stem, text, cooperative=True)
    jit.enter_context()
    kernel.max_dynamic_shared_size_bytes = shared
    return kernel


def peer_plan(
    graph: ShardedGraph,
    buffers: Launching,
    program: tuple[str, str, int, int],
    key: object,
    parts: Sequence[Mapping[str, int]],
    fields: Callable[[int, int, dict[str, Any]], Mapping[str, Any]],
) -> Plan:
    """The plan of a program: the name of its kernel and file, its preamble, the threads and bytes
    of shared memory of a block. The `parts` of the shards' memory are from `places_of`; programs of
    one `key` leave it to each other. The kernel of local shard k, number p of all, is given
    fields(k, p, known): the addresses of its parts, the `memory` of all shards, the `edges` of all,
    the `blocks` of the smallest grid. Processes plan together: none begins before all compiled.
    """
    kernels, grids, given = [], [], []
    for shard in graph.shards:
        with jit.device(shard.indptr):
            kernels.append(_loaded(*program, jit.current_device()))
            grids.append(jit.occupancy(kernels[-1], *program[2:]))
    of_all = buffers.gather(np.array([graph.edges, min(grids)], np.int64)).reshape(-1, 2)
    needed = [part["end"] for part in parts]
    memory = buffers.reserve(key, needed)
    totals: dict[str, Any] = {"edges": int(of_all[:, 0].sum()), "blocks": int(of_all[:, 1].min())}
    totals |= {"memory": memory}
    for k, (p, shard) in enumerate(zip(buffers.local, graph.shards, strict=True)):
        with jit.device(shard.indptr):
            places = {name: memory[p] + place for name, place in parts[p].items()}
            given.append(block(fields(k, p, places | totals), array_module(shard.indptr)))
    return Plan(key, needed, memory, kernels, grids, *program[2:], given)


@functools.lru_cache(maxsize=1024)
def _loaded(name: str, text: str, threads: int, shared: int, device_id: int) -> jit.Kernel:
    """The kernel, launched once with nothing but zeros: a driver may load a kernel only while the
    device is idle, and a grid that waits for a peer's never is.
    """
    kernel = kernel_of(name, text, device_id, shared)
    kernel((1,), (threads,), (np.int64(0),) * 32, shared_mem=shared)
    return kernel
