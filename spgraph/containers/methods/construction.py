"""Constructors: empty containers, of one value, of coordinates, of given arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy as np

from spgraph.containers.annotations import BinaryLike, Device, DType, FromCoo, Position, Scalar
from spgraph.containers.methods.parts import MatrixParts
from spgraph.containers.storage.arrays import (
    INT64_MAX,
    Array,
    array_module,
    as_array,
    check_device,
    check_extent,
    device_of,
    index_dtype,
    on_device,
    on_its_device,
    pack_bits,
)
from spgraph.containers.storage.casting import differs, held_number, one_number
from spgraph.containers.storage.device_memory import sent
from spgraph.containers.storage.numbers import is_integer
from spgraph.containers.storage.values import value_dtype
from spgraph.errors import DomainMismatch, IndexOutOfBound

if TYPE_CHECKING:
    from spgraph.containers.matrix import Matrix
    from spgraph.containers.vector import Vector


class VectorConstruction:
    """The constructors of a Vector, whose base this is."""

    __slots__ = ()

    @classmethod
    def empty(cls: Any, size: int, dtype: DType = np.float64, *, device: Device = "cpu") -> Vector:
        """A vector of `size` positions without entries, of type `dtype`, on `device`.

        >>> import spgraph as sg
        >>> sg.Vector.empty(3).nvals
        0
        """
        if not isinstance(device, str):  # spread over several devices
            return device.empty(size, dtype)
        size = check_extent("size", size)
        with on_device(check_device(device)) as xp:
            values, indices = xp.empty(0, value_dtype(dtype)), xp.empty(0, index_dtype(size))
        return cls._of(size, values, indices=indices)

    @classmethod
    def unit(
        cls: Any, index: Position, value: Scalar, *, size: int, dtype: DType, device: Device = "cpu"
    ) -> Vector:
        """A vector of `size` positions with one entry, `value` at `index`, of type `dtype`, on
        `device`.

        >>> import spgraph as sg
        >>> list(sg.Vector.unit(2, 0.5, size=4, dtype=float))
        [(2, 0.5)]
        """
        if type(size) is not int or not 0 <= size <= INT64_MAX:
            size = check_extent("size", size)
        check_position(index, size)
        if not isinstance(device, str):
            return device.unit(int(index), value, size=size, dtype=dtype)
        # what every search from a vertex begins with; a list of scalars would take three times as
        # long to convert
        values = one_number("value", value, value_dtype(dtype))
        indices = np.empty(1, index_dtype(size))
        indices[0] = index
        if device == "cpu":
            return cls._of(size, values, indices=indices)
        from spgraph.containers.storage.one_entry import one_entry

        return one_entry(size, indices, values, check_device(device))

    @classmethod
    def filled(
        cls: Any, value: Scalar, *, size: int, dtype: DType | None = None, device: Device = "cpu"
    ) -> Vector:
        """The full vector of `size` positions that all hold `value`, on `device`; of its type, or
        `dtype`.

        >>> import spgraph as sg
        >>> sg.Vector.filled(0.5, size=3).to_numpy().tolist()
        [0.5, 0.5, 0.5]
        """
        if not isinstance(device, str):
            return device.filled(value, size=size, dtype=dtype)
        size = check_extent("size", size)
        dtype = value_dtype(as_array("value", value).dtype if dtype is None else dtype)
        with on_device(check_device(device)) as xp:
            return cls._of(size, xp.full(size, held_number("value", value, dtype), dtype))

    @classmethod
    def arange(
        cls: Any, size: int, *, dtype: DType | None = None, device: Device = "cpu"
    ) -> Vector:
        """The full vector of `size` positions with value i at position i, on `device`; of the type
        of its indices, or `dtype`.

        >>> import spgraph as sg
        >>> sg.Vector.arange(3).to_numpy().tolist()
        [0, 1, 2]
        """
        if not isinstance(device, str):
            return device.arange(size, dtype=dtype)
        size = check_extent("size", size)
        dtype = index_dtype(size) if dtype is None else value_dtype(dtype)
        with on_device(check_device(device)) as xp:
            held_number("size - 1", max(size - 1, 0), dtype)
            return cls._of(size, xp.arange(size, dtype=dtype))

    @classmethod
    def from_dense(cls: Any, array: Array, *, missing: Scalar | None = None) -> Vector:
        """The vector of a 1-D NumPy or CuPy `array`: every position holds an entry, except where
        array == missing.

        The array is copied; NaN as `missing` means the positions that are NaN.

        >>> import spgraph as sg
        >>> sg.Vector.from_dense([3, 0, 4], missing=0).nvals
        2
        """
        array = as_array("from_dense", array)
        if array.ndim != 1:
            raise DomainMismatch(f"array: expected 1 dimension, got {array.ndim}")
        with on_device(device_of(array)):
            values = array.astype(value_dtype(array.dtype), copy=True)
            if missing is None:
                return cls._of(values.size, values)
            present = differs(values, missing)
            return cls._of(values.size, values, bits=pack_bits(present))._conform()

    @classmethod
    def from_coo(
        cls,
        indices: Sequence[int] | Array,
        values: Scalar | Sequence[Scalar] | Array = True,
        *,
        size: int | None = None,
        dtype: DType | None = None,
        dup_op: BinaryLike | None = None,
        device: Device | None = None,
    ) -> Vector:
        """The Vector with values[k] at indices[k]; a scalar `values` stands at all of them.

        `size` defaults to the largest index + 1. Repeated indices are combined with the BinaryOp or
        Monoid `dup_op` (or that of its name), in the order given; without one they raise
        ValueError, and OverflowError where their type does not hold a sum or a product of integers.
        Values become `dtype` if given: ValueError for one that it does not hold. `device` defaults
        to where the arrays are.

        >>> import spgraph as sg
        >>> from spgraph.semirings import binary
        >>> sg.Vector.from_coo([1, 1], [2, 3], size=3, dup_op=binary.plus).to_coo()[1].tolist()
        [5]
        """
        if device is not None and not isinstance(device, str):  # spread over several devices
            return device.from_coo(indices, values, size=size, dtype=dtype, dup_op=dup_op)
        from spgraph.build import build_vector

        return build_vector(indices, values, size=size, dtype=dtype, dup_op=dup_op, device=device)


class MatrixConstruction(MatrixParts):
    """The constructors of a Matrix, whose base this is, but for those of conversions.py."""

    __slots__ = ()

    @classmethod
    def empty(
        cls: Any, nrows: int, ncols: int, dtype: DType = np.float64, *, device: Device = "cpu"
    ) -> Matrix:
        """A matrix of `nrows` and `ncols` without entries, of type `dtype`, on `device`.

        >>> import spgraph as sg
        >>> sg.Matrix.empty(2, 3).shape
        (2, 3)
        """
        if not isinstance(device, str):  # spread over several devices
            return device.empty_matrix(nrows, ncols, dtype)
        nrows, ncols = check_extent("nrows", nrows), check_extent("ncols", ncols)
        with on_device(check_device(device)) as xp:
            parts = (
                xp.zeros(nrows + 1, np.int32),
                xp.empty(0, index_dtype(max(nrows, ncols))),
                xp.empty(0, value_dtype(dtype)),
            )
        return cls._of(nrows, ncols, *parts)

    @overload
    @classmethod
    def from_coo(
        cls,
        rows: Sequence[int] | Array,
        columns: Sequence[int] | Array,
        values: Scalar | Sequence[Scalar] | Array = ...,
        *,
        device: Device | None = ...,
        compact: Literal[False] | None = ...,
        **given: Unpack[FromCoo],
    ) -> Matrix: ...

    @overload
    @classmethod
    def from_coo(
        cls,
        rows: Sequence[int] | Array,
        columns: Sequence[int] | Array,
        values: Scalar | Sequence[Scalar] | Array = ...,
        *,
        device: Device | None = ...,
        compact: Literal[True],
        **given: Unpack[FromCoo],
    ) -> tuple[Matrix, Array]: ...

    @classmethod
    def from_coo(
        cls,
        rows: Sequence[int] | Array,
        columns: Sequence[int] | Array,
        values: Scalar | Sequence[Scalar] | Array = True,
        *,
        nrows: int | None = None,
        ncols: int | None = None,
        dtype: DType | None = None,
        dup_op: BinaryLike | None = None,
        symmetric: bool | None = None,
        device: Device | None = None,
        compact: bool | None = None,
    ) -> Matrix | tuple[Matrix, Array]:
        """The Matrix with values[k] at (`rows`[k], `columns`[k]); a scalar `values` makes an iso
        Matrix.

        `nrows` and `ncols` default to the largest index + 1. Repeated positions are combined with
        the BinaryOp or Monoid `dup_op` (or that of its name), in the order given; without one they
        raise ValueError, except under a scalar, where they change nothing. `symmetric=True`
        asserts that the entries are symmetric: it is not checked, and nothing is mirrored.
        `dtype`, `device` and the OverflowError of sums are as those of `Vector.from_coo`.

        `compact=True` is for ids far apart: the vertices that occur, as a row or a column, are
        numbered 0, 1, ... by ascending id, and (Matrix, ids) is returned, ids[v] being the id of
        vertex v. By default (None) a MemoryError is raised where the row pointers would take over 1
        GiB and over 64 times the bytes of the ids and values; False allocates them.

        >>> import spgraph as sg
        >>> sg.Matrix.from_coo([0, 1], [1, 0], [3, 4]).to_scipy().toarray().tolist()
        [[0, 3], [4, 0]]
        >>> A, ids = sg.Matrix.from_coo([7, 10**12], [10**12, 9], compact=True)
        >>> A.shape, ids.tolist()
        ((3, 3), [7, 9, 1000000000000])
        """
        given: FromCoo = {"nrows": nrows, "ncols": ncols, "dtype": dtype, "dup_op": dup_op}
        given["symmetric"] = symmetric
        if device is not None and not isinstance(device, str):  # spread over several devices
            return device.matrix_from_coo(rows, columns, values, compact=compact, **given)
        from spgraph.build import build_matrix

        return build_matrix(rows, columns, values, given, device=device, compact=compact)

    @classmethod
    def _from_columns(cls: Any, columns: Vector, *, ncols: int) -> Matrix:
        """The iso Matrix of value True with one entry a row: that of row i in column columns[i] of
        a full Vector of integers, which are not checked.

        >>> import spgraph as sg
        >>> list(sg.Matrix._from_columns(sg.Vector.from_dense([2, 0]), ncols=3))
        [(0, 2, True), (1, 0, True)]
        """
        if not isinstance(columns.device, str):
            return columns.device._from_columns(columns, ncols=ncols)
        n, ncols = columns.size, check_extent("ncols", ncols)
        with on_device(columns.device) as xp:
            indptr = xp.arange(n + 1, dtype=index_dtype(n))
            indices = columns._values.astype(index_dtype(max(n, ncols)))
            return cls._of(n, ncols, indptr, indices, xp.ones(1, bool), iso=True)

    @on_its_device
    def pattern(self, dtype: DType = bool) -> Matrix:
        """The iso Matrix of value True, or 1 of another `dtype`, at the same entries; shares the
        index arrays.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 0, 2], [0, 1, 1], [1, 2, 5])
        >>> A.pattern().dtype, A.pattern("int64").values.tolist()
        (dtype('bool'), [1])
        """
        from spgraph.containers.matrix import Matrix

        xp = array_module(self._indices)
        return Matrix._of(
            self.nrows,
            self.ncols,
            self._indptr,
            self._indices,
            sent(np.ones(1, value_dtype(dtype)), xp),
            iso=True,
            # where the values alone made it asymmetric, the pattern is not
            symmetric=self.symmetric or None,
        )


def check_position(index: Position, size: int) -> None:
    """IndexOutOfBound unless a vector of `size` has that position; DomainMismatch for what is no
    integer, which a conversion to one would round.
    """
    if type(index) is not int and not is_integer(index):
        raise DomainMismatch(f"index: expected an integer, got {index!r}")
    if not 0 <= index < size:
        raise IndexOutOfBound(f"index: expected 0 <= index < {size}, got {index}")
