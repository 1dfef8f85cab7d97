"""The power iteration: on small graphs one cooperative launch for all of it, on large ones launches
for every step.

A cooperative grid has one block a multiprocessor, which makes a barrier cheap; the matrix is
divided into tasks of warps (warp_tasks.py). Large products are faster with tiles (tiles.py: 2.1 ps
an entry of a Kronecker graph on an H200). Launches cost 50 us of the host's time a step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spgraph.backends.cuda.power.power_stepwise import (
    Settings,
    Steps,
    by_vertex,
    is_iso,
    program,
    program_of,
    settings_of,
    stepwise,
)
from spgraph.backends.cuda.power.warp_tasks import warp_tasks
from spgraph.backends.cuda.runtime import jit
from spgraph.backends.shards.power import SUMS, change
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import (
    INT32_MAX,
    Array,
    address,
    array_module,
    move,
    to_host,
)
from spgraph.semirings import TypedSemiring

__all__ = ["power", "power_shard", "program"]

# as in kernels/power.cu: threads of a block, areas of sums, 64-bit words of its GridBarrier
THREADS, AREAS, BARRIER = 1024, 3, 2
# the entries of all hops from which a step pays for launches of its own
LARGE = 1 << 23


@jit.on_device
def power(
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
) -> tuple[Vector, Any]:
    """(the last iterate, (iterations, last change)) of x <- f(x) from x, a full Vector of float64.

    Each of the one or two `matrices` is pulled by rows: x becomes M (x * scale). Then, with
    `constants` = (factor, keep, teleport, dangling), the iterate is factor times that + keep x +
    (teleport + dangling times the sum of x where the first scale is zero) restart, divided by its
    norm. `single` gathers x * scale in single precision. `tol` None runs all of `max_iter`, and
    nothing is read back; the second result is then None. Sums are taken in an order that depends on
    the graph and the kind of device alone.

    Matrices of fewer than LARGE entries: one launch, a few fills, and one copy to the device for
    each matrix. An iterate of NaN says that a barrier of the kernel timed out. Larger ones:
    in every step 1 to 5 launches a hop, 1 between hops that have a scale, 1 more, another with a
    norm, and with a `tol` a change that is read back while the next product runs.
    """
    settings = settings_of(semiring, constants, restart, norm, tol, max_iter, single)
    # one program has one type of values
    alike = len({(M.dtype, is_iso(M, settings)) for M in matrices}) == 1
    if sum(M.nvals for M in matrices) < LARGE and x.size <= INT32_MAX and alike:
        return _cooperative(x, matrices, scales, settings)
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
) -> Steps:
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
    x: Vector, matrices: tuple[Matrix, ...], scales: tuple[Vector | None, ...], settings: Settings
) -> tuple[Vector, Any]:
    xp, n, tol = array_module(x._values), x.size, settings.tol
    kernel = jit.kernel("power", "power", program_of(matrices[0], settings), cooperative=True)
    grid = jit.multiprocessors(jit.current_device())
    held: list[Any] = []
    words: list[int] = []
    for k, (M, scale) in enumerate(zip(matrices, scales, strict=True)):
        words += _hop(M, scale, settings, 2 if k == 0 else 1, held)
    value, report = x._values.copy(), xp.zeros(2)
    z = xp.empty(n) if settings.norm else jit.NULL
    sums, barrier = xp.empty(AREAS * SUMS * grid), xp.zeros(BARRIER, np.int64)
    hops = xp.asarray(np.array(words, np.int64))
    arguments = (
        *(hops, np.int32(len(matrices)), np.int32(settings.norm), n, value, z),
        *map(np.float64, settings.constants),
        *by_vertex(settings.restart, xp),
        *(np.float64(-1.0 if tol is None else tol), settings.max_iter, sums, barrier, report),
    )
    kernel((grid,), (THREADS,), arguments)
    return Vector._of(n, value), None if tol is None else move(report, "cpu")


def _hop(
    M: Matrix, scale: Vector | None, settings: Settings, buffers: int, held: list[Any]
) -> list[int]:
    """The words of the struct Hop; the arrays that it points to are appended to `held`."""
    xp = array_module(M._indptr)

    def at(array: Array) -> int:
        held.append(array)
        return address(array) if array.size else 0

    tasks = warp_tasks(M, is_iso(M, settings))
    mask, scales = by_vertex(1.0 if scale is None else scale, xp)
    words = [at(tasks.tasks), len(tasks.tasks), at(tasks.columns), at(tasks.values)]
    split = len(tasks.splits)
    words += [at(tasks.rows), at(tasks.splits), split, at(xp.zeros(split, np.uint32))]
    words += [at(xp.empty(tasks.long))]
    return [*words, mask, at(scales), at(xp.empty(buffers * M.nrows, settings.gathered))]
