"""Plus of integers as `closure` needs it: one that never overflows, one that counts edges, too."""

from __future__ import annotations

import functools

import numpy as np

from spgraph.semirings import BinaryOp, Semiring, cuda_literal, monoid
from spgraph.semirings.functions import cuda_cast, python_cast


@functools.cache
def saturating_plus(dtype: np.dtype) -> BinaryOp:
    """Plus that stays at the greatest integer of 64 bits; its right operand is never negative."""
    top = np.iinfo(dtype).max
    kind, limit = (python_cast(dtype, text) for text in ("y", str(top)))
    c_kind, c_limit = cuda_cast(dtype, "y"), cuda_literal(dtype.type(top))
    return BinaryOp.from_expressions(
        f"saturating_plus_{dtype}",
        python=f"x + {kind} if x < {limit} - {kind} else {limit}",
        cuda=f"x < {c_limit} - {c_kind} ? x + {c_kind} : {c_limit}",
    )


@functools.cache
def min_plus_and_one(bits: int) -> Semiring:
    """min_plus that counts the edges of walks in the low `bits`."""
    return Semiring(monoid.min, plus_and_one(bits))


@functools.cache
def plus_and_one(bits: int) -> BinaryOp:
    """Plus on what stands above the low `bits`, and one more below."""
    return BinaryOp.from_expressions(
        f"plus_and_one_{bits}",
        python=f"x + np.int64(y) * {1 << bits} + 1",
        cuda=f"x + (long long)y * {1 << bits}LL + 1LL",
    )
