"""Hook and compress: the components of a graph in one launch on all cores."""

from __future__ import annotations

import numpy as np

from spgraph.backends.cpu.runtime import jit, pool
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import index_dtype


def contract(A: Matrix, undirected: bool) -> Vector:
    """The smallest vertex of every vertex's weakly connected component.

    `undirected`: every edge is stored in both directions. Then most edges of the giant component
    are not read, nor where the transpose is there already; otherwise every edge is.
    """
    if A.nvals == 0:
        return Vector._of(A.nrows, np.arange(A.nrows, dtype=index_dtype(A.nrows)))
    label = np.empty(A.nrows, index_dtype(A.nrows))
    threads = pool.threads_for(A.nrows + A.nvals, pool.LONG_STEPS)
    kernel = jit.module("contract", "").contract
    backward = not undirected and A.has_transpose
    T = A._T if backward else A
    state = np.zeros(8 * (1 + threads), np.int64)
    given = (A._indptr, A._indices, T._indptr, T._indices, label, state)
    pool.launch(kernel, threads, *given, undirected, backward)
    return Vector._of(A.nrows, label)
