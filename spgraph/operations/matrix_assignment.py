"""assign to a Matrix: the value is laid out as a Matrix T of w's shape, and then written."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from spgraph import checks, scalars
from spgraph.containers import Mask, Matrix, Vector
from spgraph.containers.annotations import BinaryLike
from spgraph.containers.storage.arrays import INT64_MAX, Array, array_module, index_dtype
from spgraph.containers.storage.numbers import is_integer
from spgraph.errors import DimensionMismatch
from spgraph.operations.indices import index_array, one_index
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
    rows, many_rows = _ids(w, indices, 0)
    cols, many_columns = _ids(w, columns, 1)
    shape = (
        w.nrows if rows is None else int(rows.size),
        w.ncols if cols is None else int(cols.size),
    )
    V = _region(w, value, shape, many_rows, many_columns)
    if V is None:
        value = scalars.stored("assign", "value", value, w.dtype, combined=accum is not None)
    function = checks.accumulator("assign", accum, w, value.dtype if V is None else V.dtype)
    if function is None:
        refuse_repeats("indices", rows)
        refuse_repeats("columns", cols)
    on = backend(w.device)
    if V is None:
        if not any(ids is not None and has_repeats(_sorted(ids)) for ids in (rows, cols)):
            T = _filled(w, value, rows, cols, mask)
            if function is None and _partial(rows, cols):
                function = binary.second.resolve(w.dtype, T.dtype)
            write("assign", w, T, mask, function, replace)
            return w
        V = _iso_region(array_module(w._indices), shape, value, None, None)
    T, combined = _placed(w, V, rows, cols, accum, function)
    borrowed = T._transient
    if function is None or combined:
        T = fitted("assign", T, w.dtype, mask)
    if borrowed:  # w may take over its arrays, which are somebody else's
        T = T.dup()
    if combined or (function is None and _partial(rows, cols) and V.nvals == shape[0] * shape[1]):
        # positions outside of the region keep their entries: a union that prefers T
        function = binary.second.resolve(w.dtype, T.dtype)
    elif function is None and _partial(rows, cols):
        # what the value lacks empties w inside of the region: Z = (w outside) and T, of w's type,
        # because the entries outside are to stay what they are
        outside = w._filtered(~_inside(w, rows, cols))
        T = on.ewise_matrix(outside, T, binary.second.resolve(w.dtype, w.dtype), True)
    write("assign", w, T, mask, function, replace)
    return w


def _ids(w: Matrix, indices: object, axis: int) -> tuple[Array | None, bool]:
    """(checked rows or columns, None for all; whether they make a dimension of the value)."""
    argument = ("indices", "columns")[axis]
    if is_integer(indices):
        one = one_index("assign", argument, indices, w.shape[axis])
        return index_array("assign", [one], w.shape[axis], w.device, argument), False
    if indices is None or (isinstance(indices, slice) and indices == slice(None)):
        return None, True
    return index_array("assign", indices, w.shape[axis], w.device, argument), True


def _region(
    w: Matrix, value: Any, shape: tuple[int, int], many_rows: bool, many_columns: bool
) -> Matrix | None:
    """The value as a Matrix of the region's shape; None for a scalar."""
    if not checks.is_container(value) and np.ndim(value) == 0:
        return None
    value = checks.operand("assign", "value", value)
    checks.same_device("assign", w=w, value=value)
    if isinstance(value, Matrix):
        checks.same_shape("assign", "value", value, "the region", shape)
        return value
    if many_rows == many_columns:
        raise DimensionMismatch(
            f"assign: value: expected a Matrix of {shape[0]} x {shape[1]}, got a Vector; "
            "it is for one row or column, named by an integer"
        )
    extent = shape[1] if many_columns else shape[0]
    checks.same_size("assign", "value.size", value.size, "the region's", extent)
    v = value.to_sparse()
    assert v._indices is not None
    xp = array_module(v._values)
    if many_columns:
        indptr = xp.asarray([0, v.nvals], index_dtype(v.nvals))
        return Matrix._of(1, value.size, indptr, v._indices, v._values)
    indptr = xp.zeros(value.size + 1, index_dtype(v.nvals))
    indptr[v._indices + 1] = 1
    indptr = xp.cumsum(indptr, dtype=indptr.dtype)
    return Matrix._of(value.size, 1, indptr, xp.zeros_like(v._indices), v._values)


def _partial(rows: Array | None, cols: Array | None) -> bool:
    return rows is not None or cols is not None


def _sorted(ids: Array) -> Array:
    return array_module(ids).sort(ids)


def _filled(
    w: Matrix, value: Any, rows: Array | None, cols: Array | None, mask: Mask | None
) -> Matrix:
    """`value` at the positions of the region that the mask may allow: its own where it is not
    complemented, else all.
    """
    xp = array_module(w._indices)
    if mask is None or mask.complement:
        return _iso_region(xp, w.shape, value, rows, cols)
    M = mask.parent
    assert isinstance(M, Matrix)
    if not mask.structure:
        true = indexunary.valuene.resolve(M.dtype, np.dtype(np.int64))
        M = backend(w.device).select_matrix(M, true, np.int64(0))
    if _partial(rows, cols):
        M = M._filtered(_inside(M, rows, cols))
    values = xp.full(1, value, value.dtype)
    return Matrix._of(w.nrows, w.ncols, M._indptr, M._indices, values, iso=True)


def _iso_region(
    xp: ModuleType, shape: tuple[int, int], value: Any, rows: Array | None, cols: Array | None
) -> Matrix:
    """The iso Matrix of `shape` with `value` at every position of the region."""
    nrows, ncols = shape
    kind = index_dtype(max(shape))
    ascending = xp.arange(ncols, dtype=kind) if cols is None else xp.sort(cols).astype(kind)
    lengths = xp.zeros(nrows + 1, np.int64)
    lengths[slice(1, None) if rows is None else rows + 1] = ascending.size
    indptr = xp.cumsum(lengths)
    indptr = indptr.astype(index_dtype(int(indptr[-1])))
    count = nrows if rows is None else int(rows.size)
    values = xp.full(1, value, value.dtype)
    return Matrix._of(nrows, ncols, indptr, xp.tile(ascending, count), values, iso=True)


def _placed(
    w: Matrix,
    V: Matrix,
    rows: Array | None,
    cols: Array | None,
    accum: BinaryLike | None,
    function: Function | None,
) -> tuple[Matrix, bool]:
    """(the Matrix of w's shape with V in the region, whether repeats were folded into w's own)."""
    if not _partial(rows, cols):
        return V, False
    if w.nrows * w.ncols > INT64_MAX:
        raise OverflowError(
            f"assign: expected a Matrix of at most 2**63 - 1 positions, got {w.nrows} x {w.ncols}"
        )
    at, to = V.row_indices(), V._indices
    at, to = at if rows is None else rows[at], to if cols is None else cols[to]
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


def _inside(A: Matrix, rows: Array | None, cols: Array | None) -> Array:
    """For each entry of A, whether it lies in the region."""
    xp = array_module(A._indices)
    inside = xp.ones(A.nvals, bool)
    for ids, at, size in ((rows, A.row_indices, A.nrows), (cols, lambda: A._indices, A.ncols)):
        if ids is not None:
            flags = xp.zeros(size, bool)
            flags[ids] = True
            inside &= flags[at()]
    return inside
