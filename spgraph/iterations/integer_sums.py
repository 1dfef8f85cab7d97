"""Plus of integers as `closure` needs it: one that never overflows, one that counts edges, too."""

from __future__ import annotations

import functools

import numpy as np

from spgraph.semirings import BinaryOp, Semiring, cuda_literal, monoid
from spgraph.semirings.functions import INT64, cuda_cast, python_cast
from spgraph.semirings.source import SCALAR
from spgraph.semirings.userdefined import Scalar


@functools.cache
def saturating_plus(dtype: np.dtype) -> BinaryOp:
    """Plus that stays at the greatest integer of 64 bits; its right operand is never negative."""
    top = np.iinfo(dtype).max
    y, limit = (python_cast(dtype, text) for text in ("y", str(top)))
    c_y, c_limit = cuda_cast(dtype, "y"), cuda_literal(dtype.type(top))
    return _plus(
        f"saturating_plus_{dtype}",
        f"x + {y} if x < {limit} - {y} else {limit}",
        f"x < {c_limit} - {c_y} ? x + {c_y} : {c_limit}",
        dtype,
    )


@functools.cache
def min_plus_and_one(bits: int) -> Semiring:
    """min_plus that counts the edges of walks in the low `bits`."""
    return Semiring(monoid.min, plus_and_one(bits))


@functools.cache
def plus_and_one(bits: int) -> BinaryOp:
    """Plus on what stands above the low `bits`, and one more below."""
    return _plus(
        f"plus_and_one_{bits}",
        f"x + np.int64(y) * {1 << bits} + 1",
        f"x + (long long)y * {1 << bits}LL + 1LL",
        INT64,
    )


def _plus(name: str, python: str, cuda: str, dtype: np.dtype) -> BinaryOp:
    """`BinaryOp.from_expressions` of numbers whose sum is known to be of type `dtype`: to infer it
    Numba takes a second of a first call.
    """
    return BinaryOp(name, Scalar(f"def {SCALAR}(x, y):\n    return {python}", cuda, dtype))
