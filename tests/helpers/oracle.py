"""What GraphBLAS's operations mean, in plain loops; shares no code with the library.

A vector is a dict {position: value}, a matrix a dict {(row, column): value}. Values of integer
types wrap around."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Entries = dict[int, Any]


def cast(value: Any, dtype: Any) -> Any:
    """`value` as a Python number of a NumPy type."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return bool(value)
    if dtype.kind == "f":
        return float(dtype.type(value))
    bits = 8 * dtype.itemsize
    value = int(value) % 2**bits
    return value - 2**bits if dtype.kind == "i" and value >= 2 ** (bits - 1) else value


# name -> function of x, y, and the coordinates of both
BINARY: dict[str, Callable[..., Any]] = {
    "plus": lambda x, y, *at: x + y,
    "minus": lambda x, y, *at: x - y,
    "times": lambda x, y, *at: x * y,
    "min": lambda x, y, *at: min(x, y),
    "max": lambda x, y, *at: max(x, y),
    "first": lambda x, y, *at: x,
    "second": lambda x, y, *at: y,
    "any": lambda x, y, *at: x,
    "pair": lambda x, y, *at: 1,
    "lor": lambda x, y, *at: bool(x) or bool(y),
    "land": lambda x, y, *at: bool(x) and bool(y),
    "firsti": lambda x, y, ix, jx, iy, jy: ix,
    "firstj": lambda x, y, ix, jx, iy, jy: jx,
    "secondi": lambda x, y, ix, jx, iy, jy: iy,
    "secondj": lambda x, y, ix, jx, iy, jy: jy,
    "firsti1": lambda x, y, ix, jx, iy, jy: ix + 1,
    "firstj1": lambda x, y, ix, jx, iy, jy: jx + 1,
    "secondi1": lambda x, y, ix, jx, iy, jy: iy + 1,
    "secondj1": lambda x, y, ix, jx, iy, jy: jy + 1,
}


LOGICAL = {"lor", "land", "lxor", "lxnor", "eq"}
TRUTH = {"eq", "ne", "lt", "le", "gt", "ge", "lor", "land", "lxor", "lxnor"}
REAL = {"truediv", "rtruediv", "fmod", "hypot", "atan2", "copysign", "ldexp"}


def product_type(add: str, multiply: str, x: Any, y: Any, index: Any = np.int64) -> np.dtype:
    """The type of a product over the semiring add_multiply of operands of types x and y."""
    x, y, integer, truth = map(np.dtype, (x, y, np.int64, np.bool_))
    if multiply in ("pair", "oneb"):
        if add in ("plus", "times", "min", "max"):
            return integer
        return truth if add in LOGICAL or add == "any" else np.promote_types(x, y)
    sums = add in ("plus", "times")
    differs = multiply in ("plus", "minus", "rminus") and add not in LOGICAL
    if (sums or differs) and x == y == truth:
        x = y = integer
    if multiply.rstrip("1")[-1] in "ij":  # firsti, firstj, ..., firsti1, ...
        return integer if sums else np.dtype(index)
    if multiply in TRUTH:
        made = truth
    elif multiply in REAL:
        made = np.promote_types(x if multiply == "ldexp" else np.promote_types(x, y), np.float32)
    else:
        made = {"first": x, "second": y}.get(multiply, np.promote_types(x, y))
    return integer if sums and made == truth else made


def sum_type(add: str, dtype: Any) -> np.dtype:
    """The type of a reduction, as of NumPy's own where that is a sum or a product."""
    return {"plus": np.sum, "times": np.prod}.get(add, np.ravel)(np.zeros(1, dtype)).dtype


def call(op: str, dtype: Any, x: Any, y: Any, at: tuple[int, int, int, int] = (0, 0, 0, 0)) -> Any:
    return cast(BINARY[op](x, y, *at), dtype)


def product(
    A: dict[tuple[int, int], Any], u: Entries, add: str, multiply: str, dtype: Any, *, left: bool
) -> dict[int, list[Any]]:
    """All products of u A (`left`) or A u by position, in ascending order of k."""
    found: dict[int, list[Any]] = {}
    for (i, j), a in sorted(A.items()):
        k, to = (i, j) if left else (j, i)
        if k not in u:
            continue
        if left:
            value = call(multiply, dtype, u[k], a, (0, k, k, j))
        else:
            value = call(multiply, dtype, a, u[k], (i, k, k, 0))
        found.setdefault(to, []).append(value)
    return found


def total(add: str, dtype: Any, values: list[Any]) -> Any:
    result = values[0]
    for value in values[1:]:
        result = call(add, dtype, result, value)
    return result


def allowed(size: Any, kind: str, parent: dict[Any, Any]) -> set[Any]:
    """The positions that a mask of this kind selects, of a vector's size or a matrix's shape."""
    everywhere: set[Any] = set(range(size)) if isinstance(size, int) else set()
    if isinstance(size, tuple):
        everywhere = {(i, j) for i in range(size[0]) for j in range(size[1])}
    if kind == "none":
        return everywhere
    chosen = {i for i in parent if kind.endswith("structure") or parent[i]}
    return everywhere - chosen if kind.startswith("complement") else chosen


def write(
    out: Entries,
    t: Entries,
    may: set[int],
    accum: str | None,
    replace: bool,
    dtype: Any,
) -> Entries:
    """out<may, replace> = out accum t, in out's type."""
    z = {i: cast(x, dtype) for i, x in t.items()}
    if accum is not None:
        z = dict(out)
        for i, x in t.items():
            z[i] = call(accum, dtype, out[i], x) if i in out else cast(x, dtype)
    result = {i: x for i, x in z.items() if i in may}
    if not replace:
        result |= {i: x for i, x in out.items() if i not in may}
    return result
