"""Coordinates: what every file format is parsed to, and how a Matrix is made from them."""

from __future__ import annotations

import dataclasses
from typing import Literal, TypeAlias

import numpy as np

from spgraph import checks
from spgraph.build import combined_rows, relabelled, sort_of
from spgraph.containers import Matrix, memory
from spgraph.containers.interchange.libraries import scipy_sparse
from spgraph.containers.storage.arrays import index_dtype
from spgraph.errors import FormatError
from spgraph.semirings import binary

# offsets of rows, columns, values if there are any
Rows: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray | None]
# entries of a file from which compiling the kernel that sorts them on all cores pays
MANY = 1 << 20


@dataclasses.dataclass(frozen=True)
class Coordinates:
    """The entries listed in the file at `path`, with ids from 0; `values` is None for a pattern.

    `undirected`: the file lists each edge once and means both directions. `duplicates` is the
    operator that combines values at the same position.
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
        """Raise MemoryError if row pointers would dwarf the entries; see `compact` of `read`."""
        count = self.rows.size * (1 + self.undirected)
        each = self.rows.itemsize + self.columns.itemsize
        each += 0 if self.values is None else self.values.itemsize
        square = self.nrows == self.ncols
        checks.row_pointers(self.path, self.nrows, count, count * each, compact, square=square)

    def compacted(self) -> tuple[Coordinates, np.ndarray]:
        """(the entries with vertices renumbered densely, the old id of each new vertex): only
        vertices that have an entry are kept.
        """
        check_square(self.path, self.nrows, self.ncols)
        memory.require(
            64 * self.rows.size, f"{self.path}: finding the ids of {self.rows.size:,} edges"
        )
        ids, rows, columns = relabelled(self.rows, self.columns)
        small = {"rows": rows, "columns": columns, "nrows": ids.size, "ncols": ids.size}
        return dataclasses.replace(self, **small), ids

    def to_matrix(self) -> Matrix:
        """The Matrix; undirected edges are stored in both directions."""
        arrays = self.rows, self.columns, self.values
        nbytes = sum(array.nbytes for array in arrays if array is not None)
        nbytes *= 3 if self.undirected else 1  # both directions, then their compressed rows
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
        """The symmetric Matrix of summed duplicates. They are summed below the diagonal only and
        then mirrored: floating-point sums depend on their order, and both directions must be equal.
        """
        low, high = np.minimum(self.rows, self.columns), np.maximum(self.rows, self.columns)
        half = assemble(high, low, self.values, self.nrows, self.ncols, "plus", symmetric=None)
        return assemble(*mirror(*half.to_coo()), self.nrows, self.ncols, "plus", symmetric=True)


def check_square(path: str, nrows: int, ncols: int) -> None:
    """Raise ValueError for a matrix that is not square."""
    if nrows != ncols:
        raise ValueError(f"compact: expected a square matrix in {path}, got {nrows} x {ncols}")


def compacted_matrix(path: str, A: Matrix) -> tuple[Matrix, np.ndarray]:
    """(A restricted to the vertices that have an entry, the old id of each new vertex)."""
    check_square(path, A.nrows, A.ncols)
    occurs = A.indptr[1:] > A.indptr[:-1]
    occurs[A.indices] = True
    ids = np.flatnonzero(occurs)
    places = np.cumsum(occurs) - 1
    indptr = A.indptr[np.append(ids, A.nrows)]  # rows that are left out have no entries
    indices = places[A.indices].astype(index_dtype(ids.size))
    n, kept = ids.size, A.values
    return Matrix._of(n, n, indptr, indices, kept, iso=A.iso, symmetric=A.symmetric), ids


def mirror(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The entries, followed by the transposed ones of those off the diagonal."""
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
    """The Matrix of entries whose ids are in range; without `values` an iso pattern.

    Many entries go through the backend's sort, which runs on all cores. SciPy's counting sort by
    row, followed by a sort by column within each row, is several times faster than sorting (row,
    column) pairs.
    """
    sort = sort_of(rows, nrows, ncols, MANY)
    if sort is None:
        found = _without_repeats(*_by_scipy(rows, columns, values, nrows, ncols), duplicates)
    else:
        indptr, indices, stored, repeats = sort(rows, columns, values, nrows, ncols)
        if values is None or duplicates == "min":
            found = combined_rows((indptr, indices, stored, repeats), binary.min, "cpu")
        elif repeats:
            found = _without_repeats(indptr, indices, stored, duplicates)
        else:
            found = indptr, indices, stored
    indptr, indices, stored = found
    indices = indices.astype(index_dtype(max(nrows, ncols)), copy=False)
    if values is None or stored is None:
        stored = np.ones(1, bool)
    return Matrix._of(
        nrows, ncols, indptr, indices, stored, iso=values is None, symmetric=symmetric
    )


