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
from spgraph.containers.storage.arrays import Array, array_module

# as in kernels/warp_tasks.cuh: kinds of tasks
ROWS, WHOLE, PART = 0, 1, 2
LANES = 32
# entries of the longest row that one lane sums; entries of a task of a longer one, which is cut
# into at most so many pieces
SHORT, SHARE, MOST_PIECES = 32, 256, 1024
# short rows are sorted by length in windows of so many rows: what is near in memory is then read
# and written at about the same time
WINDOW = 1 << 16


class WarpTasks(NamedTuple):
    """The tasks, and the arrays that they refer to."""

    tasks: Array  # struct Task, a row each: pieces and whole rows, then short rows
    splits: Array  # struct Split, a row each
    columns: Array
    values: Array  # in the order of the columns; of an iso matrix its one value
    rows: Array  # the short rows, LANES for each task; -1 for none
    long: int  # how many tasks are pieces or whole rows


def warp_tasks(A: Matrix, iso: bool) -> WarpTasks:
    """The tasks of A, made when first asked for and kept with A; with `iso` its values are not
    looked at. A has fewer than 2^31 rows and columns. Some 50 launches, six read-backs; 4 bytes an
    entry, its value, and 16 bytes a task.
    """
    key = "warp_tasks_iso" if iso else "warp_tasks"
    if key not in A._derived:
        A._derived[key] = _make(A, iso)
    return A._derived[key]


def _make(A: Matrix, iso: bool) -> WarpTasks:
    xp = array_module(A._indptr)
    degrees = (A._indptr[1:] - A._indptr[:-1]).astype(np.int64)
    tasks, splits, starts, counts = _long_rows(A, degrees)
    short, rows = _short_rows(degrees)
    tasks = xp.concatenate((tasks, short))
    ends = xp.cumsum(tasks[:, 1])
    tasks[:, 0] = ends - tasks[:, 1]
    size = LANES * int(ends[-1])
    tasks = xp.ascontiguousarray(tasks.astype(np.int32))
    columns = xp.empty(size, np.int32)
    values = A._values if iso else xp.empty(size, A.dtype)
    text = preamble.types(O=A._indptr.dtype, I=A._indices.dtype, A=A.dtype)
    kernel = jit.kernel("warp_tasks", "warp_tasks", text + preamble.constants(ISO=iso))
    given = (A._indptr, A._indices, A._values, tasks, len(tasks), rows, starts, counts)
    jit.launch(kernel, LANES * len(tasks), *given, columns, values)
    return WarpTasks(tasks, splits, columns, values, rows, int(starts.size))


def _long_rows(A: Matrix, degrees: Array) -> tuple[Array, Array, Array, Array]:
    """(tasks, splits, the first entry of each task, how many it has) of the rows of more than SHORT
    entries; the first steps of tasks are left out.
    """
    xp = array_module(degrees)
    rows = xp.flatnonzero(degrees > SHORT)
    if rows.size == 0:
        none = xp.empty(0, np.int64)
        return xp.empty((0, 4), np.int64), xp.empty((0, 4), np.int32), none, none
    lengths = degrees[rows]
    share = xp.maximum(SHARE, -(-lengths // (MOST_PIECES * LANES)) * LANES)
    pieces = -(-lengths // share)
    through = xp.cumsum(pieces)
    task = xp.arange(int(through[-1]))
    of = xp.searchsorted(through, task, side="right")
    skipped = (task - (through - pieces)[of]) * share[of]
    counts = xp.minimum(share[of], lengths[of] - skipped)
    is_split = pieces > 1
    number = xp.cumsum(is_split) - 1
    tasks = xp.zeros((task.size, 4), np.int64)
    tasks[:, 1] = (counts + (LANES - 1)) // LANES
    tasks[:, 2] = xp.where(is_split[of], number[of], rows[of])
    tasks[:, 3] = xp.where(is_split[of], PART, WHOLE)
    splits = xp.zeros((int(is_split.sum()), 4), np.int32)
    splits[:, 0] = (through - pieces)[is_split]
    splits[:, 1], splits[:, 2] = pieces[is_split], rows[is_split]
    return tasks, splits, A._indptr[:-1].astype(np.int64)[rows][of] + skipped, counts


def _short_rows(degrees: Array) -> tuple[Array, Array]:
    """(tasks, rows) of all other rows, those without entries among them."""
    xp = array_module(degrees)
    short = xp.flatnonzero(degrees <= SHORT)
    lengths = degrees[short]
    order = xp.argsort(short // WINDOW * (SHORT + 1) + (SHORT - lengths), kind="stable")
    count = -(-short.size // LANES)
    rows, steps = xp.full(count * LANES, -1, np.int32), xp.zeros(count * LANES, np.int64)
    rows[: short.size], steps[: short.size] = short[order], lengths[order]
    tasks = xp.zeros((count, 4), np.int64)
    tasks[:, 1] = steps.reshape(count, LANES).max(axis=1) if count else 0
    tasks[:, 2] = LANES * xp.arange(count)
    tasks[:, 3] = ROWS
    return tasks, rows
