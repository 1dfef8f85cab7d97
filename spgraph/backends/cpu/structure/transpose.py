"""The transpose of a matrix, by a counting sort."""

from __future__ import annotations

import numpy as np

from spgraph.backends.cpu.entrywise.rows import (
    index_type,
    shares,
    work_of,
)
from spgraph.backends.cpu.runtime import jit, memory, pool, preamble
from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import index_dtype

# entries are first sorted into buckets of columns: of about BUCKET entries, which stay in a core's
# cache, but at most BUCKETS of them, each of which needs a cache line
BUCKET, BUCKETS = 1 << 14, 512


def transpose(A: Matrix) -> Matrix:
    """The transpose of A, by a counting sort."""
    nvals = A.nvals
    width = max(1, -(-A.ncols // max(1, min(BUCKETS, nvals // BUCKET))))
    shift = (width - 1).bit_length()
    buckets = -(-A.ncols >> shift)
    threads = pool.threads_for(work_of((A._indptr,)))
    counts, starts = np.zeros((threads, buckets), np.int64), np.empty(buckets + 1, np.int64)
    kind, moved = index_type(A), 0 if A.iso else nvals
    # the entries by bucket: rows, columns, values
    parts = ((nvals, kind), (nvals, A._indices.dtype), (moved, A.dtype))
    held = tuple(memory.empty(*part) for part in parts)
    indptr = np.empty(A.ncols + 1, index_dtype(nvals))
    indices, values = memory.empty(nvals, kind), memory.empty(moved, A.dtype)
    text = preamble.constants(VALUES=not A.iso)
    pool.launch(
        jit.module("transpose", text).transpose,
        threads,
        shares(threads, (A._indptr,)),
        A._indptr,
        A._indices,
        A._values,
        np.uint64(shift),
        counts,
        starts,
        *held,
        np.zeros(1, np.int64),
        indptr,
        indices,
        values,
    )
    values = A._values.copy() if A.iso else values
    return Matrix._of(A.ncols, A.nrows, indptr, indices, values, iso=A.iso, symmetric=A.symmetric)
