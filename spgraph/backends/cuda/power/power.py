"""The power iteration: on small graphs one cooperative launch for all of it, on large ones launches
for every step.

A cooperative grid has one block a multiprocessor, which makes a barrier cheap; the matrix is
divided into tasks of warps (warp_tasks.py). Large products are faster with tiles (tiles.py: 2.1 ps
an entry of a Kronecker graph on an H200). Launches cost 50 us of the host's time a step.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

from spgraph.backends.cuda.power.power_stepwise import (
    Iterate,
    Settings,
    by_vertex,
    is_iso,
    program,
    program_of,
    settings_of,
    stepwise,
)
from spgraph.backends.cuda.power.warp_tasks import WarpTasks, warp_tasks
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.backends.shards import Steps
from spgraph.backends.shards.power import SUMS, change
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import (
    INT32_MAX,
    Array,
    address,
    array_module,
    sent,
    to_host,
)
from spgraph.semirings import TypedSemiring

__all__ = ["power", "power_shard", "program"]

# as in kernels/power.cu: threads of a block, areas of sums, 64-bit words of its GridBarrier and of
# its report; bytes to which the values of hubs are aligned
THREADS, AREAS, BARRIER, REPORT, ALIGN = 1024, 3, 2, 2, 16
# the most hubs; bytes of the widest value that is gathered; of other shared memory of a block
MOST_HUBS, WIDEST, OTHER = 24 << 10, 8, 4096
# the entries of all hops from which a step pays for launches of its own
LARGE = 1 << 23


def power(
    x: Vector | float,
    matrices: tuple[Matrix, ...],
    scales: tuple[Vector | None, ...],
    semiring: TypedSemiring,
    constants: tuple[float, float, float, float],
    restart: Vector | float,
    norm: int | str | None,
    tol: float | None,
    max_iter: int,
    single: bool,
) -> tuple[Vector, Any]:
    """(the last iterate, (iterations, last change) or a function that waits for both) of
    x <- f(x) from x, a full Vector of float64 or what all vertices begin with.

    Each of the one or two `matrices` is pulled by rows: x becomes M (x * scale). Then, with
    `constants` = (factor, keep, teleport, dangling), the iterate is factor times that + keep x +
    (teleport + dangling times the sum of x where the first scale is zero) restart, divided by its
    norm. `single` gathers x * scale in single precision. `tol` None runs all of `max_iter`, and
    nothing is read back; the second result is then None. Sums are taken in an order that depends on
    the graph and the kind of device alone.

    Matrices of fewer than LARGE entries: one launch and one copy to the device; an iterate of NaN
    says that a barrier of the kernel timed out. Larger ones: in every step 1 to 5 launches a hop, 1
    between hops that have a scale, 1 more, another with a norm, and with a `tol` a change that is
    read back while the next product runs.
    """
    settings = settings_of(semiring, constants, restart, norm, tol, max_iter, single)
    # one program has one type of values
    alike = len({(M.dtype, is_iso(M, settings)) for M in matrices}) == 1
    small = sum(M.nvals for M in matrices) < LARGE and matrices[0].nrows <= INT32_MAX
    with jit.device(matrices[0]._indptr):
        value = _first(x, matrices[0])
        if small and alike:
            return _cooperative(value, matrices, scales, settings)
        return _stepwise(Vector._of(value.size, value), matrices, scales, settings)


def _first(x: Vector | float, A: Matrix) -> Array:
    """The values that the iteration begins with, in an array of its own."""
    if isinstance(x, Vector):
        return x._values.copy()
    n, value = A.nrows, array_module(A._indptr).empty(A.nrows)
    jit.sweep(jit.kernel("scales", "scales_fill", ""), n, np.float64(x), n, value)
    return value


def _stepwise(
    x: Vector, matrices: tuple[Matrix, ...], scales: tuple[Vector | None, ...], settings: Settings
) -> Iterate:
    steps, answer = stepwise(x, matrices, scales, settings, early=True), None
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


def power_shard(
    x: Vector,
    matrices: tuple[Matrix, ...],
    scales: tuple[Vector | None, ...],
    semiring: TypedSemiring,
    constants: tuple[float, float, float, float],
    restart: Vector | float,
    norm: int | str | None,
    tol: float | None,
    max_iter: int,
    single: bool,
) -> Steps[Iterate]:
    """`power` for the vertices of one shard, as a generator that yields what it needs of the
    others.

    It yields ("share", (its part of a vector, its part of the three sums over vertices: change,
    dangling mass, norm)), to be sent (the whole vector, the sums of all shards in their order),
    with None for None; and ("change", the sums of all shards), to be sent the total change. It
    returns what `power` does. Its driver makes the shard's device the current one.
    """
    settings = settings_of(semiring, constants, restart, norm, tol, max_iter, single)
    return stepwise(x, matrices, scales, settings)


# --- one cooperative launch -----------------------------------------------------------------------


def _cooperative(
    value: Array,
    matrices: tuple[Matrix, ...],
    scales: tuple[Vector | None, ...],
    settings: Settings,
) -> tuple[Vector, Any]:
    """Iterate from `value`, in place."""
    xp, n, tol = array_module(value), value.size, settings.tol
    device, each_bytes = jit.current_device(), settings.gathered.itemsize
    grid = jit.multiprocessors(device)
    most = min(MOST_HUBS, (jit.shared_memory(device) - OTHER) // WIDEST)
    warps = grid * THREADS // 32
    tasks = [warp_tasks(M, is_iso(M, settings), most, warps) for M in matrices]
    # what looks for hubs takes longer also where there are none
    text = _with_hubs(program_of(matrices[0], settings), any(each.hubs for each in tasks))
    kernel = jit.kernel("power", "power", text, cooperative=True)
    of_tasks = tuple((each.long, each.hubs) for each in tasks)
    starts, places = _layout(n, each_bytes, grid, bool(settings.norm), of_tasks)
    sums, z, *of_hops, end = places
    workspace = xp.empty(end)
    first = address(workspace)
    words: list[int] = []
    held = [workspace]
    for k, scale in enumerate(scales):
        partial, gathered = (first + 8 * at for at in of_hops[2 * k : 2 * k + 2])
        spread = by_vertex(1.0 if scale is None else scale, xp)
        words += _hop(tasks[k], spread, partial, gathered, held)
        words += [starts[0] + starts[1 + k], starts[0], tasks[k].hubs, _address(tasks[k].hub)]
    # behind the hops: the struct GridBarrier and the report, zeros, and what restarts everywhere
    given = np.array(words + [0] * (BARRIER + REPORT + 1), np.int64)
    restart = settings.restart
    if not isinstance(restart, Vector):
        given[-1:].view(np.float64)[0] = restart
    header = sent(given, xp)
    barrier = address(header) + 8 * len(words)
    report = barrier + 8 * BARRIER
    arguments = (
        *(header, np.int32(len(matrices)), np.int32(settings.norm), n, value, first + 8 * z),
        *map(np.float64, settings.constants),
        *((-1, restart._values) if isinstance(restart, Vector) else (0, report + 8 * REPORT)),
        *(np.float64(-1.0 if tol is None else tol), settings.max_iter),
        *(first + 8 * sums, barrier, report),
    )
    shared = max(starts[1:]) * each_bytes
    if shared:  # one limit for all launches
        kernel.max_dynamic_shared_size_bytes = most * WIDEST
    kernel((grid,), (THREADS,), arguments, shared_mem=shared)
    if tol is None:
        return Vector._of(n, value), None
    return Vector._of(n, value), to_host(header[-1 - REPORT : -1].view(np.float64))


@functools.lru_cache(maxsize=1024)
def _with_hubs(text: str, hubs: bool) -> str:
    """The preamble of power.cu, the same string each time, whose hash is known."""
    return text + preamble.constants(HUBS=hubs)


@functools.lru_cache(maxsize=1024)
def _layout(
    n: int, each_bytes: int, grid: int, norm: bool, tasks: tuple[tuple[int, int], ...]
) -> tuple[list[int], list[int]]:
    """(Of what hops gather: where the hubs begin, and the length of the buffer of each; where the
    parts of the workspace begin among numbers of 8 bytes, and its end). `tasks` are `long` and
    `hubs` of each hop.
    """
    starts = [_aligned(n, each_bytes), *(_aligned(hubs, each_bytes) for _, hubs in tasks)]
    sizes = [0, AREAS * SUMS * grid, n if norm else 0]
    for k, (long, _) in enumerate(tasks):
        values = (2 if k == 0 else 1) * (starts[0] + starts[1 + k])
        sizes += [long, -(-values * each_bytes // 8)]
    return starts, list(itertools.accumulate(_aligned(size, 8) for size in sizes))


def _hop(
    tasks: WarpTasks, spread: tuple[int, Array], partial: int, gathered: int, held: list[Any]
) -> list[int]:
    """The first words of the struct Hop; what nobody else keeps of the arrays that it points to is
    appended to `held`. `partial` and `gathered` are addresses in the workspace.
    """
    (mask, scale), split = spread, len(tasks.splits)
    arrived = array_module(tasks.tasks).zeros(split, np.uint32) if split else None
    held += [scale, arrived]
    arrays = tasks.tasks, tasks.columns, tasks.values, tasks.rows, tasks.splits
    at_tasks, columns, values, rows, splits = map(_address, arrays)
    words = [at_tasks, len(tasks.tasks), columns, values, rows, splits, split, address(arrived)]
    return [*words, partial, mask, address(scale), gathered]


def _address(array: Array) -> int:
    return address(array) if array.size else 0


def _aligned(count: int, each: int) -> int:
    """`count`, or so many more that as many elements of `each` bytes are a multiple of ALIGN."""
    return -(-count * each // ALIGN) * ALIGN // each
