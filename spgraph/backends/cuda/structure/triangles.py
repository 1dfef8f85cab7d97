"""The triangles of an undirected graph: nothing is stored but, where rows are long, its edges
pointed one way.
"""

from __future__ import annotations

import numpy as np

from spgraph import direction
from spgraph.backends.cuda.entrywise.edge_parallel import tiles_of
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import INT32_MAX, Array, array_module

# columns that a block keeps as bits, and slots of its hash table for others: 24 KiB, so that eight
# blocks run on a multiprocessor
WINDOW, SLOTS = 1 << 16, 1 << 12
# the longest row that a warp keeps; entries of a longer one that a task of a block takes
SHORT, PART = 32, 512
# bytes for the edges of hubs as bits that any graph may take
HUB_BITS = 1 << 23


@jit.on_device
def triangles(A: Matrix) -> int | None:
    """How many triangles the symmetric pattern A has; loops are no edges. None beyond 2^31 - 1
    vertices.

    Where rows are short: one launch. Else 8 bytes an edge, or 4 and 8 MiB, and 40 a vertex of
    memory, one sort of the degrees, and seven launches. Two numbers are read back; of a Matrix that
    was asked before, one.
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
    limits = preamble.constants(WINDOW=WINDOW, SLOTS=SLOTS, SHORT=SHORT, PART=PART)
    return preamble.types(O=O, I=I) + limits


def _count_oriented(A: Matrix, total: Array) -> None:
    """Add the triangles of A to `total`."""
    xp, n = array_module(A._indptr), A.nrows
    text = program(A._indptr.dtype, A._indices.dtype)
    names = "triangle_tasks", "triangles_many", "triangles_few", "triangles_tiny"
    tasks, many, few, tiny = jit.kernels("triangles_oriented", text, *names)
    starts, columns, bits, hubs = _oriented(A, text)
    graph = starts, columns, bits, np.int32(hubs)
    # rows of more than SHORT entries, and the parts that these have beyond the first
    parts = min(n, columns.size // (SHORT + 1)) + columns.size // PART + 1
    rows, task_row, task_part = (xp.empty(size, np.int32) for size in (n, parts, parts))
    found = xp.zeros(3, np.uint64)  # rows for warps, tasks for blocks, tasks taken
    jit.sweep(tasks, n, starts, n, rows, task_row, task_part, found)
    tasks_found = task_row, task_part, found, found[2:]
    jit.resident(many, parts * jit.BLOCK, *graph, *tasks_found, total)
    jit.launch(few, jit.occupancy(few) * jit.BLOCK, *graph, rows, found, total)
    jit.sweep(tiny, 8 * n, starts, columns, n, *graph[2:], total)


def _hubs(n: int, edges: int) -> int:
    """How many vertices are hubs: a power of two, at least 32, at most n and WINDOW, for whose
    edges as bits no more memory is taken than for all edges as columns, or HUB_BITS.
    """
    hubs, most = 32, max(HUB_BITS, 4 * edges)
    while 2 * hubs <= min(WINDOW, n) and (2 * hubs) ** 2 // 8 <= most:
        hubs *= 2
    return hubs


def _oriented(A: Matrix, text: str) -> tuple[Array, Array, Array, int]:
    """(offsets, columns) of the graph with vertices numbered by descending degree, of each edge the
    entry that leads to the lesser number; there may be some unused memory behind the last one. And
    the edges between the first vertices, as bits, and their number.
    """
    xp, n = array_module(A._indptr), A.nrows
    order = xp.argsort(A._indptr[:-1] - A._indptr[1:], kind="stable")
    rank = xp.empty(n, np.int32)
    given = A._indptr, tiles_of(A), A._indices, A.nvals, rank
    counts, starts = xp.zeros(n, np.uint32), xp.zeros(n + 1, np.int64)
    names = "orient_ranks", "orient_sizes", "orient_fill"
    ranks, sizes, fill = jit.kernels("triangles_oriented", text, *names)
    jit.sweep(ranks, n, order, n, rank)
    jit.sweep(sizes, A.nvals, *given, counts)
    xp.cumsum(counts.astype(np.int64), out=starts[1:])
    counts.fill(0)
    columns = xp.empty(A.nvals // 2, np.int32)  # of loops neither entry leads to a lesser number
    hubs = _hubs(n, columns.size)
    bits = xp.zeros(hubs * (hubs // 32), np.uint32)
    jit.sweep(fill, A.nvals, *given, starts, counts, columns, bits, np.int32(hubs))
    return starts, columns, bits, hubs
