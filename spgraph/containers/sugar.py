"""The methods and operators of containers that lead upwards to operations: the one place with late
imports for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spgraph.containers.arrays import Array

if TYPE_CHECKING:
    from spgraph.containers.matrix import Matrix
    from spgraph.containers.vector import Vector


class VectorSugar:
    """`v @ A`, and building a Vector from coordinates."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy leaves `array @ v` to us

    @classmethod
    def from_coo(
        cls,
        indices: Array,
        values: Any = True,
        *,
        size: int | None = None,
        dtype: Any = None,
        dup_op: Any = None,
        device: str | None = None,
    ) -> Vector:
        """The Vector with values[k] at indices[k]; a scalar `values` stands at all of them.

        `size` defaults to the largest index + 1. Repeated indices are combined with the BinaryOp or
        Monoid `dup_op`, in the order given; without one they raise ValueError. `device` defaults to
        where the arrays are.

        >>> import spgraph as sg
        >>> from spgraph.semirings import binary
        >>> sg.Vector.from_coo([1, 1], [2, 3], size=3, dup_op=binary.plus).to_coo()[1].tolist()
        [5]
        """
        from spgraph.build import build_vector

        return build_vector(indices, values, size=size, dtype=dtype, dup_op=dup_op, device=device)

    def __matmul__(self, other: Any) -> Vector:
        from spgraph.containers.matrix import Matrix
        from spgraph.operations import vxm

        return vxm(self, other) if isinstance(other, Matrix) else NotImplemented  # type: ignore[arg-type]


class MatrixSugar:
    """`A @ v`, and building a Matrix from coordinates."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy leaves `array @ A` to us

    @classmethod
    def from_coo(
        cls,
        rows: Array,
        columns: Array,
        values: Any = True,
        *,
        nrows: int | None = None,
        ncols: int | None = None,
        dtype: Any = None,
        dup_op: Any = None,
        symmetric: bool | None = None,
        device: str | None = None,
    ) -> Matrix:
        """The Matrix with values[k] at (rows[k], columns[k]); a scalar `values` makes an iso
        Matrix.

        `nrows` and `ncols` default to the largest index + 1. Repeated positions are combined with
        the BinaryOp or Monoid `dup_op`, in the order given; without one they raise ValueError,
        except under a scalar, where they change nothing. `symmetric=True` is the caller's word that
        the entries are symmetric: it is not checked, and nothing is mirrored.

        >>> import spgraph as sg
        >>> sg.Matrix.from_coo([0, 1], [1, 0], [3, 4]).to_scipy().toarray().tolist()
        [[0, 3], [4, 0]]
        """
        from spgraph.build import build_matrix

        return build_matrix(
            rows,
            columns,
            values,
            nrows=nrows,
            ncols=ncols,
            dtype=dtype,
            dup_op=dup_op,
            symmetric=symmetric,
            device=device,
        )

    def __matmul__(self, other: Any) -> Vector:
        from spgraph.containers.vector import Vector
        from spgraph.operations import mxv

        return mxv(self, other) if isinstance(other, Vector) else NotImplemented
