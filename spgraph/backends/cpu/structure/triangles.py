"""The triangles of a graph of short rows, as on roads, in one pass over its entries."""

from __future__ import annotations

import numpy as np

from spgraph import direction
from spgraph.backends.cpu.entrywise.rows import divided, launch
from spgraph.backends.cpu.runtime import jit, pool
from spgraph.containers import Matrix


def triangles(A: Matrix) -> int | None:
    """How many triangles the symmetric pattern A has; loops are no edges. None where rows are so
    long that it is faster to point the edges one way first.

    Beside A it needs a bit for each column a thread. The time grows with the squares of the
    degrees.
    """
    # float32 takes less time, and only the choice of a way depends on it
    squares = np.square(np.diff(A._indptr), dtype=np.float32).sum()
    if not direction.rows_are_short(float(squares), A.nvals, "cpu"):
        return None
    parts = divided((A._indptr,), pool.LONG_STEPS)
    bits = np.zeros((parts[0], (A.ncols + 63) // 64), np.uint64)
    total = np.zeros(1, np.int64)
    kernel = jit.module("triangles", "").triangles
    launch(kernel, parts, A._indptr, A._indices, bits, total)
    return int(total[0])
