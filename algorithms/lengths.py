"""Lengths of integers, which distances of int64 are made of."""

from __future__ import annotations

import numpy as np

from ..containers import Matrix, Vector
from ..iterations import search
from ..iterations.fixed_point import beyond
from ..semirings import any_pair

INT64_MAX = np.iinfo(np.int64).max


def in_int64(A: Matrix) -> tuple[Matrix, Matrix | None]:
    """A, with lengths of uint64 as int64; and A as it was if entries that int64 does not hold are
    left out: no distance that it holds needs them.
    """
    if A.dtype != np.uint64:
        return A, None
    if A._value_range()[1] <= INT64_MAX:
        return A.astype(np.int64), None
    return A._where(lambda a: a <= np.uint64(INT64_MAX)).astype(np.int64), A


def check_reached(name: str, whole: Matrix | None, start: Vector, distance: Vector) -> None:
    """OverflowError if entries that were left out reach a vertex that others do not."""
    if whole is not None and search(whole, start, any_pair).level.nvals > distance.nvals:
        raise beyond(name, np.dtype(np.int64))
