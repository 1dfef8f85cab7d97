"""One function per GraphBLAS operation: check, direction, backend, accumulate, masked write.

All share their keyword arguments. With t the operation's result, Z = t, or Z = out `accum` t (a
union: where only one has an entry, that one), and then out<mask, replace> = Z: positions that the
mask allows take Z's entry or lose their own; the others keep theirs, or lose it under `replace`.
Without `out` a new Vector is returned, which has entries only where the mask allows; its type is
the operator's result type. With `out` the values are cast to out's type, and `out` is returned.
Arguments may be `out` or the mask's container: nothing is written before everything is computed.

The semantics are those of the GraphBLAS C API specification 2.1 (Brock, Buluc, Kimmerer, Kitchen,
Kumar, Mattson, McMillan, Moreira, Pelletier, Welch, 2023)."""

from __future__ import annotations

from typing import Any

import numpy as np

from spgraph import checks
from spgraph.containers import Mask, Matrix, Vector
from spgraph.containers.arrays import index_dtype
from spgraph.errors import DomainMismatch
from spgraph.indexing import assign, extract, reduce_segments
from spgraph.semirings import (
    BinaryOp,
    Function,
    IndexUnaryOp,
    Monoid,
    Semiring,
    UnaryOp,
    binary,
    plus_times,
)
from spgraph.semirings import monoid as monoids
from spgraph.steps import backend, finish, push_or_pull

# --- products -------------------------------------------------------------------------------------


def mxv(
    A: Any,
    u: Vector,
    semiring: Semiring = plus_times,
    *,
    mask: Mask | None = None,
    accum: BinaryOp | Monoid | None = None,
    replace: bool = False,
    out: Vector | None = None,
    direction: str = "auto",
) -> Vector:
    """The product A u over a semiring: t[i] = the sum over k of A[i, k] * u[k].

    `A` is a Matrix or what `Matrix` can be made from, of shape (n, m), `u` a Vector of size m; the
    result has size n and the semiring's type over the types of A and u. An entry exists where at
    least one pair of entries meets.

    `direction` is "pull" (each row looks for entries of u), "push" (each entry of u follows its
    column, over the transpose, which a Matrix keeps), or "auto": by the density of u. Raises
    DimensionMismatch, DomainMismatch, BackendMismatch.

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_dense([[1, 2], [0, 3]])
    >>> sg.mxv(A, sg.Vector.from_dense([10, 100])).to_numpy().tolist()
    [210, 300]
    """
    A, u = checks.matrix("mxv", A), checks.vector("mxv", "u", u)
    device = checks.same_device("mxv", A=A, u=u)
    checks.same_size("mxv", "u.size", u.size, "A.ncols", A.ncols)
    checks.output("mxv", A.nrows, device, mask, accum, replace, out)
    typed = checks.typed(
        "mxv", checks.semiring("mxv", semiring), A.dtype, u.dtype, index=A.indices.dtype
    )
    function = checks.accumulator("mxv", accum, out, typed.dtype)
    way = push_or_pull("mxv", direction, A, u, A.nrows, typed, mask, over_transpose="push")
    if way == "pull":
        t = backend(device).pull(A, u, typed, mask, False)
    else:
        t = backend(device).push(A.T, u, typed, mask, True)
    return finish(t, mask, function, replace, out, masked=True)


def vxm(
    u: Vector,
    A: Any,
    semiring: Semiring = plus_times,
    *,
    mask: Mask | None = None,
    accum: BinaryOp | Monoid | None = None,
    replace: bool = False,
    out: Vector | None = None,
    direction: str = "auto",
) -> Vector:
    """The product u A over a semiring: t[j] = the sum over k of u[k] * A[k, j].

    As `mxv`, with `u` of size n on the left: "push" follows the rows of A at the entries of u,
    "pull" lets every column look for entries, over the transpose.

    >>> import spgraph as sg
    >>> from spgraph.semirings import any_pair
    >>> A = sg.Matrix.from_coo([0, 0, 1], [1, 2, 2], nrows=3, ncols=3)
    >>> sg.vxm(sg.Vector.from_coo([0], True, size=3), A, any_pair).to_coo()[0].tolist()
    [1, 2]
    """
    A, u = checks.matrix("vxm", A), checks.vector("vxm", "u", u)
    device = checks.same_device("vxm", u=u, A=A)
    checks.same_size("vxm", "u.size", u.size, "A.nrows", A.nrows)
    checks.output("vxm", A.ncols, device, mask, accum, replace, out)
    typed = checks.typed(
        "vxm", checks.semiring("vxm", semiring), u.dtype, A.dtype, index=A.indices.dtype
    )
    function = checks.accumulator("vxm", accum, out, typed.dtype)
    way = push_or_pull("vxm", direction, A, u, A.ncols, typed, mask, over_transpose="pull")
    if way == "push":
        t = backend(device).push(A, u, typed, mask, False)
    else:
        t = backend(device).pull(A.T, u, typed, mask, True)
    return finish(t, mask, function, replace, out, masked=True)


