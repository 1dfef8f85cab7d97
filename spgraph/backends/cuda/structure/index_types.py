"""Index arrays of two matrices in the same types, for kernels that take one type of each."""

from __future__ import annotations

from spgraph.containers import Matrix


def with_index_types(T: Matrix, A: Matrix) -> Matrix:
    """T with index arrays of A's types: itself where it has them, else a Matrix kept with T.

    A transpose has the smallest types that hold its ids and offsets, whatever those of A are.
    """
    if T is A:
        return T
    offsets, ids = A._indptr.dtype, A._indices.dtype
    if (T._indptr.dtype, T._indices.dtype) == (offsets, ids):
        return T
    name = f"with indices {ids.str} and offsets {offsets.str}"
    made = T._derived.get(name)
    if made is None:
        arrays = T._indptr.astype(offsets), T._indices.astype(ids)
        made = Matrix._of(T.nrows, T.ncols, *arrays, T._values, iso=T.iso, symmetric=T.symmetric)
        made._transient = T._transient
        T._keep(name, made)
    return made
