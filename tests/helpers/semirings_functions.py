"""Functions as a user might write them, and the cases that the tests try them on."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import semirings_cases as sc

from spgraph.semirings import BinaryOp

LIMIT = 3
HALF = np.float32(0.5)
ALMOST = -0.0
BIG = 2**63 + 5

# Functions of two numbers. Each is tried over the types beside it.


def clamp(x, y):
    """The docstring is no statement."""
    return min(max(x, -y), y)


def floor_and_rest(x, y):
    return x // y * 100 + x % y


def between(x, y):
    return -3 <= x < y <= 7 != x


def branches(x, y):
    if x > y:
        if y > 0:
            found = 1
        elif y == 0:
            found = 2.5
        else:
            found = -x
    else:
        found = y
        if found > LIMIT:
            return found * 2
    return found + 1


def collatz(x, y):
    steps = 0
    x = abs(int(x)) + 1
    while x != 1:
        x = x // 2 if x % 2 == 0 else 3 * x + 1
        steps += 1
        if steps > 50:
            break
    return steps


def newton(x, y):
    root = 1
    for _ in range(30):
        better = (root + abs(x) / root) / 2
        if abs(better - root) < 1e-9:
            return better
        root = better
    return root


def downwards(x, y):
    total = 0
    for i in range(7, -2, -3):
        if i == LIMIT + 1:
            continue
        i = i * 2
        total += i * x
        for j in range(int(abs(y)) % 4):
            if j > 2:
                break
            total -= j
    return total


def exchange(x, y):
    a, b = x, y
    a, b = b, a + b
    a, b = b, a - b
    return a * 10 + b


def either_value(x, y):
    return (x and y) + (x or 2.5) + (not x)


def mixed_logic(x, y):
    return (x > 0 and y) or (y < 0 and x != 2)


def powers(x, y):
    return x**2 + y**-3 + abs(x) ** 0.5 - y**5 + abs(x) ** y


def negative_powers(x, y):
    return x**-2 + y**-1


def whole_powers(x, y):
    return x**2 - (y % 4) ** 3 + x**5 + True**2 + x**0


def first_then_real(x, y):
    a = x
    b = a // 2
    a = 0.5
    while b > a:
        a = a * 2 + 1
    return a + b


def constants(x, y):
    return x * LIMIT + y / math.pi - HALF * x + ALMOST + (math.inf if x > 100 else 0) + BIG % 7


def functions_of_math(x, y):
    near = math.sqrt(abs(x)) + math.hypot(x, y) + math.atan2(y, x) + math.copysign(1.0, y)
    return (
        near
        + math.floor(x / 2)
        + math.ceil(y / 2)
        + math.trunc(x)
        + math.exp(-abs(y))
        + math.fmod(x / 2, 3)
    )


def functions_of_numpy(x, y):
    low = np.minimum(x, y) + np.maximum(x, y) * 2 + np.fmin(x, y) * 3 + np.fmax(x, y) * 5
    return low + np.sign(x) + np.abs(y) + np.floor(x / 2) + np.rint(y / 4) + np.sqrt(abs(x))


def checks_of_numbers(x, y):
    return math.isnan(x) or np.isinf(y) or not math.isfinite(x)


def bits(x, y):
    return (x & y) | (x ^ 5) << 2 | ~y >> 1


def casts(x, y):
    return int(x) + float(y) + bool(x) * 2 + np.int8(y) + np.float32(x) / 2 + float(x > y)


def minus(x, y):
    return -x + +y


def endless(x, y):
    while True:
        if x > 10:
            return x
        x = x + 1


def broken_out(x, y):
    last = 0
    for i in range(5):
        last = i * y
        if last > x:
            break
        last = last + 0.5
    else_value = last
    return else_value


def größer(x, y):
    Δ = x - y
    return x if Δ > 0 else y


def counts_truths(x, y):
    return (x > 0) + (y > 0) * 2 + True


def passes(x, y):
    if x > y:
        pass
    elif y > 3:
        x = y
    return x


def nothing_but_nan(x, y):
    return math.nan if x == y else -math.inf


ALL = "bool int8 int32 int64 uint8 uint64 float32 float64"
NUMBERS = "int8 int64 uint8 float32 float64"
CORPUS: list[tuple[Callable[..., Any], str]] = [
    (clamp, NUMBERS),
    (floor_and_rest, ALL),
    (between, ALL),
    (branches, ALL),
    (collatz, "int64 float64 uint8 bool"),
    (newton, "int64 float32 float64"),
    (downwards, "int8 int64 float32 float64"),
    (exchange, ALL),
    (either_value, ALL),
    (mixed_logic, NUMBERS),
    (powers, "float32 float64"),
    (negative_powers, "int8 uint8 int64 float64"),
    (whole_powers, "int8 int64 uint8 bool"),
    (first_then_real, "int64 int8 float32 float64"),
    (constants, NUMBERS),
    (functions_of_math, "int64 float32 float64"),
    (functions_of_numpy, "int8 int64 uint8 float32 float64"),
    (checks_of_numbers, "int64 float32 float64"),
    (bits, "bool int8 int64 uint8 uint64"),
    (casts, "bool int8 int64 float64"),
    (minus, ALL),
    (endless, "int64 float64"),
    (broken_out, "int64 float32"),
    (größer, "int64 float64"),
    (counts_truths, ALL),
    (passes, ALL),
    (nothing_but_nan, "int64 float64"),
]
ROUNDS = ("powers", "newton", "functions_of_math", "functions_of_numpy", "constants")


def tame(dtype: np.dtype[Any]) -> np.ndarray:
    """Values whose products fit and whose integer parts exist: a user's function may overflow."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind == "f":
        return np.array(
            [-7.5, -4.0, -3.0, -1.0, -0.5, -0.0, 0.0, 0.25, 1.0, 2.0, 3.5, 7.0, 12.0], dtype
        )
    return np.array(
        [0, 1, 2, 3, 4, 5, 7, 12, *([-1, -2, -3, -4, -7] if dtype.kind == "i" else [])], dtype
    )


def pair_case(label: str, function: Any) -> sc.Case:
    meshes = np.meshgrid(*(tame(dtype) for dtype in function.arguments[:2]), indexing="ij")
    x, y = (np.ascontiguousarray(mesh.ravel()) for mesh in meshes)
    return sc.Case(label, function, (x, y, *sc.positions(4, len(x))))


@cache
def user_cases(full: bool = False) -> tuple[sc.Case, ...]:
    """Each function over int64 or float64, which Python has too, and one type more; or over all."""
    made = []
    for turn, (f, types) in enumerate(CORPUS):
        op, names = BinaryOp.define(f), types.split()
        if not full:
            python = [name for name in names if name in ("int64", "float64")]
            others = [name for name in names if name not in python]
            names = [*python[turn % len(python) :][:1], *others[turn % max(len(others), 1) :][:1]]
        for name in names:
            made.append(pair_case(f"{f.__name__} {name}", op.resolve(name, name)))
    for f, one, other in [
        (branches, "int8", "float64"),
        (minus, "uint8", "int32"),
        (clamp, "bool", "float32"),
    ]:
        made.append(
            pair_case(f"{f.__name__} {one} {other}", BinaryOp.define(f).resolve(one, other))
        )
    return tuple(made)
