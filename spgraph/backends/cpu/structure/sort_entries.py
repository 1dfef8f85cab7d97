"""Rows of sorted entries from coordinates in any order, by a radix sort on all cores."""

from __future__ import annotations

import numpy as np

from spgraph.backends.cpu.entrywise.rows import as_pointer
from spgraph.backends.cpu.runtime import jit, memory, pool, preamble
from spgraph.containers.storage.arrays import index_dtype

# buckets, each of which a thread writes to its own cache line, and the bits of a pass within one
BUCKET_BITS, MOST_DIGIT = 9, 11


def sort_entries(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray | None, nrows: int, ncols: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, int]:
    """(row pointers, column ids, values, how many entries repeat the position of the one before) of
    entries sorted by row and column, those of one position in the order given.

    The bits of a row and of a column id together are at most 63. Beside the result it needs a key
    of 8 bytes and a value for each entry, and for the largest bucket two keys and places a thread.
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
    raw = np.empty(0, np.uint8) if values is None else values.view(f"u{values.itemsize}")
    largest = int(np.diff(starts).max())
    spare = threads, 2, largest
    order = np.empty(spare if values is not None else (threads, 2, 0), index_dtype(largest))
    z_ids = memory.empty(rows.size, index_dtype(max(nrows, ncols)))
    z, repeats = memory.empty(raw.size, raw.dtype), np.zeros(1, np.int64)
    pool.launch(
        *(kernels.sort_entries, threads, rows, columns, raw, *given, digit, passes),
        *(places, starts, memory.empty(rows.size, np.uint64), memory.empty(raw.size, raw.dtype)),
        *(np.empty(spare, np.uint64), order, np.empty((threads, 1 << digit), np.int64)),
        *(np.zeros(1, np.int64), repeats, z_ptr, z_ids, z),
    )
    np.cumsum(z_ptr, out=z_ptr)
    return (
        as_pointer(z_ptr),
        z_ids,
        None if values is None else z.view(values.dtype),
        int(repeats[0]),
    )
