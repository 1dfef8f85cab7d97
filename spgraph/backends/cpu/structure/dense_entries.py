"""The entries of a dense array."""

from __future__ import annotations

import numpy as np

from spgraph.backends.cpu.entrywise.rows import CHUNKS, launch, pointer_of, row_sizes
from spgraph.backends.cpu.runtime import jit, memory, pool
from spgraph.containers.storage.arrays import index_dtype


def dense_entries(
    array: np.ndarray, present: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(indptr, columns, values) of the elements of `array` that are `present`; both are of two
    dimensions, contiguous, in row-major order.
    """
    (rows, width), size = array.shape, array.size
    threads = pool.threads_for(size)
    parts = max(1 if threads == 1 else CHUNKS * threads, size // pool.PIECE)
    bounds = size * np.arange(parts + 1) // parts
    counts, sizes = np.zeros(parts, np.int64), row_sizes(rows, size)
    kernels, flags = jit.module("dense_entries", ""), present.ravel()
    launch(kernels.count_present, (threads, bounds), width, flags, counts, sizes)
    starts = np.append(0, counts.cumsum())
    columns = memory.empty(int(starts[-1]), index_dtype(max(rows, width)))
    values = memory.empty(columns.size, array.dtype)
    given = width, flags, array.ravel(), starts, columns, values
    launch(kernels.write_present, (threads, bounds), *given)
    return pointer_of(sizes), columns, values
