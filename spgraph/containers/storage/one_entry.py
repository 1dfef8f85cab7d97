"""A Vector of one entry on a GPU, which is what most searches start from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spgraph.containers.storage.arrays import Array, on_device
from spgraph.containers.storage.device_memory import sent
from spgraph.containers.vector import Vector


class Entry(NamedTuple):
    """What a OneEntry holds: arrays of one element on the host, and the device's name."""

    indices: np.ndarray
    values: np.ndarray
    device: str
    # the arrays on the GPU: those that the first of several threads has made
    made: dict[str, tuple[Array, Array]]


class OneEntry(Vector):
    """A Vector of one entry that is known to the host. Its arrays are made on the GPU when somebody
    first looks at one, and it is a plain Vector from then on; a loop that takes the entry as it is
    spares the launches and the copy.

    Until then a slot of a Vector, `_bits`, holds the Entry and the other two are empty. Another
    thread may make the arrays at any time: what is asked of the Entry is asked of one that was read
    once, or, where that is gone, of the plain Vector.
    """

    __slots__ = ()

    @classmethod
    def _of(cls, *arrays: Any, **more: Any) -> Any:
        return Vector._of(*arrays, **more)

    @property
    def dtype(self) -> np.dtype:
        entry = ENTRY.__get__(self)
        return plain(self).dtype if entry is None else entry.values.dtype

    @property
    def device(self) -> Any:
        entry = ENTRY.__get__(self)
        return plain(self).device if entry is None else entry.device

    def _value_range(self) -> tuple[float, float]:
        entry = ENTRY.__get__(self)
        if entry is None:
            return plain(self)._value_range()
        one = entry.values.item()
        return one, one

    def __reduce_ex__(self, protocol: Any) -> Any:
        return plain(self).__reduce_ex__(protocol)


INDICES, VALUES, ENTRY = (Vector.__dict__[name] for name in ("_indices", "_values", "_bits"))


def plain(v: Any) -> Any:
    """A OneEntry as the plain Vector that it is from now on."""
    entry = ENTRY.__get__(v)
    if isinstance(entry, Entry):
        with on_device(entry.device) as xp:
            arrays = sent(entry.indices, xp), sent(entry.values, xp)
        indices, values = entry.made.setdefault("arrays", arrays)
        INDICES.__set__(v, indices)
        VALUES.__set__(v, values)
        ENTRY.__set__(v, None)
    v.__class__ = Vector
    return v


def _looked_at(name: str) -> Any:
    """A slot of a Vector, filled when it is first read."""
    return property(lambda v: getattr(plain(v), name), lambda v, x: setattr(plain(v), name, x))


for _name in ("_indices", "_values", "_bits"):
    setattr(OneEntry, _name, _looked_at(_name))


def one_entry(size: int, index: np.ndarray, value: np.ndarray, device: str) -> Vector:
    """The Vector of `size` positions with `value` at `index`, both arrays of one element on the
    host, on a GPU.
    """
    v = OneEntry.__new__(OneEntry)
    v.size, v._nvals = size, 1
    ENTRY.__set__(v, Entry(index, value, device, {}))
    return v


def entry_of(v: Vector) -> tuple[Array, Array] | None:
    """(index, value), arrays of one element on the host, of a Vector whose entry the host knows and
    the GPU does not; else None.
    """
    entry = ENTRY.__get__(v) if type(v) is OneEntry else None
    return None if entry is None else (entry.indices, entry.values)
