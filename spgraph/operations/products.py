"""Products over a semiring: matrix times vector, vector times matrix, matrix times matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, Unpack, overload

from spgraph import checks
from spgraph import direction as directions
from spgraph.containers import Mask, Matrix, MatrixLike, Vector
from spgraph.containers.annotations import (
    BinaryLike,
    Dense,
    Direction,
    Graph,
    IntoMatrix,
    IntoVector,
    Scalar,
    SemiringLike,
    SparseArray,
)
from spgraph.containers.storage.arrays import is_array, on_its_device
from spgraph.operations import arrays
from spgraph.semirings import TypedSemiring, plus_times
from spgraph.steps import backend, finish, push_or_pull

# what stands for a Matrix, but for arrays
Sparse: TypeAlias = Matrix | SparseArray | Graph | Sequence[Sequence[float]]


@overload
def mxv(
    A: MatrixLike,
    u: Vector,
    semiring: SemiringLike = ...,
    *,
    direction: Direction = ...,
    **into: Unpack[IntoVector],
) -> Vector: ...


@overload
def mxv(
    A: MatrixLike,
    u: Dense,
    semiring: SemiringLike = ...,
    *,
    direction: Direction = ...,
    fill: Scalar | None = ...,
) -> Dense: ...


@on_its_device
def mxv(
    A: MatrixLike,
    u: Vector | Dense,
    semiring: SemiringLike = plus_times,
    *,
    mask: Mask | None = None,
    accum: BinaryLike | None = None,
    replace: bool = False,
    out: Vector | None = None,
    direction: Direction = "auto",
    fill: Scalar | None = None,
) -> Vector | Dense:
    """The product A u over a semiring: t[i] = the sum over k of A[i, k] * u[k].

    `A` is a Matrix or what `Matrix` can be made from, of shape (n, m), `u` a Vector of size m,
    `semiring` a Semiring or its name; the result has size n and the semiring's type over the types
    of A and u. An entry exists where at least one pair of entries meets.

    Of an array `u` of NumPy, CuPy, PyTorch or JAX, of one dimension, the result is a new array of
    that library. Rows of A without entries then hold the identity of the semiring's monoid, such as
    inf for min_plus, or `fill`, which monoids without an identity (any) require.

    `out` is a Vector to write into, which is returned; `mask` a Mask of positions that may be
    written; `accum` an operator that combines old entries with new ones; `replace` empties the
    positions that the mask excludes. `spgraph.operations` has the whole rule, and the errors.
    With an array none of the four may be given: ValueError.

    `direction` is "pull" (each row looks for entries of u), "push" (each entry of u follows its
    column, over the transpose, which a Matrix keeps), or "auto": by the density of u. Raises
    DimensionMismatch, DomainMismatch, BackendMismatch.

    >>> import numpy as np, spgraph as sg
    >>> from spgraph.semirings import min_plus
    >>> A = sg.Matrix.from_dense([[1, 2], [0, 3]])
    >>> sg.mxv(A, sg.Vector.from_dense([10, 100])).to_numpy().tolist()
    [210, 300]
    >>> sg.mxv(A, np.array([10.0, 100.0]), min_plus)
    array([ 11., 103.])
    """
    if not isinstance(u, Vector) and is_array(u):
        written = {"mask": mask, "accum": accum, "replace": replace, "out": out}
        return arrays.product("mxv", A, u, semiring, fill, written, False, direction)
    _no_fill("mxv", fill)
    A, u = checks.matrix("mxv", A), checks.vector("mxv", "u", u)
    device = A.device
    if u.device is not device:  # the same string, most of the time
        device = checks.same_device("mxv", A=A, u=u)
    checks.same_size("mxv", "u.size", u.size, "A.ncols", A.ncols)
    checks.output("mxv", (A.nrows,), device, mask, accum, replace, out)
    typed = checks.typed("mxv", checks.semiring("mxv", semiring), A.dtype, u.dtype, A.index_dtype)
    function = checks.accumulator("mxv", accum, out, typed.dtype)
    t = matrix_times_vector("mxv", A, u, typed, mask, direction)
    return finish("mxv", t, mask, function, replace, out, masked=True)


def matrix_times_vector(
    name: str,
    A: Matrix,
    u: Vector,
    typed: TypedSemiring,
    mask: Mask | None,
    direction: Direction = "auto",
) -> Vector:
    """A u where the mask allows, for the operation `name`, which has checked its operands and
    chosen the types.
    """
    way = push_or_pull(name, direction, A, u, typed, mask, over_transpose="push")
    if way == "pull":
        return backend(A.device).pull(A, u, typed, mask, False)
    return backend(A.device).push(A._T, u, typed, mask, True)


@overload
def vxm(
    u: Vector,
    A: MatrixLike,
    semiring: SemiringLike = ...,
    *,
    direction: Direction = ...,
    **into: Unpack[IntoVector],
) -> Vector: ...


@overload
def vxm(
    u: Dense,
    A: MatrixLike,
    semiring: SemiringLike = ...,
    *,
    direction: Direction = ...,
    fill: Scalar | None = ...,
) -> Dense: ...


@on_its_device
def vxm(
    u: Vector | Dense,
    A: MatrixLike,
    semiring: SemiringLike = plus_times,
    *,
    mask: Mask | None = None,
    accum: BinaryLike | None = None,
    replace: bool = False,
    out: Vector | None = None,
    direction: Direction = "auto",
    fill: Scalar | None = None,
) -> Vector | Dense:
    """The product u A over a semiring: t[j] = the sum over k of u[k] * A[k, j].

    As `mxv`, with `u` of size n on the left of `A`, and with `semiring`, `mask`, `accum`,
    `replace`, `out`, `fill` and the errors as there. Of `direction`, "push" follows the rows of A
    at the entries of u, "pull" lets every column look for entries, over the transpose.

    >>> import spgraph as sg
    >>> from spgraph.semirings import any_pair
    >>> A = sg.Matrix.from_coo([0, 0, 1], [1, 2, 2], nrows=3, ncols=3)
    >>> sg.vxm(sg.Vector.from_coo([0], True, size=3), A, any_pair).to_coo()[0].tolist()
    [1, 2]
    """
    if not isinstance(u, Vector) and is_array(u):
        written = {"mask": mask, "accum": accum, "replace": replace, "out": out}
        return arrays.product("vxm", A, u, semiring, fill, written, True, direction)
    _no_fill("vxm", fill)
    A, u = checks.matrix("vxm", A), checks.vector("vxm", "u", u)
    device = A.device
    if u.device is not device:  # the same string, most of the time
        device = checks.same_device("vxm", u=u, A=A)
    checks.same_size("vxm", "u.size", u.size, "A.nrows", A.nrows)
    checks.output("vxm", (A.ncols,), device, mask, accum, replace, out)
    typed = checks.typed("vxm", checks.semiring("vxm", semiring), u.dtype, A.dtype, A.index_dtype)
    function = checks.accumulator("vxm", accum, out, typed.dtype)
    t = vector_times_matrix("vxm", u, A, typed, mask, direction)
    return finish("vxm", t, mask, function, replace, out, masked=True)


def vector_times_matrix(
    name: str,
    u: Vector,
    A: Matrix,
    typed: TypedSemiring,
    mask: Mask | None,
    direction: Direction = "auto",
) -> Vector:
    """u A where the mask allows, for the operation `name`, which has checked its operands and
    chosen the types.
    """
    way = push_or_pull(name, direction, A, u, typed, mask, over_transpose="pull")
    if way == "push":
        return backend(A.device).push(A, u, typed, mask, False)
    return backend(A.device).pull(A._T, u, typed, mask, True)


@overload
def mxm(
    A: Sparse,
    B: Sparse,
    semiring: SemiringLike = ...,
    **into: Unpack[IntoMatrix],
) -> Matrix: ...


@overload
def mxm(
    A: MatrixLike, B: Dense, semiring: SemiringLike = ..., *, fill: Scalar | None = ...
) -> Dense: ...


@overload
def mxm(
    A: Dense, B: Sparse, semiring: SemiringLike = ..., *, fill: Scalar | None = ...
) -> Dense: ...


@on_its_device
def mxm(
    A: MatrixLike,
    B: MatrixLike,
    semiring: SemiringLike = plus_times,
    *,
    mask: Mask | None = None,
    accum: BinaryLike | None = None,
    replace: bool = False,
    out: Matrix | None = None,
    fill: Scalar | None = None,
) -> Matrix | Dense:
    """The product A B over a semiring: T[i, j] = the sum over k of A[i, k] * B[k, j].

    `A` and `B` are Matrices or what `Matrix` can be made from, of shapes (n, m) and (m, p),
    `semiring` a Semiring or its name; the result has shape (n, p) and the semiring's type over the
    types of A and B. An entry exists where at least one pair of entries meets.

    If A or B is an array of NumPy, CuPy, PyTorch or JAX, of two dimensions, the result is a new
    array of that library; for rows (or columns, if A is the array) of the Matrix without entries,
    `fill` and what an array excludes, see `mxv`. Of two arrays the first is converted to a Matrix.

    `out` is a Matrix to write into, which is returned; `mask` a Mask of positions that may be
    written; `accum` an operator that combines old entries with new ones; `replace` empties the
    positions that the mask excludes. `spgraph.operations` has the whole rule, and the errors.

    Of Matrices it is computed row by row (Gustavson), as dot products of rows of A and columns of B
    where a mask leaves few positions, or as products with dense rows where B has every entry:
    whichever takes the fewest multiplications. DimensionMismatch, DomainMismatch, BackendMismatch.

    Source: Gustavson, "Two fast algorithms for sparse matrices: multiplication and permuted
    transposition" (1978); masked products: Davis, "Algorithm 1000: SuiteSparse:GraphBLAS" (2019).

    The triangles of an undirected graph, each once, and the least sums of edges and features:

    >>> import numpy as np, spgraph as sg
    >>> A = sg.Matrix([[0, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 1, 0]])
    >>> L = sg.select(A, "tril", -1)
    >>> int(sg.reduce(sg.mxm(L, L.T, "plus_times", mask=L.S)))
    2
    >>> sg.mxm(A, np.array([[1.0, 8], [5, 6], [7, 3], [2, 4]]), "min_plus").tolist()
    [[6.0, 4.0], [2.0, 4.0], [2.0, 5.0], [6.0, 4.0]]
    """
    if not (isinstance(A, Matrix) and isinstance(B, Matrix)) and (is_array(B) or is_array(A)):
        left = not is_array(B)
        written = {"mask": mask, "accum": accum, "replace": replace, "out": out}
        matrix, array = (B, A) if left else (A, B)
        return arrays.product("mxm", matrix, array, semiring, fill, written, left)
    _no_fill("mxm", fill)
    A, B = checks.matrix("mxm", A), checks.matrix("mxm", B, "B")
    device = checks.same_device("mxm", A=A, B=B)
    checks.inner_size("mxm", A, B)
    checks.output("mxm", (A.nrows, B.ncols), device, mask, accum, replace, out)
    typed = checks.typed("mxm", checks.semiring("mxm", semiring), A.dtype, B.dtype, A.index_dtype)
    function = checks.accumulator("mxm", accum, out, typed.dtype)
    return finish("mxm", by_cost(A, B, typed, mask), mask, function, replace, out, masked=True)


def by_cost(A: Matrix, B: Matrix, typed: TypedSemiring, mask: Mask | None) -> Matrix:
    """A B where the mask allows, in the form that touches the fewest entries."""
    on = backend(A.device)
    dense, dots = (getattr(on, name, None) for name in ("multiply_dense", "multiply_dots"))
    if dense and mask is None and B.nvals == B.nrows * B.ncols and B.nvals:
        return dense(A, B, typed)
    if dots and mask is not None and dots_pay(A, B, mask):
        return dots(A, B._T, typed, mask)
    return on.multiply_rows(A, B, typed, mask)


def dots_pay(A: Matrix, B: Matrix, mask: Mask) -> bool:
    """Whether dot products at the positions of the mask touch fewer entries than whole rows do."""
    if mask.complement:
        return False
    M, flops = mask.parent, backend(A.device).multiply_flops
    assert isinstance(M, Matrix)
    if B.has_transpose:
        dots = flops(M, B._T)
    elif B._transient:
        return False
    else:
        dots = M.nvals * (B.nvals // max(B.ncols, 1) + 1)
    rows = flops(A, B)
    make_dots, make_rows = (0 if made else B.nvals for made in (B.has_transpose, B._has_arrays))
    return directions.dots_pay(dots, rows, make_dots - make_rows)


def _no_fill(name: str, fill: Scalar | None) -> None:
    if fill is not None:
        raise ValueError(
            f"{name}: fill: expected none beside a Vector or Matrix, whose positions may be empty; "
            "give it to_numpy or to_dense, which make an array of the result"
        )
