"""Monoids: a binary operator with its identity, and the value at which a reduction may stop.

The identity and the terminal value depend on the type, so they are given as a number or as a
function of the type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DomainMismatch
from .functions import INT64, DType, Function, highest, lowest, scalar_type
from .operators import BinaryOp, Namespace, binary

Number = bool | int | float | np.generic
# a number, or a function from a type to a number (None: no such value for that type)
Limit = Number | None | Callable[[np.dtype], Number | None]


def _zero_unless_real(dtype: np.dtype) -> int | None:
    return None if dtype.kind == "f" else 0  # not terminal for floats: 0 * inf is NaN


def _true_if_bool(dtype: np.dtype) -> bool | None:
    return True if dtype.kind == "b" else None  # over bool, plus is or


def _all_bits(dtype: np.dtype) -> int:
    return -1 if dtype.kind == "i" else int(highest(dtype))


def _compared(limit: Limit) -> Limit | str:
    """What stands for a limit where monoids are compared: 0.0 == -0.0, and NaN != NaN, but caches
    of what is made of a monoid have to tell the first two apart and to find the last again.
    """
    if isinstance(limit, float | np.floating) and (limit != limit or limit == 0):
        return str(limit) if limit != limit or np.signbit(limit) else 0
    return limit


# operators that reduce integers in 64 bits, as numpy.sum does, and the types they use for it
SUMS = (binary.plus, binary.times)
_COUNTED = {"b": INT64, "i": INT64, "u": np.dtype("uint64")}


@dataclass(frozen=True)
class TypedMonoid:
    """A monoid over one type.

    `identity` is a NumPy scalar of that type, `terminal` another one or None. `any`: every value is
    terminal. `idempotent`: combining a value with itself gives the same value.
    """

    name: str
    function: Function
    identity: np.generic
    terminal: np.generic | None
    any: bool
    idempotent: bool

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedMonoid) and self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash((self.name, self.function.result))

    def _facts(self) -> tuple[object, ...]:
        ends = _compared(self.identity), _compared(self.terminal)
        return self.name, self.function, *ends, self.any, self.idempotent

    @property
    def dtype(self) -> np.dtype:
        """The type of the values and of their sums."""
        return self.function.result

    def define_python(self, name: str) -> str:
        """The source of the Numba function name(x, y)."""
        return self.function.taking(2).define_python(name)

    def define_cuda(self, name: str) -> str:
        """The source of the CUDA C++ function name(x, y)."""
        return self.function.taking(2).define_cuda(name)


@dataclass(frozen=True, repr=False)
class Monoid:
    """An associative, commutative operator with an identity.

    `identity` and `terminal` (the value that absorbs every other; None if there is none) are
    numbers, or functions from a NumPy type to a number. `idempotent`: op(x, x) == x, which some
    loops require. These laws are not checked. Two monoids are equal if all four are.

    min and max ignore NaN, and the reduction of nothing but NaN is their identity; sums and
    products of floats are associative up to rounding only; `any` returns either operand, so that
    its identity is one on the left side only.

    >>> from spgraph.semirings import BinaryOp, Monoid, monoid
    >>> monoid.min.resolve("float32").identity, monoid.times.resolve("int8").terminal
    (np.float32(inf), np.int8(0))
    >>> def gcd(x, y):
    ...     while y != 0:
    ...         x, y = y, x % y
    ...     return abs(x)
    >>> Monoid(BinaryOp.define(gcd), identity=0, terminal=1).resolve("int64").terminal
    np.int64(1)
    """

    op: BinaryOp
    identity: Limit
    terminal: Limit = None
    idempotent: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.op, BinaryOp):
            raise DomainMismatch(
                f"Monoid: op must be a BinaryOp, got {self.op!r}; BinaryOp.define(f) makes one of "
                "a function f"
            )
        if self.op.positional:
            raise DomainMismatch(
                f"Monoid: {self.op!r} gives positions; expected an operator that combines values"
            )
        if not isinstance(self.idempotent, bool | np.bool_):
            raise DomainMismatch(
                f"Monoid({self.op.name}): idempotent: expected True or False, "
                f"got {self.idempotent!r}"
            )
        for what, limit in (("identity", self.identity), ("terminal", self.terminal)):
            absent = limit is None and what == "terminal"
            if not (
                absent or callable(limit) or isinstance(limit, bool | int | float | np.generic)
            ):
                raise DomainMismatch(
                    f"Monoid({self.op.name}): {what} must be a number or a function of the type, "
                    f"got {limit!r}"
                )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Monoid) and self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash((self.op.name, self.idempotent))

    def _facts(self) -> tuple[object, ...]:
        return self.op, _compared(self.identity), _compared(self.terminal), self.idempotent

    @property
    def name(self) -> str:
        """The name of the operator."""
        return self.op.name

    def __repr__(self) -> str:
        built_in = getattr(monoid, self.name) if self.name in monoid else None
        return (
            f"monoid.{self.name}" if built_in == self else f"Monoid({self.op!r}, {self.identity!r})"
        )

    def resolve(self, z: DType) -> TypedMonoid:
        """The monoid over type `z`; DomainMismatch if the operator's result for z is of another
        kind of type.
        """
        return _typed(self, scalar_type(z, "Monoid.resolve"))

    def reduction(self, x: DType, dtype: npt.DTypeLike | None = None) -> TypedMonoid:
        """The monoid over the type in which it reduces entries of type x: for plus and times int64
        instead of bool and signed integers, uint64 instead of unsigned ones; otherwise x itself.

        `dtype` overrides that type; x must convert to it by NumPy's same_kind rule. Raises
        DomainMismatch as `resolve` does, and for a dtype that x does not convert to.

        >>> from spgraph.semirings import monoid
        >>> monoid.plus.reduction("bool").dtype, monoid.max.reduction("bool").dtype
        (dtype('int64'), dtype('bool'))
        >>> monoid.plus.reduction("float32", "float64").dtype
        dtype('float64')
        """
        asked: Any = dtype
        return _reduction(self, x, asked)


@lru_cache(maxsize=1024)
def _reduction(given: Monoid, x: DType, dtype: DType | None) -> TypedMonoid:
    kind = scalar_type(x, repr(given))
    if dtype is not None:
        asked = scalar_type(dtype, f"{given!r}: dtype")
        if not np.can_cast(kind, asked, "same_kind"):
            raise DomainMismatch(
                f"{given!r}: dtype: expected a type that {kind.name} converts to without a change "
                f"of kind, got {asked.name}; convert the entries with astype"
            )
        return given.resolve(asked)
    return given.resolve(_COUNTED.get(kind.kind, kind) if given.op in SUMS else kind)


@lru_cache(maxsize=1024)
def _typed(given: Monoid, dtype: np.dtype) -> TypedMonoid:
    function = given.op.resolve(dtype, dtype)
    if function.result != dtype:
        if function.result.kind != dtype.kind:
            one, found = dtype.name, function.result.name
            raise DomainMismatch(f"{given!r}: {one} with {one} gives {found}, not {one}")
        function = function.returning(dtype)  # a user's int32 + int32 is int64 in Numba
    identity = _limit(given.identity, dtype, f"{given!r}: identity")
    if identity is None:
        raise DomainMismatch(f"{given!r}: identity is None for {dtype.name}; give it a value")
    return TypedMonoid(
        name=given.name,
        function=function,
        identity=identity,
        terminal=_limit(given.terminal, dtype, f"{given!r}: terminal"),
        any=given.op == binary.any,
        idempotent=given.idempotent
        or (dtype.kind == "b" and given.op in (binary.plus, binary.times)),
    )


def _limit(given: Limit, dtype: np.dtype, owner: str) -> np.generic | None:
    value = given(dtype) if callable(given) else given
    if value is None:
        return None
    try:
        with np.errstate(all="ignore"):
            found = dtype.type(value)
        exact = bool(found == value) or (value != value and found != found)
    except (TypeError, ValueError, OverflowError):
        exact = False
    if not exact:
        raise DomainMismatch(f"{owner} {value!r} is not a value of {dtype.name}")
    return found


_MONOIDS = (
    #      operator, identity, terminal, idempotent
    Monoid(binary.plus, 0, _true_if_bool),
    Monoid(binary.times, 1, _zero_unless_real),
    Monoid(binary.min, highest, lowest, True),
    Monoid(binary.max, lowest, highest, True),
    Monoid(binary.any, 0, None, True),
    Monoid(binary.lor, False, True, True),
    Monoid(binary.land, True, False, True),
    Monoid(binary.lxor, False),
    Monoid(binary.lxnor, True),
    Monoid(binary.bor, 0, _all_bits, True),
    Monoid(binary.band, _all_bits, 0, True),
    Monoid(binary.bxor, 0),
    Monoid(binary.bxnor, _all_bits),
)
_INSTEAD = {"sum": "use plus", "prod": "use times", "add": "use plus", "mul": "use times"}
monoid: Namespace[Monoid] = Namespace(
    "monoid", {made.name: made for made in _MONOIDS} | {"eq": _MONOIDS[8]}, _INSTEAD
)
