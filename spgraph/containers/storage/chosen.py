"""Elements of an array that flags choose, however many: CuPy counts them in a C int where a boolean
array is an index, and raises OverflowError from 2**31 on.
"""

from __future__ import annotations

from spgraph.containers.storage.arrays import Array, array_module, is_cuda

STEP = 1 << 30  # flags that CuPy is given at a time


def compress(flags: Array, values: Array) -> Array:
    """values[flags], both of one dimension and length: a copy."""
    if flags.size <= STEP or not is_cuda(values):
        return values[flags]
    xp, end = array_module(values), 0
    made = xp.empty(int(xp.count_nonzero(flags)), values.dtype)
    for first in range(0, flags.size, STEP):
        part = values[first : first + STEP][flags[first : first + STEP]]
        made[end : end + part.size] = part
        end += part.size
    return made


def distinct(keys: Array) -> Array:
    """Each of the ascending keys once: a copy, or `keys` where none is repeated."""
    if keys.size == 0:
        return keys
    xp = array_module(keys)
    fresh = xp.ones(keys.size, bool)
    xp.not_equal(keys[1:], keys[:-1], out=fresh[1:])
    return keys if bool(fresh.all()) else compress(fresh, keys)
