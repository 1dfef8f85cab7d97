"""Where an entry stands in its row."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import Array, import_cupy, is_cuda

CUDA_TEXT = """
    long long low = indptr[i], high = indptr[i + 1], end = high;
    while (low < high) {
        long long middle = low + (high - low) / 2;
        if (indices[middle] < column) low = middle + 1;
        else high = middle;
    }
    place = low < end && indices[low] == column ? low : -1;
"""


def positions(A: Matrix, columns: Array) -> Array:
    """For each row its entry in the column of `columns`, as a position among all entries, int64;
    -1 where there is none. The columns of each row of A ascend; a column may be -1.
    """
    if is_cuda(columns):
        return _search()(columns.astype(np.int64, copy=False), A._indptr, A._indices)
    low = A._indptr[:-1].astype(np.int64)
    end = A._indptr[1:].astype(np.int64)
    low[columns < 0] = end[columns < 0]
    high = end.copy()
    rows = np.flatnonzero(low < high)
    while rows.size:  # those whose range has more than nothing in it
        middle = (low[rows] + high[rows]) >> 1
        less = A._indices[middle] < columns[rows]
        low[rows[less]] = middle[less] + 1
        high[rows[~less]] = middle[~less]
        rows = rows[low[rows] < high[rows]]
    found = np.flatnonzero(low < end)
    found = found[A._indices[low[found]] == columns[found]]
    place = np.full(columns.size, -1, np.int64)
    place[found] = low[found]
    return place


@cache
def _search() -> Any:
    return import_cupy().ElementwiseKernel(
        "int64 column, raw P indptr, raw I indices", "int64 place", CUDA_TEXT, "spgraph_positions"
    )
