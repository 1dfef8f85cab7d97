"""Unary, binary and index-unary operators, in tables with a row for each kind of types.

`unary.abs`, `binary.plus`, `indexunary.tril` are operators; `resolve` makes a typed function from
one, and `define` an operator from a Python function. rows.py gives the rule for result types.

Both languages agree in the special cases, which are those of SuiteSparse:GraphBLAS (Davis, ACM TOMS
2019; the GraphBLAS C API 2.1, 2023): integers wrap around; x / 0 is the largest integer for x > 0,
the least for x < 0, and 0 for x == 0; the least integer / -1 is itself; a negative integer power is
the integer quotient 1 / power; min and max over floats ignore NaN; over bool plus is or, times is
and, minus is exclusive or, div is first. Semirings and reductions that count convert bool to
integers instead: see Semiring and Monoid.reduction.
"""

from __future__ import annotations

import difflib
import keyword
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Generic, Self, TypeVar

import numpy as np

from ..errors import DomainMismatch
from .functions import INT64, DType, Function, scalar_type
from .rows import COMMON, OWN, POSITION, REAL, RING, SCALE, TRUTH, Row, X, Y, row_function
from .userdefined import Scalar, from_function, from_texts

# fmt: off
_UNARY = (
    #   name, kinds, works in, gives, Python, CUDA where it differs
    Row("identity", "buif", OWN, COMMON, "x"),
    Row("one", "buif", OWN, COMMON, "T(1)", "1"),
    Row("abs", "bu", OWN, COMMON, "x"),
    Row("abs", "i", OWN, COMMON, "abs(x)", "x < 0 ? 0 - (U)x : x"),
    Row("abs", "f", OWN, COMMON, "abs(x)", "fabs(x)"),
    Row("ainv", "buif", RING, COMMON, "-x"),
    Row("minv", "bui", OWN, COMMON, "inverse(x)"),
    Row("minv", "f", OWN, COMMON, "1 / x"),
    Row("lnot", "buif", TRUTH, TRUTH, "not x", "!x"),
    Row("bnot", "ui", OWN, COMMON, "~x"),
    Row("signum", "bu", OWN, COMMON, "x != T(0)", "x != 0"),
    Row("signum", "i", OWN, COMMON, "(x > 0) - (x < 0)"),
    Row("signum", "f", OWN, COMMON, "real_sign(x)"),
    Row("floor", "bui", OWN, COMMON, "x"),
    Row("floor", "f", OWN, COMMON, "np.floor(x)", "floor(x)"),
    Row("ceil", "bui", OWN, COMMON, "x"),
    Row("ceil", "f", OWN, COMMON, "np.ceil(x)", "ceil(x)"),
    Row("trunc", "bui", OWN, COMMON, "x"),
    Row("trunc", "f", OWN, COMMON, "np.trunc(x)", "trunc(x)"),
    Row("round", "bui", OWN, COMMON, "x"),
    Row("round", "f", OWN, COMMON, "rounded(x)"),
    Row("isinf", "buif", REAL, TRUTH, "math.isinf(x)", "isinf(x)"),
    Row("isnan", "buif", REAL, TRUTH, "math.isnan(x)", "isnan(x)"),
    Row("isfinite", "buif", REAL, TRUTH, "math.isfinite(x)", "isfinite(x)"),
    Row("sqrt", "buif", REAL, REAL, "math.sqrt(x)", "sqrt(x)"),
    Row("cbrt", "buif", REAL, REAL, "np.cbrt(x)", "cbrt(x)"),
    Row("exp", "buif", REAL, REAL, "math.exp(x)", "exp(x)"),
    Row("exp2", "buif", REAL, REAL, "np.exp2(x)", "exp2(x)"),
    Row("expm1", "buif", REAL, REAL, "math.expm1(x)", "expm1(x)"),
    Row("log", "buif", REAL, REAL, "math.log(x)", "log(x)"),
    Row("log2", "buif", REAL, REAL, "math.log2(x)", "log2(x)"),
    Row("log10", "buif", REAL, REAL, "math.log10(x)", "log10(x)"),
    Row("log1p", "buif", REAL, REAL, "math.log1p(x)", "log1p(x)"),
    Row("sin", "buif", REAL, REAL, "math.sin(x)", "sin(x)"),
    Row("cos", "buif", REAL, REAL, "math.cos(x)", "cos(x)"),
    Row("tan", "buif", REAL, REAL, "math.tan(x)", "tan(x)"),
    Row("asin", "buif", REAL, REAL, "math.asin(x)", "asin(x)"),
    Row("acos", "buif", REAL, REAL, "math.acos(x)", "acos(x)"),
    Row("atan", "buif", REAL, REAL, "math.atan(x)", "atan(x)"),
    Row("sinh", "buif", REAL, REAL, "math.sinh(x)", "sinh(x)"),
    Row("cosh", "buif", REAL, REAL, "math.cosh(x)", "cosh(x)"),
    Row("tanh", "buif", REAL, REAL, "math.tanh(x)", "tanh(x)"),
    Row("asinh", "buif", REAL, REAL, "math.asinh(x)", "asinh(x)"),
    Row("acosh", "buif", REAL, REAL, "math.acosh(x)", "acosh(x)"),
    Row("atanh", "buif", REAL, REAL, "math.atanh(x)", "atanh(x)"),
    Row("erf", "buif", REAL, REAL, "math.erf(x)", "erf(x)"),
    Row("erfc", "buif", REAL, REAL, "math.erfc(x)", "erfc(x)"),
    Row("lgamma", "buif", REAL, REAL, "math.lgamma(x)", "lgamma(x)"),
    Row("tgamma", "buif", REAL, REAL, "math.gamma(x)", "tgamma(x)"),
)

