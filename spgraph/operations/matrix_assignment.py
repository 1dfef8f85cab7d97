"""assign to a Matrix: the value is laid out as a Matrix T of w's shape, and then written."""

from __future__ import annotations

from bisect import bisect_left
from types import ModuleType
from typing import Any, NamedTuple, Self

import numpy as np

from spgraph import checks, scalars
from spgraph.containers import Mask, Matrix, Vector
from spgraph.containers.annotations import BinaryLike
from spgraph.containers.storage.arrays import INT64_MAX, Array, array_module, index_dtype
from spgraph.containers.storage.numbers import is_integer
from spgraph.containers.storage.values import same_numbers
from spgraph.errors import DimensionMismatch
from spgraph.operations.indices import index_array, is_all, one_index
from spgraph.operations.repeats import folded, has_repeats, refuse_repeats, widened
from spgraph.semirings import Function, binary, indexunary
from spgraph.steps import backend, fitted, is_distributed, write


def assign_matrix(
    w: Matrix,
    value: Any,
    indices: object,
    columns: object,
    mask: Mask | None,
    accum: BinaryLike | None,
    replace: bool,
) -> Matrix:
    """See `assign`."""
    checks.output("assign", w.shape, w.device, mask, accum, replace, w)
    if is_distributed(w):
        checks.same_device(
            "assign", w=w, value=value if isinstance(value, Vector | Matrix) else None
        )
        at = [
            ids.to_numpy() if isinstance(ids, Vector) and is_distributed(ids) else ids
            for ids in (indices, columns)
        ]
        return backend(w.device).assign_matrix(w, value, *at, mask, accum, replace)
    if mask is None and accum is None and _put(w, indices, columns, value):
        return w
    region = Region.of(w, indices, columns)
    V = _value_matrix(w, value, region)
    if V is None:
        value = scalars.stored("assign", "value", value, w.dtype, combined=accum is not None)
    function = checks.accumulator("assign", accum, w, value.dtype if V is None else V.dtype)
    if function is None:
        refuse_repeats("indices", region.rows)
        refuse_repeats("columns", region.cols)
    if V is None and (function is None or not region.has_repeats):
        T = _filled(w, value, region, mask)
        if function is None and not region.is_whole:
            function = binary.second.resolve(w.dtype, T.dtype)
    else:
        if V is None:
            V = _iso_matrix(array_module(w._indices), region.shape, value)
        T, function = _written(w, V, region, mask, accum, function)
    write("assign", w, T, mask, function, replace)
    return w


def _put(w: Matrix, i: Any, j: Any, value: Any) -> bool:
    """w[i, j] = value, without a kernel; False, and nothing happens, unless that is a number at one
    position of a Matrix on the CPU.
    """
    one = is_integer(i) and is_integer(j) and not checks.is_container(value) and np.ndim(value) == 0
    if not one or w.device != "cpu":
        return False
    row = one_index("assign", "indices", i, w.nrows)
    column = one_index("assign", "columns", j, w.ncols)
    number = scalars.stored("assign", "value", value, w.dtype)
    start, stop = w._indptr[row : row + 2].tolist()
    # NumPy's search would convert the ids of the whole Matrix for a position of another type
    at = bisect_left(w._indices, column, start, stop)
    there = at < stop and bool(w._indices[at] == column)
    indptr, indices, values = w._indptr, w._indices, w._values
    if not there:
        indptr = indptr.astype(index_dtype(w.nvals + 1))
        indptr[row + 1 :] += 1
        indices = _replaced(indices, at, at, column)
    iso = w.iso and bool(same_numbers(values, number).all())
    if not iso:
        values = _replaced(w._expanded_values(), at, at + there, number)
    w._become(Matrix._of(*w.shape, indptr, indices, values, iso=iso))
    return True


def _replaced(array: np.ndarray, start: int, stop: int, number: Any) -> np.ndarray:
    """A copy with the number in place of array[start:stop]."""
    return np.concatenate((array[:start], [number], array[stop:]), dtype=array.dtype)


