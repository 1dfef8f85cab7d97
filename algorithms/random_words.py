"""Random numbers for the vertices: the same on every device."""

from __future__ import annotations

import secrets

import numpy as np

from ..containers import Vector
from ..containers.annotations import Device
from ..containers.storage.numbers import is_integer
from ..errors import DomainMismatch
from ..random_edges import GOLDEN, WORD, mix


def random_words(name: str, seed: int | None, n: int, device: Device) -> Vector:
    """A random number of 64 bits for each of n vertices, no two equal; None draws a seed.

    Word v is `mix`, a bijection, of the v-th number that the seed counts to.

    Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014).
    """
    seed = checked_seed(name, seed, device)
    # neighbouring seeds must not count through the same numbers, one vertex apart
    first = np.uint64(mix(seed + 1 & WORD))
    count = Vector.arange(n, dtype=np.uint64, device=device)
    return count._with_values(lambda v: mix(v * np.uint64(GOLDEN) + first))


def checked_seed(name: str, seed: int | None, device: Device) -> int:
    """`seed`, an integer of 64 bits; for None a fresh one."""
    if seed is None:
        return fresh_seed(device)
    if not is_integer(seed):
        raise DomainMismatch(f"{name}: seed: expected an integer or None, got {seed!r}")
    if not 0 <= seed <= WORD:
        raise ValueError(f"{name}: seed: expected an integer from 0 to 2**64 - 1, got {seed}")
    return int(seed)


def fresh_seed(device: Device) -> int:
    """An unpredictable seed, the same in all processes of a Placement."""
    seed = secrets.randbits(63)
    return seed if isinstance(device, str) else device.largest(seed)
