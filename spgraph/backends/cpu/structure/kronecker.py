"""The Kronecker product of two matrices."""

from __future__ import annotations

import numpy as np

from spgraph.backends.cpu.entrywise.rows import (
    csr,
    iso_value,
    pointer_of,
    row_sizes,
    run,
)
from spgraph.backends.cpu.runtime import jit, memory, preamble
from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import index_dtype
from spgraph.semirings import Function


def kronecker(A: Matrix, B: Matrix, op: Function) -> Matrix:
    """t[i * B.nrows + k, j * B.ncols + l] = op(A[i, j], B[k, l])."""
    iso = A.iso and B.iso and not op.positional
    nrows, ncols, nvals = A.nrows * B.nrows, A.ncols * B.ncols, A.nvals * B.nvals
    sizes = row_sizes(nrows, nvals)
    lengths = np.diff(A._indptr), np.diff(B._indptr)
    np.multiply.outer(*lengths, out=sizes[1:].reshape(A.nrows, B.nrows), dtype=sizes.dtype)
    indptr = pointer_of(sizes)
    indices = memory.empty(nvals, index_dtype(max(nrows, ncols)))
    z = iso_value(A, B, op) if iso else memory.empty(nvals, op.result)
    text = preamble.function(op, VALUES=not iso)
    if nvals:
        given = (*csr(A), *csr(B), B.ncols, indptr, indices, z)
        run(jit.module("kronecker", text).kronecker, (indptr,), *given)
    symmetric = True if A.symmetric and B.symmetric and not op.positional else None
    return Matrix._of(nrows, ncols, indptr, indices, z, iso=iso, symmetric=symmetric)
