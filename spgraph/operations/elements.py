"""Operations entry by entry, on Vectors and Matrices alike: ewise_*, apply, select."""

from __future__ import annotations

from typing import Any, Unpack, overload

import numpy as np

from spgraph import checks, scalars
from spgraph.containers import Mask, Matrix, MatrixLike, Vector
from spgraph.containers.annotations import (
    BinaryLike,
    IndexUnaryLike,
    IntoMatrix,
    IntoVector,
    OperatorLike,
    Scalar,
)
from spgraph.containers.storage.arrays import index_dtype, on_its_device
from spgraph.errors import DimensionMismatch, DomainMismatch
from spgraph.semirings import (
    BinaryOp,
    Function,
    IndexUnaryOp,
    Monoid,
    UnaryOp,
    binary,
    indexunary,
    unary,
)
from spgraph.steps import backend, check_stored, finish


@overload
def ewise_add(
    u: Vector,
    v: Vector,
    op: BinaryLike = ...,
    **into: Unpack[IntoVector],
) -> Vector: ...


@overload
def ewise_add(
    u: MatrixLike,
    v: MatrixLike,
    op: BinaryLike = ...,
    **into: Unpack[IntoMatrix],
) -> Matrix: ...


@on_its_device
def ewise_add(
    u: Vector | MatrixLike,
    v: Vector | MatrixLike,
    op: BinaryLike = binary.plus,
    *,
    mask: Mask | None = None,
    accum: BinaryLike | None = None,
    replace: bool = False,
    out: Vector | Matrix | None = None,
) -> Vector | Matrix:
    """The union of two Vectors or two Matrices `u` and `v`: op(u[i], v[i]) where both hold an
    entry, else the one there is.

    `op` is a BinaryOp or Monoid, or its name. The result has its type over both; entries of one
    alone are written into it as they are (so binary.minus keeps v[i] itself where u has no entry,
    as GraphBLAS says; `ewise_union` with 0, or `u - v`, gives -v[i]; binary.first of integers
    refuses a v of floats).

    `out` is a container to write into, which is returned; `mask` a Mask of positions that may be
    written; `accum` an operator that combines old entries with new ones; `replace` empties the
    positions that the mask excludes. `spgraph.operations` has the whole rule, and the errors.

    >>> import spgraph as sg
    >>> u = sg.Vector.from_coo([0, 1], [1, 2], size=3)
    >>> v = sg.Vector.from_coo([1, 2], [10, 20], size=3)
    >>> sg.ewise_add(u, v).to_numpy().tolist()
    [1, 12, 20]
    """
    return _ewise("ewise_add", u, v, op, True, None, None, mask, accum, replace, out)


@overload
def ewise_union(
    u: Vector,
    v: Vector,
    op: BinaryLike = ...,
    *,
    left: Scalar = ...,
    right: Scalar = ...,
    **into: Unpack[IntoVector],
) -> Vector: ...


@overload
def ewise_union(
    u: MatrixLike,
    v: MatrixLike,
    op: BinaryLike = ...,
    *,
    left: Scalar = ...,
    right: Scalar = ...,
    **into: Unpack[IntoMatrix],
) -> Matrix: ...


@on_its_device
def ewise_union(
    u: Vector | MatrixLike,
    v: Vector | MatrixLike,
    op: BinaryLike = binary.plus,
    *,
    left: Scalar = 0,
    right: Scalar = 0,
    mask: Mask | None = None,
    accum: BinaryLike | None = None,
    replace: bool = False,
    out: Vector | Matrix | None = None,
) -> Vector | Matrix:
    """The union of two Vectors or two Matrices `u` and `v` in which a scalar, `left` or `right`,
    stands for an entry that one of them lacks: op(u[i], v[i]), op(u[i], right) or op(left, v[i]).

    `op` is a BinaryOp or Monoid, or its name. The result has its type over both and the scalars
    (SuiteSparse's eWiseUnion).

    `out` is a container to write into, which is returned; `mask` a Mask of positions that may be
    written; `accum` an operator that combines old entries with new ones; `replace` empties the
    positions that the mask excludes. `spgraph.operations` has the whole rule, and the errors.

    >>> import spgraph as sg
    >>> from spgraph.semirings import binary
    >>> u = sg.Vector.from_coo([0, 1], [1, 2], size=3)
    >>> v = sg.Vector.from_coo([1, 2], [10, 20], size=3)
    >>> sg.ewise_union(u, v, binary.minus).to_numpy().tolist()
    [1, -8, -20]
    """
    return _ewise("ewise_union", u, v, op, True, left, right, mask, accum, replace, out)


@overload
def ewise_mult(
    u: Vector,
    v: Vector,
    op: BinaryLike = ...,
    **into: Unpack[IntoVector],
) -> Vector: ...


