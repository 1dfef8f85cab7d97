"""The edges that carry the values of a closure: the shortest-path DAG."""

from __future__ import annotations

import numpy as np

from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import array_module
from spgraph.containers.storage.device_memory import sent
from spgraph.semirings import TypedSemiring

# all bits of a word: every entry has a value of its own
EVERY = 2**64 - 1
# entries of a chunk, as in kernels/dag_edges.cu
CHUNK = 1024


@jit.on_device
def dag_edges(A: Matrix, x: Vector, semiring: TypedSemiring) -> Matrix:
    """The edges of the shortest-path DAG of x: the pattern of the entries (i, j) of A with
    x[i] * A[i, j] == x[j].

    Three launches: a bit for each entry, the running counts of these, the entries whose bit is set.
    Their number is read back.
    """
    x = x.to_bitmap()
    xp = array_module(A._indptr)
    n, m = A.nrows, A.nvals
    if m == 0:
        return Matrix.empty(n, n, bool, device=A.device).pattern()
    text = dag_edges_preamble(A, semiring)
    names = "dag_edges", "dag_edges_fill"
    look, fill = (jit.kernel("dag_edges", name, text) for name in names)
    chunks = -(-m // CHUNK)
    flags, before = xp.empty(32 * chunks, np.uint32), xp.empty(32 * chunks, np.uint16)
    counts = xp.empty(chunks, np.uint32)
    bits = jit.NULL if x._bits is None else x._bits
    every = np.uint64(0 if A.iso else EVERY)
    given = n, m, A._indptr, A._indices, A._values, every, x._values, bits
    jit.resident(look, 32 * chunks, *given, flags, before, counts)
    through = xp.cumsum(counts, dtype=np.int64)
    indptr = xp.empty(n + 1, A._indptr.dtype)
    indices = xp.empty(int(through[-1]), A._indices.dtype)
    work = (n, m, A._indptr, A._indices, flags, before, through, indptr, indices)
    jit.sweep(fill, max(n + 1, 32 * chunks), *work)
    return Matrix._of(n, n, indptr, indices, sent(np.ones(1, bool), xp), iso=True)


def dag_edges_preamble(A: Matrix, semiring: TypedSemiring) -> str:
    """The preamble of kernels/dag_edges.cu."""
    types = preamble.types(I=A._indices.dtype, O=A._indptr.dtype, A=A.dtype)
    return preamble.semiring(semiring) + types