def _by_scipy(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray | None, nrows: int, ncols: int
) -> Rows:
    """The entries in compressed rows whose columns ascend, repeated positions side by side."""
    data = np.ones(rows.size, bool) if values is None else values
    coo = scipy_sparse().coo_array((data, (rows, columns)), shape=(nrows, ncols))
    coo.has_canonical_format = True  # or tocsr would sum duplicates
    S = coo.tocsr()
    S.has_sorted_indices = False
    S.sort_indices()
    return S.indptr, S.indices, S.data


def _without_repeats(
    indptr: np.ndarray, indices: np.ndarray, values: np.ndarray | None, duplicates: str
) -> Rows:
    """Compressed rows in which the values of repeated positions, side by side, are combined."""
    fresh = np.ones(indices.size, bool)
    np.not_equal(indices[1:], indices[:-1], out=fresh[1:])
    fresh[indptr[:-1][indptr[:-1] < indices.size]] = True  # equal ids in different rows
    if fresh.all():
        return indptr, indices, values
    starts = np.flatnonzero(fresh)
    before = np.zeros(indices.size + 1, indptr.dtype)
    np.cumsum(fresh, out=before[1:])
    stored = None if values is None else combined(values, starts, duplicates)
    return before[indptr], indices[starts], stored


def combined(values: np.ndarray, starts: np.ndarray, duplicates: str) -> np.ndarray:
    """One value per group of equal positions; group k begins at values[starts[k]]. FormatError for
    an integer sum that the type cannot represent.
    """
    if duplicates == "min":
        return np.fmin.reduceat(values, starts)
    with np.errstate(over="ignore", invalid="ignore"):  # of reals they are infinite or NaN
        sums = np.add.reduceat(values, starts, dtype=values.dtype)
    if values.dtype.kind in "iu":
        bounds = np.iinfo(values.dtype)
        near = np.add.reduceat(values.astype(np.float64), starts)
        ends = np.append(starts[1:], values.size)
        for k in np.flatnonzero((near >= 0.99 * bounds.max) | (near <= 0.99 * bounds.min)):
            exact = sum(values[starts[k] : ends[k]].tolist())
            if exact != sums[k]:
                raise FormatError(
                    f"the values of one position sum up to {exact}, which {values.dtype} cannot "
                    "represent; read them with dtype='float64'"
                )
    return sums


def symmetrized(A: Matrix) -> Matrix:
    """A with every edge in both directions; where both exist with different values, both get the
    lesser one.
    """
    nbytes = A.nvals * (2 * A.index_dtype.itemsize + (0 if A.iso else A.dtype.itemsize))
    memory.require(4 * nbytes, f"symmetric: storing {A.nvals:,} entries in both directions")
    rows, columns, values = A.to_coo()
    one: np.ndarray | None = None
    if A.iso:
        values, one = None, A._values
    B = assemble(*mirror(rows, columns, values), A.nrows, A.ncols, "min", symmetric=True)
    if one is not None:
        B = Matrix._of(B.nrows, B.ncols, B._indptr, B._indices, one, iso=True, symmetric=True)
    return B


def check_digits(path: str, values: np.ndarray | None, dtype: np.dtype | None) -> None:
    """FormatError if integers were requested but values were read as float64 and some are 2**53 or
    larger, where float64 skips integers. A column is read as float64 when any of its values is not
    an integer.
    """
    if values is None or dtype is None or dtype.kind not in "iu" or values.dtype.kind != "f":
        return
    large = values[np.abs(values) >= 2.0**53]
    if large.size:
        raise FormatError(
            f"{path}: dtype: expected integers below 2**53 beside decimals, which are read as "
            f"float64, got {large[0]}; write integers without a point or an exponent"
        )
