"""extract: parts of a Vector or Matrix."""

from __future__ import annotations

from typing import Unpack, overload

import numpy as np

from spgraph import checks
from spgraph.containers import Mask, Matrix, MatrixLike, Vector
from spgraph.containers.annotations import BinaryLike, Indices, IntoMatrix, IntoVector, Position
from spgraph.containers.storage.arrays import Array, array_module, index_dtype, on_its_device
from spgraph.containers.storage.numbers import is_integer
from spgraph.containers.storage.selection import compress
from spgraph.errors import DomainMismatch
from spgraph.operations.indices import index_array, is_all, one_index
from spgraph.steps import backend, finish, is_distributed


@overload
def extract(
    u: Vector,
    indices: Indices | None = ...,
    columns: None = ...,
    **into: Unpack[IntoVector],
) -> Vector: ...


@overload
def extract(
    u: MatrixLike,
    indices: Indices | None = ...,
    columns: Indices | None = ...,
    **into: Unpack[IntoMatrix],
) -> Matrix: ...


@overload
def extract(
    u: MatrixLike,
    indices: Position,
    columns: Indices | None = ...,
    **into: Unpack[IntoVector],
) -> Vector: ...


@overload
def extract(
    u: MatrixLike,
    indices: Indices | None,
    columns: Position,
    **into: Unpack[IntoVector],
) -> Vector: ...


@on_its_device
def extract(
    u: Vector | MatrixLike,
    indices: Indices | Position | None = None,
    columns: Indices | Position | None = None,
    *,
    mask: Mask | None = None,
    accum: BinaryLike | None = None,
    replace: bool = False,
    out: Vector | Matrix | None = None,
) -> Vector | Matrix:
    """The part of u at `indices`: the Vector t[k] = u[indices[k]], or the Matrix
    T[k, l] = u[indices[k], columns[l]].

    `indices` (the rows of a Matrix) and `columns` are 1-D arrays of integers in any order and with
    repeats, full Vectors of them, slices, or None for all. One integer in place of either gives the
    Vector of that row or column. Raises IndexOutOfBound for an index outside of u; in an array a
    negative one is outside too: it is often the mark of what was not found.

    `out` is a container to write into, which is returned; `mask` a Mask of positions that may be
    written; `accum` an operator that combines old entries with new ones; `replace` empties the
    positions that the mask excludes. `spgraph.operations` has the whole rule, and the errors.

    >>> import spgraph as sg
    >>> v = sg.Vector.from_coo([1, 3], [10, 30], size=5)
    >>> sg.extract(v, [3, 0, 3]).to_numpy(fill=-1).tolist()
    [30, -1, 30]
    >>> A = sg.Matrix.from_dense([[1, 2, 3], [4, 5, 6]])
    >>> sg.extract(A, [1], [2, 0]).to_scipy().toarray().tolist()
    [[6, 4]]
    """
    u = checks.operand("extract", "u", u)
    if isinstance(u, Matrix):
        t = _of_matrix(u, indices, columns)
    elif columns is not None:
        raise DomainMismatch("extract: columns: a Vector has none; give its indices alone")
    else:
        t = _of_vector(u, indices, "indices")
    checks.output("extract", t.shape, u.device, mask, accum, replace, out)
    function = checks.accumulator("extract", accum, out, u.dtype)
    return finish("extract", t, mask, function, replace, out)


def _of_vector(u: Vector, indices: object, argument: str) -> Vector:
    if is_all(indices):
        return u.dup()
    if isinstance(indices, slice) and not is_distributed(u):
        return _sliced(u, indices, len(range(*indices.indices(u.size))))
    ids = index_array("extract", indices, u.size, u.device, argument)
    return backend(u.device).extract(u, ids)


def _of_line(line: Vector, indices: object, argument: str) -> Vector:
    """The part of a row or column that was made for this call."""
    return line if is_all(indices) else _of_vector(line, indices, argument)


def _of_matrix(A: Matrix, rows: object, columns: object) -> Matrix | Vector:
    if is_integer(rows):
        if is_integer(columns):
            raise DomainMismatch(
                "extract: indices, columns: expected at most one integer; A[i, j] reads one entry"
            )
        i = one_index("extract", "indices", rows, A.nrows)
        return _of_line(_row(A, i), columns, "columns")
    if is_integer(columns):
        j = one_index("extract", "columns", columns, A.ncols)
        if is_distributed(A):
            return _of_line(backend(A.device).extract_column(A, j), rows, "indices")
        if A.has_transpose:
            return _of_line(_row(A._T, j), rows, "indices")
        return _column(backend(A.device).extract_matrix(A, _ids(A, rows, 0), _ids(A, [j], 1)))
    return backend(A.device).extract_matrix(A, _ids(A, rows, 0), _ids(A, columns, 1))


def _ids(A: Matrix, indices: object, axis: int) -> Array | None:
    """Checked rows (axis 0) or columns (1); None for all."""
    if is_all(indices):
        return None
    if isinstance(indices, Vector) and is_distributed(indices):
        indices = indices.to_numpy()
    argument = ("indices", "columns")[axis]
    return index_array("extract", indices, A.shape[axis], A.device, argument)


def _row(A: Matrix, i: int) -> Vector:
    """Row i of A."""
    if is_distributed(A):
        return backend(A.device).extract_row(A, i)
    start, stop = (int(offset) for offset in A._indptr[i : i + 2])
    columns = A._indices[start:stop].astype(index_dtype(A.ncols), copy=True)
    values = A._values.repeat(stop - start) if A.iso else A._values[start:stop].copy()
    return Vector._of(A.ncols, values, indices=columns)._conform()


def _column(A: Matrix) -> Vector:
    """The only column of A."""
    xp = array_module(A._indices)
    rows = xp.flatnonzero(A._indptr[1:] != A._indptr[:-1]).astype(index_dtype(A.nrows))
    return Vector._of(A.nrows, A._expanded_values(), indices=rows)._conform()


def _sliced(u: Vector, part: slice, size: int) -> Vector:
    """The entries of u in a slice of `size` positions."""
    if u._bits is None and u._indices is None:
        return Vector._of(size, u._values[part].copy())
    start, _, step = part.indices(u.size)
    v = u.to_sparse()
    xp = array_module(v._values)
    offset = v._indices.astype(np.int64) - start  # type: ignore[union-attr]
    at = offset // step
    kept = (offset == at * step) & (at >= 0) & (at < size)
    at, values = compress(kept, at).astype(index_dtype(size)), compress(kept, v._values)
    if step < 0:
        at, values = xp.ascontiguousarray(at[::-1]), xp.ascontiguousarray(values[::-1])
    return Vector._of(size, values, indices=at)._conform()