@overload
def ewise_mult(
    u: MatrixLike,
    v: MatrixLike,
    op: BinaryLike = ...,
    **into: Unpack[IntoMatrix],
) -> Matrix: ...


@on_its_device
def ewise_mult(
    u: Vector | MatrixLike,
    v: Vector | MatrixLike,
    op: BinaryLike = binary.times,
    *,
    mask: Mask | None = None,
    accum: BinaryLike | None = None,
    replace: bool = False,
    out: Vector | Matrix | None = None,
) -> Vector | Matrix:
    """The intersection of two Vectors or two Matrices `u` and `v`: op(u[i], v[i]) where both hold
    an entry.

    `op` is a BinaryOp or Monoid, or its name, whose type over both the result has.

    `out` is a container to write into, which is returned; `mask` a Mask of positions that may be
    written; `accum` an operator that combines old entries with new ones; `replace` empties the
    positions that the mask excludes. `spgraph.operations` has the whole rule, and the errors.

    >>> import spgraph as sg
    >>> u = sg.Vector.from_coo([0, 1], [1, 2], size=3)
    >>> v = sg.Vector.from_coo([1, 2], [10, 20], size=3)
    >>> sg.ewise_mult(u, v).to_coo()
    (array([1], dtype=int32), array([20]))
    """
    return _ewise("ewise_mult", u, v, op, False, None, None, mask, accum, replace, out)


def _ewise(
    name: str,
    u: Vector | MatrixLike,
    v: Vector | MatrixLike,
    op: BinaryLike,
    union: bool,
    left: Scalar | None,
    right: Scalar | None,
    mask: Mask | None,
    accum: BinaryLike | None,
    replace: bool,
    out: Vector | Matrix | None,
) -> Vector | Matrix:
    u, v = checks.operand(name, "u", u), checks.operand(name, "v", v)
    if isinstance(u, Vector) != isinstance(v, Vector):
        raise DimensionMismatch(
            f"{name}: v: expected a {type(u).__name__} as u is, got a {type(v).__name__}"
        )
    device = checks.same_device(name, u=u, v=v)
    checks.same_shape(name, "v", v, "u", u.shape)
    checks.output(name, u.shape, device, mask, accum, replace, out)
    x, y = u.dtype, v.dtype
    fills: tuple[Any, Any] = None, None
    if left is not None:
        fills = scalars.operand(name, "left", left, x), scalars.operand(name, "right", right, y)
        x, y = (np.promote_types(*types) for types in ((x, fills[0].dtype), (y, fills[1].dtype)))
    operator = checks.binary(name, "op", op)
    typed = checks.typed(name, operator, x, y, index_dtype(max(u.shape)))
    function = checks.accumulator(name, accum, out, typed.result)
    if union and left is None:
        for one, other in ((u, v), (v, u)):
            if one.dtype is not typed.result and typed.result.kind != "b":  # there truths are meant
                check_stored(name, one, typed.result, ~other.S)
    on = backend(device)
    ewise = on.ewise if isinstance(u, Vector) else on.ewise_matrix
    t = ewise(u, v, typed, union, *fills)
    return finish(name, t, mask, function, replace, out)


@overload
def apply(
    u: Vector,
    op: OperatorLike,
    *,
    left: Scalar | None = ...,
    right: Scalar | None = ...,
    **into: Unpack[IntoVector],
) -> Vector: ...


@overload
def apply(
    u: MatrixLike,
    op: OperatorLike,
    *,
    left: Scalar | None = ...,
    right: Scalar | None = ...,
    **into: Unpack[IntoMatrix],
) -> Matrix: ...


@on_its_device
def apply(
    u: Vector | MatrixLike,
    op: OperatorLike,
    *,
    left: Scalar | None = None,
    right: Scalar | None = None,
    mask: Mask | None = None,
    accum: BinaryLike | None = None,
    replace: bool = False,
    out: Vector | Matrix | None = None,
) -> Vector | Matrix:
    """An operator applied to every entry of `u`, a Vector or Matrix.

    `op` is an operator or its name. A UnaryOp gives op(x). A BinaryOp or Monoid needs one operand,
    `left` or `right`: op(left, x) or op(x, right). An IndexUnaryOp gives op(x, i, j, right), j
    being 0 for a Vector and `right` its thunk (default 0).

    `out` is a container to write into, which is returned; `mask` a Mask of positions that may be
    written; `accum` an operator that combines old entries with new ones; `replace` empties the
    positions that the mask excludes. `spgraph.operations` has the whole rule, and the errors.

    >>> import spgraph as sg
    >>> from spgraph.semirings import binary, unary
    >>> u = sg.Vector.from_dense([1, 2])
    >>> sg.apply(u, unary.ainv).to_numpy().tolist()
    [-1, -2]
    >>> sg.apply(u, binary.minus, left=10).to_numpy().tolist()
    [9, 8]
    """
    u = checks.operand("apply", "u", u)
    checks.output("apply", u.shape, u.device, mask, accum, replace, out)
    typed, kind, operand = _operator(u, op, left, right)
    function = checks.accumulator("apply", accum, out, typed.result)
    on = backend(u.device)
    call = on.apply if isinstance(u, Vector) else on.apply_matrix
    return finish("apply", call(u, typed, kind, operand), mask, function, replace, out)


