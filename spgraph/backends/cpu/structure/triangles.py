"""The triangles of a graph of short rows, as on roads, in one pass over its entries."""

from __future__ import annotations

import numpy as np

from spgraph import direction
from spgraph.backends.cpu.entrywise.rows import divided, launch
from spgraph.backends.cpu.runtime import jit, pool
from spgraph.containers import Matrix

# a vertex with at least so many neighbours is a hub
HUB = 1024
# entries between two rows that are near each other: a quarter of a common second-level cache
NEAR = 1 << 16
# rows whose neighbours are looked at, spread evenly
SAMPLE = 256


def triangles(A: Matrix) -> int | None:
    """How many triangles the symmetric pattern A has; loops are no edges. None where rows are so
    long that it is faster to point the edges one way first.

    Beside A it needs a bit for each column a thread. At each edge to a lesser vertex the lesser
    neighbours of that are looked at.
    """
    short = A._derived.get("rows are short")
    if short is None:
        short = _rows_are_short(A)
        A._keep("rows are short", short)
    if not short:
        return None
    parts = divided((A._indptr,), pool.LONG_STEPS)
    bits = np.zeros((parts[0], (A.ncols + 63) // 64), np.uint64)
    total = np.zeros(1, np.int64)
    kernel = jit.module("triangles", "").triangles
    launch(kernel, parts, A._indptr, A._indices, bits, total)
    return int(total[0])


def _rows_are_short(A: Matrix) -> bool:
    """Whether few neighbours are looked at. Of most vertices about half of the neighbours are
    lesser; hubs, which would decide alone, may be the first or the last of all, as in a star.
    """
    degrees = np.diff(A._indptr)
    # float32 takes less time, and only the choice of a way depends on it
    squares = np.square(degrees, dtype=np.float32)

    def short(near: bool = False) -> bool:
        return direction.rows_are_short(float(squares.sum()), A.nvals, "cpu", near)

    if short():
        return True
    hubs = np.flatnonzero(degrees >= HUB)
    squares[hubs] = 0
    if not short(near=True):
        return False
    for i in hubs.tolist():
        row = A._indices[A._indptr[i] : A._indptr[i + 1]]
        lesser = int(np.searchsorted(row, row.dtype.type(i)))  # an int would convert the row
        squares[i] = 4 * lesser * (row.size - lesser)
    return short() or (short(near=True) and _neighbours_are_near(A))


def _neighbours_are_near(A: Matrix) -> bool:
    """Whether the rows of two of three neighbours are near that of their vertex, as in meshes and
    in what is numbered by communities. The same rows are asked each time.
    """
    indptr = A._indptr
    near = seen = 0
    # an odd step meets all rows of a lattice whose side is a power of two
    for i in range(0, A.nrows, (A.nrows // SAMPLE) | 1):
        row = A._indices[indptr[i] : indptr[i + 1]]
        near += int(np.count_nonzero(np.abs(indptr[row] - indptr[i]) <= NEAR))
        seen += row.size
    return 3 * near >= 2 * seen
