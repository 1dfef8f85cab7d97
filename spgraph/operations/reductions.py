"""Sums over a monoid: of everything, of each row, of each column, of groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from spgraph import checks
from spgraph.containers import Mask, Matrix, Vector
from spgraph.containers.arrays import Array, array_module, device_of
from spgraph.operations.products import mxv, vxm
from spgraph.semirings import BinaryOp, Monoid, Semiring, TypedMonoid, binary
from spgraph.semirings import monoid as monoids
from spgraph.steps import backend, is_distributed

# equal values that are summed at a time
CHUNK = 1 << 20


def reduce(u: Any, monoid: Monoid = monoids.plus) -> Any:
    """The sum of all entries of a Vector or Matrix over a monoid, a scalar of u's type; the
    identity where there is none.

    >>> import spgraph as sg
    >>> from spgraph.semirings import monoid
    >>> v = sg.Vector.from_dense([3, 1, 2])
    >>> int(sg.reduce(v)), int(sg.reduce(v, monoid.max)), int(sg.reduce(sg.Vector.empty(3)))
    (6, 3, 0)
    """
    u = checks.operand("reduce", "u", u)
    typed = checks.typed("reduce", _monoid("reduce", monoid), u.dtype)
    if isinstance(u, Vector) or is_distributed(u):
        return backend(u.device).reduce(u, typed)
    if u.iso:
        return sum_of_equals(u._values, u.nvals, typed)
    return backend(u.device).reduce(Vector(u.nvals, u._values), typed)


def sum_of_equals(value: Array, count: int, monoid: TypedMonoid) -> Any:
    """The sum of `count` times the only entry of `value`, in O(CHUNK log count)."""
    xp, total = array_module(value), backend(device_of(value)).reduce
    if count <= CHUNK:
        return total(Vector(count, xp.full(count, value[0])), monoid)
    chunk = xp.full(1, sum_of_equals(value, CHUNK, monoid), value.dtype)
    parts = [sum_of_equals(chunk, count // CHUNK, monoid)]
    if count % CHUNK:
        parts.append(sum_of_equals(value, count % CHUNK, monoid))
    return total(Vector(len(parts), xp.asarray(parts)), monoid)


def reduce_rowwise(
    A: Any,
    monoid: Monoid = monoids.plus,
    *,
    mask: Mask | None = None,
    accum: BinaryOp | Monoid | None = None,
    replace: bool = False,
    out: Vector | None = None,
) -> Vector:
    """The sum of each row over a monoid, a Vector of A.nrows; a row without entries has none.

    Its type is A's (plus over bool is or: count the entries of rows by a plus_pair product, or over
    a Matrix of integers).

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 0, 2], [0, 1, 1], [1, 2, 5])
    >>> sg.reduce_rowwise(A).to_coo()
    (array([0, 2], dtype=int32), array([3, 5]))
    """
    A = checks.matrix("reduce_rowwise", A)
    checks.output("reduce_rowwise", (A.nrows,), A.device, mask, accum, replace, out)
    # t = A +.first 1: the products are the entries themselves
    given: dict[str, Any] = {"mask": mask, "accum": accum, "replace": replace, "out": out}
    return mxv(A, _ones(A, A.ncols), _firsts("reduce_rowwise", A, monoid), **given)


def reduce_columnwise(
    A: Any,
    monoid: Monoid = monoids.plus,
    *,
    mask: Mask | None = None,
    accum: BinaryOp | Monoid | None = None,
    replace: bool = False,
    out: Vector | None = None,
) -> Vector:
    """The sum of each column over a monoid, a Vector of A.ncols; as `reduce_rowwise`.

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 0, 2], [0, 1, 1], [1, 2, 5])
    >>> sg.reduce_columnwise(A).to_coo()
    (array([0, 1], dtype=int32), array([1, 7]))
    """
    A = checks.matrix("reduce_columnwise", A)
    checks.output("reduce_columnwise", (A.ncols,), A.device, mask, accum, replace, out)
    # t = 1 +.second A, pushed unless the transpose is there already
    ring = Semiring(_firsts("reduce_columnwise", A, monoid).monoid, binary.second)
    way = "pull" if A.has_transpose else "push"
    given: dict[str, Any] = {"mask": mask, "accum": accum, "replace": replace, "out": out}
    return vxm(_ones(A, A.nrows), A, ring, direction=way, **given)


def reduce_segments(values: Array, starts: Array, op: BinaryOp | Monoid) -> Array:
    """The fold from the left by `op` of each group values[starts[g]:starts[g + 1]]."""
    operator = checks.binary("reduce_segments", "op", op)
    function = checks.typed("reduce_segments", operator, values.dtype, values.dtype)
    return backend(device_of(values)).reduce_segments(values, starts, function, values.dtype)


def _monoid(name: str, monoid: Any) -> Monoid:
    if not isinstance(monoid, Monoid):
        raise checks.DomainMismatch(
            f"{name}: monoid: expected a Monoid such as semirings.monoid.plus, got {monoid!r}"
        )
    return monoid


def _firsts(name: str, A: Matrix, monoid: Any) -> Semiring:
    """The semiring whose products are its left operands."""
    checks.typed(name, _monoid(name, monoid), A.dtype)
    return Semiring(monoid, binary.first)


def _ones(A: Matrix, size: int) -> Vector:
    return Vector.filled(True, size=size, dtype=np.bool_, device=A.device)
