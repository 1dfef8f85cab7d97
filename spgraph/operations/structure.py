"""Operations on the shape of matrices: transpose, Kronecker product, diagonals."""

from __future__ import annotations

import functools
from typing import Unpack, overload

import numpy as np

from spgraph import checks
from spgraph.containers import Mask, Matrix, MatrixLike, Vector
from spgraph.containers.annotations import BinaryLike, IntoMatrix, IntoVector
from spgraph.containers.methods.views import transposed
from spgraph.containers.storage.arrays import INT64_MAX, array_module, index_dtype, on_its_device
from spgraph.containers.storage.numbers import is_integer
from spgraph.errors import DomainMismatch
from spgraph.operations.elements import apply
from spgraph.semirings import IndexUnaryOp, binary
from spgraph.steps import backend, finish, is_distributed


@on_its_device
def transpose(
    A: MatrixLike,
    *,
    mask: Mask | None = None,
    accum: BinaryLike | None = None,
    replace: bool = False,
    out: Matrix | None = None,
) -> Matrix:
    """The transpose of A: T[j, i] = A[i, j].

    Without a mask and `out` it is the view `A.T`, which a Matrix keeps: asking again costs nothing.

    `out` is a Matrix to write into, which is returned; `mask` a Mask of positions that may be
    written; `accum` an operator that combines old entries with new ones; `replace` empties the
    positions that the mask excludes. `spgraph.operations` has the whole rule, and the errors.

    >>> import spgraph as sg
    >>> sg.transpose(sg.Matrix.from_dense([[1, 2]])).shape
    (2, 1)
    """
    A = checks.matrix("transpose", A)
    checks.output("transpose", (A.ncols, A.nrows), A.device, mask, accum, replace, out)
    function = checks.accumulator("transpose", accum, out, A.dtype)
    # a view would hold what this call alone may look at
    T = transposed(A) if A._transient else A.T
    return finish("transpose", T, mask, function, replace, out)


@on_its_device
def kronecker(
    A: MatrixLike,
    B: MatrixLike,
    op: BinaryLike = binary.times,
    *,
    mask: Mask | None = None,
    accum: BinaryLike | None = None,
    replace: bool = False,
    out: Matrix | None = None,
) -> Matrix:
    """The Kronecker product: T[i * B.nrows + k, j * B.ncols + l] = op(A[i, j], B[k, l]).

    `A` and `B` are Matrices or what `Matrix` can be made from, `op` a BinaryOp or Monoid, or its
    name. The result has the shape (A.nrows * B.nrows, A.ncols * B.ncols) and the operator's type
    over both. OverflowError where a position of it has no 64-bit index.

    `out` is a Matrix to write into, which is returned; `mask` a Mask of positions that may be
    written; `accum` an operator that combines old entries with new ones; `replace` empties the
    positions that the mask excludes. `spgraph.operations` has the whole rule, and the errors.

    >>> import spgraph as sg
    >>> A, B = sg.Matrix.from_dense([[1, 2]]), sg.Matrix.from_dense([[3], [4]])
    >>> sg.kronecker(A, B).to_scipy().toarray().tolist()
    [[3, 6], [4, 8]]
    """
    A, B = checks.matrix("kronecker", A), checks.matrix("kronecker", B, "B")
    device = checks.same_device("kronecker", A=A, B=B)
    shape = A.nrows * B.nrows, A.ncols * B.ncols
    if max(*shape, A.nvals * B.nvals) > 2**63 - 1:
        raise OverflowError(
            f"kronecker: expected a result of at most 2**63 - 1 rows, columns and entries, "
            f"got {shape[0]} x {shape[1]} with {A.nvals * B.nvals} entries"
        )
    checks.output("kronecker", shape, device, mask, accum, replace, out)
    operator = checks.binary("kronecker", "op", op)
    if operator.positional:
        raise DomainMismatch(f"kronecker: op: expected an operator of two values, got {operator!r}")
    typed = checks.typed("kronecker", operator, A.dtype, B.dtype)
    function = checks.accumulator("kronecker", accum, out, typed.result)
    return finish("kronecker", backend(device).kronecker(A, B, typed), mask, function, replace, out)


@overload
def diag(
    u: Vector,
    k: int = ...,
    **into: Unpack[IntoMatrix],
) -> Matrix: ...


@overload
def diag(
    u: MatrixLike,
    k: int = ...,
    **into: Unpack[IntoVector],
) -> Vector: ...


