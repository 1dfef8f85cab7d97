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


# name -> (function of x, y, and the coordinates of both; what it gives: the operands' type, bool or
# an index)
BINARY: dict[str, tuple[Callable[..., Any], str]] = {
    "plus": (lambda x, y, *at: x + y, "same"),
    "minus": (lambda x, y, *at: x - y, "same"),
    "times": (lambda x, y, *at: x * y, "same"),
    "min": (lambda x, y, *at: min(x, y), "same"),
    "max": (lambda x, y, *at: max(x, y), "same"),
    "first": (lambda x, y, *at: x, "same"),
    "second": (lambda x, y, *at: y, "same"),
    "any": (lambda x, y, *at: x, "same"),
    "pair": (lambda x, y, *at: 1, "same"),
    "lor": (lambda x, y, *at: bool(x) or bool(y), "bool"),
    "land": (lambda x, y, *at: bool(x) and bool(y), "bool"),
    "firsti": (lambda x, y, ix, jx, iy, jy: ix, "index"),
    "firstj": (lambda x, y, ix, jx, iy, jy: jx, "index"),
    "secondi": (lambda x, y, ix, jx, iy, jy: iy, "index"),
    "secondj": (lambda x, y, ix, jx, iy, jy: jy, "index"),
}


def gives(op: str, dtype: Any, index: Any = np.int64) -> np.dtype:
    """The result type of an operator over two operands of one type."""
    kind = BINARY[op][1]
    return np.dtype({"same": dtype, "bool": np.bool_, "index": index}[kind])


def call(op: str, dtype: Any, x: Any, y: Any, at: tuple[int, int, int, int] = (0, 0, 0, 0)) -> Any:
    return cast(BINARY[op][0](x, y, *at), dtype)


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
