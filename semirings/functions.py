"""Scalar types and typed functions: what every operator becomes once the types are known.

A `Function` is a scalar function as source text in two languages, for Numba and for CUDA C++, with
the same arguments and the same results, also where integers overflow or values are infinite or NaN.
Two functions with the same texts are equal, so that kernels can be cached by their text.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from ..errors import DomainMismatch

C_TYPES: dict[str, str] = {
    "bool": "bool",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
    "float32": "float",
    "float64": "double",
}
TYPES: tuple[np.dtype, ...] = tuple(np.dtype(name) for name in C_TYPES)
_CANONICAL = {dtype: dtype for dtype in TYPES}  # "longlong" becomes int64
BOOL, INT64, FLOAT64 = np.dtype("bool"), np.dtype("int64"), np.dtype("float64")

DType: TypeAlias = str | type | np.dtype  # what names a type, hashable

NAME = "_NAME_"  # stands for the function's name inside the texts
# parameters that are rows or columns
POSITIONS = frozenset(("i", "j", "ix", "jx", "iy", "jy"))


def scalar_type(given: DType | None, owner: object) -> np.dtype:
    """The NumPy type that `given` names; DomainMismatch naming `owner` if spgraph has no such type.

    >>> scalar_type("int8", "binary.plus"), scalar_type(float, "binary.plus")
    (dtype('int8'), dtype('float64'))
    """
    try:
        found = None if given is None else _CANONICAL.get(np.dtype(given))
    except TypeError:
        found = None
    if found is None:
        raise DomainMismatch(
            f"{owner}: expected one of the types {', '.join(C_TYPES)} in native byte order, "
            f"got {given!r}"
        )
    return found


def names(types: Iterable[np.dtype]) -> str:
    return ", ".join(dtype.name for dtype in types)


def real_type(dtype: np.dtype) -> np.dtype:
    """The floating type that functions such as sqrt compute in: float32 or wider."""
    return np.result_type(dtype, np.float32)


def ring_type(dtype: np.dtype) -> np.dtype:
    """The type that sums and products of `dtype` are computed in: for integers an unsigned one of
    32 bits or more, so that they wrap around without undefined behaviour.
    """
    if dtype.kind == "f":
        return dtype
    return np.dtype("uint32" if dtype.itemsize <= 4 else "uint64")


def _integers(dtype: np.dtype) -> np.iinfo:
    return np.iinfo(np.dtype(dtype.name))


def lowest(dtype: np.dtype) -> Any:
    """The least value of the type: False, the most negative integer, or -inf."""
    if dtype.kind == "f":
        return dtype.type(-math.inf)
    return np.False_ if dtype.kind == "b" else dtype.type(_integers(dtype).min)


def highest(dtype: np.dtype) -> Any:
    """The greatest value of the type: True, the greatest integer, or +inf."""
    if dtype.kind == "f":
        return dtype.type(math.inf)
    return np.True_ if dtype.kind == "b" else dtype.type(_integers(dtype).max)


def python_literal(value: np.generic) -> str:
    """`value`, a NumPy scalar, as source text for Numba: the exact value and type.

    >>> import numpy as np
    >>> from spgraph.semirings import python_literal
    >>> python_literal(np.uint64(18446744073709551615)), python_literal(np.float32(-np.inf))
    ('np.uint64(18446744073709551615)', 'np.float32(-math.inf)')
    """
    kind = value.dtype.kind
    if kind == "b":
        return "np.bool_(True)" if value else "np.bool_(False)"
    text = repr(value.item())
    if kind == "f" and not math.isfinite(value.item()):
        text = text.replace("inf", "math.inf").replace("nan", "math.nan")
    return f"np.{value.dtype.name}({text})"


def cuda_literal(value: np.generic) -> str:
    """`value`, a NumPy scalar, as source text for CUDA C++: the exact value and type, without any
    header.

    >>> import numpy as np
    >>> from spgraph.semirings import cuda_literal
    >>> cuda_literal(np.int64(-9223372036854775808)), cuda_literal(np.float32(0.1))
    ('(-9223372036854775807LL - 1)', '0.10000000149011612f')
    """
    dtype = value.dtype
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind == "f":
        if math.isfinite(value.item()):
            text = repr(value.item()) + ("f" if dtype.itemsize == 4 else "")
            return f"({text})" if text.startswith("-") else text
        if dtype.itemsize == 4:
            return f"__int_as_float((int){value.view('uint32'):#x}U)"
        return f"__longlong_as_double((long long){value.view('uint64'):#x}ULL)"
    number = int(value)
    suffix = {"int64": "LL", "uint32": "U", "uint64": "ULL"}.get(dtype.name, "")
    if dtype.name in ("int32", "int64") and number == lowest(dtype):
        return f"({number + 1}{suffix} - 1)"  # C has no negative literals
    text = f"({number}{suffix})" if number < 0 else f"{number}{suffix}"
    return text if dtype.itemsize >= 4 else f"(({C_TYPES[dtype.name]}){text})"


@dataclass(frozen=True)
class Text:
    """A function in one language: the expression `value` that it returns, the `lines` that precede
    it, and the helper functions that stand `before` it.
    """

    value: str
    lines: tuple[str, ...] = ()
    before: str = ""


@dataclass(frozen=True)
class Function:
    """A scalar function over given types, in Numba's Python and in CUDA C++.

    `arguments` are the types of all `parameters`, in order (for a binary operator: x, y, and the
    row and column of each); `result` is the type returned. The function itself casts its arguments
    to the type that the operator computes in; callers pass values as they are stored.

    >>> from spgraph.semirings import binary
    >>> plus = binary.plus.resolve("int8", "int16")
    >>> plus.result
    dtype('int16')
    >>> print(plus.taking(2).define_cuda("add"))
    __device__ __forceinline__ short add(signed char x_, short y_) {
        const unsigned int x = (unsigned int)(x_);
        const unsigned int y = (unsigned int)(y_);
        return (short)(x + y);
    }
    <BLANKLINE>
    """

    name: str
    parameters: tuple[str, ...]
    arguments: tuple[np.dtype, ...]
    result: np.dtype
    python: Text
    cuda: Text

    @property
    def positional(self) -> bool:
        """Whether the value may depend on a row or column."""
        return self.uses(*POSITIONS)

    def uses(self, *parameters: str) -> bool:
        """Whether the value may depend on one of these parameters."""
        return not _used(self).isdisjoint(parameters)

    def define_python(self, name: str) -> str:
        """The source of a Numba function called `name`; its module imports `njit`, `np`, `math`."""
        lines = [
            f'{self.python.before}@njit(error_model="numpy")',
            f"def {NAME}({', '.join(self.parameters)}):",
        ]
        lines += [f"    {line}" for line in self.python.lines]
        lines += [f"    return {python_cast(self.result, self.python.value)}", ""]
        return "\n".join(lines).replace(NAME, name)

    def define_cuda(self, name: str) -> str:
        """The source of a CUDA C++ device function called `name`; needs no header."""
        returned = C_TYPES[self.result.name]
        # C++ variables do not change their type: x_ is what was passed, x the cast of it.
        taken = ", ".join(
            f"{C_TYPES[dtype.name]} {parameter}_"
            for parameter, dtype in zip(self.parameters, self.arguments, strict=True)
        )
        lines = [f"{self.cuda.before}__device__ __forceinline__ {returned} {NAME}({taken}) {{"]
        lines += [f"    {line}" for line in self.cuda.lines]
        lines += [f"    return {cuda_cast(self.result, self.cuda.value)};", "}", ""]
        return "\n".join(lines).replace(NAME, name)

    def returning(self, result: np.dtype) -> "Function":
        """The same function with its result cast to another type."""
        return replace(self, result=result)

    def taking(self, count: int) -> "Function":
        """The same function with its first `count` parameters only; it must not use the others."""
        return replace(self, parameters=self.parameters[:count], arguments=self.arguments[:count])


@lru_cache(maxsize=1024)
def _used(function: Function) -> frozenset[str]:
    """The parameters that occur in the Python text."""
    words = re.findall(r"\w+", "\n".join((function.python.value, *function.python.lines)))
    return frozenset(words).intersection(function.parameters)


def python_cast(dtype: np.dtype, text: str) -> str:
    return f"np.{'bool_' if dtype.kind == 'b' else dtype.name}({text})"


def cuda_cast(dtype: np.dtype, text: str) -> str:
    return f"({C_TYPES[dtype.name]})({text})"
