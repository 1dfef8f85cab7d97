"""Indices that operations are given: one, an array, a slice or a Vector of them, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from spgraph import checks
from spgraph.containers import Vector
from spgraph.containers.annotations import Device
from spgraph.containers.storage.arrays import Array, as_array, device_of, move, on_device
from spgraph.containers.storage.numbers import is_integer
from spgraph.errors import BackendMismatch, DomainMismatch, IndexOutOfBound

# those of ids within: id + 1 is no number of int8, and uint64 beside int64 becomes float64
ID_TYPES = (np.dtype(np.int32), np.dtype(np.int64))


def is_all(indices: object) -> bool:
    """Whether None or a full slice says: all of them."""
    return indices is None or (isinstance(indices, slice) and indices == slice(None))


def one_index(name: str, argument: str, index: Any, size: int) -> int:
    """A single index as an int >= 0; a negative one counts from the end."""
    if not -size <= index < size:
        raise IndexOutOfBound(
            f"{name}: {argument}: expected {-size} <= index < {size}, got {index}"
        )
    return int(index) % size


def index_array(name: str, indices: object, size: int, device: Device, argument: str) -> Array:
    """`indices` (a slice, a 1-D array of integers, or a full Vector of them) as an array on
    `device`, of int32 or int64, all checked to be in [0, size). For distributed containers the
    array is on the CPU, and a distributed Vector remains one.
    """
    if isinstance(indices, Vector):
        return _index_vector(name, indices, size, device, argument)
    device = device if isinstance(device, str) else "cpu"
    if isinstance(indices, slice):
        start, stop, step = indices.indices(size)
        with on_device(device) as xp:
            return xp.arange(start, stop, step)
    array: Array = as_array(f"{name}: {argument}", indices)
    if array.ndim == 0:
        raise DomainMismatch(
            f"{name}: {argument}: expected integers (one, an array or a list of them, a slice), "
            f"got {indices!r}"
        )
    if array.ndim != 1:
        raise DomainMismatch(
            f"{name}: {argument}: expected a slice or 1 dimension, got {array.ndim} dimensions"
        )
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        if array.dtype != object or not all(map(is_integer, array)):
            raise DomainMismatch(f"{name}: {argument}: expected integers, got {array.dtype}")
        largest = max(array, key=abs)
        if not -(2**63) <= largest < 2**63:
            raise IndexOutOfBound(
                f"{name}: {argument}: expected 0 <= index < {size}, got {largest}"
            )
        array = array.astype(np.int64)
    if device_of(array) != device and device == "cpu":
        raise BackendMismatch(
            f"{name}: {argument} are on {device_of(array)}, the operand on {device}"
        )
    if device_of(array) != "cpu":
        array = move(array, device)
    if array.size:  # numbers of the host are looked at there, which costs a device nothing
        low, high = int(array.min()), int(array.max())
        if low < 0 or high >= size:
            raise IndexOutOfBound(
                f"{name}: {argument}: expected 0 <= index < {size}, got {low if low < 0 else high}"
            )
    return move(array if array.dtype in ID_TYPES else array.astype(np.int64), device)


def _index_vector(
    name: str, ids: Vector, size: int, device: Device, argument: str
) -> Array | Vector:
    if ids.nvals != ids.size:
        raise DomainMismatch(
            f"{name}: {argument}: expected a full Vector, got {ids.nvals} entries in {ids.size} "
            "positions"
        )
    if isinstance(ids.device, str):
        return index_array(name, ids.to_bitmap()._values, size, device, argument)
    if ids.dtype.kind not in "iu":
        raise DomainMismatch(f"{name}: {argument}: expected integers, got {ids.dtype}")
    checks.same_device(name, **{"the operand": checks.On(device), argument: ids})
    low, high = ids._value_range()
    if ids.size and not 0 <= low <= high < size:
        raise IndexOutOfBound(
            f"{name}: {argument}: expected 0 <= index < {size}, got {low if low < 0 else high}"
        )
    return ids if ids.dtype in ID_TYPES else ids.astype(np.int64)