# --- element by element ---------------------------------------------------------------------------


def ewise_add(
    u: Vector,
    v: Vector,
    op: BinaryOp | Monoid = binary.plus,
    *,
    mask: Mask | None = None,
    accum: BinaryOp | Monoid | None = None,
    replace: bool = False,
    out: Vector | None = None,
) -> Vector:
    """The union of two Vectors: op(u[i], v[i]) where both hold an entry, else the one there is.

    The result has the operator's type over both; entries of one alone are cast to it (so `u - v`
    with binary.minus keeps v[i] itself where u has no entry, as GraphBLAS says).

    >>> import spgraph as sg
    >>> u = sg.Vector.from_coo([0, 1], [1, 2], size=3)
    >>> v = sg.Vector.from_coo([1, 2], [10, 20], size=3)
    >>> sg.ewise_add(u, v).to_numpy().tolist()
    [1, 12, 20]
    """
    return _ewise("ewise_add", u, v, op, True, mask, accum, replace, out)


def ewise_mult(
    u: Vector,
    v: Vector,
    op: BinaryOp | Monoid = binary.times,
    *,
    mask: Mask | None = None,
    accum: BinaryOp | Monoid | None = None,
    replace: bool = False,
    out: Vector | None = None,
) -> Vector:
    """The intersection of two Vectors: op(u[i], v[i]) where both hold an entry.

    >>> import spgraph as sg
    >>> u = sg.Vector.from_coo([0, 1], [1, 2], size=3)
    >>> v = sg.Vector.from_coo([1, 2], [10, 20], size=3)
    >>> sg.ewise_mult(u, v).to_coo()
    (array([1], dtype=int32), array([20]))
    """
    return _ewise("ewise_mult", u, v, op, False, mask, accum, replace, out)


def _ewise(
    name: str,
    u: Vector,
    v: Vector,
    op: BinaryOp | Monoid,
    union: bool,
    mask: Mask | None,
    accum: BinaryOp | Monoid | None,
    replace: bool,
    out: Vector | None,
) -> Vector:
    u, v = checks.vector(name, "u", u), checks.vector(name, "v", v)
    device = checks.same_device(name, u=u, v=v)
    checks.same_size(name, "v.size", v.size, "u.size", u.size)
    checks.output(name, u.size, device, mask, accum, replace, out)
    typed = checks.typed(
        name, checks.binary(name, "op", op), u.dtype, v.dtype, index=index_dtype(u.size)
    )
    function = checks.accumulator(name, accum, out, typed.result)
    t = backend(device).ewise(u, v, typed, union)
    return finish(t, mask, function, replace, out)


def apply(
    u: Vector,
    op: UnaryOp | BinaryOp | Monoid | IndexUnaryOp,
    *,
    left: Any = None,
    right: Any = None,
    mask: Mask | None = None,
    accum: BinaryOp | Monoid | None = None,
    replace: bool = False,
    out: Vector | None = None,
) -> Vector:
    """An operator applied to every entry of u.

    A UnaryOp gives op(x). A BinaryOp or Monoid needs one operand, `left` or `right`: op(left, x) or
    op(x, right). An IndexUnaryOp gives op(x, i, 0, right), `right` being its thunk (default 0).

    >>> import spgraph as sg
    >>> from spgraph.semirings import binary, unary
    >>> u = sg.Vector.from_dense([1, 2])
    >>> sg.apply(u, unary.ainv).to_numpy().tolist()
    [-1, -2]
    >>> sg.apply(u, binary.minus, left=10).to_numpy().tolist()
    [9, 8]
    """
    u = checks.vector("apply", "u", u)
    checks.output("apply", u.size, u.device, mask, accum, replace, out)
    typed, kind, operand = _operator(u, op, left, right)
    function = checks.accumulator("apply", accum, out, typed.result)
    t = backend(u.device).apply(u, typed, kind, operand)
    return finish(t, mask, function, replace, out)


