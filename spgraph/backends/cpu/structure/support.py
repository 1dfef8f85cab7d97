"""How many triangles each edge of a graph is in, every triangle found once."""

from __future__ import annotations

import numpy as np

from spgraph.backends.cpu.entrywise.rows import divided, launch, shares
from spgraph.backends.cpu.runtime import jit, memory, pool
from spgraph.backends.cpu.structure.orient import by_degree, oriented
from spgraph.containers import Matrix

# chunks of rows a thread: a few rows of hubs have most triangles
CHUNKS = 64


def support(A: Matrix) -> Matrix:
    """A Matrix of the entries of the symmetric pattern A, each with the number of triangles that it
    is an edge of, an int64; loops are no edges.

    Beside the result it needs the edges, each with a number, and for each thread 4 bytes and a bit
    a vertex.
    """
    degrees = by_degree(A)
    L = oriented(A, degrees)
    count = np.zeros(L.nvals, np.int64)
    values = memory.empty(A.nvals, np.int64)
    kernels = jit.module("support", jit.text_of("leads") + jit.text_of("lower_bound"))
    # each edge is followed by the row that it leads to
    steps = L.nvals * (1 + L.nvals // max(1, L.nrows))
    threads = pool.threads_for(steps, pool.LONG_STEPS)
    chunks = max(1 if threads == 1 else CHUNKS * threads, steps // pool.PIECE)
    longest = int(np.diff(L._indptr).max(initial=0))
    place = np.empty((threads, A.nrows), L._indices.dtype)
    bits = np.zeros((threads, (A.nrows + 63) // 64), np.uint64)
    own = np.zeros((threads, longest), np.int64)
    given = L._indptr, L._indices, bits, place, own, count
    launch(kernels.count_triangles, (threads, shares(chunks, (L._indptr,))), *given)
    rows = A._indptr, A._indices, degrees, L._indptr, L._indices
    parts = divided((A._indptr,), pool.LONG_STEPS)
    launch(kernels.write_support, parts, *rows, count, values)
    return Matrix._of(A.nrows, A.ncols, A._indptr, A._indices, values, symmetric=True)