_BINARY = (
    #   name, kinds, works in, gives, Python, CUDA where it differs
    Row("first", "buif", OWN, X, "x"),
    Row("second", "buif", OWN, Y, "y"),
    Row("any", "buif", COMMON, COMMON, "y"),
    Row("pair", "buif", COMMON, COMMON, "T(1)", "1"),
    Row("min", "bui", COMMON, COMMON, "x if x < y else y", "x < y ? x : y"),
    Row("min", "f", COMMON, COMMON, "x if x <= y or y != y else y", "fmin(x, y)"),
    Row("max", "bui", COMMON, COMMON, "x if x > y else y", "x > y ? x : y"),
    Row("max", "f", COMMON, COMMON, "x if x >= y or y != y else y", "fmax(x, y)"),
    Row("plus", "buif", RING, COMMON, "x + y"),
    Row("minus", "buif", RING, COMMON, "x - y"),
    Row("rminus", "buif", RING, COMMON, "y - x"),
    Row("times", "buif", RING, COMMON, "x * y"),
    Row("div", "i", COMMON, COMMON, "quotient(x, y)"),
    Row("div", "bu", COMMON, COMMON, "unsigned_quotient(x, y)"),
    Row("div", "f", COMMON, COMMON, "x / y"),
    Row("rdiv", "i", COMMON, COMMON, "quotient(y, x)"),
    Row("rdiv", "bu", COMMON, COMMON, "unsigned_quotient(y, x)"),
    Row("rdiv", "f", COMMON, COMMON, "y / x"),
    Row("truediv", "buif", REAL, REAL, "x / y"),
    Row("rtruediv", "buif", REAL, REAL, "y / x"),
    Row("floordiv", "i", COMMON, COMMON, "floor_quotient(x, y)"),
    Row("floordiv", "bu", COMMON, COMMON, "unsigned_quotient(x, y)"),
    Row("floordiv", "f", COMMON, COMMON, "x // y", "real_floor_quotient(x, y)"),
    Row("mod", "i", COMMON, COMMON, "modulo(x, y)"),
    Row("mod", "bu", COMMON, COMMON, "x % y if y != T(0) else T(0)", "y ? x % y : 0"),
    Row("mod", "f", COMMON, COMMON, "x % y", "real_modulo(x, y)"),
    Row("fmod", "buif", REAL, REAL, "np.fmod(x, y)", "fmod(x, y)"),
    Row("pow", "i", COMMON, COMMON, "power(x, y)"),
    Row("pow", "bu", COMMON, COMMON, "unsigned_power(x, y)"),
    Row("pow", "f", COMMON, COMMON, "real_power(x, y)"),
    Row("hypot", "buif", REAL, REAL, "math.hypot(x, y)", "hypot(x, y)"),
    Row("atan2", "buif", REAL, REAL, "math.atan2(x, y)", "atan2(x, y)"),
    Row("copysign", "buif", REAL, REAL, "math.copysign(x, y)", "copysign(x, y)"),
    Row("ldexp", "buif", SCALE, REAL, "scaled(x, y)"),
    Row("eq", "buif", COMMON, TRUTH, "x == y"),
    Row("ne", "buif", COMMON, TRUTH, "x != y"),
    Row("lt", "buif", COMMON, TRUTH, "x < y"),
    Row("le", "buif", COMMON, TRUTH, "x <= y"),
    Row("gt", "buif", COMMON, TRUTH, "x > y"),
    Row("ge", "buif", COMMON, TRUTH, "x >= y"),
    Row("iseq", "buif", COMMON, COMMON, "x == y"),
    Row("isne", "buif", COMMON, COMMON, "x != y"),
    Row("islt", "buif", COMMON, COMMON, "x < y"),
    Row("isle", "buif", COMMON, COMMON, "x <= y"),
    Row("isgt", "buif", COMMON, COMMON, "x > y"),
    Row("isge", "buif", COMMON, COMMON, "x >= y"),
    Row("lor", "buif", TRUTH, TRUTH, "x or y", "x || y"),
    Row("land", "buif", TRUTH, TRUTH, "x and y", "x && y"),
    Row("lxor", "buif", TRUTH, TRUTH, "x != y"),
    Row("lxnor", "buif", TRUTH, TRUTH, "x == y"),
    Row("bor", "ui", COMMON, COMMON, "x | y"),
    Row("band", "ui", COMMON, COMMON, "x & y"),
    Row("bxor", "ui", COMMON, COMMON, "x ^ y"),
    Row("bxnor", "ui", COMMON, COMMON, "~(x ^ y)"),
    Row("firsti", "buif", OWN, POSITION, "ix"),
    Row("firstj", "buif", OWN, POSITION, "jx"),
    Row("secondi", "buif", OWN, POSITION, "iy"),
    Row("secondj", "buif", OWN, POSITION, "jy"),
    Row("firsti1", "buif", OWN, POSITION, "ix + 1"),
    Row("firstj1", "buif", OWN, POSITION, "jx + 1"),
    Row("secondi1", "buif", OWN, POSITION, "iy + 1"),
    Row("secondj1", "buif", OWN, POSITION, "jy + 1"),
)