@on_its_device
def diag(
    u: Vector | MatrixLike,
    k: int = 0,
    *,
    mask: Mask | None = None,
    accum: BinaryLike | None = None,
    replace: bool = False,
    out: Vector | Matrix | None = None,
) -> Vector | Matrix:
    """The square Matrix with the entries of a Vector `u` on its k-th diagonal, or the Vector of the
    k-th diagonal of a Matrix `u`.

    Entry i of the Vector stands at (i, i + k), or at (i - k, i) for a negative `k`.

    `out` is a container to write into, which is returned; `mask` a Mask of positions that may be
    written; `accum` an operator that combines old entries with new ones; `replace` empties the
    positions that the mask excludes. `spgraph.operations` has the whole rule, and the errors.

    >>> import spgraph as sg
    >>> D = sg.diag(sg.Vector.from_dense([3, 4]), 1)
    >>> D.to_scipy().toarray().tolist()
    [[0, 3, 0], [0, 0, 4], [0, 0, 0]]
    >>> sg.diag(D, 1).to_numpy().tolist()
    [3, 4]
    """
    u = checks.operand("diag", "u", u)
    if not is_integer(k):
        raise DomainMismatch(f"diag: k: expected an integer, got {k!r}")
    k, extent = int(k), u.size if isinstance(u, Vector) else max(u.shape)
    if extent + abs(k) > INT64_MAX:
        raise ValueError(f"diag: k: expected a diagonal below 2**63 - {extent}, got {k}")
    function = checks.accumulator("diag", accum, out, u.dtype)
    if isinstance(u, Vector):
        n = u.size + abs(k)
        checks.output("diag", (n, n), u.device, mask, accum, replace, out)
        return finish("diag", _on_diagonal(u, k, n), mask, function, replace, out)
    size = max(0, min(u.nrows - max(-k, 0), u.ncols - max(k, 0)))
    checks.output("diag", (size,), u.device, mask, accum, replace, out)
    return finish("diag", _diagonal_of(u, k, size), mask, function, replace, out)


def _on_diagonal(u: Vector, k: int, n: int) -> Matrix:
    if is_distributed(u):
        return backend(u.device).diag(u, k)
    v = u.to_sparse()
    assert v._indices is not None
    xp = array_module(v._values)
    indptr = xp.zeros(n + 1, index_dtype(v.nvals))
    rows = v._indices.astype(np.int64) + max(-k, 0)
    indptr[rows + 1] = 1
    indptr = xp.cumsum(indptr, dtype=indptr.dtype)
    columns = (rows + k).astype(index_dtype(n))
    return Matrix._of(n, n, indptr, columns, v._values.copy())


def _diagonal_of(A: Matrix, k: int, size: int) -> Vector:
    if is_distributed(A):
        return backend(A.device).diag(A, k)
    rows = A.row_indices()
    xp = array_module(rows)
    at = xp.flatnonzero(A._indices.astype(np.int64) - rows == k)
    positions = (rows[at] - max(-k, 0)).astype(index_dtype(size))
    values = xp.full(at.size, A._values[0]) if A.iso else A._values[at]
    return Vector._of(size, values, indices=positions)._conform()


@on_its_device
def orient(A: Matrix) -> Matrix:
    """One of each two entries (i, j), (j, i) of A, a symmetric pattern, and no loops, chosen so
    that no cycle is left and rows are short: an undirected graph with its edges pointed one way.

    Where degrees differ much an edge leads to the end of higher degree. A row then holds its
    vertex's neighbours of higher degree, and these are few: at most sqrt(2 m) of m entries.

    Source: Chiba and Nishizeki, "Arboricity and subgraph listing algorithms" (1985).

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_dense([[0, 1, 1], [1, 0, 1], [1, 1, 0]]).pattern()
    >>> orient(A).nvals
    3
    """
    form = getattr(backend(A.device), "orient", None)
    if form:
        return form(A)
    height = apply(A.row_degrees().astype(np.int64), _degree_and_vertex(), right=A.nrows)
    return A._where(lambda a, x, y: x < y, height)


@functools.cache
def _degree_and_vertex() -> IndexUnaryOp:
    """(degree, -vertex) as one number, below n^2."""
    return IndexUnaryOp.define(lambda d, i, j, n: d * n + (n - 1 - i), "degree_and_vertex")
