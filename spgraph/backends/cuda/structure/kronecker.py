"""The Kronecker product of two matrices."""

from __future__ import annotations

from spgraph.backends.cuda.entrywise.edge_parallel import keep, result_types, tiles_of
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import array_module
from spgraph.semirings import Function


@jit.on_device
def kronecker(A: Matrix, B: Matrix, op: Function) -> Matrix:
    """T[i * B.nrows + k, j * B.ncols + l] = op(A[i, j], B[k, l], i, j, k, l).

    The result is written once, rows are found without sums. One launch; tiles of A and B.
    """
    xp = array_module(A._indices)
    nrows, ncols, nvals = A.nrows * B.nrows, A.ncols * B.ncols, A.nvals * B.nvals
    types = result_types(nrows, ncols, nvals)
    text = preamble.types(O=A._indptr.dtype, I=A._indices.dtype, U=A.dtype)
    text += preamble.types(P=B._indptr.dtype, J=B._indices.dtype, V=B.dtype)
    text += preamble.types(Z=op.result, **types) + op.define_cuda("op")
    iso = A.iso and B.iso and not op.positional
    z_indptr, z_indices = xp.zeros(nrows + 1, types["Q"]), xp.empty(nvals, types["N"])
    z = xp.zeros(1, op.result) if iso else xp.empty(nvals, op.result)
    if nvals:
        jit.sweep(
            jit.kernel("kronecker", "kronecker", text),
            max(nvals, nrows),
            *(A._indptr, A._indices, tiles_of(A), A._values, keep(A), A.nvals, A.nrows),
            *(B._indptr, B._indices, tiles_of(B), B._values, keep(B), B.nvals, B.nrows, B.ncols),
            *(z_indptr, z_indices, z, 0 if iso else -1),
        )
    return Matrix._of(nrows, ncols, z_indptr, z_indices, z, iso=iso)
