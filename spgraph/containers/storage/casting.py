"""Which values may be stored as which type, and conversions that raise where they would lose
something.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import numpy as np

from spgraph.containers.annotations import Scalar
from spgraph.containers.storage.arrays import Array, array_module, as_array, on_device, unpack_bits
from spgraph.containers.storage.selection import compress
from spgraph.containers.storage.values import converted, value_dtype
from spgraph.errors import DomainMismatch


@cache
def storing(values: np.dtype, target: np.dtype) -> Literal["always", "in range", "never"]:
    """Which values of one type a container of another takes, by NumPy's "same_kind" rule.

    Where integers meet a narrower type, or unsigned ones a signed type that is no wider, those in
    its range.

    >>> import numpy as np
    >>> storing(np.dtype("int8"), np.dtype("float32")), storing(np.dtype("int64"), np.dtype("int8"))
    ('always', 'in range')
    >>> storing(np.dtype("float64"), np.dtype("int64"))
    'never'
    """
    if not np.can_cast(values, target, "same_kind"):
        return "never"
    whole = values.kind in "iu" and target.kind in "iu"
    return "in range" if whole and not np.can_cast(values, target, "safe") else "always"


def in_range(container: Any, target: np.dtype) -> bool:
    """Whether all entries of a plain Vector or Matrix of integers are in the range of `target`, an
    integer type; one flag is read.
    """
    values = getattr(container, "_with_arrays", container)._values  # a view has those of its source
    bits = getattr(container, "_bits", None)
    with on_device(container.device):
        if bits is None:
            values = values[: container.nvals]  # an iso Matrix without entries has a value
            return values.size == 0 or bool(_in_range(values.min(), values.max(), target))
        inside = _in_range(values, values, target)
        return inside is True or bool((inside | ~unpack_bits(bits, container.size)).all())


def _in_range(least: Any, greatest: Any, target: np.dtype) -> Any:
    """Whether least and greatest, integers of one type, are; only bounds that it can pass count."""
    own, bounds, inside = np.iinfo(least.dtype), np.iinfo(target), True
    if own.min < bounds.min:
        inside = least >= own.dtype.type(bounds.min)
    if own.max > bounds.max:
        inside = inside & (greatest <= own.dtype.type(bounds.max))
    return inside


def converted_exactly(argument: str, values: Array, dtype: Any) -> Array:
    """A copy of `values` as another type, as the `dtype=` of constructors and readers means it.

    Floats are rounded to a float type, and so are integers. ValueError for a value that the type
    does not hold: out of its range, or NaN or a fraction where it is one of integers; bool holds 0
    and 1.
    """
    target = value_dtype(dtype)
    if values.dtype == target:
        return values.astype(target, copy=True)
    if values.dtype.kind not in "biuf":
        raise DomainMismatch(f"{argument}: expected numbers, got {values.dtype}")
    made = converted(values, target)
    wrong = _not_held(values, made)
    if wrong is not None and bool(wrong.any()):
        first = values.ravel()[wrong.ravel()][0].item()
        raise ValueError(
            f"{argument}: expected numbers that {target} holds, got {first}; "
            f"take a type that does, or .astype({target.name!r}), which converts without a check"
        )
    return made


def rounded(values: Array) -> Array:
    """Those of integers of 64 bits that float64 rounds: with more than 53 binary digits from the
    first to the last that is 1.
    """
    xp, exact = array_module(values), 2**53
    if values.size == 0 or (values.max() <= exact and values.min() >= -exact):
        return values[:0]
    _, digits = xp.frexp(values.astype(np.float64))
    low = xp.maximum(digits - 53, 0).astype(values.dtype)
    return compress(values >> low << low != values, values)


def may_wrap(values: Array, op: str, repeats: int) -> bool:
    """Whether up to `repeats` + 1 of these values, combined by the operator `op`, may exceed the
    range of their type: integers under "plus" or "times"; other operators are not looked at.
    """
    if values.dtype.kind not in "iu" or op not in ("plus", "times") or not values.size:
        return False
    bounds, most = np.iinfo(values.dtype), repeats + 1
    largest = max(abs(int(values.min())), abs(int(values.max())))
    few = op == "plus" or most < 64 or largest < 2  # else the power takes long to compute
    return not few or (largest * most if op == "plus" else max(largest, 1) ** most) > bounds.max


def as_reals(values: Array, op: str, repeats: int) -> Array | None:
    """A float64 copy of values that `may_wrap`, for `check_wrapped`; None of others."""
    return values.astype(np.float64) if may_wrap(values, op, repeats) else None


def check_wrapped(argument: str, made: Array, reals: Array) -> None:
    """OverflowError where an integer has wrapped around: it is off by as much as its type has
    numbers, and the float64 that was computed beside it by little.
    """
    wrong = abs(reals - made) >= 2.0 ** (8 * made.dtype.itemsize - 1)
    if bool(wrong.any()):
        raise OverflowError(
            f"{argument}: expected numbers that {made.dtype} holds, got about "
            f"{float(reals[wrong][0]):g} for entries of one position; give values of a wider type, "
            "such as int64 or float64"
        )


def held_number(argument: str, value: Any, dtype: np.dtype) -> Any:
    """A number as a scalar of `dtype`, converted as by `converted_exactly`; DomainMismatch for an
    array or a list of numbers.
    """
    if type(value) is bool or (type(value) is float and dtype == np.float64):
        return dtype.type(value)
    try:
        if type(value) is int and dtype.kind != "b":
            return dtype.type(value)
        array = as_array(argument, value)
        if array.ndim != 0:
            raise DomainMismatch(f"{argument}: expected a scalar, got {type(value).__name__}")
        return converted_exactly(argument, array, dtype)[()]
    except OverflowError:
        raise ValueError(f"{argument}: expected a number that {dtype} holds, got {value}") from None


def one_number(argument: str, value: Any, dtype: np.dtype) -> np.ndarray:
    """An array of one number of `dtype`, converted as by `held_number`."""
    made = np.empty(1, dtype)
    if type(value) is int and dtype.kind in "iu":
        try:
            made[0] = value  # in half the time that a scalar takes
            return made
        except OverflowError:
            pass  # raised below, with the argument's name
    made[0] = held_number(argument, value, dtype)
    return made


def dtype_beside(values: Array, fill: Scalar, present: Array | None = None) -> np.dtype:
    """The type of an array of `values` and of the number `fill`; ValueError where it does not hold
    all of them: float64, which NumPy promotes integers of 64 bits to, rounds those beyond 2**53.
    Where given, `present` says which of the values count.
    """
    as_array("fill", fill)  # refuses numpy.ma.masked
    dtype, least = values.dtype, np.min_scalar_type(fill)
    if least.kind not in "biuf" or np.ndim(fill):
        raise ValueError(f"fill: expected a real number of at most 64 bits, got {fill!r}")
    if dtype.kind in "biu" and least.kind in "biu":
        low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        if low <= int(fill) <= high:
            return dtype
    wide = np.result_type(dtype, least) if least.kind != "f" else _beside_float(dtype, fill)
    if wide.kind == "f" and dtype.kind in "iu" and values.size:
        entries = values if present is None else compress(present, values)
        lost = rounded(entries) if dtype.itemsize == 8 else values[:0]
        if lost.size or (least.kind in "iu" and int(wide.type(fill)) != int(fill)):
            raise ValueError(
                f"fill: expected a number that {dtype} holds, got {fill!r}: an array of both is of "
                f"{wide}, which rounds {int(lost[0]) if lost.size else fill}; "
                ".astype(float) first rounds on purpose"
            )
    return wide


def _beside_float(dtype: np.dtype, fill: Any) -> np.dtype:
    """`dtype` where that is one of floats which holds `fill` (as a Python number: but for
    rounding), else the wider one of it and of fill's, a Python number's being float64.
    """
    own = getattr(fill, "dtype", np.dtype(np.float64))
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            near = dtype.type(fill)
        weak = not hasattr(fill, "dtype") and np.isfinite(near)
        if weak or near.item() == fill or fill != fill:
            return dtype
    return np.promote_types(dtype, np.float32 if own.itemsize <= 4 else np.float64)


def differs(values: Array, missing: Any) -> Array:
    """For each of `values` whether it is another number than `missing`, exactly; NaN is NaN here.
    DomainMismatch for what is no number, which NumPy finds equal to none, or compares piece by
    piece.
    """
    if values.dtype.kind == "b":
        values = values.view(np.uint8)  # no integer is too long to compare with it
    plain = type(values) is np.ndarray and values.dtype.kind in "iuf"
    if plain and type(missing) is int:  # which NumPy compares exactly
        return values != missing
    given = as_array("missing", missing)  # refuses numpy.ma.masked
    if not isinstance(missing, int) and (given.ndim or given.dtype.kind not in "biuf"):
        raise DomainMismatch(f"missing: expected a real number or None, got {missing!r}")
    if missing != missing:
        return values == values
    number = missing if isinstance(missing, int) else given.item()
    if values.dtype.kind not in "iu":
        return values != missing
    bounds = np.iinfo(values.dtype)
    if bounds.min <= number <= bounds.max and number == int(number):
        return values != values.dtype.type(int(number))  # float64 would round both
    return array_module(values).ones(values.shape, bool)


def _not_held(values: Array, made: Array) -> Array | None:
    """For each of `values` whether `made`, their conversion, is something else; None where none can
    be.
    """
    xp, before, target = array_module(values), values.dtype, made.dtype
    if target.kind == "f":
        wider = before.kind == "f" and before.itemsize > target.itemsize
        return xp.isinf(made) & ~xp.isinf(values) if wider else None
    if before.kind == "b":
        return None
    if target.kind == "b":
        return (values != 0) & (values != 1)  # NaN is neither
    if before.kind == "f":
        # both are powers of 2, which float32 holds
        low, end = float(np.iinfo(target).min), float(np.iinfo(target).max + 1)
        return ~((values >= low) & (values < end) & (values == xp.trunc(values)))
    inside = _in_range(values, values, target)
    return None if inside is True else ~inside
