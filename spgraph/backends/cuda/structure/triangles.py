"""The triangles of an undirected graph: nothing is stored but, where rows are long, its edges
pointed one way.
"""

from __future__ import annotations

import numpy as np

from spgraph import direction
from spgraph.backends.cuda.entrywise.edge_parallel import tiles_of
from spgraph.backends.cuda.products.tiles import shared_memory
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import INT32_MAX, Array, array_module

# the longest row that a warp keeps in its hash table
SHORT = 128
# entries that a warp reads for one row at most, and for one whose columns do not fit the bits of a
# block, which would read them more than once
WARP_WORK, FAR_WORK = 1 << 13, 1 << 18
# entries that a task of a block reads, unless there could then be more than 2^MOST tasks
TASK_WORK, MOST = 1 << 18, 22
# bytes of shared memory that a block needs beside its bits
RESERVED = 1024


@jit.on_device
def triangles(A: Matrix) -> int | None:
    """How many triangles the symmetric pattern A has; loops are no edges. None beyond 2^31 - 1
    vertices.

    Where rows are short: one launch. Else 12 bytes an edge and 40 a vertex of memory, one sort of
    the degrees, and seven launches. Two numbers are read back; of a Matrix that was asked before,
    one.
    """
    if A.nrows > INT32_MAX:
        return None
    if A.nvals == 0:
        return 0
    total = array_module(A._indptr).zeros(1, np.uint64)
    if direction.rows_are_short(_squares(A), A.nvals):
        kernel = jit.kernel("triangles", "triangles", _types(A))
        jit.sweep(kernel, A.nrows, A._indptr, A._indices, A.nrows, total)
    else:
        _count_oriented(A, total)
    return int(total.tolist()[0])


def _types(A: Matrix) -> str:
    return preamble.types(O=A._indptr.dtype, I=A._indices.dtype)


def _squares(A: Matrix) -> float:
    """The sum of the squares of the degrees, found once and kept with A."""
    if "squares" not in A._derived:
        total = array_module(A._indptr).zeros(1)
        kernel = jit.kernel("triangles", "triangles_squares", _types(A))
        jit.sweep(kernel, A.nrows, A._indptr, A.nrows, total)
        A._derived["squares"] = float(total.tolist()[0])
    return A._derived["squares"]


def program(O: np.dtype, I: np.dtype) -> str:  # noqa: E741
    """The preamble of triangles_oriented.cu."""
    return preamble.types(O=O, I=I) + preamble.constants(SHORT=SHORT)


def _count_oriented(A: Matrix, total: Array) -> None:
    """Add the triangles of A to `total`."""
    xp, n = array_module(A._indptr), A.nrows
    text = program(A._indptr.dtype, A._indices.dtype)
    starts, columns = _oriented(A, text)
    work = xp.zeros(n, np.int64)
    kinds = preamble.types(O=starts.dtype, I=columns.dtype, P=starts.dtype)
    # a warp takes 1024 entries
    threads = 32 * -(-columns.size // 1024)
    flops = jit.kernel("row_flops", "row_flops", kinds)
    jit.launch(flops, threads, starts, columns, n, starts, work)
    window = _window(n)
    # no row has more than sqrt(2 m) of m edges
    most = columns.size * int((2 * columns.size) ** 0.5 + 1)
    share = max(TASK_WORK, most >> MOST)
    tasks = min(columns.size, most // share + n) + 1
    few, task_row, task_part = (xp.empty(size, np.int32) for size in (n, tasks, tasks))
    found = xp.zeros(3, np.uint64)  # rows for warps, tasks for blocks, tasks taken
    kernel = jit.kernel("triangles_oriented", "triangle_tasks", text)
    limits = (window, WARP_WORK, FAR_WORK, share)
    jit.sweep(kernel, n, starts, work, n, *limits, few, task_row, task_part, found)
    kernel = jit.kernel("triangles_oriented", "triangles_many", text)
    shared = window // 8
    block = 1024 if shared > 1 << 15 else 512 if shared > 1 << 14 else jit.BLOCK
    if shared + RESERVED > 48 << 10:  # what a block may have without being asked
        kernel.max_dynamic_shared_size_bytes = shared
    arguments = (starts, columns, work, task_row, task_part, found, np.uint32(window), share)
    blocks = jit.occupancy(kernel, block, shared)
    kernel((blocks,), (block,), (*arguments, found[2:], total), shared_mem=shared)
    kernel = jit.kernel("triangles_oriented", "triangles_few", text)
    threads = jit.occupancy(kernel) * jit.BLOCK
    jit.launch(kernel, threads, starts, columns, work, few, found, total)


def _window(n: int) -> int:
    """How many columns a block keeps as bits: all, if they fit its shared memory."""
    most = 8 * (shared_memory(jit.current_device()) - RESERVED)
    return max(32, min(-(-n // 32), most // 32) * 32)


def _oriented(A: Matrix, text: str) -> tuple[Array, Array]:
    """(offsets, columns) of the graph with vertices numbered by descending degree, of each edge the
    entry that leads to the lesser number; there may be some unused memory behind the last one.
    """
    xp, n = array_module(A._indptr), A.nrows
    order = xp.argsort(A._indptr[:-1] - A._indptr[1:], kind="stable")
    rank = xp.empty(n, np.int32)
    rank[order] = xp.arange(n, dtype=np.int32)
    given = A._indptr, tiles_of(A), A._indices, A.nvals, rank
    counts, starts = xp.zeros(n, np.uint32), xp.zeros(n + 1, np.int64)
    sizes, fill = (
        jit.kernel("triangles_oriented", name, text) for name in ("orient_sizes", "orient_fill")
    )
    jit.sweep(sizes, A.nvals, *given, counts)
    xp.cumsum(counts.astype(np.int64), out=starts[1:])
    counts.fill(0)
    columns = xp.empty(A.nvals // 2, np.int32)  # of loops neither entry leads to a lesser number
    jit.sweep(fill, A.nvals, *given, starts, counts, columns)
    return starts, columns