def _operator(u: Vector, op: Any, left: Any, right: Any) -> tuple[Function, str, Any]:
    """(typed operator, how `apply` calls it, the scalar that it is called with)."""
    if isinstance(op, UnaryOp):
        if left is not None or right is not None:
            raise DomainMismatch("apply: left, right: a UnaryOp takes neither; give a BinaryOp")
        return checks.typed("apply", op, u.dtype), "unary", np.False_
    if isinstance(op, IndexUnaryOp):
        if left is not None:
            raise DomainMismatch("apply: left: an IndexUnaryOp takes its thunk as right=")
        thunk = checks.thunk("apply", 0 if right is None else right, u.dtype)
        return checks.typed("apply", op, u.dtype, thunk.dtype), "index", thunk
    if not isinstance(op, BinaryOp | Monoid):
        raise DomainMismatch(
            f"apply: op: expected a UnaryOp, BinaryOp, Monoid or IndexUnaryOp, got {op!r}"
        )
    if (left is None) == (right is None):
        raise DomainMismatch(f"apply: op: {op!r} takes two operands: give one of left= and right=")
    function = checks.binary("apply", "op", op)
    index = index_dtype(u.size)
    if left is not None:
        operand = checks.scalar("apply", "left", left, u.dtype)
        return checks.typed("apply", function, operand.dtype, u.dtype, index=index), "left", operand
    operand = checks.scalar("apply", "right", right, u.dtype)
    return checks.typed("apply", function, u.dtype, operand.dtype, index=index), "right", operand


def select(
    u: Vector,
    op: IndexUnaryOp,
    thunk: Any = 0,
    *,
    mask: Mask | None = None,
    accum: BinaryOp | Monoid | None = None,
    replace: bool = False,
    out: Vector | None = None,
) -> Vector:
    """The entries of u for which op(x, i, 0, thunk) is true; values and type are u's.

    >>> import spgraph as sg
    >>> from spgraph.semirings import select
    >>> sg.select(sg.Vector.from_dense([3, 1, 2]), select.valuegt, 1).to_coo()[0].tolist()
    [0, 2]
    """
    u = checks.vector("select", "u", u)
    checks.output("select", u.size, u.device, mask, accum, replace, out)
    if not isinstance(op, IndexUnaryOp):
        raise DomainMismatch(
            f"select: op: expected an IndexUnaryOp such as semirings.select.valuegt, got {op!r}"
        )
    scalar = checks.thunk("select", thunk, u.dtype)
    typed = checks.typed("select", op, u.dtype, scalar.dtype)
    function = checks.accumulator("select", accum, out, u.dtype)
    t = backend(u.device).select(u, typed, scalar)
    return finish(t, mask, function, replace, out)


def reduce(u: Vector, monoid: Monoid = monoids.plus) -> Any:
    """The sum of all entries over a monoid, a scalar of u's type; the identity where there is none.

    >>> import spgraph as sg
    >>> from spgraph.semirings import monoid
    >>> v = sg.Vector.from_dense([3, 1, 2])
    >>> int(sg.reduce(v)), int(sg.reduce(v, monoid.max)), int(sg.reduce(sg.Vector.empty(3)))
    (6, 3, 0)
    """
    u = checks.vector("reduce", "u", u)
    if not isinstance(monoid, Monoid):
        raise DomainMismatch(
            f"reduce: monoid: expected a Monoid such as semirings.monoid.plus, got {monoid!r}"
        )
    return backend(u.device).reduce(u, checks.typed("reduce", monoid, u.dtype))


def transpose(A: Any) -> Matrix:
    """The transpose of A. A Matrix keeps it: asking again costs nothing.

    >>> import spgraph as sg
    >>> sg.transpose(sg.Matrix.from_dense([[1, 2]])).shape
    (2, 1)
    """
    return checks.matrix("transpose", A).T


__all__ = [
    "apply",
    "assign",
    "backend",
    "ewise_add",
    "ewise_mult",
    "extract",
    "mxv",
    "reduce",
    "reduce_segments",
    "select",
    "transpose",
    "vxm",
]
