"""Operations on parts of a Vector: extract, assign, and the folds that repeated indices need."""

from __future__ import annotations

from typing import Any

import numpy as np

from spgraph import checks
from spgraph.containers import Mask, Vector
from spgraph.containers.arrays import (
    Array,
    array_module,
    device_of,
    index_dtype,
    pack_bits,
    unpack_bits,
)
from spgraph.semirings import BinaryOp, Function, Monoid, binary
from spgraph.steps import backend, finish


def extract(
    u: Vector,
    indices: Any,
    *,
    mask: Mask | None = None,
    accum: BinaryOp | Monoid | None = None,
    replace: bool = False,
    out: Vector | None = None,
) -> Vector:
    """The Vector of u's entries at `indices`: t[k] = u[indices[k]], of size len(indices).

    `indices` is a 1-D array of integers, in any order and with repeats, or a slice. Raises
    IndexOutOfBound for one outside of u; negative indices do not count from the end.

    >>> import spgraph as sg
    >>> v = sg.Vector.from_coo([1, 3], [10, 30], size=5)
    >>> sg.extract(v, [3, 0, 3]).to_numpy(fill=-1).tolist()
    [30, -1, 30]
    """
    u = checks.vector("extract", "u", u)
    if isinstance(indices, slice):
        size = len(range(*indices.indices(u.size)))
        checks.output("extract", size, u.device, mask, accum, replace, out)
        function = checks.accumulator("extract", accum, out, u.dtype)
        return finish(_sliced(u, indices, size), mask, function, replace, out)
    ids = checks.index_array("extract", indices, u.size, u.device)
    checks.output("extract", int(ids.size), u.device, mask, accum, replace, out)
    function = checks.accumulator("extract", accum, out, u.dtype)
    return finish(backend(u.device).extract(u, ids), mask, function, replace, out)


def _sliced(u: Vector, part: slice, size: int) -> Vector:
    """The entries of u in a slice of `size` positions."""
    if u.bits is None and u.indices is None:
        return Vector(size, u.values[part].copy())
    start, _, step = part.indices(u.size)
    v = u.to_sparse()
    xp = array_module(v.values)
    offset = v.indices.astype(np.int64) - start  # type: ignore[union-attr]
    at = offset // step
    kept = (offset == at * step) & (at >= 0) & (at < size)
    at, values = at[kept].astype(index_dtype(size)), v.values[kept]
    if step < 0:
        at, values = xp.ascontiguousarray(at[::-1]), xp.ascontiguousarray(values[::-1])
    return Vector(size, values, indices=at).conform()


def assign(
    w: Vector,
    value: Any,
    indices: Any = None,
    *,
    mask: Mask | None = None,
    accum: BinaryOp | Monoid | None = None,
    replace: bool = False,
) -> Vector:
    """w with `value` written at `indices`: w<mask, replace>(indices) = value, or accum= value.

    `value` is a scalar, which stands at every index, or a Vector with one position for each index;
    without `accum` its empty positions empty those of w. `indices` is a 1-D array of integers or a
    slice; None means all positions. The mask and `replace` are over the whole of w (GraphBLAS's
    assign, not SuiteSparse's subassign). An index may be repeated if there is an `accum`, which
    then combines the values in their order, starting from w's entry; without one ValueError is
    raised.

    >>> import spgraph as sg
    >>> from spgraph.semirings import binary
    >>> w = sg.Vector.from_dense([1, 2, 3])
    >>> sg.assign(w, 0, [1]).to_numpy().tolist()
    [1, 0, 3]
    >>> v = sg.Vector.from_dense([10, 20, 30])
    >>> sg.assign(w, v, [0, 2, 0], accum=binary.plus).to_numpy().tolist()
    [41, 0, 23]
    """
    w = checks.vector("assign", "w", w)
    checks.output("assign", w.size, w.device, mask, accum, replace, w)
    ids = None if indices is None else checks.index_array("assign", indices, w.size, w.device)
    count = w.size if ids is None else int(ids.size)
    if isinstance(value, Vector):
        checks.same_device("assign", w=w, value=value)
        where = "w.size" if ids is None else "the number of indices"
        checks.same_size("assign", "value.size", value.size, where, count)
        dtype = value.dtype
    else:
        value = checks.scalar("assign", "value", value, w.dtype)
        if w.dtype.kind in "iu" and not np.isfinite(value):
            raise ValueError(f"assign: value: expected a number that {w.dtype} holds, got {value}")
        dtype = value.dtype
    function = checks.accumulator("assign", accum, w, dtype)
    if ids is None:
        t = value.dup() if isinstance(value, Vector) else _constant(w, value, mask)
        backend(w.device).write(w, t, mask, function, replace)
        return w
    t, folded = _placed(w, value, ids, function, dtype)
    if function is not None or not isinstance(value, Vector) or value.nvals == count:
        if function is None or folded:
            # positions outside of `indices` keep their entries: a union that prefers t
            function = binary.second.resolve(w.dtype, t.dtype)
        backend(w.device).write(w, t, mask, function, replace)
        return w
    within = _positions(w.size, ids).S
    if mask is None:
        backend(w.device).write(w, t, within, None, False)
    else:
        z = w.dup()
        backend(w.device).write(z, t, within, None, False)
        backend(w.device).write(w, z, mask, None, replace)
    return w