_INDEXUNARY = (
    #   name, kinds, works in, gives, Python, CUDA where it differs; value x at (i, j), thunk y
    Row("positioni", "buif", POSITION, POSITION, "i"),
    Row("positionj", "buif", POSITION, POSITION, "j"),
    Row("rowindex", "buif", POSITION, POSITION, "i + y"),
    Row("colindex", "buif", POSITION, POSITION, "j + y"),
    Row("diagindex", "buif", POSITION, POSITION, "j - i + y"),
    Row("tril", "buif", POSITION, TRUTH, "j - i <= y"),
    Row("triu", "buif", POSITION, TRUTH, "j - i >= y"),
    Row("diag", "buif", POSITION, TRUTH, "j - i == y"),
    Row("offdiag", "buif", POSITION, TRUTH, "j - i != y"),
    Row("colle", "buif", POSITION, TRUTH, "j <= y"),
    Row("colgt", "buif", POSITION, TRUTH, "j > y"),
    Row("rowle", "buif", POSITION, TRUTH, "i <= y"),
    Row("rowgt", "buif", POSITION, TRUTH, "i > y"),
    Row("valueeq", "buif", COMMON, TRUTH, "x == y"),
    Row("valuene", "buif", COMMON, TRUTH, "x != y"),
    Row("valuelt", "buif", COMMON, TRUTH, "x < y"),
    Row("valuele", "buif", COMMON, TRUTH, "x <= y"),
    Row("valuegt", "buif", COMMON, TRUTH, "x > y"),
    Row("valuege", "buif", COMMON, TRUTH, "x >= y"),
)
# fmt: on


