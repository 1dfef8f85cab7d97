"""Which arguments are integers, reals or flags: a bool is no integer, nor is a time of NumPy, which
counts as one there.
"""

from __future__ import annotations

from typing import TypeGuard

import numpy as np

from spgraph.errors import DomainMismatch


def is_integer(value: object) -> TypeGuard[int | np.integer]:
    """Whether it is an integer of Python's or NumPy's, an array of no dimensions included, which
    NumPy and SciPy take in its place.
    """
    if isinstance(value, int | np.integer):
        return not isinstance(value, bool | np.timedelta64)
    return isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "iu"


def is_real(value: object) -> TypeGuard[int | float | np.integer | np.floating]:
    """Whether it is an integer or a float of Python's or NumPy's, an array of no dimensions
    included.
    """
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "iuf"
    return isinstance(value, float | np.floating) or is_integer(value)


def flags(name: str, **given: object) -> None:
    """DomainMismatch, a TypeError, unless each argument is a bool of Python's or NumPy's: anything
    else, such as "no" or an array, has a truth that its writer need not have meant.
    """
    for argument, value in given.items():
        if type(value) is not bool and not isinstance(value, np.bool_):
            raise DomainMismatch(f"{name}: {argument}: expected True or False, got {value!r}")


def flags_or_none(name: str, **given: object) -> None:
    """`flags` of arguments that may be None, too."""
    for argument, value in given.items():
        if value is not None and type(value) is not bool and not isinstance(value, np.bool_):
            raise DomainMismatch(f"{name}: {argument}: expected True, False or None, got {value!r}")
