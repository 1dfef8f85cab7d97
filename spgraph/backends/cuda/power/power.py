"""The power iteration: on small graphs one cooperative launch for all of it, on large ones launches
for every step.

A cooperative grid has one block a multiprocessor, which makes a barrier cheap; the matrix is
divided into tasks of warps (warp_tasks.py). Large products are faster with tiles (tiles.py: 1.6 to
2.0 ps an entry of a Kronecker graph on an H200). Launches cost 50 us of the host's time a step.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from spgraph.backends.cuda.power.power_stepwise import (
    Iterate,
    is_iso,
    program,
    program_of,
    stepwise,
)
from spgraph.backends.cuda.power.warp_tasks import WarpTasks, warp_tasks
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.backends.loops import NORMS, PowerIteration
from spgraph.backends.shards import Steps
from spgraph.backends.shards.power import SUMS, change
from spgraph.containers import Vector
from spgraph.containers.storage.arrays import INT32_MAX, Array, array_module
from spgraph.containers.storage.device_memory import address, sent, to_host

__all__ = ["power", "power_shard", "program"]

# as in kernels/power.cu: threads of a block, areas of sums, 64-bit words of its GridBarrier and of
# its report; bytes to which the values of hubs are aligned
THREADS, AREAS, BARRIER, REPORT, ALIGN = 1024, 3, 2, 2, 16
# 64-bit words of its Hop, and the places of addresses in it
HOP, ARRIVED, PARTIAL, SCALE, GATHERED = 16, 7, 8, 9, 11
# what may stand for all vertices: a scale of 1, what x begins with, what restarts
NUMBERS = 3
# the most hubs; bytes of the widest value that is gathered; of other shared memory of a block
MOST_HUBS, WIDEST, OTHER = 24 << 10, 8, 4096
# the entries of all hops from which a step pays for launches of its own
LARGE = 1 << 23


def power(x: Vector | float, iteration: PowerIteration) -> tuple[Vector, Any]:
    """(the last iterate, (iterations, last change) or a function that waits for both) of an
    `iteration` from x, a full Vector of float64 or what all vertices begin with.

    Without a `tol` nothing is read back, and the second result is None. Sums are taken in an order
    that depends on the graph and the kind of device alone.

    Matrices of fewer than LARGE entries: one launch and one copy to the device; an iterate of NaN
    says that a barrier of the kernel timed out. Larger ones: in every step 1 to 5 launches a hop, 1
    more for each later batch of rows in tiles, 1 between hops that have a scale, 1 more, another
    with a norm, and with a `tol` a change that is read back while the next product runs.
    """
    matrices = iteration.matrices
    # one program has one type of values
    alike = len(matrices) == 1 or len({(M.dtype, is_iso(M, iteration)) for M in matrices}) == 1
    small = sum(M.nvals for M in matrices) < LARGE and matrices[0].nrows <= INT32_MAX
    with jit.device(matrices[0]._indptr):
        if small and alike:
            return _cooperative(x, iteration)
        return _stepwise(x, iteration)


def _stepwise(x: Vector | float, iteration: PowerIteration) -> Iterate:
    steps, answer = stepwise(x, iteration, alone=True), None
    while True:
        try:
            question, given = steps.send(answer)
        except StopIteration as end:
            return end.value
        if question == "share":
            answer = given  # a single shard
        elif question == "report":
            reading = to_host(given)
        else:
            answer = change(reading())


def power_shard(x: Vector, iteration: PowerIteration) -> Steps[Iterate]:
    """`power` for the vertices of one shard, as a generator that yields what it needs of the
    others.

    It yields ("share", (its part of a vector, its part of the three sums over vertices: change,
    dangling mass, norm)), to be sent (the whole vector, the sums of all shards in their order),
    with None for None; and ("change", the sums of all shards), to be sent the total change. It
    returns what `power` does. Its driver makes the shard's device the current one.
    """
    return stepwise(x, iteration)


# --- one cooperative launch -----------------------------------------------------------------------


def _cooperative(x: Vector | float, iteration: PowerIteration) -> tuple[Vector, Any]:
    matrices, tol = iteration.matrices, iteration.tol
    xp, n = array_module(matrices[0]._indptr), matrices[0].nrows
    plan = _planned(iteration)
    value, workspace = xp.empty(n), xp.empty(plan.end)
    first = address(workspace)
    header = plan.header.copy()
    header[plan.inside] += first
    numbers = first + 8 * (len(header) - NUMBERS)

    def spread(v: Vector | float, number: int) -> tuple[int, int]:
        """(mask, address): vertex i has number i & mask there."""
        if isinstance(v, Vector):
            return -1, address(v._values)
        header[number - NUMBERS :].view(np.float64)[0] = v
        return 0, numbers + 8 * number

    for k, scale in enumerate(iteration.scales):
        header[HOP * k + SCALE : HOP * k + SCALE + 2] = spread(1.0 if scale is None else scale, 0)
    begin, restart = spread(x, 1), spread(iteration.restart, 2)
    sent(header.view(np.float64), xp, workspace)
    report = numbers - 8 * REPORT
    arguments = (
        *(first, np.int32(len(matrices)), np.int32(NORMS[iteration.norm]), n, value, *begin),
        *(first + 8 * plan.z, *map(np.float64, iteration.constants), *restart),
        *(np.float64(-1.0 if tol is None else tol), iteration.max_iter),
        *(first + 8 * plan.sums, report - 8 * BARRIER, report),
    )
    plan.kernel(plan.grid, (THREADS,), arguments, shared_mem=plan.shared)
    if tol is None:
        return Vector._of(n, value), None
    end = len(header) - NUMBERS
    return Vector._of(n, value), to_host(workspace[end - REPORT : end])


class Plan(NamedTuple):
    """What the iterations of hops by one program have in common."""

    kernel: jit.Kernel
    grid: tuple[int]
    shared: int  # bytes of dynamic shared memory
    # what the workspace begins with: the struct Hop of each hop, the struct GridBarrier and the
    # report, zeros, and NUMBERS that may stand for all vertices
    header: np.ndarray
    inside: list[int]  # which of these words are addresses in the workspace, from its beginning on
    # of the workspace, in numbers of 8 bytes
    sums: int
    z: int
    end: int
    tasks: tuple[WarpTasks, ...]  # what the header points to


def _planned(iteration: PowerIteration) -> Plan:
    """The plan of such iterations; that of a single hop is kept with its Matrix."""
    if len(iteration.matrices) > 1:
        return _new_plan(iteration)
    (M,) = iteration.matrices
    kept = M._derived.get("power")
    if kept is None:
        kept = M._derived["power"] = {}
    key = iteration.semiring, iteration.gathered, bool(iteration.norm)
    found: Plan | None = kept.get(key)
    if found is None:
        found = kept[key] = _new_plan(iteration)
    return found


def _new_plan(iteration: PowerIteration) -> Plan:
    matrices, each_bytes = iteration.matrices, iteration.gathered.itemsize
    n, device = matrices[0].nrows, jit.current_device()
    grid = jit.multiprocessors(device)
    most = min(MOST_HUBS, (jit.shared_memory(device) - OTHER) // WIDEST)
    warps = grid * THREADS // 32
    tasks = tuple(warp_tasks(M, is_iso(M, iteration), most, warps) for M in matrices)
    # what looks for hubs takes longer also where there are none
    hubs = preamble.constants(HUBS=any(each.hubs for each in tasks))
    text = program_of(matrices[0], iteration) + hubs
    kernel = jit.kernel("power", "power", text, cooperative=True)
    # where the hubs begin in what a hop gathers, and how long that is
    starts = [_aligned(n, each_bytes), *(_aligned(each.hubs, each_bytes) for each in tasks)]
    sizes = [HOP * len(tasks) + BARRIER + REPORT + NUMBERS]
    sizes += [AREAS * SUMS * grid, n if iteration.norm else 0]
    for k, each in enumerate(tasks):
        values = (2 if k == 0 else 1) * (starts[0] + starts[1 + k])
        sizes += [each.long, -(-values * each_bytes // 8), -(-len(each.splits) // 2)]
    sums, z, *of_hops, end = itertools.accumulate(_aligned(size, 8) for size in sizes)
    header, inside = np.zeros(sizes[0], np.int64), []
    for k, each in enumerate(tasks):
        partial, gathered, arrived = (8 * at for at in of_hops[3 * k : 3 * k + 3])
        width = starts[0] + starts[1 + k]
        arrays = each.columns, each.values, each.rows, each.splits
        hop = [_address(each.tasks), len(each.tasks), *map(_address, arrays), len(each.splits)]
        hop += [arrived, partial, 0, 0, gathered, width, starts[0], each.hubs, _address(each.hub)]
        header[HOP * k : HOP * (k + 1)] = hop
        inside += [HOP * k + at for at in (ARRIVED, PARTIAL, GATHERED)]
    shared = max(starts[1:]) * each_bytes
    if shared:  # one limit for all launches
        jit.enter_context()
        kernel.max_dynamic_shared_size_bytes = most * WIDEST
    return Plan(kernel, (grid,), shared, header, inside, sums, z, end, tasks)


def _address(array: Array) -> int:
    return address(array) if array.size else 0


def _aligned(count: int, each: int) -> int:
    """`count`, or so many more that as many elements of `each` bytes are a multiple of ALIGN."""
    return -(-count * each // ALIGN) * ALIGN // each