class Region(NamedTuple):
    """The rows and columns of a Matrix that are assigned to; None: all."""

    rows: Array | None
    cols: Array | None
    shape: tuple[int, int]  # how many of each, repeated ones included
    is_column: bool  # whether an integer names the only column ...
    is_row: bool  # ... or row

    @classmethod
    def of(cls, w: Matrix, indices: object, columns: object) -> Self:
        """The region of w that the user has named, checked."""
        rows, cols = _ids(w, indices, 0), _ids(w, columns, 1)
        shape = (
            w.nrows if rows is None else int(rows.size),
            w.ncols if cols is None else int(cols.size),
        )
        return cls(rows, cols, shape, is_integer(columns), is_integer(indices))

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole Matrix."""
        return self.rows is None and self.cols is None

    @property
    def has_repeats(self) -> bool:
        """Whether a row or column is named twice."""
        given = [ids for ids in (self.rows, self.cols) if ids is not None]
        return any(has_repeats(array_module(ids).sort(ids)) for ids in given)

    def inside(self, A: Matrix) -> Array:
        """For each entry of A, whether it lies in the region."""
        xp = array_module(A._indices)
        inside = xp.ones(A.nvals, bool)
        for ids, at, size in (
            (self.rows, A.row_indices, A.nrows),
            (self.cols, lambda: A._indices, A.ncols),
        ):
            if ids is not None:
                flags = xp.zeros(size, bool)
                flags[ids] = True
                inside &= flags[at()]
        return inside


def _ids(w: Matrix, indices: object, axis: int) -> Array | None:
    """Rows or columns, checked; None for all."""
    argument = ("indices", "columns")[axis]
    if is_integer(indices):
        one = one_index("assign", argument, indices, w.shape[axis])
        return index_array("assign", [one], w.shape[axis], w.device, argument)
    if is_all(indices):
        return None
    return index_array("assign", indices, w.shape[axis], w.device, argument)


def _value_matrix(w: Matrix, value: Any, region: Region) -> Matrix | None:
    """The value as a Matrix of the region's shape; None for a scalar."""
    if not checks.is_container(value) and np.ndim(value) == 0:
        return None
    value, shape = checks.operand("assign", "value", value), region.shape
    checks.same_device("assign", w=w, value=value)
    if isinstance(value, Matrix):
        checks.same_shape("assign", "value", value, "the region", shape)
        return value
    if region.is_row == region.is_column:
        raise DimensionMismatch(
            f"assign: value: expected a Matrix of {shape[0]} x {shape[1]}, got a Vector; "
            "it is for one row or column, named by an integer"
        )
    extent = shape[1] if region.is_row else shape[0]
    checks.same_size("assign", "value.size", value.size, "the region's", extent)
    v = value.to_sparse()
    assert v._indices is not None
    xp = array_module(v._values)
    if region.is_row:
        indptr = xp.asarray([0, v.nvals], index_dtype(v.nvals))
        return Matrix._of(1, value.size, indptr, v._indices, v._values)
    indptr = xp.zeros(value.size + 1, index_dtype(v.nvals))
    indptr[v._indices + 1] = 1
    indptr = xp.cumsum(indptr, dtype=indptr.dtype)
    return Matrix._of(value.size, 1, indptr, xp.zeros_like(v._indices), v._values)


def _filled(w: Matrix, value: Any, region: Region, mask: Mask | None) -> Matrix:
    """`value` at the positions of the region that the mask may allow: its own where it is not
    complemented, else all.
    """
    xp = array_module(w._indices)
    if mask is None or mask.complement:
        return _iso_matrix(xp, w.shape, value, region.rows, region.cols)
    M = mask.parent
    assert isinstance(M, Matrix)
    if not mask.structure:
        true = indexunary.valuene.resolve(M.dtype, np.dtype(np.int64))
        M = backend(w.device).select_matrix(M, true, np.int64(0))
    if not region.is_whole:
        M = M._filtered(region.inside(M))
    values = xp.full(1, value, value.dtype)
    return Matrix._of(w.nrows, w.ncols, M._indptr, M._indices, values, iso=True)


