"""The rows of a matrix binned by their number of entries, so that warps get tasks of about the same
size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import Array, array_module, index_dtype

# as in kernels/gather.cuh: entries of a piece of a split row, of the longest narrow row, of the
# longest single one
PIECE, NARROW, SINGLE = 1024, 32, 4


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
    """The bins of A's rows, found once and kept with A."""
    if "row_bins" not in A._derived:
        A._derived["row_bins"] = bin_rows(A._indptr[1:] - A._indptr[:-1])
    return A._derived["row_bins"]


def bin_rows(degrees: Array) -> RowBins:
    """The bins of rows of these lengths. About 20 launches, five read-backs."""
    xp = array_module(degrees)
    parts = [xp.flatnonzero(degrees > PIECE)]
    for low, high in ((NARROW, PIECE), (SINGLE, NARROW), (0, SINGLE)):
        parts.append(xp.flatnonzero((degrees > low) & (degrees <= high)))
    rows = xp.concatenate(parts).astype(index_dtype(degrees.size))
    piece_first, piece_row = xp.zeros(parts[0].size + 1, np.int64), xp.empty(0, np.int32)
    if parts[0].size:
        pieces = (degrees[parts[0]].astype(np.int64) + (PIECE - 1)) // PIECE
        piece_first[1:] = xp.cumsum(pieces)
        places = xp.arange(int(piece_first[-1]))
        piece_row = xp.searchsorted(piece_first[1:], places, side="right").astype(np.int32)
    split, wide, narrow, single = (int(part.size) for part in parts)
    return RowBins(rows, split, wide, narrow, single, piece_row, piece_first)
