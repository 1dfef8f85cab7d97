"""Operations that move the entries of matrices: parts, the transpose, the Kronecker product."""

from __future__ import annotations

from typing import Any

import numpy as np

from spgraph.backends.cuda.entrywise.entries import (
    Kept,
    as_bits,
    keep,
    result_types,
    row_tiles,
    sweep,
    tiles_of,
)
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.containers import Matrix
from spgraph.containers.arrays import array_module
from spgraph.semirings import Function

# as in kernels/transpose.cu: the entries that a block sorts, and the bits of a digit at most
PART, WIDTH = 4096, 8
BLOCK = 256


@jit.on_device
def extract_matrix(A: Matrix, rows: Any, columns: Any) -> Matrix:
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


def _taken(A: Matrix, rows: Any, columns: Any) -> Matrix:
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

    def kernel(name: str, nvals: int) -> Any:
        text = types + preamble.types(**result_types(nrows, ncols, nvals))
        return jit.kernel("matrix_extract", name, text)

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
        kept = Kept.room(xp, count)
        sweep(kernel("count_columns", count), count, *given, *lookup, *kept)
        (bits, before), nvals = kept.counted()
    found = result_types(nrows, ncols, nvals)
    z_indptr, z_indices = xp.empty(nrows + 1, found["Q"]), xp.empty(nvals, found["N"])
    z = A._values.copy() if A.iso else xp.empty(nvals, A.dtype)
    values = jit.NULL if A.iso else as_bits(z)
    sweep(
        kernel("take_rows", nvals),
        max(count, nrows),
        *(A._indptr, A._indices, as_bits(A._values), taken, starts, tiles, nrows, count),
        *(*lookup, bits, before, z_indptr, z_indices, values),
    )
    return Matrix(nrows, ncols, z_indptr, z_indices, z, iso=A.iso)


@jit.on_device
def transpose(A: Matrix) -> Matrix:
    """T[j, i] = A[i, j].

    A radix sort by column in passes of at most 8 bits, of 7 for 2^21 columns. An entry of v bytes
    and 32-bit indices costs: first pass 12 + 2v, each further one 20 + 2v, the last 4 less; the
    most memory, beside A, is two lists of entries, 16 + 2v (the result, 4 + v, is part of it). Per
    pass two launches and a running sum; two more sums and A's tiles; nothing is read back.
    """
    xp, count = array_module(A._indices), A.nvals
    types = result_types(A.ncols, A.nrows, count)
    lengths = xp.zeros(A.ncols + 1, types["Q"])
    keys, rows = A._indices, jit.NULL
    values = jit.NULL if A.iso else as_bits(A._values)
    if count:
        counts_type = types["Q"]
        unsigned = np.dtype(f"u{counts_type.itemsize}")
        text = preamble.types(
            O=A._indptr.dtype,
            I=keys.dtype,
            N=types["N"],
            V=as_bits(A._values).dtype,
            C=counts_type,
            Q=unsigned,
        ) + preamble.constants(VALUES=not A.iso)
        tally = jit.kernel("transpose", "transpose_count", text)
        scatter = jit.kernel("transpose", "transpose", text)
        parts = -(-count // PART)
        bits = max(1, (A.ncols - 1).bit_length())
        passes = -(-bits // WIDTH)
        width = -(-bits // passes)
        for k in range(passes):
            at = count, k * width, width, parts
            counts = xp.empty(parts << width, counts_type)
            jit.launch(tally, parts * BLOCK, keys, *at, counts)
            through = xp.cumsum(counts, dtype=counts_type)
            z_keys = xp.empty(count, keys.dtype) if k + 1 < passes else jit.NULL
            z_rows = xp.empty(count, types["N"])
            z_values = jit.NULL if A.iso else xp.empty_like(values)
            jit.launch(
                scatter,
                parts * BLOCK,
                *(A._indptr, tiles_of(A), keys, rows, values, *at, through),
                *(z_keys, z_rows, z_values, lengths),
            )
            keys, rows, values = z_keys, z_rows, z_values
    else:
        rows = xp.empty(0, types["N"])
    indptr = xp.cumsum(lengths, dtype=lengths.dtype)
    z = values.view(A.dtype) if count and not A.iso else A._values.copy()
    return Matrix(A.ncols, A.nrows, indptr, rows, z, iso=A.iso, symmetric=A.symmetric)


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
    return Matrix(nrows, ncols, z_indptr, z_indices, z, iso=iso)
