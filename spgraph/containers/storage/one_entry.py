"""A Vector of one entry on a GPU, which is what most searches start from."""

from __future__ import annotations

from typing import Any

import numpy as np

from spgraph.containers.storage.arrays import Array, on_device, sent
from spgraph.containers.vector import Vector


class OneEntry(Vector):
    """A Vector of one entry that is known to the host. Its arrays are made on the GPU when somebody
    first looks at one, and it is a plain Vector from then on; a loop that takes the entry as it is
    spares the launches and the copy.

    The slots of a Vector hold the entry (`_indices`, `_values`: arrays on the host) and the
    device's name (`_bits`) until then.
    """

    __slots__ = ()

    @classmethod
    def _of(cls, *arrays: Any, **more: Any) -> Any:
        return Vector._of(*arrays, **more)

    @property
    def dtype(self) -> np.dtype:
        return VALUES(self).dtype

    @property
    def device(self) -> Any:
        return BITS(self)

    def _value_range(self) -> tuple[float, float]:
        one = VALUES(self).item()
        return one, one

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._made().__reduce_ex__(protocol)

    def _made(self) -> Vector:
        """Itself as a plain Vector."""
        with on_device(BITS(self)) as xp:
            indices, values = sent(INDICES(self), xp), sent(VALUES(self), xp)
        self.__class__ = Vector  # type: ignore[assignment]
        self._indices, self._values, self._bits = indices, values, None
        return self


def _looked_at(name: str) -> Any:
    """A slot of a Vector, filled when it is first read."""
    return property(lambda v: getattr(v._made(), name), lambda v, x: setattr(v._made(), name, x))


INDICES, VALUES, BITS = (Vector.__dict__[name].__get__ for name in ("_indices", "_values", "_bits"))
for _name in ("_indices", "_values", "_bits"):
    setattr(OneEntry, _name, _looked_at(_name))


def one_entry(size: int, index: np.ndarray, value: np.ndarray, device: str) -> Vector:
    """The Vector of `size` positions with `value` at `index`, both arrays of one element on the
    host, on a GPU.
    """
    v = OneEntry.__new__(OneEntry)
    v.size, v._nvals = size, 1
    for name, held in (("_indices", index), ("_values", value), ("_bits", device)):
        Vector.__dict__[name].__set__(v, held)
    return v


def entry_of(v: Vector) -> tuple[Array, Array] | None:
    """(index, value), arrays of one element on the host, of a Vector whose entry the host knows and
    the GPU does not; else None.
    """
    return (INDICES(v), VALUES(v)) if type(v) is OneEntry else None
