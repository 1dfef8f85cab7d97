"""The types that operations compute in and give, and what may be written where; stated anew.

Python's numbers are weak beside an array's type, as in NumPy 2 (NEP 50); sums and counts of narrow
integers are taken in 64 bits; what is written follows NumPy's `same_kind`, and an integer has to
fit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from soak.entries import Entries, Refusal

BOOL, INT64, UINT64 = map(np.dtype, ("bool", "int64", "uint64"))

# Rules that the library does not follow yet: cases that depend on one are left out.
PENDING: frozenset[str] = frozenset()

COMPARISONS = frozenset("eq ne lt le gt ge".split())
TESTS = COMPARISONS | {f"is{test}" for test in COMPARISONS}  # the others give 1 or 0
LOGIC = frozenset("lor land lxor lxnor".split())
REAL = frozenset("truediv rtruediv hypot atan2 copysign".split())
REAL_UNARY = frozenset("sqrt exp2 isinf isnan isfinite".split())


def binary_types(op: str, x: np.dtype, y: np.dtype) -> tuple[np.dtype, np.dtype, np.dtype]:
    """(what x is cast to, what y is, the result) of an entrywise operator."""
    common = np.promote_types(x, y)
    if op == "first":
        return x, y, x
    if op == "second":
        return x, y, y
    if op in LOGIC:
        return BOOL, BOOL, BOOL
    if op in REAL:
        real = np.promote_types(common, np.float32)
        return real, real, real
    return common, common, BOOL if op in COMPARISONS else common


def unary_types(op: str, x: np.dtype) -> tuple[np.dtype, np.dtype]:
    """(what x is cast to, the result) of an operator of one value."""
    if op == "lnot":
        return BOOL, BOOL
    if op in REAL_UNARY:
        real = np.promote_types(x, np.float32)
        return real, real if op in ("sqrt", "exp2") else BOOL
    return x, x


def semiring_types(
    add: str, multiply: str, x: np.dtype, y: np.dtype
) -> tuple[np.dtype, np.dtype, np.dtype]:
    """(what x is cast to, what y is, the result) of a product over a semiring of values."""
    if multiply == "pair":
        counts = add in ("plus", "times", "min", "max")
        kind = INT64 if counts else BOOL
        return kind, kind, kind
    sums = add in ("plus", "times") or multiply in ("plus", "minus", "rminus")
    if sums and x == y == BOOL:
        x = y = INT64
    kinds = binary_types(multiply, x, y)
    if sums and kinds[2] == BOOL:  # first or second of truth values beside other numbers
        kinds = (INT64 if multiply == "first" else x, INT64 if multiply == "second" else y, INT64)
    return kinds


def reduced_type(monoid: str, x: np.dtype) -> np.dtype:
    """The type of sums over a monoid."""
    if monoid not in ("plus", "times") or x.kind == "f":
        return x
    return UINT64 if x.kind == "u" else INT64


def identity(monoid: str, dtype: np.dtype) -> Any:
    """The sum of nothing."""
    if monoid in ("min", "max"):
        if dtype.kind == "f":
            return dtype.type(math.inf if monoid == "min" else -math.inf)
        if dtype.kind == "b":
            return np.bool_(monoid == "min")
        limit = np.iinfo(dtype)
        return dtype.type(limit.max if monoid == "min" else limit.min)
    return dtype.type(monoid in ("times", "land", "lxnor"))


def scalar_beside(value: Any, dtype: np.dtype) -> np.generic | Refusal:
    """A scalar as an operator takes it beside values of `dtype`."""
    if isinstance(value, np.generic):
        return value
    kind = np.result_type(dtype, value)
    try:
        return kind.type(value)
    except OverflowError:
        return Refusal(f"{value} does not fit {kind}")


def scalar_written(value: Any, dtype: np.dtype) -> np.generic | Refusal:
    """A Python number as a container of `dtype` stores it; NumPy's are `written` as arrays are."""
    if isinstance(value, np.generic):
        made = written(Entries((1,), np.zeros(1, np.int64), np.asarray([value])), dtype)
        return made if isinstance(made, Refusal) else made.values[0]
    if dtype.kind == "f":
        return dtype.type(value)
    if isinstance(value, float):
        return Refusal(f"a float into {dtype}")
    if dtype.kind == "b":
        return np.bool_(value) if value in (0, 1) else Refusal(f"{value} into bool")
    limit = np.iinfo(dtype)
    if not limit.min <= value <= limit.max:
        return Refusal(f"{value} into {dtype}")
    return dtype.type(value)


def may_be_written(x: np.dtype, into: np.dtype) -> bool:
    """Whether values of type x are taken by a container of another type, if they fit."""
    return np.can_cast(x, into, "same_kind")


def written(entries: Entries, into: np.dtype) -> Entries | Refusal:
    """Values as a container of type `into` stores them."""
    if entries.dtype == into:
        return entries
    if not may_be_written(entries.dtype, into):
        return Refusal(f"{entries.dtype} into {into}")
    if into.kind in "iu" and entries.dtype.kind in "iu" and entries.values.size:
        limit = np.iinfo(into)
        low, high = int(entries.values.min()), int(entries.values.max())
        if low < limit.min or high > limit.max:
            return Refusal(f"{low} to {high} into {into}")
    return entries.cast(into)
