"""Equality of two containers, exact or within a tolerance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spgraph.containers.methods.parts import MatrixParts, VectorParts
from spgraph.containers.storage.arrays import Array, array_module, on_its_device
from spgraph.containers.storage.numbers import flags
from spgraph.errors import BackendMismatch, DomainMismatch

if TYPE_CHECKING:
    from spgraph.containers.matrix import Matrix
    from spgraph.containers.vector import Vector


class VectorComparison(VectorParts):
    """How a Vector, whose base this is, compares with another."""

    __slots__ = ()

    def isequal(self, other: Vector, *, check_dtype: bool = False) -> bool:
        """Whether `other` has the same size, the same positions and equal values (and with
        `check_dtype` the same type); NaN equals NaN. The storages may differ.

        >>> import spgraph as sg
        >>> v = sg.Vector.from_dense([1, 2])
        >>> v.isequal(sg.Vector.from_dense([1.0, 2.0])), v.isequal(sg.Vector.from_dense([1, 3]))
        (True, False)
        """
        flags("isequal", check_dtype=check_dtype)
        return self._matches(other, check_dtype, lambda xp, x, y: bool(_equal(x, y).all()))

    def isclose(self, other: Vector, *, rtol: float = 1e-7, atol: float = 0.0) -> bool:
        """Same size, same positions, values within `atol + rtol * abs(other)`; NaN equals NaN.

        >>> import spgraph as sg
        >>> v = sg.Vector.from_dense([1.0, 2.0])
        >>> v.isclose(sg.Vector.from_dense([1.0, 2.0 + 1e-9]))
        True
        """
        return self._matches(
            other,
            False,
            lambda xp, x, y: bool(xp.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True).all()),
        )

    @on_its_device
    def _matches(self, other: Vector, check_dtype: bool, same: Any) -> bool:
        from spgraph.containers.vector import Vector

        if not isinstance(other, Vector):
            raise DomainMismatch(f"other: expected a Vector, got {type(other).__name__}")
        if self.device != other.device:
            raise BackendMismatch(
                f"other is on {other.device}, the Vector on {self.device}; move one with .to()"
            )
        if (
            self.size != other.size
            or self.nvals != other.nvals
            or (check_dtype and self.dtype != other.dtype)
        ):
            return False
        a, b = self.to_sparse(), other.to_sparse()
        xp = array_module(a._values)
        return bool(xp.array_equal(a._indices, b._indices)) and same(xp, a._values, b._values)


class MatrixComparison(MatrixParts):
    """How a Matrix, whose base this is, compares with another."""

    __slots__ = ()

    def isequal(self, other: Matrix, *, check_dtype: bool = False) -> bool:
        """Whether `other` has the same shape, the same positions and equal values (and with
        `check_dtype` the same type); NaN equals NaN. An iso matrix may equal one that is not.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_dense([[1, 2]])
        >>> A.isequal(A.dup(float)), A.isequal(A.dup(float), check_dtype=True)
        (True, False)
        """
        flags("isequal", check_dtype=check_dtype)
        return self._matches(other, check_dtype, lambda xp, x, y: _equal(x, y))

    def isclose(self, other: Matrix, *, rtol: float = 1e-7, atol: float = 0.0) -> bool:
        """Same shape, same positions, values within `atol + rtol * abs(other)`; NaN equals NaN.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_dense([[1.0, 2.0]])
        >>> A.isclose(sg.Matrix.from_dense([[1.0, 2.1]]), rtol=0.1)
        True
        """
        return self._matches(
            other,
            False,
            lambda xp, x, y: xp.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True),
        )

    @on_its_device
    def _matches(self, other: Matrix, check_dtype: bool, same: Any) -> bool:
        from spgraph.containers.matrix import Matrix

        if not isinstance(other, Matrix):
            raise DomainMismatch(f"other: expected a Matrix, got {type(other).__name__}")
        if self.device != other.device:
            raise BackendMismatch(
                f"other is on {other.device}, the Matrix on {self.device}; move one with .to()"
            )
        if (
            self.shape != other.shape
            or self.nvals != other.nvals
            or (check_dtype and self.dtype != other.dtype)
        ):
            return False
        if not (self._indptr == other._indptr).all() or not (self._indices == other._indices).all():
            return False
        # iso values broadcast
        values = same(array_module(self._indices), self._values, other._values)
        return self.nvals == 0 or bool(values.all())


def _equal(x: Array, y: Array) -> Array:
    """Where values are equal; NaN equals NaN."""
    if {x.dtype.str[1:], y.dtype.str[1:]} == {"i8", "u8"}:  # CuPy compares them as float64
        return (x >= 0) & (y >= 0) & (x.astype(np.uint64) == y.astype(np.uint64))
    return (x == y) | ((x != x) & (y != y))
