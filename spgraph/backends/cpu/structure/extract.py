"""Extract a submatrix: the rows and columns given by arrays of ids."""

from __future__ import annotations

from typing import Any

import numpy as np

from spgraph.backends.cpu.entrywise.rows import (
    as_pointer,
    copied,
    like,
    pointer_of,
    row_sizes,
    run,
)
from spgraph.backends.cpu.runtime import jit, memory
from spgraph.backends.cpu.structure.transpose import transpose
from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import index_dtype, pack_bits

NO_ROWS = np.empty(0, np.int32)
# searching for an entry costs as much as filling this many columns of a lookup table
FEW = 32


def extract_matrix(A: Matrix, rows: np.ndarray | None, columns: np.ndarray | None) -> Matrix:
    """t[i, j] = A[rows[i], columns[j]]; None stands for all rows or columns in order."""
    if columns is None:
        return _rows_of(A, rows)
    if columns.size < 2 or bool((columns[1:] > columns[:-1]).all()):
        return _columns_of(A, rows, columns)
    # extract each column once, then put them in order as rows of the transpose: nothing is sorted
    if columns.size * 32 < A.ncols:
        distinct, order = np.unique(columns, return_inverse=True)
    else:
        given = np.zeros(A.ncols, bool)
        given[columns] = True
        distinct = np.flatnonzero(given)
        order = (np.cumsum(given) - 1)[columns]
    once = _rows_of(A, rows) if distinct.size == A.ncols else _columns_of(A, rows, distinct)
    turned = transpose(once)
    del once  # each of these may be as large as A
    chosen = _rows_of(turned, order)
    del turned
    return transpose(chosen)


def _rows_of(A: Matrix, rows: np.ndarray | None) -> Matrix:
    if rows is None:
        return like(A, A._values.copy() if A.iso else copied(A._values), A.iso, A.symmetric)
    indptr = pointer_of(_sizes_of(A, rows))
    take, nvals = jit.module("matrix_extract", "").take_rows, int(indptr[-1])
    indices = memory.empty(nvals, index_dtype(max(rows.size, A.ncols)))
    run(take, (indptr,), A._indptr, rows, indptr, A._indices, indices)
    values = A._values.copy() if A.iso else memory.empty(nvals, A.dtype)
    if not A.iso:
        run(take, (indptr,), A._indptr, rows, indptr, A._values, values)
    return Matrix._of(rows.size, A.ncols, indptr, indices, values, iso=A.iso)


def _sizes_of(A: Matrix, rows: np.ndarray) -> np.ndarray:
    """The number of entries of rows[r], at position r + 1, in a type that can hold their sum."""
    lengths = A._indptr[1:][rows] - A._indptr[rows]
    sizes = row_sizes(rows.size, int(lengths.sum(dtype=np.int64)))
    sizes[1:] = lengths
    return sizes


def _columns_of(A: Matrix, rows: np.ndarray | None, columns: np.ndarray) -> Matrix:
    """Ascending `columns` of `rows` (None: all)."""
    work = A._indptr if rows is None else np.cumsum(_sizes_of(A, rows))
    if columns.size and int(work[-1]) * FEW < A.ncols:
        return _few_columns_of(A if rows is None else _rows_of(A, rows), columns)
    target_of = np.full(A.ncols, -1, index_dtype(columns.size))
    target_of[columns] = np.arange(columns.size)
    kernels = jit.module("matrix_extract", "")
    nrows, rows = work.size - 1, NO_ROWS if rows is None else rows
    sizes = row_sizes(nrows, int(work[-1]))
    wanted = pack_bits(target_of >= 0)
    run(kernels.count_columns, (work,), A._indptr, A._indices, rows, wanted, sizes)
    indptr = pointer_of(sizes)
    nvals = int(indptr[-1])
    indices = memory.empty(nvals, index_dtype(max(nrows, columns.size)))
    values = memory.empty(0 if A.iso else nvals, A.dtype)
    given = (A._indptr, A._indices, A._values, rows, target_of)
    run(kernels.take_columns, (work,), *given, indptr, indices, values)
    values = A._values.copy() if A.iso else values
    return Matrix._of(nrows, columns.size, indptr, indices, values, iso=A.iso)


def _few_columns_of(A: Matrix, columns: np.ndarray) -> Matrix:
    """Ascending `columns` of a matrix of few entries, by a binary search for each entry."""
    at: Any = np.searchsorted(columns, A._indices)
    at[at == columns.size] = 0
    kept = columns[at] == A._indices
    before = np.concatenate(([0], np.cumsum(kept)))
    indices = at[kept].astype(index_dtype(max(A.nrows, columns.size)))
    values = A._values.copy() if A.iso else A._values[kept]
    indptr = as_pointer(before[A._indptr])
    return Matrix._of(A.nrows, columns.size, indptr, indices, values, iso=A.iso)