@dataclass(frozen=True, repr=False)
class _Operator:
    """An operator: its name, and rows of a table or a user's function. Equal if these are equal."""

    name: str
    body: tuple[Row, ...] | Scalar

    namespace: ClassVar[str]
    values: ClassVar[tuple[str, ...]]  # what a user's function takes
    parameters: ClassVar[tuple[str, ...]]  # what the typed function takes

    def __repr__(self) -> str:
        return (
            f"{self.namespace}.{self.name}"
            if self.built_in
            else f"{type(self).__name__}({self.name!r})"
        )

    @property
    def built_in(self) -> bool:
        """Whether the operator is one of the tables, not a user's."""
        return not isinstance(self.body, Scalar)

    @property
    def positional(self) -> bool:
        """Whether the result is a row or column id, whatever the values are."""
        return not isinstance(self.body, Scalar) and self.body[0].gives == POSITION

    @classmethod
    def define(cls, f: Callable[..., object], name: str | None = None) -> Self:
        """An operator made from `f`, a plain Python function of numbers, as fast as a built-in one;
        its `name` is that of f unless given.

        Numba compiles the function, and its syntax tree is translated to CUDA C++. It may contain
        arithmetic, comparisons, `and` `or` `not`, conditional expressions, `if`, `while`, `for`
        over `range`, assignments, and calls of `min`, `max`, `abs`, `int`, `float`, `bool` and
        scalar functions of `math` and `np`. Numbers from outside the function are captured by value
        when `define` is called. It computes as Numba does: integers widen to 64 bits (and must not
        overflow; shift by less than 64; `-x` and `~x` are of x's own type first, as NumPy's), `/`
        gives a float, division by zero gives inf, nan or 0.

        A UnaryOp's function takes (x), a BinaryOp's (x, y), an IndexUnaryOp's (x, i, j, y), where
        x is the value at row i and column j, and y the thunk. DomainMismatch, with the construct
        and its line, for anything that cannot be translated.

        >>> from spgraph.semirings import BinaryOp
        >>> def closer(x, y):
        ...     return x if abs(x) < abs(y) else y
        >>> BinaryOp.define(closer).resolve("float32", "float32").result
        dtype('float32')
        """
        if name is None:
            name = getattr(f, "__name__", type(f).__name__)
            name = "anonymous" if name == "<lambda>" else name
        owner = cls._owner("define", name)
        return cls(name, from_function(f, owner, cls._positions()))

    @classmethod
    def from_expressions(cls, name: str, *, python: str, cuda: str) -> Self:
        """The operator `name` made from one expression for Numba, `python`, and one for CUDA C++,
        `cuda`, over the names x, y (and i, j) of `define`.

        In both languages the values have the types they are stored in; the result is cast to the
        type that Numba infers for the Python expression. DomainMismatch for an invalid name or
        Python expression; the CUDA expression is compiled when it is first used.

        >>> from spgraph.semirings import BinaryOp
        >>> op = BinaryOp.from_expressions("gap", python="abs(x - y)", cuda="fabs(x - y)")
        >>> op.resolve("float64", "float64").result
        dtype('float64')
        """
        owner = cls._owner("from_expressions", name)
        return cls(name, from_texts(owner, python, cuda, cls.values, cls._positions()))

    @classmethod
    def _owner(cls, method: str, name: object) -> str:
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            raise DomainMismatch(
                f"{cls.__name__}.{method}: the name must be an identifier, got {name!r}"
            )
        return f"{cls.__name__}.{method}({name})"

    @classmethod
    def _positions(cls) -> tuple[bool, ...]:
        return tuple(name in ("i", "j") for name in cls.values)


def _index_type(index: DType, owner: object) -> np.dtype:
    found = scalar_type(index, owner)
    if found not in (INT64, np.dtype("int32")):
        raise DomainMismatch(f"{owner}: index must be int32 or int64, got {found.name}")
    return found


@lru_cache(maxsize=4096)
def _typed(op: _Operator, values: tuple[np.dtype, ...], index: np.dtype) -> Function:
    if isinstance(op.body, Scalar):
        return op.body.function(
            op.name, repr(op), dict(zip(op.values, values, strict=True)), op.parameters
        )
    named = {"x": values[0]} if len(values) == 1 else {"x": values[0], "y": values[-1]}
    return row_function(repr(op), op.body, named, op.parameters, index)


