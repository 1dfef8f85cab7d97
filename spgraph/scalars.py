"""The types of scalars that are combined with a container: as an operand, in a comparison, in a
write.

Python's numbers are weakly typed, as in NumPy 2 (NEP 50, 2021): they take the container's type.
NumPy's scalars keep their own.
"""

from __future__ import annotations

import functools
import math
from typing import Any, TypeGuard

import numpy as np

from spgraph.containers.storage.arrays import Array, as_array, move
from spgraph.containers.storage.casting import storing
from spgraph.containers.storage.values import value_dtype
from spgraph.errors import DomainMismatch
from spgraph.semirings import BinaryOp, Function, IndexUnaryOp, binary, indexunary

INT64 = np.dtype(np.int64)
# c < x is x > c
MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
COMPARISONS = {f"{kind}{test}": test for test in MIRRORED for kind in ("", "is")}
# the comparison that each of select's operators on positions makes with its thunk
POSITIONS = {
    "tril": "le",
    "triu": "ge",
    "diag": "eq",
    "offdiag": "ne",
    "colle": "le",
    "colgt": "gt",
    "rowle": "le",
    "rowgt": "gt",
}


def weak_type(number: bool | int | float, beside: np.dtype) -> np.dtype:
    """The type of a Python number combined with values of type `beside`: np.result_type of both."""
    if beside.kind == "f" or isinstance(number, bool):
        return beside
    if isinstance(number, float):
        return np.dtype(np.float64)
    return INT64 if beside.kind == "b" else beside


def operand(name: str, argument: str, value: object, beside: np.dtype) -> np.generic:
    """`value` as a NumPy scalar, to compute with values of type `beside`.

    DomainMismatch for anything but a scalar, OverflowError for an int out of range of its type.
    """
    if not is_weak(value):
        return _strong(name, argument, value)
    dtype = weak_type(value, beside)
    return _made(name, argument, value, dtype, "np.{0}({1}) keeps its own type")


def stored(
    name: str, argument: str, value: object, dtype: np.dtype, *, combined: bool = False
) -> np.generic:
    """`value` as a NumPy scalar to write into a container of type `dtype`: of that type, but if it
    is `combined` with entries by an accumulator, a NumPy scalar keeps its own.

    bool takes 0 and 1, integers take integers in their range, floats take every number.
    DomainMismatch for a number of another kind, OverflowError for one out of range.
    """
    if not is_weak(value):
        made = _strong(name, argument, value)
        if combined or made.dtype == dtype:
            return made
        if storing(made.dtype, dtype) == "never":
            raise DomainMismatch(
                f"{name}: {argument}: expected a number that {dtype} takes, got {made!r}; "
                f"np.{dtype}(...) converts it"
            )
        value = made.item()
    elif isinstance(value, float) and dtype.kind != "f":
        raise DomainMismatch(
            f"{name}: {argument}: expected {_whole(dtype)} to write into {dtype}, got {value!r}; "
            "int(...) converts it, .astype(float) makes a container that takes it"
        )
    return _made(name, argument, value, dtype, ".astype('{0}') makes a container that takes it")


def is_weak(value: object) -> TypeGuard[bool | int | float]:
    """Whether it is a Python number, not a NumPy scalar (np.float64 is a subclass of float)."""
    return isinstance(value, bool | int | float) and not isinstance(value, np.generic)


def _strong(name: str, argument: str, value: object) -> np.generic:
    array: Array = as_array(f"{name}: {argument}", value)
    if array.ndim != 0 or array.dtype.kind not in "biuf":
        alternative = ", a Vector or a Matrix" if argument == "value" else ""
        raise DomainMismatch(
            f"{name}: {argument}: expected a scalar{alternative}, got {type(value).__name__}"
        )
    return move(array, "cpu").astype(value_dtype(array.dtype))[()]


def _made(name: str, argument: str, value: object, dtype: np.dtype, remedy: str) -> np.generic:
    """The number as type `dtype`, or OverflowError with `remedy`, formatted with the name of a type
    that can represent it and the number.
    """
    try:
        if dtype.kind != "b" or value in (0, 1):
            return dtype.type(value)
    except OverflowError:
        pass
    shown, wide = f"{value}", "float64"
    if isinstance(value, int):
        wide = "int64" if -(2**63) <= value < 2**63 else "uint64" if 0 < value < 2**64 else ""
        shown = f"{value}" if wide else f"an int of {value.bit_length()} bits"
    raise OverflowError(
        f"{name}: {argument}: expected a number that {dtype} holds, got {shown}; "
        + (remedy.format(wide, shown) if wide else "give a float")
    )


def _whole(dtype: np.dtype) -> str:
    return "True, False, 0 or 1" if dtype.kind == "b" else "an integer"


# --- comparisons ----------------------------------------------------------------------------------


def comparison(
    name: str, op: BinaryOp, side: str, value: Any, dtype: np.dtype
) -> tuple[Function, Any] | None:
    """(function of x and a scalar, that scalar), which compares x of type `dtype` with `value`, the
    operand on `side` ('left' or 'right'); None if op is not a comparison.

    Exact for every number, in the type's range or not: a number between two values of the type is
    replaced by one of them, and the test adapted, for example x < 2.5 by x < 3 for integers.
    """
    if op.name not in COMPARISONS or not op.built_in:
        return None
    return _comparison(op.name, side, _number(name, side, value), dtype)


