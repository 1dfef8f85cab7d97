"""Random numbers for the vertices: the same on every device."""

from __future__ import annotations

import secrets

import numpy as np

from ..containers import Vector
from ..containers.annotations import Device
from ..containers.storage.arrays import Array
from ..containers.storage.numbers import is_integer
from ..errors import DomainMismatch

WORD = 2**64 - 1
STEP = 0x9E3779B97F4A7C15


def random_words(name: str, seed: int | None, n: int, device: Device) -> Vector:
    """A random number of 64 bits for each of n vertices, no two equal; None draws a seed.

    Word v is the mix, a bijection, of the v-th number that the seed counts to.

    Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014).
    """
    if seed is None:
        seed = fresh_seed(device)
    if not is_integer(seed):
        raise DomainMismatch(f"{name}: seed: expected an integer or None, got {seed!r}")
    if not 0 <= seed <= WORD:
        raise ValueError(f"{name}: seed: expected an integer from 0 to 2**64 - 1, got {seed}")
    # neighbouring seeds must not count through the same numbers, one vertex apart
    first = _mixed(np.array([seed], np.uint64) + np.uint64(1))[0]
    count = Vector.arange(n, dtype=np.uint64, device=device)
    return count._with_values(lambda v: _mixed(v * np.uint64(STEP) + first))


def fresh_seed(device: Device) -> int:
    """A seed that nobody foresees, the same in all processes that the device stands for."""
    seed = secrets.randbits(63)
    return seed if isinstance(device, str) else device.largest(seed)


def _mixed(x: Array) -> Array:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
