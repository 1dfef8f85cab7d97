"""One entry for each two of a symmetric pattern: a graph whose edges point one way."""

from __future__ import annotations

import numpy as np

from spgraph import direction
from spgraph.backends.cpu.entrywise.rows import divided, index_type, launch, pointer_of, row_sizes
from spgraph.backends.cpu.runtime import jit, memory, pool
from spgraph.containers import Matrix


def orient(A: Matrix) -> Matrix:
    """Of each (i, j) and (j, i) of the symmetric pattern A one, and no loops: (i, j) if j is of
    higher degree, or of the same and less than i, or where degrees differ little, if j < i.
    """
    return oriented(A, by_degree(A))


def oriented(A: Matrix, degrees: bool) -> Matrix:
    """`orient` for what `by_degree` gave."""
    kernels = jit.module("orient", jit.text_of("leads"))
    given = (A._indptr, A._indices, degrees)
    sizes = row_sizes(A.nrows, A.nvals)
    parts = divided((A._indptr,), pool.LONG_STEPS)
    launch(kernels.orient_sizes, parts, *given, sizes)
    indptr = pointer_of(sizes)
    indices = memory.empty(int(indptr[-1]), index_type(A))
    launch(kernels.orient, parts, *given, indptr, indices)
    return Matrix._of(A.nrows, A.ncols, indptr, indices, A._values[:1].copy(), iso=True)


def by_degree(A: Matrix) -> bool:
    """Whether `orient` looks at degrees."""
    # float32 takes less time, and only the choice of a way depends on it
    squares = np.square(np.diff(A._indptr), dtype=np.float32).sum()
    return direction.degree_order_pays(float(squares), A.nvals, A.nrows)
