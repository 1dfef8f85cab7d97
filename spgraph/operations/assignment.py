"""assign: values written to parts of a Vector or Matrix."""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from spgraph import checks, scalars
from spgraph.containers import Mask, Matrix, MatrixLike, Vector
from spgraph.containers.annotations import BinaryLike, Indices, Position, Scalar
from spgraph.containers.mask import is_list, true_indices
from spgraph.containers.storage.arrays import (
    Array,
    array_module,
    index_dtype,
    on_its_device,
    pack_bits,
)
from spgraph.containers.storage.numbers import is_integer
from spgraph.errors import DomainMismatch
from spgraph.operations.indices import index_array, one_index
from spgraph.operations.matrix_assignment import assign_matrix
from spgraph.operations.repeats import folded, has_repeats, refuse_repeats, widened
from spgraph.semirings import Function, binary
from spgraph.steps import backend, fitted, is_distributed, write


@overload
def assign(
    w: Vector,
    value: Scalar | Vector,
    indices: Indices | Position | None = ...,
    columns: None = ...,
    *,
    mask: Mask | None = ...,
    accum: BinaryLike | None = ...,
    replace: bool = ...,
) -> Vector: ...


@overload
def assign(
    w: Matrix,
    value: Scalar | Vector | MatrixLike,
    indices: Indices | Position | None = ...,
    columns: Indices | Position | None = ...,
    *,
    mask: Mask | None = ...,
    accum: BinaryLike | None = ...,
    replace: bool = ...,
) -> Matrix: ...


@on_its_device
def assign(
    w: Vector | Matrix,
    value: Scalar | Vector | MatrixLike,
    indices: Indices | Position | None = None,
    columns: Indices | Position | None = None,
    *,
    mask: Mask | None = None,
    accum: BinaryLike | None = None,
    replace: bool = False,
) -> Vector | Matrix:
    """w with `value` written at `indices`: w<mask, replace>(indices) = value, or accum= value; of a
    Matrix, at all pairs of `indices` (rows) and `columns`.

    `value` is a scalar, which stands at every position, or a Vector or Matrix of the region's
    shape; without `accum` its empty positions empty those of w. `indices` and `columns` are 1-D
    arrays of integers, full Vectors of them, slices, or None for all; one integer in place of
    either lets `value` be the Vector of that row or column. `mask` and `replace` are over the whole
    of `w` (GraphBLAS's assign, not SuiteSparse's subassign). An index may be repeated if there
    is an `accum`, which then combines the values in their order, starting from w's entry; without
    one ValueError is raised. Returns w.

    Values of another type are written as NumPy's same_kind allows: DomainMismatch for floats into
    integers, OverflowError for an integer that w's type does not hold, and then w stays as it was.
    bool takes True, False, 0 and 1.

    >>> import spgraph as sg
    >>> from spgraph.semirings import binary
    >>> w = sg.Vector.from_dense([1, 2, 3])
    >>> sg.assign(w, 0, [1]).to_numpy().tolist()
    [1, 0, 3]
    >>> v = sg.Vector.from_dense([10, 20, 30])
    >>> sg.assign(w, v, [0, 2, 0], accum=binary.plus).to_numpy().tolist()
    [41, 0, 23]
    """
    if isinstance(w, Matrix):
        return assign_matrix(w, value, indices, columns, mask, accum, replace)
    w = checks.vector("assign", "w", w)
    if columns is not None:
        raise DomainMismatch("assign: columns: a Vector has none; give its indices alone")
    checks.output("assign", w.shape, w.device, mask, accum, replace, w)
    if mask is None and accum is None and _put(w, indices, value):
        return w
    ids = None
    if is_integer(indices):
        indices = [one_index("assign", "indices", indices, w.size)]
    if indices is not None:
        ids = index_array("assign", indices, w.size, w.device, "indices")
    given: Any = value
    if isinstance(value, Vector):
        _check_value(w, value, ids)
    else:
        given = scalars.stored("assign", "value", value, w.dtype, combined=accum is not None)
    function = checks.accumulator("assign", accum, w, given.dtype)
    if is_distributed(w):
        return backend(w.device).assign(w, given, ids, mask, accum, replace)
    if ids is None:
        t = given.dup() if isinstance(given, Vector) else _constant(w, given, mask)
        write("assign", w, t, mask, function, replace)
        return w
    return _assign_at(w, given, ids, mask, accum, function, replace)


def _check_value(w: Vector, value: Vector, ids: Array | None) -> None:
    """That `value` is a Vector of the region's size on w's device."""
    checks.same_device("assign", w=w, value=value)
    where, count = ("w.size", w.size) if ids is None else ("the number of indices", ids.size)
    checks.same_size("assign", "value.size", value.size, where, count)