def _iso_matrix(
    xp: ModuleType,
    shape: tuple[int, int],
    value: Any,
    rows: Array | None = None,
    cols: Array | None = None,
) -> Matrix:
    """The iso Matrix of `shape` with `value` at every position of these rows and columns."""
    nrows, ncols = shape
    dtype = index_dtype(max(shape))
    ascending = xp.arange(ncols, dtype=dtype) if cols is None else xp.sort(cols).astype(dtype)
    lengths = xp.zeros(nrows + 1, np.int64)
    lengths[slice(1, None) if rows is None else rows + 1] = ascending.size
    indptr = xp.cumsum(lengths)
    indptr = indptr.astype(index_dtype(int(indptr[-1])))
    count = nrows if rows is None else int(rows.size)
    values = xp.full(1, value, value.dtype)
    return Matrix._of(nrows, ncols, indptr, xp.tile(ascending, count), values, iso=True)


def _written(
    w: Matrix,
    V: Matrix,
    region: Region,
    mask: Mask | None,
    accum: BinaryLike | None,
    function: Function | None,
) -> tuple[Matrix, Function | None]:
    """(the Matrix of w's shape that w is to take, by which function of w's entries and its own)."""
    T, combined = _placed(w, V, region, accum, function)
    borrowed = T._transient
    if function is None or combined:
        T = fitted("assign", T, w.dtype, mask)
    if borrowed:  # w may take over its arrays, which are somebody else's
        T = T.dup()
    if not combined and (function is not None or region.is_whole):
        return T, function
    # positions outside of the region keep their entries: a union that prefers T
    if not combined and V.nvals < region.shape[0] * region.shape[1]:
        # what the value lacks empties w inside of the region: Z = (w outside) and T, of w's type,
        # because the entries outside are to stay what they are
        outside = w._filtered(~region.inside(w))
        second = binary.second.resolve(w.dtype, w.dtype)
        return backend(w.device).ewise_matrix(outside, T, second, True), None
    return T, binary.second.resolve(w.dtype, T.dtype)


def _placed(
    w: Matrix, V: Matrix, region: Region, accum: BinaryLike | None, function: Function | None
) -> tuple[Matrix, bool]:
    """(the Matrix of w's shape with V in the region, whether repeats were folded into w's own)."""
    if region.is_whole:
        return V, False
    if w.nrows * w.ncols > INT64_MAX:
        raise OverflowError(
            f"assign: expected a Matrix of at most 2**63 - 1 positions, got {w.nrows} x {w.ncols}"
        )
    at, to = V.row_indices(), V._indices
    at = at if region.rows is None else region.rows[at]
    to = to if region.cols is None else region.cols[to]
    keys = at.astype(np.int64) * w.ncols + to
    values = V._expanded_values()
    xp = array_module(keys)
    again = False
    if not bool((keys[1:] > keys[:-1]).all()):
        order = xp.argsort(keys, kind="stable")
        keys, values = keys[order], values[order]
        again = has_repeats(keys)
    if again:
        op = checks.binary("assign", "accum", accum)
        own = w.row_indices().astype(np.int64) * w.ncols + w._indices
        flat = Vector._of(w.nrows * w.ncols, w._expanded_values(), indices=own)
        keys, values = folded(keys, *widened(flat, values, op, function))
    indptr = xp.zeros(w.nrows + 1, index_dtype(int(keys.size)))
    xp.cumsum(xp.bincount(keys // max(w.ncols, 1), minlength=w.nrows), out=indptr[1:])
    columns = (keys % max(w.ncols, 1)).astype(index_dtype(max(w.shape)))
    return Matrix._of(w.nrows, w.ncols, indptr, columns, values), again
