"""What every text format parses to, and the Matrix that it makes."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import numpy as np
import scipy.sparse

from spgraph.build import check_row_pointers, relabelled
from spgraph.containers import Matrix, memory
from spgraph.containers.arrays import index_dtype
from spgraph.errors import FormatError


@dataclasses.dataclass(frozen=True)
class Coordinates:
    """The entries the file at `path` lists, ids from 0; `values` is None for a pattern.

    `undirected` means that the file lists each edge once and means both directions. `duplicates`
    says how values at the same position combine.
    """

    path: str
    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray | None
    nrows: int
    ncols: int
    undirected: bool = False
    duplicates: Literal["min", "plus"] = "min"

    def check_size(self, compact: bool | None) -> None:
        """MemoryError where the Matrix would be large beside its entries; see `read`."""
        count = self.rows.size * (1 + self.undirected)
        each = self.rows.itemsize + self.columns.itemsize
        each += 0 if self.values is None else self.values.itemsize
        square = self.nrows == self.ncols
        check_row_pointers(self.path, self.nrows, count, count * each, compact, square=square)

    def compacted(self) -> tuple[Coordinates, np.ndarray]:
        """The entries between the vertices that have any, and the ids of these."""
        check_square(self.path, self.nrows, self.ncols)
        memory.require(
            64 * self.rows.size, f"{self.path}: finding the ids of {self.rows.size:,} edges"
        )
        ids, rows, columns = relabelled(self.rows, self.columns)
        small = {"rows": rows, "columns": columns, "nrows": ids.size, "ncols": ids.size}
        return dataclasses.replace(self, **small), ids

    def to_matrix(self) -> Matrix:
        """The Matrix, mirrored if the edges are undirected."""
        arrays = self.rows, self.columns, self.values
        nbytes = sum(array.nbytes for array in arrays if array is not None)
        nbytes *= 3 if self.undirected else 1  # both directions, then the rows of both
        memory.require(nbytes, f"{self.path}: sorting {self.rows.size:,} entries")
        try:
            if not self.undirected:
                entries = self.rows, self.columns, self.values
                return assemble(*entries, self.nrows, self.ncols, self.duplicates, symmetric=None)
            entries = mirror(self.rows, self.columns, self.values)
            count = entries[0].size
            A = assemble(*entries, self.nrows, self.ncols, self.duplicates, symmetric=True)
            if A.nvals < count and self.duplicates == "plus" and not A.iso:
                return self._summed_once()
            return A
        except FormatError as error:
            raise FormatError(f"{self.path}: {error}") from error

    def _summed_once(self) -> Matrix:
        """The mirrored Matrix where values are summed: once, below the diagonal, for sums of floats
        depend on their order, and both directions have to be equal.
        """
        low, high = np.minimum(self.rows, self.columns), np.maximum(self.rows, self.columns)
        half = assemble(high, low, self.values, self.nrows, self.ncols, "plus", symmetric=None)
        return assemble(*mirror(*half.to_coo()), self.nrows, self.ncols, "plus", symmetric=True)


def check_square(path: str, nrows: int, ncols: int) -> None:
    """ValueError for a matrix whose rows and columns are not the same vertices."""
    if nrows != ncols:
        raise ValueError(f"compact: expected a square matrix in {path}, got {nrows} x {ncols}")


def compacted_matrix(path: str, A: Matrix) -> tuple[Matrix, np.ndarray]:
    """A between the vertices that have entries, and the ids of these."""
    check_square(path, A.nrows, A.ncols)
    occurs = A.indptr[1:] > A.indptr[:-1]
    occurs[A.indices] = True
    ids = np.flatnonzero(occurs)
    places = np.cumsum(occurs) - 1
    indptr = A.indptr[np.append(ids, A.nrows)]  # rows that are left out have no entries
    indices = places[A.indices].astype(index_dtype(ids.size))
    n, kept = ids.size, A.values
    return Matrix(n, n, indptr, indices, kept, iso=A.iso, symmetric=A.symmetric), ids


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
            stored = combined(stored, starts, duplicates)
    indices = indices.astype(index_dtype(max(nrows, ncols)), copy=False)
    stored = np.ones(1, bool) if values is None else stored
    return Matrix(nrows, ncols, indptr, indices, stored, iso=values is None, symmetric=symmetric)


def combined(values: np.ndarray, starts: np.ndarray, duplicates: str) -> np.ndarray:
    """One value for each group of values, which begin at `starts`; FormatError for a sum that the
    type does not hold.
    """
    if duplicates == "min":
        return np.fmin.reduceat(values, starts)
    sums = np.add.reduceat(values, starts, dtype=values.dtype)
    if values.dtype.kind in "iu":
        bounds = np.iinfo(values.dtype)
        near = np.add.reduceat(values.astype(np.float64), starts)
        ends = np.append(starts[1:], values.size)
        for k in np.flatnonzero((near >= 0.99 * bounds.max) | (near <= 0.99 * bounds.min)):
            exact = sum(values[starts[k] : ends[k]].tolist())
            if exact != sums[k]:
                raise FormatError(
                    f"the values of one position sum up to {exact}, which {values.dtype} does not "
                    "hold; read them with dtype='float64'"
                )
    return sums


def symmetrised(A: Matrix) -> Matrix:
    """A with every edge both ways; where both were there, the lesser value counts for both."""
    nbytes = A.nvals * (2 * A.index_dtype.itemsize + (0 if A.iso else A.dtype.itemsize))
    memory.require(4 * nbytes, f"symmetric: {A.nvals:,} entries both ways: that")
    rows, columns, values = A.to_coo()
    one: Any = None
    if A.iso:
        values, one = None, A._values
    B = assemble(*mirror(rows, columns, values), A.nrows, A.ncols, "min", symmetric=True)
    if one is not None:
        B = Matrix(B.nrows, B.ncols, B._indptr, B._indices, one, iso=True, symmetric=True)
    return B


def check_digits(path: str, values: np.ndarray | None, dtype: np.dtype | None) -> None:
    """FormatError for numbers of a text that are to be integers, but were read as floats too large
    to tell neighbours apart: some of the values are no integers, and one type has to hold all.
    """
    if values is None or dtype is None or dtype.kind not in "iu" or values.dtype.kind != "f":
        return
    large = values[np.abs(values) >= 2.0**53]
    if large.size:
        raise FormatError(
            f"{path}: dtype: expected integers below 2**53 beside decimals, which are read as "
            f"float64, got {large[0]}; write integers without a point or an exponent"
        )
