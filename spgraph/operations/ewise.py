"""Operations on two operands of one shape, entry by entry: ewise_add, ewise_union, ewise_mult."""

from __future__ import annotations

from typing import Any, Unpack, overload

import numpy as np

from spgraph import checks, scalars
from spgraph.containers import Mask, Matrix, MatrixLike, Vector
from spgraph.containers.annotations import (
    BinaryLike,
    Device,
    IntoMatrix,
    IntoVector,
    Scalar,
)
from spgraph.containers.storage.arrays import index_dtype, on_its_device
from spgraph.errors import DimensionMismatch
from spgraph.semirings import Function, binary
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
    u, v, device = _operands("ewise_add", u, v)
    checks.output("ewise_add", u.shape, device, mask, accum, replace, out)
    typed = _resolved("ewise_add", op, u.shape, u.dtype, v.dtype)
    function = checks.accumulator("ewise_add", accum, out, typed.result)
    for one, other in ((u, v), (v, u)):
        if one.dtype is not typed.result and typed.result.kind != "b":  # there truths are meant
            check_stored("ewise_add", one, typed.result, ~other.S)
    return finish("ewise_add", _combined(device, u, v, typed, True), mask, function, replace, out)


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
    u, v, device = _operands("ewise_union", u, v)
    checks.output("ewise_union", u.shape, device, mask, accum, replace, out)
    first = scalars.operand("ewise_union", "left", left, u.dtype)
    second = scalars.operand("ewise_union", "right", right, v.dtype)
    x = np.promote_types(u.dtype, first.dtype)
    y = np.promote_types(v.dtype, second.dtype)
    typed = _resolved("ewise_union", op, u.shape, x, y)
    function = checks.accumulator("ewise_union", accum, out, typed.result)
    t = _combined(device, u, v, typed, True, first, second)
    return finish("ewise_union", t, mask, function, replace, out)


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
    u, v, device = _operands("ewise_mult", u, v)
    checks.output("ewise_mult", u.shape, device, mask, accum, replace, out)
    typed = _resolved("ewise_mult", op, u.shape, u.dtype, v.dtype)
    function = checks.accumulator("ewise_mult", accum, out, typed.result)
    return finish("ewise_mult", _combined(device, u, v, typed, False), mask, function, replace, out)


def _operands(
    name: str, u: Vector | MatrixLike, v: Vector | MatrixLike
) -> tuple[Vector | Matrix, Vector | Matrix, Device]:
    """(u, v, their device): two Vectors or two Matrices of one shape."""
    u, v = checks.operand(name, "u", u), checks.operand(name, "v", v)
    if isinstance(u, Vector) != isinstance(v, Vector):
        raise DimensionMismatch(
            f"{name}: v: expected a {type(u).__name__} as u is, got a {type(v).__name__}"
        )
    device = checks.same_device(name, u=u, v=v)
    checks.same_shape(name, "v", v, "u", u.shape)
    return u, v, device


def _resolved(
    name: str, op: BinaryLike, shape: tuple[int, ...], x: np.dtype, y: np.dtype
) -> Function:
    """`op` for operands of the types x and y in containers of `shape`."""
    return checks.typed(name, checks.binary(name, "op", op), x, y, index_dtype(max(shape)))


def _combined(
    device: Device,
    u: Vector | Matrix,
    v: Vector | Matrix,
    typed: Function,
    union: bool,
    *fills: np.generic,
) -> Any:
    """What the backend makes of both: their union, in which `fills` stand for entries that u or v
    lacks, or their intersection.
    """
    on = backend(device)
    return (on.ewise if isinstance(u, Vector) else on.ewise_matrix)(u, v, typed, union, *fills)