def _put(w: Vector, index: Any, value: Any) -> bool:
    """w[index] = value, without a kernel, or on a GPU by one; False, and nothing happens, unless
    that is one position, and w on the CPU has a place for every one, or is on one GPU.
    """
    if not is_integer(index) or isinstance(value, Vector):
        return False
    on_gpu = w.device != "cpu"
    if is_distributed(w) if on_gpu else w._indices is not None:
        return False
    position = one_index("assign", "indices", index, w.size)
    number = scalars.stored("assign", "value", value, w.dtype)
    if on_gpu:  # as the one entry that it is, not as an array of indices
        t = Vector.unit(position, number, size=w.size, dtype=number.dtype, device=w.device)
        _written(w, t, None, None, False, False)
        return True
    w._values[position] = number
    if w._bits is None or w._bits[position >> 5] >> np.uint32(position & 31) & 1:
        return True
    nvals = w.nvals + 1
    w._nvals = None  # counted again, should this be interrupted
    w._bits[position >> 5] |= np.uint32(1 << (position & 31))
    if nvals == w.size:
        w._become(Vector._of(w.size, w._values))
    else:
        w._nvals = nvals
    return True


def _assign_at(
    w: Vector,
    given: Any,
    ids: Array,
    mask: Mask | None,
    accum: BinaryLike | None,
    function: Function | None,
    replace: bool,
) -> Vector:
    """`assign` of a Vector or a scalar, `given` in a NumPy type, at the positions `ids`; `function`
    is `accum` for the types at hand.
    """
    t, combined = _placed(w, given, ids, accum, function)
    if function is not None or not isinstance(given, Vector) or given.nvals == ids.size:
        return _written(w, t, mask, function, combined, replace)
    t = fitted("assign", t, w.dtype, mask)
    on, within = backend(w.device), _positions(w.size, ids).S
    if mask is None:
        on.write(w, t, within, None, False)
    else:
        z = w.dup()
        on.write(z, t, within, None, False)
        on.write(w, z, mask, None, replace)
    return w


def _written(
    w: Vector,
    t: Vector,
    mask: Mask | None,
    function: Function | None,
    combined: bool,
    replace: bool,
) -> Vector:
    """w after t has been accumulated into it by `function`; without one, or where t is `combined`
    with w's own entries, t's replace those.
    """
    if function is None or combined:
        t = fitted("assign", t, w.dtype, mask)
        # positions outside of `indices` keep their entries: a union that prefers t
        function = binary.second.resolve(w.dtype, w.dtype)
    write("assign", w, t, mask, function, replace)
    return w


def _placed(
    w: Vector, value: Any, ids: Array, accum: BinaryLike | None, function: Function | None
) -> tuple[Vector, bool]:
    """(the Vector of w's size with `value` at `ids`, whether repeats were folded into w's own)."""
    xp = array_module(ids)
    if isinstance(value, Vector):
        v = value.to_sparse()
        to, values = ids[v._indices], v._values
    else:
        to, values = ids, xp.full(ids.size, value, value.dtype)
    ascending = ids.size < 2 or bool((ids[1:] > ids[:-1]).all())
    many = not ascending and ids.size * 32 >= w.size
    # a flag a position says which are given, and whether any twice, without sorting
    distinct = many and int(xp.count_nonzero(_flags(w.size, ids))) == ids.size
    if distinct:
        z = xp.zeros(w.size, value.dtype)
        z[to] = values
        bits = pack_bits(_flags(w.size, to))
        return Vector._of(w.size, z, bits=bits, nvals=int(to.size))._conform(), False
    op = None if accum is None else checks.binary("assign", "accum", accum)
    scatter = getattr(backend(w.device), "scatter", None) if many and op is not None else None
    if op is not None and scatter is not None:
        w, values, function = widened(w, values, op, function)
        return scatter(w, to, values, function), True
    if not ascending:
        if accum is None:
            refuse_repeats("indices", ids)
        order = xp.argsort(to, kind="stable")
        to, values = to[order], values[order]
    again = not ascending and has_repeats(to)
    if again:
        assert op is not None
        to, values = folded(to, *widened(w, values, op, function))
    return Vector._of(w.size, values, indices=to.astype(index_dtype(w.size)))._conform(), again


def _flags(size: int, ids: Array) -> Array:
    flags = array_module(ids).zeros(size, bool)
    flags[ids] = True
    return flags


def _positions(size: int, ids: Array) -> Vector:
    """True at each of the distinct `ids`."""
    xp = array_module(ids)
    if ids.size * 32 >= size:
        return Vector._of(size, xp.ones(size, bool), bits=pack_bits(_flags(size, ids)))._conform()
    ids = xp.sort(ids).astype(index_dtype(size))
    return Vector._of(size, xp.ones(ids.size, bool), indices=ids)


def _constant(w: Vector, value: Any, mask: Mask | None) -> Vector:
    """`value` at the positions that the mask may allow: its own where it is sparse, else all."""
    xp = array_module(w._values)
    if mask is not None and is_list(mask):
        ids = true_indices(mask)
        return Vector._of(w.size, xp.full(ids.size, value, value.dtype), indices=ids.copy())
    return Vector._of(w.size, xp.full(w.size, value, value.dtype))