def _operator(
    u: Vector | Matrix,
    op: OperatorLike,
    left: Scalar | None,
    right: Scalar | None,
) -> tuple[Function, str, Any]:
    """(typed operator, how `apply` calls it, the scalar that it is called with)."""
    if isinstance(op, str):
        single = left is None and right is None
        first, last = (unary, binary) if single else (binary, unary)
        op = checks.named("apply", "op", op, first, indexunary, last)
    if isinstance(op, UnaryOp):
        if left is not None or right is not None:
            raise DomainMismatch("apply: left, right: a UnaryOp takes neither; give a BinaryOp")
        return checks.typed("apply", op, u.dtype), "unary", np.False_
    if isinstance(op, IndexUnaryOp):
        if left is not None:
            raise DomainMismatch("apply: left: an IndexUnaryOp takes its thunk as right=")
        op, thunk = scalars.threshold("apply", op, 0 if right is None else right, u.dtype)
        return checks.typed("apply", op, u.dtype, thunk.dtype), "index", thunk
    if not isinstance(op, BinaryOp | Monoid):
        raise DomainMismatch(
            "apply: op: expected a UnaryOp, BinaryOp, Monoid or IndexUnaryOp, or the name of one, "
            f"got {op!r}; "
            + (
                f"np.{op.__name__}(u) applies NumPy's function"
                if isinstance(op, np.ufunc)
                else "UnaryOp.define(f) makes one of a function f"
            )
        )
    if (left is None) == (right is None):
        raise DomainMismatch(f"apply: op: {op!r} takes two operands: give one of left= and right=")
    function = checks.binary("apply", "op", op)
    side, value = ("right", right) if left is None else ("left", left)
    compared = scalars.comparison("apply", function, side, value, u.dtype)
    if compared is not None:
        return compared[0], "right", compared[1]
    operand = scalars.operand("apply", side, value, u.dtype)
    types = (u.dtype, operand.dtype) if left is None else (operand.dtype, u.dtype)
    return checks.typed("apply", function, *types, index_dtype(max(u.shape))), side, operand


@overload
def select(
    u: Vector,
    op: IndexUnaryLike,
    thunk: Scalar = ...,
    **into: Unpack[IntoVector],
) -> Vector: ...


@overload
def select(
    u: MatrixLike,
    op: IndexUnaryLike,
    thunk: Scalar = ...,
    **into: Unpack[IntoMatrix],
) -> Matrix: ...


@on_its_device
def select(
    u: Vector | MatrixLike,
    op: IndexUnaryLike,
    thunk: Scalar = 0,
    *,
    mask: Mask | None = None,
    accum: BinaryLike | None = None,
    replace: bool = False,
    out: Vector | Matrix | None = None,
) -> Vector | Matrix:
    """The entries of `u`, a Vector or Matrix, for which op(x, i, j, thunk) is true (j is 0 for a
    Vector); values and type are u's.

    `op` is an IndexUnaryOp or its name, such as "tril" or "valuegt", and `thunk` the number that it
    compares with.

    `out` is a container to write into, which is returned; `mask` a Mask of positions that may be
    written; `accum` an operator that combines old entries with new ones; `replace` empties the
    positions that the mask excludes. `spgraph.operations` has the whole rule, and the errors.

    >>> import spgraph as sg
    >>> from spgraph.semirings import indexunary
    >>> sg.select(sg.Vector.from_dense([3, 1, 2]), indexunary.valuegt, 1).to_coo()[0].tolist()
    [0, 2]
    """
    u = checks.operand("select", "u", u)
    checks.output("select", u.shape, u.device, mask, accum, replace, out)
    if isinstance(op, str):
        op = checks.named("select", "op", op, indexunary)
    if not isinstance(op, IndexUnaryOp):
        raise DomainMismatch(
            "select: op: expected an IndexUnaryOp such as semirings.indexunary.valuegt or its "
            f"name, got {op!r}; IndexUnaryOp.define(f) makes one of a function f of value, row, "
            "column and thunk"
        )
    op, scalar = scalars.threshold("select", op, thunk, u.dtype)
    typed = checks.typed("select", op, u.dtype, scalar.dtype)
    function = checks.accumulator("select", accum, out, u.dtype)
    on = backend(u.device)
    keep = on.select if isinstance(u, Vector) else on.select_matrix
    return finish("select", keep(u, typed, scalar), mask, function, replace, out)
