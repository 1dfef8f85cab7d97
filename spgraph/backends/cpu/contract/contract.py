"""Hook and compress: the components of a graph in one launch or two."""

from __future__ import annotations

import numpy as np

from spgraph.backends.cpu.runtime import jit, pool
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import index_dtype

# as in kernels/contract.py
WORTH, LEFT, JOINED = 3, 4, 8
# elementary steps a vertex, where most edges are not read; edges that are worth a launch of more
# threads
STEPS, MANY, NEVER = 16, 400_000, 2**63 - 1


def contract(A: Matrix, undirected: bool) -> Vector:
    """The smallest vertex of every vertex's weakly connected component.

    `undirected`: every edge is stored in both directions. Then most edges of the giant component
    are not read, nor where the transpose is there already; otherwise every edge is.
    """
    if A.nvals == 0:
        return Vector._of(A.nrows, np.arange(A.nrows, dtype=index_dtype(A.nrows)))
    label = np.empty(A.nrows, index_dtype(A.nrows))
    kernel = jit.module("contract", "").contract
    backward = not undirected and A.has_transpose
    T = A._T if backward else A
    most = pool.threads_for(A.nrows + A.nvals, pool.LONG_STEPS)
    few = min(most, pool.threads_for(STEPS * A.nrows, pool.LONG_STEPS))
    threads = few if undirected or backward else most
    state = np.zeros(JOINED + 8 * most, np.int64)
    state[WORTH] = MANY if threads < most else NEVER
    given = (A._indptr, A._indices, T._indptr, T._indices, label, state)
    pool.launch(kernel, threads, *given, undirected, backward)
    if state[LEFT]:
        pool.launch(kernel, most, *given, undirected, backward)
    return Vector._of(A.nrows, label)
