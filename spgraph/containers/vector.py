"""Vector: a sparse vector in one of three storages, on one device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from spgraph.containers import display
from spgraph.containers.arrays import (
    INT64_MAX,
    Array,
    array_module,
    check_device,
    check_extent,
    count_bits,
    device_of,
    index_dtype,
    move,
    on_device,
    pack_bits,
    read_only,
    unpack_bits,
)
from spgraph.containers.casting import held_number
from spgraph.containers.conversions import VectorConversions
from spgraph.containers.mask import Mask
from spgraph.containers.sugar import VectorSugar
from spgraph.containers.values import VectorValues, converted, value_dtype
from spgraph.errors import BackendMismatch, DomainMismatch, IndexOutOfBound


class Vector(VectorValues, VectorConversions, VectorSugar):
    """A vector of `size` positions, some of which hold an entry.

    The storage follows the density and decides whether products push or pull:

    * sparse: `indices` (sorted, unique) and `values`, one per entry;
    * bitmap: `values` of length `size`, and `bits`, one bit a position in 32-bit words;
    * full:   `values` of length `size`, every position holds an entry.

    On the CPU the three are read-only views; CuPy has no such flag. The constructor trusts its
    arrays: it neither checks nor copies. Users build vectors with `from_coo`, `from_dense` and
    `empty`.

    >>> import spgraph as sg
    >>> v = sg.Vector.from_coo([4, 1], [2.5, 1.0], size=6)
    >>> v.nvals, v.storage, v.to_numpy(fill=0.0).tolist()
    (2, 'bitmap', [0.0, 1.0, 0.0, 0.0, 2.5, 0.0])
    """

    __slots__ = ("_bits", "_indices", "_nvals", "_values", "size")

    def __init__(
        self,
        size: int,
        values: Array,
        *,
        indices: Array | None = None,
        bits: Array | None = None,
        nvals: int | Callable[[], int] | None = None,
    ) -> None:
        self.size = size
        self._values = values
        self._indices = indices
        self._bits = bits
        # of a bitmap it may be unknown until somebody asks: counted then, or fetched by the
        # function given
        self._nvals = nvals if bits is not None else int(values.size)

    # --- construction -----------------------------------------------------------------------------

    @classmethod
    def empty(cls, size: int, dtype: Any = np.float64, *, device: Any = "cpu") -> Vector:
        """A vector of `size` positions without entries."""
        if not isinstance(device, str):  # spread over several devices
            return device.empty(size, dtype)
        size = check_extent("size", size)
        with on_device(check_device(device)) as xp:
            values, indices = xp.empty(0, value_dtype(dtype)), xp.empty(0, index_dtype(size))
        return cls(size, values, indices=indices)

    @classmethod
    def unit(cls, index: int, value: Any, *, size: int, dtype: Any, device: Any = "cpu") -> Vector:
        """A vector of `size` positions with one entry: `value` at `index`."""
        if not isinstance(device, str):
            return device.unit(index, value, size=size, dtype=dtype)
        check_position(index, size)
        if size > INT64_MAX:
            check_extent("size", size)
        kind, dtype = index_dtype(size), value_dtype(dtype)
        with on_device(check_device(device)) as xp:
            if value == index and kind == dtype:  # one fill instead of two
                pair = xp.full(2, index, kind)
                return cls(size, pair[1:], indices=pair[:1])
            value = held_number("value", value, dtype)
            return cls(size, xp.full(1, value, dtype), indices=xp.full(1, index, kind))

    @classmethod
    def filled(cls, value: Any, *, size: int, dtype: Any = None, device: Any = "cpu") -> Vector:
        """The full vector of `size` positions that all hold `value`; of its type by default.

        >>> import spgraph as sg
        >>> sg.Vector.filled(0.5, size=3).to_numpy().tolist()
        [0.5, 0.5, 0.5]
        """
        if not isinstance(device, str):
            return device.filled(value, size=size, dtype=dtype)
        size = check_extent("size", size)
        kind = value_dtype(np.asarray(value).dtype if dtype is None else dtype)
        with on_device(check_device(device)) as xp:
            return cls(size, xp.full(size, held_number("value", value, kind), kind))

    @classmethod
    def arange(cls, size: int, *, dtype: Any = None, device: Any = "cpu") -> Vector:
        """The full vector with value i at position i; of the type of its indices by default.

        >>> import spgraph as sg
        >>> sg.Vector.arange(3).to_numpy().tolist()
        [0, 1, 2]
        """
        if not isinstance(device, str):
            return device.arange(size, dtype=dtype)
        size = check_extent("size", size)
        kind = index_dtype(size) if dtype is None else value_dtype(dtype)
        with on_device(check_device(device)) as xp:
            held_number("size - 1", max(size - 1, 0), kind)
            return cls(size, xp.arange(size, dtype=kind))

    @classmethod
    def from_dense(cls, array: Array, *, missing: Any = None) -> Vector:
        """The vector of a 1-D NumPy or CuPy array: every position holds an entry, except where
        array == missing.

        The array is copied; NaN as `missing` means the positions that are NaN.

        >>> import spgraph as sg
        >>> sg.Vector.from_dense([3, 0, 4], missing=0).nvals
        2
        """
        array = array if hasattr(array, "__cuda_array_interface__") else np.asarray(array)
        if array.ndim != 1:
            raise DomainMismatch(f"array: expected 1 dimension, got {array.ndim}")
        values = array.astype(value_dtype(array.dtype), copy=True)
        if missing is None:
            return cls(values.size, values)
        present = values == values if missing != missing else values != missing
        return cls(values.size, values, bits=pack_bits(present))._conform()

    # --- what it is -------------------------------------------------------------------------------

    @property
    def values(self) -> Array:
        """The values, one an entry or one a position, as the storage says."""
        return read_only(self._values)

    @property
    def indices(self) -> Array | None:
        """The positions that hold an entry, ascending; None unless the storage is sparse."""
        return None if self._indices is None else read_only(self._indices)

    @property
    def bits(self) -> Array | None:
        """One bit a position, set where it holds an entry; None unless the storage is bitmap."""
        return None if self._bits is None else read_only(self._bits)

    @property
    def shape(self) -> tuple[int]:
        return (self.size,)

    @property
    def dtype(self) -> np.dtype:
        return self._values.dtype

    @property
    def device(self) -> Any:
        """'cpu', or 'cuda:0' and so on; of a distributed one its Placement."""
        return device_of(self._values)

    @property
    def storage(self) -> str:
        """'sparse', 'bitmap' or 'full'."""
        if self._indices is not None:
            return "sparse"
        return "full" if self._bits is None else "bitmap"

    @property
    def nvals(self) -> int:
        """How many positions hold an entry."""
        found = self._nvals  # read once: another thread may be fetching it
        if found is None:
            assert self._bits is not None
            self._nvals = found = count_bits(self._bits)
        elif callable(found):
            self._nvals = found = found()
        return found

    def _fetch_nvals(self) -> int | None:
        """The count, fetched if a function was given for it; None where nobody has counted."""
        found = self._nvals
        if callable(found):
            self._nvals = found = found()
        return found

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(a.nbytes for a in (self._values, self._indices, self._bits) if a is not None)

    @property
    def S(self) -> Mask:
        """The mask of the stored entries."""
        return Mask(self, structure=True)

    @property
    def V(self) -> Mask:
        """The mask of the stored entries that are true."""
        return Mask(self, structure=False)

    # --- storage ----------------------------------------------------------------------------------

    def to_sparse(self) -> Vector:
        """The same entries as sorted indices and values; itself if it is sparse."""
        if self._indices is not None:
            return self
        self._fetch_nvals()  # the arrays of an operation that may have failed
        xp = array_module(self._values)
        kind = index_dtype(self.size)
        # a full vector's values are copied: operations write those of `out` in place
        if self._bits is None:
            indices = xp.arange(self.size, dtype=kind)
            return Vector(self.size, self._values.copy(), indices=indices)
        # only the words that hold an entry are unpacked
        nonzero = xp.flatnonzero(self._bits)
        local = xp.flatnonzero(unpack_bits(self._bits[nonzero], 32 * nonzero.size))
        indices = (nonzero[local >> 5] * 32 + (local & 31)).astype(kind, copy=False)
        return Vector(self.size, self._values[indices], indices=indices)

    def to_bitmap(self) -> Vector:
        """The same entries by position: bitmap, or full where every position holds one; itself if
        it is neither sparse.
        """
        if self._indices is None:
            return self
        xp = array_module(self._values)
        if self.nvals == self.size:
            return Vector(self.size, self._values.copy())
        # zeros, not empty: what lies under an absent bit must not differ from run to run
        values = xp.zeros(self.size, self.dtype)
        values[self._indices] = self._values
        present = xp.zeros(self.size, bool)
        present[self._indices] = True
        return Vector(self.size, values, bits=pack_bits(present), nvals=self.nvals)

    def _conform(self) -> Vector:
        """The same entries in the storage that their density asks for: full when complete, sparse
        below 1 in 32.
        """
        if self.nvals == self.size:
            return (
                self
                if self._bits is None and self._indices is None
                else Vector(self.size, self.to_bitmap()._values)
            )
        return self.to_sparse() if self.nvals * 32 < self.size else self.to_bitmap()

    # --- copies -----------------------------------------------------------------------------------

    def to(self, device: Any) -> Vector:
        """The same entries on `device` ('cpu', 'cuda', 'cuda:1'); itself if it is there already.

        A Placement, the `device` of a distributed container, spreads it as that one is.
        """
        if not isinstance(device, str):
            return device.scatter(self)
        device = check_device(device)
        if device == self.device:
            return self
        parts = {
            k: None if a is None else move(a, device)
            for k, a in (("indices", self._indices), ("bits", self._bits))
        }
        return Vector(self.size, move(self._values, device), nvals=self._nvals, **parts)

    def dup(self, dtype: Any = None) -> Vector:
        """A copy that shares nothing, with values of type `dtype` (see `astype`) if given."""
        parts = {
            k: None if a is None else a.copy()
            for k, a in (("indices", self._indices), ("bits", self._bits))
        }
        values = converted(self._values, self.dtype if dtype is None else value_dtype(dtype))
        return Vector(self.size, values, nvals=self._nvals, **parts)

    copy = dup

    def _become(self, other: Vector) -> None:
        """Take over the arrays of `other` (the last step of an operation that writes `out`)."""
        self.size, self._values, self._indices, self._bits = (
            other.size,
            other._values,
            other._indices,
            other._bits,
        )
        self._nvals = other._nvals

    # --- comparison -------------------------------------------------------------------------------

    def isequal(self, other: Vector, *, check_dtype: bool = False) -> bool:
        """Same size, same positions, equal values; NaN equals NaN. The storages may differ."""
        return self._matches(
            other, check_dtype, lambda xp, x, y: bool(((x == y) | ((x != x) & (y != y))).all())
        )

    def isclose(self, other: Vector, *, rtol: float = 1e-7, atol: float = 0.0) -> bool:
        """Same size, same positions, values within `atol + rtol * abs(other)`; NaN equals NaN."""
        return self._matches(
            other,
            False,
            lambda xp, x, y: bool(xp.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True).all()),
        )

    def _matches(self, other: Vector, check_dtype: bool, same: Any) -> bool:
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

    # --- for Python -------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """(index, value) of every entry, by ascending index."""
        indices, values = (move(a, "cpu") for a in self.to_coo())
        return zip(indices.tolist(), values.tolist(), strict=True)

    def __getstate__(self) -> dict[str, Any]:
        arrays = {"values": self._values, "indices": self._indices, "bits": self._bits}
        return arrays | {"size": self.size, "nvals": self.nvals}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # operations write into a Vector, and buffers that came beside the pickle may be read-only
        frozen = [
            k for k, a in state.items() if isinstance(a, np.ndarray) and not a.flags.writeable
        ]
        self.__init__(**state | {name: state[name].copy() for name in frozen})  # type: ignore[misc]

    # --- for people -------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.size

    def __bool__(self) -> bool:
        raise TypeError("a Vector has no truth value; compare .nvals, or reduce it")

    def __repr__(self) -> str:
        return display.text(*self._describe())

    def _repr_html_(self) -> str:
        return display.html(*self._describe())

    def _describe(self) -> tuple[str, list[str], list[tuple[Any, ...]], int]:
        facts = [str(self.dtype), self.storage, self.device, display.size_of(self.nbytes)]
        head = self._head(display.ROWS)
        return f"Vector {self.size}, {self.nvals} entries", facts, head, self.nvals

    def _head(self, count: int) -> list[tuple[Any, ...]]:
        """The first entries, found without unpacking more of a bitmap than they need."""
        if self._indices is not None:
            indices = self._indices[:count]
            values = self._values[:count]
        elif self._bits is None:
            values = self._values[:count]
            indices = array_module(values).arange(values.size)
        else:
            xp = array_module(self._values)
            nonzero = xp.flatnonzero(self._bits)[:count]
            flags = xp.zeros(32 * nonzero.size, bool)
            if nonzero.size:
                flags = unpack_bits(self._bits[nonzero], 32 * nonzero.size)
            local = xp.flatnonzero(flags)[:count]
            indices = nonzero[local // 32] * 32 + local % 32
            values = self._values[indices]
        return list(zip(indices.tolist(), values.tolist(), strict=True))


def check_position(index: int, size: int) -> None:
    """IndexOutOfBound unless a vector of `size` has that position."""
    if not 0 <= index < size:
        raise IndexOutOfBound(f"index: expected 0 <= index < {size}, got {index}")


__all__ = ["Vector", "value_dtype"]
