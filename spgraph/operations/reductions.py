"""Sums over a monoid: of everything, of each row, of each column, of groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from spgraph import checks
from spgraph.containers import Mask, Matrix, MatrixLike, Vector
from spgraph.containers.annotations import (
    BinaryLike,
    Direction,
    DType,
    MonoidLike,
    Number,
    SemiringLike,
)
from spgraph.containers.storage.arrays import Array, array_module, device_of, on_its_device
from spgraph.operations.products import (
    by_cost,
    dots_pay,
    matrix_times_vector,
    vector_times_matrix,
)
from spgraph.semirings import (
    BinaryOp,
    Monoid,
    TypedMonoid,
    TypedSemiring,
    binary,
    plus_times,
)
from spgraph.semirings import monoid as monoids
from spgraph.steps import backend, finish, is_distributed

# equal values that are summed at a time
CHUNK = 1 << 20
BOOL = np.dtype(bool)


@on_its_device
def reduce(
    u: Vector | MatrixLike, monoid: MonoidLike = monoids.plus, *, dtype: DType | None = None
) -> Number:
    """The sum of all entries of `u`, a Vector or Matrix, over a `monoid` (or that of its name): a
    NumPy scalar.

    Its type is u's, but plus and times count as `numpy.sum` does, bool and signed integers in
    int64, unsigned ones in uint64. `dtype` is another type to convert the entries to and to sum
    them in, along NumPy's same_kind conversions.

    Without entries it is the monoid's identity in that type; ValueError for `any`, which has none.
    DomainMismatch where the monoid or `dtype` does not fit the type of u.

    >>> import numpy as np, spgraph as sg
    >>> from spgraph.semirings import monoid
    >>> v = sg.Vector.from_dense([3, 1, 2])
    >>> int(sg.reduce(v)), int(sg.reduce(v, monoid.max)), int(sg.reduce(sg.Vector.empty(3)))
    (6, 3, 0)
    >>> pattern = sg.Matrix.from_coo([0, 0, 2], [0, 1, 1])
    >>> sg.reduce(pattern), sg.reduce(pattern, dtype=np.float32)
    (np.int64(3), np.float32(3.0))
    """
    u = checks.operand("reduce", "u", u)
    typed = _typed("reduce", monoid, u.dtype, dtype)
    if typed.any and u.nvals == 0:
        raise ValueError(
            f"reduce: u: expected entries, as {monoid!r} has no identity to give for none, got none"
        )
    return _reduced(u, typed)


def _reduced(u: Vector | Matrix, typed: TypedMonoid) -> Any:
    if isinstance(u, Vector) or is_distributed(u):
        return backend(u.device).reduce(u, typed)
    if u.iso:
        return sum_of_equals(u._values, u.nvals, typed)
    return backend(u.device).reduce(Vector._of(u.nvals, u._values), typed)


@on_its_device
def reduce_mxm(
    A: MatrixLike,
    B: MatrixLike,
    semiring: SemiringLike = plus_times,
    monoid: MonoidLike = monoids.plus,
    *,
    mask: Mask | None = None,
    dtype: DType | None = None,
) -> Number:
    """The sum over a monoid of all entries of the product A B: a NumPy scalar, the same as
    `reduce(mxm(A, B, semiring, mask=mask), monoid, dtype=dtype)`, without the product in memory.

    Arguments, type and errors are those of `mxm` and `reduce`. Nothing is stored where dot products
    at the positions of the mask are the cheapest form of the product, on the CPU; otherwise the
    product is made first. Sums of floats may differ from those of the two calls by rounding.

    Source: Azad, Buluc, Gilbert, "Parallel triangle counting and enumeration using matrix algebra"
    (2015), whose last step is such a sum.

    >>> import spgraph as sg
    >>> from spgraph.semirings import indexunary, plus_pair
    >>> A = sg.Matrix.from_dense([[0, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 1, 0]])
    >>> L = sg.select(A, indexunary.tril, -1)
    >>> int(sg.reduce_mxm(L, L.T, plus_pair, mask=L.S))  # the triangles of an undirected graph
    2
    """
    A, B = checks.matrix("reduce_mxm", A), checks.matrix("reduce_mxm", B, "B")
    device = checks.same_device("reduce_mxm", A=A, B=B)
    checks.inner_size("reduce_mxm", A, B)
    checks.output("reduce_mxm", (A.nrows, B.ncols), device, mask, None, False, None)
    typed = checks.typed(
        "reduce_mxm", checks.semiring("reduce_mxm", semiring), A.dtype, B.dtype, A.index_dtype
    )
    sum_ = _typed("reduce_mxm", monoid, typed.dtype, dtype)
    dots = getattr(backend(device), "reduce_dots", None)
    # under a mask of A's own entries the products A A' by dots or by rows are about as many
    own = mask is not None and not mask.complement and mask.parent is A and (B.T is A or B._T is A)
    if dots and mask is not None and not sum_.any and (own or dots_pay(A, B, mask)):
        return dots(A, B._T, typed, mask, sum_)
    product = by_cost(A, B, typed, mask)
    if sum_.any and product.nvals == 0:
        raise ValueError(
            f"reduce_mxm: expected a product with entries, as {monoid!r} has no identity to give "
            "for none, got none"
        )
    return _reduced(product, sum_)


def sum_of_equals(value: Array, count: int, monoid: TypedMonoid) -> Any:
    """The sum of `count` times the only entry of `value`, in O(CHUNK log count)."""
    xp, total = array_module(value), backend(device_of(value)).reduce
    if count <= CHUNK:
        return total(Vector._of(count, xp.full(count, value[0])), monoid)
    chunk = xp.full(1, sum_of_equals(value, CHUNK, monoid), monoid.dtype)
    parts = [sum_of_equals(chunk, count // CHUNK, monoid)]
    if count % CHUNK:
        parts.append(sum_of_equals(value, count % CHUNK, monoid))
    return total(Vector._of(len(parts), xp.asarray(parts, monoid.dtype)), monoid)


@on_its_device
def reduce_rowwise(
    A: MatrixLike,
    monoid: MonoidLike = monoids.plus,
    *,
    dtype: DType | None = None,
    mask: Mask | None = None,
    accum: BinaryLike | None = None,
    replace: bool = False,
    out: Vector | None = None,
) -> Vector:
    """The sum of each row of `A` over a `monoid`, a Vector of A.nrows; a row without entries has
    none.

    Its type, `dtype` and errors are those of `reduce`: plus over a Matrix of bool counts the
    entries that are True.

    `out` is a Vector to write into, which is returned; `mask` a Mask of positions that may be
    written; `accum` an operator that combines old entries with new ones; `replace` empties the
    positions that the mask excludes. `spgraph.operations` has the whole rule, and the errors.

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 0, 2], [0, 1, 1], [1, 2, 5])
    >>> sg.reduce_rowwise(A).to_coo()
    (array([0, 2], dtype=int32), array([3, 5]))
    """
    A = checks.matrix("reduce_rowwise", A)
    checks.output("reduce_rowwise", (A.nrows,), A.device, mask, accum, replace, out)
    # t = A +.first 1: the products are the entries themselves
    semiring = _entries("reduce_rowwise", A, monoid, dtype, binary.first)
    function = checks.accumulator("reduce_rowwise", accum, out, semiring.dtype)
    t = matrix_times_vector("reduce_rowwise", A, _ones(A, A.ncols), semiring, mask)
    return finish("reduce_rowwise", t, mask, function, replace, out, masked=True)


@on_its_device
def reduce_columnwise(
    A: MatrixLike,
    monoid: MonoidLike = monoids.plus,
    *,
    dtype: DType | None = None,
    mask: Mask | None = None,
    accum: BinaryLike | None = None,
    replace: bool = False,
    out: Vector | None = None,
) -> Vector:
    """The sum of each column of `A` over a `monoid`, a Vector of A.ncols; as `reduce_rowwise`, with
    `dtype`, `mask`, `accum`, `replace`, `out` and the errors as there.

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 0, 2], [0, 1, 1], [1, 2, 5])
    >>> sg.reduce_columnwise(A).to_coo()
    (array([0, 1], dtype=int32), array([1, 7]))
    """
    A = checks.matrix("reduce_columnwise", A)
    checks.output("reduce_columnwise", (A.ncols,), A.device, mask, accum, replace, out)
    # t = 1 +.second A, pushed unless the transpose is there already
    semiring = _entries("reduce_columnwise", A, monoid, dtype, binary.second)
    way: Direction = "pull" if A.has_transpose else "push"
    function = checks.accumulator("reduce_columnwise", accum, out, semiring.dtype)
    t = vector_times_matrix("reduce_columnwise", _ones(A, A.nrows), A, semiring, mask, way)
    return finish("reduce_columnwise", t, mask, function, replace, out, masked=True)


def reduce_segments(values: Array, starts: Array, op: BinaryLike) -> Array:
    """The fold from the left by `op` of each group values[starts[g]:starts[g + 1]]."""
    operator = checks.binary("reduce_segments", "op", op)
    function = checks.typed("reduce_segments", operator, values.dtype, values.dtype)
    return backend(device_of(values)).reduce_segments(values, starts, function, values.dtype)


def _typed(name: str, monoid: MonoidLike, entries: np.dtype, dtype: DType | None) -> TypedMonoid:
    """The monoid in the type that it reduces `entries` in."""
    if isinstance(monoid, str):
        monoid = checks.named(name, "monoid", monoid, monoids)
    if not isinstance(monoid, Monoid):
        raise checks.DomainMismatch(
            f"{name}: monoid: expected a Monoid such as semirings.monoid.plus or its name, "
            f"got {monoid!r}"
        )
    try:
        return monoid.reduction(entries, dtype)
    except checks.DomainMismatch as error:
        raise checks.DomainMismatch(f"{name}: {error}") from None


def _entries(
    name: str, A: Matrix, monoid: MonoidLike, dtype: DType | None, op: BinaryOp
) -> TypedSemiring:
    """The semiring over A and a Vector of bool whose products are the entries of A; `op`, first or
    second, says on which side A is.
    """
    add = _typed(name, monoid, A.dtype, dtype)
    types = (A.dtype, BOOL) if op == binary.first else (BOOL, A.dtype)
    return TypedSemiring(f"{add.name}_{op.name}", op.resolve(*types).returning(add.dtype), add)


def _ones(A: Matrix, size: int) -> Vector:
    return Vector.filled(True, size=size, dtype=np.bool_, device=A.device)
