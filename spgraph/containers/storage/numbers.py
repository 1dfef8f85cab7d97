"""What counts as a number among arguments: no truth value, and no time, which NumPy calls an
integer.
"""

from __future__ import annotations

from typing import TypeGuard

import numpy as np


def is_integer(value: object) -> TypeGuard[int | np.integer]:
    """Whether it is an integer of Python's or NumPy's."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def is_real(value: object) -> TypeGuard[int | float | np.integer | np.floating]:
    """Whether it is an integer or a float of Python's or NumPy's."""
    return isinstance(value, float | np.floating) or is_integer(value)
