"""What the host tells a kernel of several devices once for a graph: a block of 8-byte fields in the
device's memory, `struct Given` of the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from spgraph.containers.storage.arrays import Array, address


def block(fields: Mapping[str, Any], xp: ModuleType) -> Array:
    """The block: `fields` has the names of the struct's and their order. One is an integer, an
    array, which stands for its address, None, a null pointer, or a list of these.
    """
    return xp.asarray(np.array([n for value in fields.values() for n in numbers(value)], np.int64))


def numbers(value: Any) -> list[int]:
    """The numbers of one field."""
    if isinstance(value, list | tuple):
        return [number for each in value for number in numbers(each)]
    if isinstance(value, int | np.integer | np.bool_):
        return [int(value)]
    return [address(value)]
