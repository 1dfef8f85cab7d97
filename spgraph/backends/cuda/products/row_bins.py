"""The rows of a matrix binned by their number of entries, so that warps get tasks of about the same
size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import Array, array_module, index_dtype, move, words

# as in kernels/gather.cuh: entries of a piece of a split row, of the longest narrow row, of the
# longest single one
PIECE, NARROW, SINGLE = 1024, 32, 4
# rows that a block bins, a multiple of 32 for each of its warps; its threads
WINDOW, THREADS = 1 << 16, 1024


class RowBins(NamedTuple):
    """The rows that have entries, bin by bin, and how many each bin has."""

    rows: Array  # those of the bins one after the other, each bin ascending
    split: int  # more than PIECE entries: cut into pieces
    wide: int  # up to PIECE
    narrow: int  # up to NARROW
    single: int  # up to SINGLE
    piece_row: Array  # for each piece, its place among the split rows
    piece_first: Array  # for each split row, its first piece; and the number of pieces

    @property
    def nonempty(self) -> int:
        return self.split + self.wide + self.narrow + self.single


def row_bins(A: Matrix) -> RowBins:
    """The bins of A's rows, found once and kept with A; with a bit for each row that has entries,
    as `Matrix._nonempty_rows` keeps them.
    """
    if "row_bins" not in A._derived:
        bits = array_module(A._indptr).empty(words(A.nrows), np.uint32)
        A._keep("row_bins", bin_rows(A._indptr, bits))
        A._derived.setdefault("nonempty", bits)
    return A._derived["row_bins"]


def bin_rows(indptr: Array, bits: Array = jit.NULL) -> RowBins:
    """The bins of the rows of these offsets; in `bits`, if given, one is set for each row that has
    entries. Two launches, a fill, one read-back.
    """
    xp, n = array_module(indptr), indptr.size - 1
    kind = index_dtype(n)
    text = preamble.types(O=indptr.dtype, R=kind)
    text += preamble.constants(PIECE=PIECE, NARROW=NARROW, SINGLE=SINGLE)
    count, place = jit.kernels("row_bins", text, "row_bins_count", "row_bins_place")
    windows = max(1, -(-n // WINDOW))
    counts = xp.zeros((windows, 5), np.int64)
    count((windows,), (THREADS,), (indptr, n, WINDOW, counts))
    split, wide, narrow, single, pieces = move(counts, "cpu").sum(axis=0).tolist()
    begins = np.cumsum([split, wide, narrow, single]).tolist()
    rows = xp.empty(begins.pop(), kind)
    piece_row, piece_first = xp.empty(pieces, np.int32), xp.empty(split + 1, np.int64)
    made = rows, piece_row, piece_first, bits
    place((windows,), (THREADS,), (indptr, n, WINDOW, counts, *begins, pieces, *made))
    return RowBins(rows, split, wide, narrow, single, piece_row, piece_first)
