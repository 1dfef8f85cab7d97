"""A part of a matrix: the rows and columns that lists of ids choose."""

from __future__ import annotations

import functools

import numpy as np

from spgraph.backends.cuda.entrywise.edge_parallel import (
    Kept,
    as_bits,
    empty_pattern,
    result_types,
    row_tiles,
    sized_kernel,
    sweep,
    tiles_of,
)
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.backends.cuda.structure.transpose import transpose
from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import Array, array_module


@jit.on_device
def extract_matrix(A: Matrix, rows: Array | None, columns: Array | None) -> Matrix:
    """T[k, l] = A[rows[k], columns[l]]; None stands for all rows or columns.

    Rows alone: a launch and a running sum for where they begin, one read back, a launch that reads
    and writes what is taken. Ascending columns, each once: the columns of the rows taken are read
    first, looked up in a table of all columns (two launches, a running sum and a read back more).
    Columns in any other order: the same for the distinct ones, sorted, then two transposes.
    """
    xp = array_module(A._indices)
    if rows is not None:
        rows = xp.ascontiguousarray(rows)
    if columns is None:
        return _taken(A, rows, None)
    columns = xp.ascontiguousarray(columns)
    if columns.size < 2 or bool((columns[1:] > columns[:-1]).all()):
        return _taken(A, rows, columns)
    distinct, places = xp.unique(columns, return_inverse=True)
    return transpose(_taken(transpose(_taken(A, rows, distinct)), places, None))


def _taken(A: Matrix, rows: Array | None, columns: Array | None) -> Matrix:
    """T[k, l] = A[rows[k], columns[l]] for ascending columns, each once."""
    xp = array_module(A._indices)
    nrows = A.nrows if rows is None else rows.size
    ncols = A.ncols if columns is None else columns.size
    index = np.dtype(np.int32)
    types = preamble.types(
        O=A._indptr.dtype,
        I=A._indices.dtype,
        V=as_bits(A._values).dtype,
        S=A._indptr.dtype if rows is None else np.dtype(np.int64),
        K=index if rows is None else rows.dtype,
        C=index if columns is None else columns.dtype,
    )

    kernel = functools.partial(sized_kernel, "matrix_extract", types, (nrows, ncols))
    if rows is None:
        starts, count, tiles, taken = A._indptr, A.nvals, tiles_of(A), jit.NULL
    else:
        lengths = xp.empty(nrows + 1, np.int64)
        jit.sweep(kernel("row_lengths", 0), nrows, A._indptr, rows, nrows, lengths)
        starts = xp.cumsum(lengths)
        count, taken = int(starts[-1]), rows
        tiles = row_tiles(starts, count)
    lookup = jit.NULL, 0, jit.NULL
    bits = before = jit.NULL
    nvals = count
    if columns is not None and count:
        table = jit.NULL
        if ncols and A.ncols <= 16 * count + (1 << 20):
            table = xp.full(A.ncols, -1, result_types(nrows, ncols, 0)["N"])
            table[columns] = xp.arange(ncols, dtype=table.dtype)
        lookup = columns, ncols, table
        given = A._indptr, A._indices, taken, starts, tiles, count
        kept = Kept.empty(xp, count)
        sweep(kernel("count_columns", count), count, *given, *lookup, *kept)
        (bits, before), nvals = kept.counted()
    z_indptr, z_indices = empty_pattern(xp, nrows, ncols, nvals)
    z = A._values.copy() if A.iso else xp.empty(nvals, A.dtype)
    values = jit.NULL if A.iso else as_bits(z)
    sweep(
        kernel("take_rows", nvals),
        max(count, nrows),
        *(A._indptr, A._indices, as_bits(A._values), taken, starts, tiles, nrows, count),
        *(*lookup, bits, before, z_indptr, z_indices, values),
    )
    return Matrix._of(nrows, ncols, z_indptr, z_indices, z, iso=A.iso)
