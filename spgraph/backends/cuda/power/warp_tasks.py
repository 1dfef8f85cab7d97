"""A matrix of few entries divided into tasks of one warp each, for the power iteration that is one
launch.

Every iteration reads the matrix in the same way, so its entries are copied once in the order in
which warps read them. A warp then waits for one load after the other only where it gathers: it
knows where the entries of its next task are while it sums this one. The short rows of a task lie
side by side, of about equal length, a lane each (SELL-C-sigma: Kreutzer, Hager, Wellein, Fehske,
Bishop, "A unified sparse matrix data format for efficient general sparse matrix-vector
multiplication on modern processors with wide SIMD units", 2014).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import Array, array_module, move

# as in kernels/warp_tasks.cuh: kinds of tasks
ROWS, WHOLE, PART = 0, 1, 2
LANES = 32
# threads of the blocks that divide the rows
THREADS = 1024
# entries of a task of a long row, which is cut into at most so many pieces
SHARE, MOST_PIECES = 256, 1024
# short rows are sorted by length in windows of so many rows: what is near in memory is then read
# and written at about the same time
WINDOW = 1 << 16
# the fewest entries of a hub, whose value every block copies to its shared memory in each
# iteration; it is doubled until they fit, so often at most that none is left of 2^31 entries
LEAST, STEPS = 32, 27


class WarpTasks(NamedTuple):
    """The tasks, and the arrays that they refer to."""

    tasks: Array  # struct Task, a row each: pieces and whole rows, then short rows
    splits: Array  # struct Split, a row each
    columns: Array
    values: Array  # in the order of the columns; of an iso matrix its one value
    rows: Array  # the short rows, LANES for each task; -1 for none
    long: int  # how many tasks are pieces or whole rows
    hubs: int  # how many columns are
    hub: Array  # of each column its number among them, -1 for none; empty without hubs


def warp_tasks(A: Matrix, iso: bool, most_hubs: int, warps: int) -> WarpTasks:
    """The tasks of A for so many `warps`, made when first asked for and kept with A; with `iso` its
    values are not looked at. A has fewer than 2^31 rows and columns. Up to eight launches, five
    fills, three read-backs; 4 bytes an entry, its value, 16 bytes a task, and with hubs 4 bytes a
    column.
    """
    key = "warp_tasks_iso" if iso else "warp_tasks"
    if key not in A._derived:
        A._keep(key, _make(A, iso, most_hubs, warps))
    return A._derived[key]


def _make(A: Matrix, iso: bool, most_hubs: int, warps: int) -> WarpTasks:
    xp, n = array_module(A._indptr), A.nrows
    text = preamble.types(O=A._indptr.dtype, I=A._indices.dtype, A=A.dtype)
    text += preamble.constants(ISO=iso)
    names = (f"warp_tasks_{name}" for name in ("count", "place", "deal", "scan", "fill"))
    count, place, deal, scan, fill = jit.kernels("warp_tasks", text, *names)
    windows = max(1, -(-n // WINDOW))
    counts = xp.zeros((windows, 3), np.int64)
    cut = np.uint32(SHARE), np.uint32(MOST_PIECES)
    given = (A._indptr, n, WINDOW, *cut, counts)
    count((windows,), (THREADS,), given)
    shorts, long, split = move(counts, "cpu").sum(axis=0).tolist()
    tasks = xp.zeros((long + -(-shorts // LANES), 4), np.int32)
    rows = xp.empty(LANES * (len(tasks) - long), np.int32)
    splits, steps = xp.empty((split, 4), np.int32), xp.empty(1, np.int64)
    place((windows,), (THREADS,), (*given, shorts, long, tasks, splits, rows))
    hubs, hub = _hubs(A, most_hubs)
    if hubs:  # else lengths vary little, and tasks stay where their rows lie together
        placed, tasks = tasks, xp.empty_like(tasks)
        deal((1,), (THREADS,), (placed, long, len(tasks), warps, tasks))
    scan((1,), (THREADS,), (tasks, len(tasks), steps))
    size = LANES * int(move(steps, "cpu")[0])
    columns = xp.empty(size, np.int32)
    values = A._values if iso else xp.empty(size, A.dtype)
    entries = (A._indptr, A._indices, A._values, *cut)
    of_tasks = tasks, len(tasks), splits, rows, hub
    jit.launch(fill, LANES * len(tasks), *entries, *of_tasks, columns, values)
    return WarpTasks(tasks, splits, columns, values, rows, long, hubs, hub)


def _hubs(A: Matrix, most: int) -> tuple[int, Array]:
    """(how many columns are hubs, of each column its number among them or -1): those of at least
    LEAST << b entries for the least b for which there are up to `most`.
    """
    xp, n = array_module(A._indptr), A.ncols
    text = preamble.types(I=A._indices.dtype)
    names = "column_counts", "count_hubs", "number_hubs"
    count, steps, number = jit.kernels("gather_hubs", text, *names)
    counts, above = xp.zeros(n, np.uint32), xp.zeros(STEPS, np.uint64)
    jit.sweep(count, A.nvals, A.nvals, A._indices, counts)
    jit.sweep(steps, n, n, counts, np.uint32(LEAST), np.int32(STEPS), above)
    found = move(above, "cpu").tolist()
    step = next(b for b in range(STEPS) if found[b] <= most)
    if not found[step]:
        return 0, xp.empty(0, np.int32)
    hub, taken = xp.empty(n, np.int32), xp.zeros(1, np.uint32)
    jit.sweep(number, n, n, counts, np.uint32(LEAST << step), taken, hub)
    return found[step], hub