@functools.lru_cache(maxsize=1024, typed=True)
def _comparison(op: str, side: str, number: Any, dtype: np.dtype) -> tuple[Function, Any]:
    test = COMPARISONS[op]
    found, scalar = compared(MIRRORED[test] if side == "left" else test, number, dtype)
    function = getattr(binary, found).resolve(dtype, dtype)
    if test != op:  # iseq, islt, ... give 1 or 0 in the type of their operands
        weak = is_weak(number)
        common = weak_type(number, dtype) if weak else np.promote_types(dtype, number.dtype)
        function = function.returning(common)
    return function, scalar


def threshold(name: str, op: IndexUnaryOp, value: Any, dtype: np.dtype) -> tuple[IndexUnaryOp, Any]:
    """(operator, thunk as a NumPy scalar) equivalent to `op` with thunk `value`, for values of type
    `dtype`.

    Built-in operators compare values and positions exactly with every number. For a user-defined
    one an int becomes int64, because it may be a position.
    """
    number = _number(name, "thunk", value)
    if not op.built_in:
        if is_weak(value) and isinstance(value, int) and not isinstance(value, bool):
            return op, _made(name, "thunk", value, INT64, "np.{0}({1}) keeps its own type")
        return op, operand(name, "thunk", value, dtype)
    if op.name.startswith("value"):
        return _value_threshold(op.name.removeprefix("value"), number, dtype)
    if op.name in POSITIONS:
        return op, _place(POSITIONS[op.name], number)
    if isinstance(number, float | np.floating):
        raise DomainMismatch(f"{name}: thunk: expected an integer for {op!r}, got {value!r}")
    return op, _made(name, "thunk", int(number), INT64, "positions are of 64 bits")


@functools.lru_cache(maxsize=1024, typed=True)
def _value_threshold(test: str, number: Any, dtype: np.dtype) -> tuple[IndexUnaryOp, Any]:
    found, scalar = compared(test, number, dtype)
    return getattr(indexunary, f"value{found}"), scalar


def compared(test: str, value: Any, dtype: np.dtype) -> tuple[str, Any]:
    """(test, scalar of type `dtype`), equivalent to `x test value` for all x of that type.

    A Python float compared with floats takes their type, as in NumPy: 0.1 equals np.float32(0.1).

    >>> import numpy as np
    >>> compared("gt", 300, np.dtype("int8")), compared("lt", 2.5, np.dtype("int8"))
    (('lt', np.int8(-128)), ('lt', np.int8(3)))
    """
    if dtype.kind == "f":
        return _compared_reals(test, value, dtype)
    least, greatest = _limits(dtype)
    if type(value) is int and least <= value <= greatest:
        return test, dtype.type(value)
    found, inside = _whole_number(test, value, least, greatest)
    if inside:
        return test, dtype.type(found)
    if test in ("eq", "ne") or value != value:
        true = test == "ne"  # for NaN, too
    else:
        true = (found > greatest) == (test in ("lt", "le"))
    return "ge" if true else "lt", dtype.type(least)


@functools.cache
def _limits(dtype: np.dtype) -> tuple[int, int]:
    info = None if dtype.kind == "b" else np.iinfo(dtype)
    return (0, 1) if info is None else (int(info.min), int(info.max))


def _whole_number(test: str, value: Any, least: int, greatest: int) -> tuple[int, bool]:
    """(an integer equivalent to `value` in `x test value` for integers x, whether it is in the
    range from `least` to `greatest`); out of range for NaN, and if no integer is equivalent.
    """
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, float) and not math.isfinite(number):
        return (least - 1 if number < 0 else greatest + 1), False
    floor, ceil = math.floor(number), math.ceil(number)
    found = ceil if test in ("lt", "ge") else floor
    fraction = floor != ceil and test in ("eq", "ne")
    return found, least <= found <= greatest and not fraction


def _compared_reals(test: str, value: Any, dtype: np.dtype) -> tuple[str, Any]:
    number = value.item() if isinstance(value, np.generic) else value
    try:
        with np.errstate(over="ignore"):
            near = dtype.type(number)
    except OverflowError:  # an int beyond all floats
        near = dtype.type(math.inf if number > 0 else -math.inf)
    rounded = is_weak(value) and isinstance(value, float) and np.isfinite(near)
    if rounded or number != number or near.item() == number:
        return test, near
    # the number lies between two neighbours
    if test in ("eq", "ne"):
        return test, dtype.type(math.nan)
    above = near if near.item() > number else np.nextafter(near, dtype.type(math.inf))
    below = near if near.item() < number else np.nextafter(near, dtype.type(-math.inf))
    return ("le", below) if test in ("lt", "le") else ("ge", above)


def _place(test: str, value: Any) -> np.int64:
    """An int64 equivalent to `value` in comparisons with rows, columns and their differences, none
    of which is the least or the greatest int64.
    """
    least, greatest = -(2**63), 2**63 - 1
    found, inside = _whole_number(test, value, least, greatest)
    if value != value or (test in ("eq", "ne") and not inside):
        found = least if test == "le" else greatest
    return np.int64(min(max(found, least), greatest))


def _number(name: str, argument: str, value: Any) -> Any:
    """A Python number unchanged, anything else as a NumPy scalar."""
    return value if is_weak(value) else _strong(name, argument, value)
