"""What every text format parses to, and the Matrix that it makes."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import numpy as np
import scipy.sparse

from spgraph.containers import Matrix
from spgraph.containers.arrays import index_dtype


@dataclasses.dataclass(frozen=True)
class Coordinates:
    """The entries a file lists, ids from 0; `values` is None for a pattern.

    `undirected` means that the file lists each edge once and means both directions. `duplicates`
    says how values at the same position combine.
    """

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray | None
    nrows: int
    ncols: int
    undirected: bool = False
    duplicates: Literal["min", "plus"] = "min"

    def to_matrix(self) -> Matrix:
        """The Matrix, mirrored if the edges are undirected."""
        if self.undirected:
            both = mirror(self.rows, self.columns, self.values)
            return assemble(*both, self.nrows, self.ncols, self.duplicates, symmetric=True)
        entries = self.rows, self.columns, self.values
        return assemble(*entries, self.nrows, self.ncols, self.duplicates, symmetric=None)


def mirror(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The entries and, of those off the diagonal, the transposed ones behind them."""
    off = np.flatnonzero(rows != columns)
    both = np.concatenate([rows, columns[off]]), np.concatenate([columns, rows[off]])
    return *both, None if values is None else np.concatenate([values, values[off]])


def assemble(
    rows: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray | None,
    nrows: int,
    ncols: int,
    duplicates: str,
    symmetric: bool | None,
) -> Matrix:
    """The Matrix of entries in range, an iso pattern without values.

    SciPy's counting sort by row, then by column in each row, is several times faster than sorting
    positions.
    """
    data = np.ones(rows.size, bool) if values is None else values
    coo = scipy.sparse.coo_array((data, (rows, columns)), shape=(nrows, ncols))
    coo.has_canonical_format = True  # or tocsr would sum duplicates
    S = coo.tocsr()
    S.has_sorted_indices = False
    S.sort_indices()
    indptr, indices, stored = S.indptr, S.indices, S.data
    fresh = np.ones(indices.size, bool)
    np.not_equal(indices[1:], indices[:-1], out=fresh[1:])
    fresh[indptr[:-1][indptr[:-1] < indices.size]] = True  # equal ids in different rows
    if not fresh.all():
        starts = np.flatnonzero(fresh)
        indptr = np.searchsorted(starts, indptr).astype(indptr.dtype)
        indices = indices[starts]
        if values is not None:
            combine = np.fmin if duplicates == "min" else np.add
            stored = combine.reduceat(stored, starts)
    indices = indices.astype(index_dtype(max(nrows, ncols)), copy=False)
    stored = np.ones(1, bool) if values is None else stored
    return Matrix(nrows, ncols, indptr, indices, stored, iso=values is None, symmetric=symmetric)


def symmetrised(A: Matrix) -> Matrix:
    """A with every edge both ways; where both were there, the lesser value counts for both."""
    rows, columns, values = A.to_coo()
    one: Any = None
    if A.iso:
        values, one = None, A._values
    B = assemble(*mirror(rows, columns, values), A.nrows, A.ncols, "min", symmetric=True)
    if one is not None:
        B = Matrix(B.nrows, B.ncols, B._indptr, B._indices, one, iso=True, symmetric=True)
    return B