@dataclass(frozen=True, repr=False)
class UnaryOp(_Operator):
    """A function of one value.

    >>> from spgraph.semirings import unary
    >>> unary.sqrt.resolve("int8").result, unary.lnot.resolve("float64").result
    (dtype('float32'), dtype('bool'))
    """

    namespace = "unary"
    values = ("x",)
    parameters = ("x",)

    def resolve(self, x: DType) -> Function:
        """The function name(x) of values of type `x`; DomainMismatch where it is not defined."""
        return _typed(self, (scalar_type(x, self),), INT64)


@dataclass(frozen=True, repr=False)
class BinaryOp(_Operator):
    """A function of two values, or of their positions.

    >>> from spgraph.semirings import binary
    >>> binary.plus.resolve("int8", "uint8").result, binary.first.resolve("int8", "float64").result
    (dtype('int16'), dtype('int8'))
    """

    namespace = "binary"
    values = ("x", "y")
    parameters = ("x", "y", "ix", "jx", "iy", "jy")

    def resolve(self, x: DType, y: DType, index: DType = INT64) -> Function:
        """The function name(x, y, ix, jx, iy, jy): two values of types `x` and `y`, then the row
        and column of each.

        `index` is the result type of the positional operators: firsti returns ix, firstj jx,
        secondi iy, secondj jy, and firsti1, ... one more. DomainMismatch if the operator is not
        defined for the types.
        """
        types = (scalar_type(x, self), scalar_type(y, self))
        return _typed(self, types, _index_type(index, self))


@dataclass(frozen=True, repr=False)
class IndexUnaryOp(_Operator):
    """A function of a value, its row and column, and a thunk; what select and apply take.

    >>> from spgraph.semirings import indexunary
    >>> indexunary.tril.resolve("float64", "int64").result
    dtype('bool')
    """

    namespace = "indexunary"
    values = ("x", "i", "j", "y")
    parameters = ("x", "i", "j", "y")

    def resolve(self, x: DType, y: DType, index: DType = INT64) -> Function:
        """The function name(x, i, j, y): a value of type `x`, its row and column, a thunk of type
        `y`.

        Operators on positions take the thunk as int64, and rowindex, colindex and diagindex return
        the type `index`. DomainMismatch if the operator is not defined for the types.
        """
        place = _index_type(index, self)
        types = (scalar_type(x, self), INT64, INT64, scalar_type(y, self))
        return _typed(self, types, place)


Item = TypeVar("Item", covariant=True)


class Namespace(Generic[Item]):
    """Operators by name, as attributes; iterating gives the names."""

    def __init__(self, name: str, items: Mapping[str, Item], hints: Mapping[str, str]) -> None:
        self._name, self._items, self._hints = name, dict(items), dict(hints)

    def __getattr__(self, name: str) -> Item:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._items:
            return self._items[name]
        raise AttributeError(f"{self._name} has no operator {name!r}; {self._hint(name)}")

    def _hint(self, name: str) -> str:
        if name in self._hints:
            return self._hints[name]
        close = difflib.get_close_matches(name, self._items, n=3)
        return f"did you mean {' or '.join(close)}?" if close else f"dir({self._name}) lists them"

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __dir__(self) -> list[str]:
        return list(self._items)

    def __repr__(self) -> str:
        return f"<{self._name}: {', '.join(self._items)}>"


Op = TypeVar("Op", bound=_Operator)


def _operators(kind: type[Op], table: tuple[Row, ...], **also: str) -> dict[str, Op]:
    named = dict.fromkeys(row.name for row in table)
    made = {name: kind(name, tuple(row for row in table if row.name == name)) for name in named}
    return made | {name: made[other] for name, other in also.items()}


_POSITIONS = {name: f"positions are indexunary.{name}" for name in ("positioni", "positionj")}
_INSTEAD = {"add": "use plus", "sub": "use minus", "mul": "use times", "power": "use pow"}
_INSTEAD["remainder"] = "use mod (Python's %) or fmod (C's)"
unary: Namespace[UnaryOp] = Namespace("unary", _operators(UnaryOp, _UNARY), _POSITIONS)
binary: Namespace[BinaryOp] = Namespace(
    "binary", _operators(BinaryOp, _BINARY, oneb="pair"), _INSTEAD
)
indexunary: Namespace[IndexUnaryOp] = Namespace(
    "indexunary", _operators(IndexUnaryOp, _INDEXUNARY), {}
)
