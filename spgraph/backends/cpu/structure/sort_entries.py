"""Rows of sorted entries from coordinates in any order, by a radix sort on all cores."""

from __future__ import annotations

import numpy as np

from spgraph.backends.cpu.entrywise.rows import as_pointer
from spgraph.backends.cpu.runtime import jit, memory, pool, preamble
from spgraph.containers.storage.arrays import index_dtype
from spgraph.semirings import Function

# buckets, each of which a thread writes to its own cache line, and the bits of a pass within one
BUCKET_BITS, MOST_DIGIT = 9, 11


def sort_entries(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray | None, nrows: int, ncols: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, int]:
    """(row pointers, column ids, values, how many entries repeat the position of the one before) of
    entries sorted by row and column, those of one position in the order given.

    The bits of a row and of a column id together are at most 63. Beside the result it needs a key
    for each entry, of 4 bytes up to 41 bits and else of 8, and for the largest bucket two keys and
    places and a value a thread.
    """
    kind = np.promote_types(rows.dtype, columns.dtype)
    kind = np.dtype(np.int32 if kind == np.int32 else np.int64)
    rows, columns = rows.astype(kind, copy=False), columns.astype(kind, copy=False)
    column_bits, row_bits = max(ncols - 1, 1).bit_length(), max(nrows - 1, 1).bit_length()
    shift = max(column_bits + row_bits - BUCKET_BITS, 1)
    passes = -(-shift // MOST_DIGIT)
    digit = -(-shift // passes)
    text = preamble.constants(VALUES=values is not None)
    kernels = jit.module("sort_entries", text)
    threads = pool.threads_for(8 * rows.size)
    given = (np.uint64(column_bits), np.uint64(shift))
    buckets = (((nrows - 1) << column_bits | ncols - 1) >> shift) + 1
    counts, descents = np.zeros((threads, buckets), np.int64), np.zeros(threads, np.int64)
    pool.launch(kernels.count_entries, threads, rows, columns, *given, counts, descents)
    z_ptr = np.zeros(nrows + 1, index_dtype(rows.size))
    if not descents.any():
        np.cumsum(np.bincount(rows, minlength=nrows), out=z_ptr[1:])
        copied = None if values is None else values.copy()
        return z_ptr, columns.astype(index_dtype(max(nrows, ncols))), copied, 0
    places = np.cumsum(counts.T).reshape(buckets, threads)
    starts = np.append(0, places[:, -1])
    places = np.ascontiguousarray((places - counts.T).T)
    largest = int(np.diff(starts).max())
    z = memory.empty(0 if values is None else rows.size, "u1" if values is None else values.dtype)
    raw, given_values = (a.view(f"u{z.itemsize}") for a in (z, z if values is None else values))
    key_type = np.uint32 if shift <= 32 else np.uint64
    spare = threads, 2, largest
    order = np.empty(spare if values is not None else (threads, 2, 0), index_dtype(largest))
    spare_values = np.empty((threads, largest if values is not None else 0), raw.dtype)
    z_ids = memory.empty(rows.size, index_dtype(max(nrows, ncols)))
    repeats = np.zeros(1, np.int64)
    pool.launch(
        *(kernels.sort_entries, threads, rows, columns, given_values, *given, digit, passes),
        *(places, starts, memory.empty(rows.size, key_type), np.empty(spare, key_type), order),
        *(spare_values, np.empty((threads, 1 << digit), np.int64), np.zeros(1, np.int64), repeats),
        *(z_ptr, z_ids, raw),
    )
    np.cumsum(z_ptr, out=z_ptr)
    return as_pointer(z_ptr), z_ids, None if values is None else z, int(repeats[0])


def fold_entries(
    indptr: np.ndarray, indices: np.ndarray, values: np.ndarray | None, op: Function | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The arrays of sorted entries with one for each position: the fold from the left by `op`, cast
    to the type of the values at each step. The arrays given are used up.
    """
    if values is None or op is None:
        text = preamble.constants(VALUES=False)
    else:
        text = preamble.function(op, VALUES=True) + preamble.cast("cast", values.dtype)
    kernel = jit.module("fold_entries", text).fold_entries
    pool.launch(kernel, 1, indptr, indices, np.empty(0, bool) if values is None else values)
    for array in (indices,) if values is None else (indices, values):
        array.resize(int(indptr[-1]), refcheck=False)
    return indptr, indices, values
