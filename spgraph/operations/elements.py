"""Operations on each entry of a Vector or Matrix: apply, select."""

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
from spgraph.errors import DomainMismatch
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
from spgraph.steps import backend, finish


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