def _placed(
    w: Vector, value: Any, ids: Array, accum: Function | None, dtype: np.dtype
) -> tuple[Vector, bool]:
    """(the Vector of w's size with `value` at `ids`, whether repeats were folded into w's own)."""
    xp = array_module(ids)
    if isinstance(value, Vector):
        v = value.to_sparse()
        to, values = ids[v.indices], v.values
    else:
        to, values = ids, xp.full(ids.size, value, dtype)
    ascending = ids.size < 2 or bool((ids[1:] > ids[:-1]).all())
    many = not ascending and ids.size * 32 >= w.size
    # a flag a position says which are given, and whether any twice, without sorting
    if many and int(xp.count_nonzero(_flags(w.size, ids))) == ids.size:
        z = xp.zeros(w.size, dtype)
        z[to] = values
        bits = pack_bits(_flags(w.size, to))
        return Vector(w.size, z, bits=bits, nvals=int(to.size)).conform(), False
    if not ascending:
        if accum is None and _repeats(xp.sort(ids)):
            raise ValueError(
                "assign: indices: an index is given more than once; "
                "give accum= to combine the values"
            )
        order = xp.argsort(to, kind="stable")
        to, values = to[order], values[order]
    folded = not ascending and _repeats(to)
    if folded:
        assert accum is not None
        to, values = _folded(w, to, values, accum)
    return Vector(w.size, values, indices=to.astype(index_dtype(w.size))).conform(), folded


def _flags(size: int, ids: Array) -> Array:
    flags = array_module(ids).zeros(size, bool)
    flags[ids] = True
    return flags


def _positions(size: int, ids: Array) -> Vector:
    """True at each of the distinct `ids`."""
    xp = array_module(ids)
    if ids.size * 32 >= size:
        return Vector(size, xp.ones(size, bool), bits=pack_bits(_flags(size, ids))).conform()
    ids = xp.sort(ids).astype(index_dtype(size))
    return Vector(size, xp.ones(ids.size, bool), indices=ids)


def _repeats(ids: Array) -> bool:
    """Whether sorted ids hold one twice."""
    return bool((ids[1:] == ids[:-1]).any())


def _folded(w: Vector, ids: Array, values: Array, accum: Function) -> tuple[Array, Array]:
    """The ids, each once, with w's entry there and then the id's values folded from the left."""
    xp = array_module(ids)
    fresh = xp.ones(ids.size, bool)
    xp.not_equal(ids[1:], ids[:-1], out=fresh[1:])
    starts = xp.flatnonzero(fresh)
    unique = ids[starts]
    there = backend(w.device).extract(w, unique).to_bitmap()
    flags = xp.ones(unique.size, bool)
    if there.bits is not None:
        flags = unpack_bits(there.bits, unique.size)
    fold = backend(w.device).reduce_segments
    return unique, fold(values, starts, accum, w.dtype, (flags, there.values))


def _constant(w: Vector, value: Any, mask: Mask | None) -> Vector:
    """`value` at the positions that the mask may allow: its own where it is sparse, else all."""
    xp = array_module(w.values)
    if (
        mask is not None
        and not mask.complement
        and isinstance(mask.parent, Vector)
        and mask.parent.indices is not None
    ):
        ids = (
            mask.parent.indices if mask.structure else mask.parent.indices[mask.parent.values != 0]
        )
        return Vector(w.size, xp.full(ids.size, value, value.dtype), indices=ids.copy())
    return Vector(w.size, xp.full(w.size, value, value.dtype))


def reduce_segments(values: Array, starts: Array, op: BinaryOp | Monoid) -> Array:
    """The fold from the left by `op` of each group values[starts[g]:starts[g + 1]]."""
    operator = checks.binary("reduce_segments", "op", op)
    function = checks.typed("reduce_segments", operator, values.dtype, values.dtype)
    return backend(device_of(values)).reduce_segments(values, starts, function, values.dtype)
