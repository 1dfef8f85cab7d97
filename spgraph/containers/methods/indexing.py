"""Indexing, `A[i, j]` and `v[mask] = x`, by the operations `extract` and `assign`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from spgraph.containers.annotations import (
    Indices,
    Number,
    Position,
    Scalar,
    Several,
    SparseArray,
)
from spgraph.containers.mask import Mask
from spgraph.containers.methods.keys import from_end, matrix_key, vector_key, written
from spgraph.containers.storage.arrays import Array, is_cuda
from spgraph.containers.storage.numbers import is_integer

if TYPE_CHECKING:
    from spgraph.containers.matrix import Matrix
    from spgraph.containers.vector import Vector


class VectorIndexing:
    """How entries of a Vector, whose base this is, are read and written by position."""

    __slots__ = ()

    @overload
    def __getitem__(self, key: Position) -> Number | None: ...

    @overload
    def __getitem__(self, key: Mask | Indices) -> Vector: ...

    def __getitem__(self: Any, key: Mask | Indices | Position) -> Any:
        """v[3] is the entry (None where there is none), v[[0, 2]] and v[1:3] are Vectors of those
        positions, v[mask] is v under the mask. Of a bool Vector b, v[b] is v[b.V], of v's size; an
        array of bool picks the positions that are true, as NumPy's arrays do.

        >>> import numpy as np, spgraph as sg
        >>> v = sg.Vector([3, 1, 2])
        >>> list(v[v > 1]), list(v[np.array([True, False, True])])
        ([(0, 3), (2, 2)], [(0, 3), (1, 2)])
        """
        from spgraph import operations

        if isinstance(key, Mask):
            return _masked(self, key)
        at: Any = key if is_integer(key) else vector_key(key, self)
        if is_integer(at):
            i = from_end(at, self.size, "positions")
            if self.device == "cpu":
                return _element(self, i)
            return _scalar(operations.extract(self, [i]))
        return (_masked if isinstance(at, Mask) else operations.extract)(self, at)

    def __contains__(self, item: object) -> bool:
        raise TypeError(
            "in: expected a list or an array, got a Vector; v[i] is not None says whether there is "
            "an entry at i"
        )

    def __setitem__(
        self: Any, key: Mask | Indices | Position, value: Scalar | Vector | Sequence[Scalar] | Array
    ) -> None:
        """v[3] = x, v[[0, 2]] = w, v[1:3] = x, v[mask] = x, through `assign`; an array or a list
        stands for the Vector of its values.
        """
        from spgraph import operations

        at: Any = key
        if not is_integer(key):
            at = key if isinstance(key, Mask) else vector_key(key, self)
            value = value if is_integer(at) else written(value, self)
        given: dict[str, Any] = {"mask" if isinstance(at, Mask) else "indices": at}
        operations.assign(self, value, **given)  # type: ignore[arg-type]

    def __delitem__(self: Any, key: Mask | Indices | Position) -> None:
        """No entry at v[3], v[[0, 2]], v[1:3] or v[mask] any more.

        >>> import spgraph as sg
        >>> v = sg.Vector([3, 1, 2])
        >>> del v[1]
        >>> list(v)
        [(0, 3), (2, 2)]
        """
        key = [from_end(key, self.size, "positions")] if is_integer(key) else key
        self[key] = _emptied(self[key])


class MatrixIndexing:
    """How entries of a Matrix, whose base this is, are read and written by position."""

    __slots__ = ()

    @overload
    def __getitem__(self, key: tuple[Position, Position]) -> Number | None: ...

    @overload
    def __getitem__(
        self, key: Position | tuple[Position, Several] | tuple[Several, Position]
    ) -> Vector: ...

    @overload
    def __getitem__(
        self, key: Mask | Matrix | SparseArray | Several | tuple[Several, Several]
    ) -> Matrix: ...

    def __getitem__(self: Any, key: Any) -> Any:
        """A[i, j] is the entry (None where there is none), A[i] and A[i, :] row i and A[:, j]
        column j as Vectors, A[rows, columns] the Matrix of all their pairs, A[mask] A under the
        mask. Of a bool Matrix B, A[B] is A[B.V], of A's shape; arrays and Vectors of bool are the
        rows or columns that are true.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_dense([[1, 2], [0, 3]])
        >>> int(A[1, 1]), A[1, 0], A[:, 1].to_numpy().tolist(), A[[1, 0], :1].to_coo()[2].tolist()
        (3, None, [2, 3], [1])
        >>> list(A[A > 1])
        [(0, 1, 2), (1, 1, 3)]
        """
        from spgraph import operations

        key = key if isinstance(key, Mask) else matrix_key(key, self)
        if isinstance(key, Mask):
            return _masked(self, key)
        rows, columns = key
        if is_integer(rows) and is_integer(columns):
            i, j = from_end(rows, self.nrows, "rows"), from_end(columns, self.ncols, "columns")
            if self.device == "cpu":
                return _entry(self, i, j)
            return _scalar(operations.extract(operations.extract(self, i, None), [j]))
        return operations.extract(self, rows, columns)

    def __contains__(self, item: object) -> bool:
        raise TypeError(
            "in: expected a list or an array, got a Matrix; A[i, j] is not None says whether "
            "there is an edge from i to j"
        )

    def __setitem__(
        self: Any,
        key: Mask
        | Matrix
        | SparseArray
        | Position
        | Several
        | tuple[Position | Several, Position | Several],
        value: Scalar | Vector | Matrix | SparseArray | np.ndarray,
    ) -> None:
        """A[i, j] = x, A[i] = v, A[:, j] = v, A[rows, columns] = B, A[mask] = x, through
        `assign`; an array or a list of one dimension stands for the Vector of its values.
        """
        from spgraph import operations

        key = key if isinstance(key, Mask) else matrix_key(key, self)
        value = written(value, self)
        if isinstance(key, Mask):
            operations.assign(self, value, mask=key)
        else:
            operations.assign(self, value, *key)

    def __delitem__(self: Any, key: Any) -> None:
        """No entry at A[i, j], A[i], A[rows, columns] or A[mask] any more.

        >>> import spgraph as sg
        >>> A = sg.Matrix([[1, 2], [0, 3]])
        >>> del A[0, 1]
        >>> list(A)
        [(0, 0, 1), (1, 1, 3)]
        """
        key = key if isinstance(key, Mask) else matrix_key(key, self)
        if not isinstance(key, Mask) and all(is_integer(each) for each in key):
            rows, columns = key
            i, j = from_end(rows, self.nrows, "rows"), from_end(columns, self.ncols, "columns")
            key = [i], [j]
        self[key] = _emptied(self[key])


def _masked(u: Any, mask: Mask) -> Any:
    """The entries of u that the mask allows."""
    from spgraph import operations
    from spgraph.semirings import unary

    return operations.apply(u, unary.identity, mask=mask)


def _emptied(u: Any) -> Any:
    """A container like u without entries."""
    return _masked(u, ~u.S)


def _element(v: Vector, i: int) -> Any:
    """The entry of a Vector of the CPU at a position that it has, None where there is none."""
    at = i
    if v._indices is not None:
        at = bisect_left(v._indices, i)
        if at == v._indices.size or v._indices[at] != i:
            return None
    elif v._bits is not None and not v._bits[i >> 5] >> (i & 31) & 1:
        return None
    return v._values[at]


def _entry(A: Matrix, i: int, j: int) -> Any:
    """The entry of a Matrix of the CPU at a position that it has, None where there is none."""
    start, stop = A._indptr[i : i + 2].tolist()
    # NumPy's search would convert the ids of the whole Matrix for a position of another type
    at = bisect_left(A._indices, j, start, stop)
    if at == stop or A._indices[at] != j:
        return None
    return A._values[0 if A.iso else at]


def _scalar(v: Vector) -> Any:
    """The entry of a Vector of one position, None where there is none."""
    values = v.to_coo()[1]
    return (values.get() if is_cuda(values) else values)[0] if values.size else None
