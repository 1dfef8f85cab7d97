"""GraphBLAS's build: containers from coordinates, with repeated positions combined by an
operator.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from spgraph import checks
from spgraph.containers import Matrix, Vector
from spgraph.containers.annotations import BinaryLike, Device, DType, FromCoo, Scalar
from spgraph.containers.storage.arrays import (
    Array,
    array_module,
    as_array,
    check_device,
    check_extent,
    device_of,
    index_dtype,
    is_cuda,
    move,
    on_device,
)
from spgraph.containers.storage.casting import as_reals, check_wrapped, converted_exactly, storing
from spgraph.containers.storage.numbers import flags_or_none, is_integer
from spgraph.containers.storage.selection import distinct, is_first
from spgraph.containers.storage.sorting import order_of
from spgraph.containers.storage.values import value_dtype
from spgraph.errors import DimensionMismatch, DomainMismatch, IndexOutOfBound
from spgraph.semirings import BinaryOp, Function
from spgraph.steps import backend, fitted

T = TypeVar("T")
# `sort_entries` of a backend
Sort = Callable[[Array, Array, Array | None, int, int], tuple[Array, Array, Array | None, int]]
# entries from which compiling a kernel pays that sorts them faster than NumPy
MANY = 1 << 17


def _where_ids_lie(build: Callable[..., T]) -> Callable[..., T]:
    """`build`, run on its `device` or, for None, on that of its first argument, an array of ids."""

    @functools.wraps(build)
    def run(ids: Array, *arguments: Any, device: str | None, **options: Any) -> T:
        with on_device(device_of(ids) if device is None else check_device(device)):
            return build(ids, *arguments, device=device, **options)

    return run


@_where_ids_lie
def build_vector(
    indices: Array,
    values: Scalar | Sequence[Scalar] | Array,
    *,
    size: int | None,
    dtype: DType | None,
    dup_op: BinaryLike | None,
    device: str | None,
) -> Vector:
    """See `Vector.from_coo`."""
    combine = _operator(dup_op)
    indices, largest = _ids("indices", indices, device)
    size = _extent("size", "indices", largest, size)
    given: Array = values
    scalar = np.ndim(given) == 0
    stored = _values(values, indices, dtype)
    xp = array_module(indices)
    keys = indices.astype(index_dtype(size), copy=True)  # never the caller's own array
    keys, stored, starts = _group(keys, stored, combine, scalar, "indices", lambda key: f"{key}")
    unique = keys if starts is None else keys[starts]
    return Vector._of(size, xp.ascontiguousarray(stored), indices=unique)._conform()


@_where_ids_lie
def build_matrix(
    rows: Array,
    columns: Array,
    values: Scalar | Sequence[Scalar] | Array,
    given: FromCoo,
    *,
    device: str | None,
    compact: bool | None,
) -> Matrix | tuple[Matrix, Array]:
    """See `Matrix.from_coo`; `given` holds its other arguments, all of them."""
    symmetric = given["symmetric"]
    flags_or_none("from_coo", symmetric=symmetric, compact=compact)
    combine = _operator(given["dup_op"])
    at = _positions(rows, columns, given, device)
    if compact:
        at = at.compacted()
    at.check_size()
    iso = np.ndim(cast(Array, values)) == 0 and combine is None
    sort = sort_of(at.rows, at.nrows, at.ncols, MANY)
    stored = _values(values, at.rows, given["dtype"], copy=sort is None)
    entries = at.rows.nbytes + at.columns.nbytes + (0 if iso else stored.nbytes)
    checks.row_pointers("from_coo", at.nrows, at.rows.size, entries, compact, square=at.square)
    if sort is not None:
        found = sort(at.rows, at.columns, None if iso else stored, at.nrows, at.ncols)
        indptr, indices, sums = combined_rows(found, combine, device_of(at.rows))
        pattern, stored = (indptr, indices), stored[:1].copy() if iso else sums
    else:
        pattern, stored = _by_keys(at, stored, combine, iso)
    A = Matrix._of(at.nrows, at.ncols, *pattern, stored, iso=iso, symmetric=symmetric)
    return A if at.ids is None else (A, at.ids)


class Positions(NamedTuple):
    """Where entries are, the shape, whether it may be meant to be square, and, where they were
    numbered anew, the vertices' ids.
    """

    rows: Array
    columns: Array
    nrows: int
    ncols: int
    square: bool
    ids: Array | None = None

    def compacted(self) -> Positions:
        """The same with those rows and columns alone that have entries, numbered 0, 1, ..."""
        if not self.square:
            raise DimensionMismatch(
                f"from_coo: compact: expected a square matrix, got {self.nrows} x {self.ncols}"
            )
        ids, rows, columns = relabelled(self.rows, self.columns)
        return Positions(rows, columns, ids.size, ids.size, True, ids)

    def check_size(self) -> None:
        """ValueError for more positions than keys of 63 bits."""
        if self.nrows * self.ncols > 2**63:
            got = f"{self.nrows} x {self.ncols}"
            raise ValueError(
                f"nrows * ncols: expected at most 2**63 to build from coordinates, got {got}; "
                "compact=True numbers those that have entries 0, 1, ..."
            )


def _positions(rows: Array, columns: Array, given: FromCoo, device: str | None) -> Positions:
    """The positions that the user gave, checked, on `device` or, for None, on that of rows."""
    rows, largest_row = _ids("rows", rows, device)
    there = device_of(rows) if device is None else device
    columns, largest_column = _ids("columns", columns, there)
    if rows.size != columns.size:
        raise DimensionMismatch(
            f"columns: expected {rows.size} indices, one for each of rows, got {columns.size}"
        )
    nrows, ncols = given["nrows"], given["ncols"]
    square = nrows is None or ncols is None or nrows == ncols
    shape = _shape(largest_row, largest_column, nrows, ncols, given["symmetric"])
    return Positions(rows, columns, *shape, square)


def _by_keys(
    at: Positions, stored: Array, dup_op: BinaryOp | None, iso: bool
) -> tuple[tuple[Array, Array], Array]:
    """((indptr, indices), values) by a sort of row * 2**bits + column or row * ncols + column."""
    xp, nrows, ncols = array_module(at.rows), at.nrows, at.ncols
    bits = max(ncols - 1, 0).bit_length()  # in which a column lies behind its row, if they fit
    bits = 0 if max(nrows - 1, 0).bit_length() + bits > 63 else bits
    rows = at.rows.astype(np.int64, copy=False)
    keys = rows << bits if bits else rows * ncols
    keys += at.columns.astype(np.int64, copy=False)
    if iso:  # whose values need no order
        if is_cuda(keys) or bool((keys[1:] >= keys[:-1]).all()):  # as in most files
            keys.sort()
        else:
            keys = keys.take(order_of(keys))
        keys = distinct(keys)
        stored = stored[:1] if stored.size else xp.zeros(1, stored.dtype)
    else:
        keys, stored, starts = _group(
            *(keys, stored, dup_op, False, "rows, columns"),
            lambda key: str(divmod(key, 1 << bits if bits else ncols)),
        )
        keys = keys if starts is None else keys.take(starts)
    return _compressed_rows(keys, nrows, ncols, bits), stored


def relabelled(rows: Array, columns: Array) -> tuple[Array, Array, Array]:
    """(ids, rows, columns): the distinct ids, int64 and ascending, and rows and columns renumbered
    as positions in `ids`.
    """
    xp = array_module(rows)
    both = xp.concatenate([rows.astype(np.int64), columns.astype(np.int64)])
    ids, places = xp.unique(both, return_inverse=True)
    return ids, places[: rows.size], places[rows.size :]


def _operator(dup_op: BinaryLike | None) -> BinaryOp | None:
    return None if dup_op is None else checks.binary("from_coo", "dup_op", dup_op)


def _ids(name: str, given: object, device: str | None) -> tuple[Array, int]:
    """(`given` as a 1-D array of non-negative integers on `device`, the largest, -1 of none)."""
    try:
        ids: Array = as_array(name, given)
    except DomainMismatch:
        _refuse_huge(name, given)
        raise
    if ids.ndim != 1:
        raise DomainMismatch(f"{name}: expected 1 dimension, got {ids.ndim}")
    if ids.size == 0:
        ids = ids.astype(np.int64)
    if ids.dtype.kind not in "iu":
        _refuse_huge(name, given)
        raise DomainMismatch(f"{name}: expected integers, got {ids.dtype}")
    if device is not None:
        ids = move(ids, check_device(device))
    # in one pass: as an unsigned number, one below 0 is greater than those of the signed type
    largest = int(ids.view(ids.dtype.str.replace("i", "u")).max()) if ids.size else -1
    if ids.dtype.kind == "i" and largest >= 1 << (8 * ids.itemsize - 1):
        raise IndexOutOfBound(f"{name}: expected indices >= 0, got {int(ids.min())}")
    return ids, largest


def _refuse_huge(name: str, given: object) -> None:
    """IndexOutOfBound for a list of integers, of which NumPy makes floats or objects where int64
    does not hold one of them.
    """
    if isinstance(given, list | tuple | np.ndarray) and all(map(is_integer, given)):
        least, largest = min(given, default=0), max(given, default=0)
        if least < 0:
            raise IndexOutOfBound(f"{name}: expected indices >= 0, got {least}")
        raise IndexOutOfBound(f"{name}: expected indices below 2**63 - 1, got {largest}")


def _extent(name: str, of: str, largest: int, extent: int | None) -> int:
    """The number of positions: `extent`, checked, or for None the largest id plus 1."""
    if largest >= 2**63 - 1:
        raise IndexOutOfBound(f"{of}: expected indices below 2**63 - 1, got {largest}")
    if extent is None:
        return largest + 1
    extent = check_extent(name, extent)
    if largest >= extent:
        raise IndexOutOfBound(f"{of}: expected indices below {name} = {extent}, got {largest}")
    return extent


def _shape(
    row: int, column: int, nrows: int | None, ncols: int | None, symmetric: bool | None
) -> tuple[int, int]:
    """(nrows, ncols), checked, for the largest ids of both; with `symmetric` equal: one that was
    not given follows the other.
    """
    shape = _extent("nrows", "rows", row, nrows), _extent("ncols", "columns", column, ncols)
    if symmetric:
        shape = max(shape) if nrows is None else shape[0], max(shape) if ncols is None else shape[1]
        if shape[0] != shape[1]:
            raise DimensionMismatch(
                f"symmetric: expected a square matrix, got {shape[0]} x {shape[1]}"
            )
    return shape


def sort_of(rows: Array, nrows: int, ncols: int, many: int) -> Sort | None:
    """The backend's sort of entries at such rows; None where it has none, or for fewer than `many`
    entries, for which it is not worth compiling.
    """
    if rows.size < many or max(nrows - 1, 1).bit_length() + max(ncols - 1, 1).bit_length() > 63:
        return None
    return getattr(backend(device_of(rows)), "sort_entries", None)


def combined_rows(
    found: tuple[Array, Array, Array | None, int], dup_op: BinaryOp | None, device: Device
) -> tuple[Array, Array, Array | None]:
    """(indptr, indices, values) of what `sort_entries` found, entries of one position combined."""
    indptr, indices, values, repeats = found
    if not repeats:
        return indptr, indices, values
    fold = backend(device).fold_entries
    if values is None:
        return fold(indptr, indices, None, None)
    if dup_op is None:
        # also the last of a row and the first of the next, which is no repetition
        again = np.flatnonzero(indices[1:] == indices[:-1])
        rows = np.searchsorted(indptr, again, side="right") - 1
        k = int(np.argmax(indptr[rows + 1] > again + 1))
        raise _repeated("rows, columns", f"({rows[k]}, {indices[again[k]]})")
    dtype = values.dtype
    function, checked = _folding(dtype, dup_op)
    values = values.astype(function.result, copy=False) if checked else values
    reals = as_reals(values, dup_op.name if dup_op.built_in else "", repeats)
    if reals is not None:
        copies = indptr.copy(), indices.copy(), reals
        reals = fold(*copies, _folding(reals.dtype, dup_op)[0])[2]
    indptr, indices, values = fold(indptr, indices, values, function)
    if reals is not None:
        check_wrapped("from_coo: dup_op", values, reals)
    if checked:
        values = fitted("from_coo: dup_op", Vector._of(values.size, values), dtype)._values
    return indptr, indices, values


def _repeated(name: str, position: str) -> ValueError:
    return ValueError(
        f"{name}: position {position} is given more than once; give an operator that combines the "
        "values, such as dup_op=spgraph.semirings.binary.plus"
    )


def _compressed_rows(keys: Array, nrows: int, ncols: int, bits: int) -> tuple[Array, Array]:
    """(indptr, indices) of the distinct, ascending keys of `_by_keys`."""
    xp = array_module(keys)
    indptr = xp.zeros(nrows + 1, index_dtype(keys.size))
    row_of = keys >> bits if bits else keys // max(ncols, 1)
    xp.bincount(row_of, minlength=nrows).cumsum(out=indptr[1:])
    columns = keys & (1 << bits) - 1 if bits else keys - row_of * ncols
    return indptr, columns.astype(index_dtype(max(nrows, ncols)))


def _values(
    given: Scalar | Sequence[Scalar] | Array, ids: Array, dtype: DType | None, copy: bool = True
) -> Array:
    """`given` as an array of ids.size values of a GraphBLAS type, on the device of `ids`; without
    `copy` perhaps the array given.
    """
    xp = array_module(ids)
    values: Array = as_array("values", given)
    values = move(values if is_cuda(values) else np.asarray(values), device_of(ids))
    if dtype is None:
        values = values.astype(value_dtype(values.dtype), copy=copy and values.ndim > 0)
    else:
        values = converted_exactly("values", values, dtype)
    if values.ndim == 0:
        return xp.full(ids.size, values)
    if values.shape != (ids.size,):
        raise DimensionMismatch(
            f"values: expected a scalar or {ids.size} values, one for each index, "
            f"got {values.shape}"
        )
    return values


def _group(
    keys: Array,
    values: Array,
    dup_op: BinaryOp | None,
    scalar: bool,
    name: str,
    show: Callable[[int], str],
) -> tuple[Array, Array, Array | None]:
    """(sorted keys, one value per group of equal keys, the start of each group); starts are None if
    all keys differ.
    """
    if not keys.size or bool((keys[1:] > keys[:-1]).all()):  # as in most files
        return keys, values, None
    order = order_of(keys)
    keys, values = keys.take(order), values.take(order)
    first = is_first(keys)
    if bool(first.all()):
        return keys, values, None
    (starts,) = first.nonzero()
    if dup_op is None and scalar:
        return keys, values[starts], starts
    if dup_op is None:
        where = int(keys[1:][keys[1:] == keys[:-1]][0])
        raise _repeated(name, show(where))
    return keys, _combined(values, starts, dup_op), starts


def _combined(values: Array, starts: Array, dup_op: BinaryOp) -> Array:
    """One value per group, in the type of `values`; OverflowError for one that it cannot take."""
    dtype, fold = values.dtype, backend(device_of(values)).reduce_segments
    function, checked = _folding(dtype, dup_op)
    if not checked:
        made = fold(values, starts, function, dtype)
        reals = as_reals(values, dup_op.name if dup_op.built_in else "", values.size)
        if reals is not None:
            function = _folding(reals.dtype, dup_op)[0]
            check_wrapped("from_coo: dup_op", made, fold(reals, starts, function, reals.dtype))
        return made
    z = fold(values.astype(function.result), starts, function, function.result)
    return fitted("from_coo: dup_op", Vector._of(z.size, z), dtype)._values


@functools.lru_cache(maxsize=1024)
def _folding(dtype: np.dtype, dup_op: BinaryOp) -> tuple[Function, bool]:
    """(dup_op of values of `dtype`, whether it is of a wider type, and what it gives is to be
    checked: integers of a user's operator have 64 bits); DomainMismatch if `dtype` cannot take it.
    """
    function = checks.typed("from_coo", dup_op, dtype, dtype)
    checks.storable("from_coo: dup_op", function.result, dtype)
    if storing(function.result, dtype) != "in range":
        return function, False
    return checks.typed("from_coo", dup_op, function.result, function.result), True
