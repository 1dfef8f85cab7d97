"""Elements of an array that flags select, and the first of each group of equal ones.

CuPy counts flags in a C int where a boolean array is an index, and raises OverflowError from 2**31
on; `compress` takes any number.
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


def is_first(keys: Array) -> Array:
    """For each of the sorted keys, whether it is the first of its group of equal ones."""
    xp = array_module(keys)
    first = xp.ones(keys.size, bool)
    xp.not_equal(keys[1:], keys[:-1], out=first[1:])
    return first


def distinct(keys: Array) -> Array:
    """Each of the ascending keys once: a copy, or `keys` where none is repeated."""
    if keys.size == 0:
        return keys
    first = is_first(keys)
    return keys if bool(first.all()) else compress(first, keys)
