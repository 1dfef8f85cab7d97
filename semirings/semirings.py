"""Semirings: a binary operator that multiplies, and a monoid that adds the products.

Every compatible pair is an attribute of `spgraph.semirings`, named monoid_operator: plus_times,
min_plus, any_pair, lor_land, min_secondi. They are created on access: there are hundreds.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache

import numpy as np

from ..errors import DomainMismatch
from .functions import BOOL, FLOAT64, INT64, DType, Function, scalar_type
from .monoids import SUMS, Monoid, TypedMonoid, monoid
from .operators import BinaryOp, binary, indexunary, unary

# monoids of truth values: they convert sums and differences to bool, true where not zero
_LOGICAL = (binary.lor, binary.land, binary.lxor, binary.lxnor)
_DIFFERENCES = (binary.plus, binary.minus, binary.rminus)
# the type of the ones of pair under these monoids; under others, the operands' common type
_PAIRS = dict.fromkeys((*SUMS, binary.min, binary.max), INT64) | dict.fromkeys(
    (*_LOGICAL, binary.any), BOOL
)


@dataclass(frozen=True)
class TypedSemiring:
    """A semiring over given types of both operands: `multiply` makes products, `add` adds them."""

    name: str
    multiply: Function
    add: TypedMonoid

    def __hash__(self) -> int:
        """Of what tells most apart: caches look semirings up in every call."""
        return hash((self.name, self.multiply.result))

    @property
    def dtype(self) -> np.dtype:
        """The type of the products, of their sums and of the result."""
        return self.multiply.result

    @cached_property
    def of_pattern(self) -> TypedSemiring | None:
        """The same semiring with uint8 as the type of the second operand, if `multiply` does not
        use its values; None if it does. One kernel then serves all types of that operand.

        >>> from spgraph.semirings import min_secondi, min_plus
        >>> x, y = min_secondi.resolve("int32", "bool"), min_secondi.resolve("int32", "float64")
        >>> x == y, x.of_pattern == y.of_pattern, min_plus.resolve("int32", "int32").of_pattern
        (False, True, None)
        """
        if self.multiply.uses("y"):
            return None
        x, _, *places = self.multiply.arguments
        multiply = replace(self.multiply, arguments=(x, np.dtype(np.uint8), *places))
        return replace(self, multiply=multiply)

    def gives_one_value(self, x_iso: bool, y_iso: bool) -> bool:
        """Whether all sums have one value, for operands that are `iso` or not: all products are
        equal, and adding equal ones changes nothing.

        >>> from spgraph.semirings import any_pair, min_first
        >>> any_pair.resolve("int8", "int8").gives_one_value(False, False)
        True
        >>> over_int8 = min_first.resolve("int8", "int8")
        >>> over_int8.gives_one_value(True, False), over_int8.gives_one_value(False, True)
        (True, False)
        """
        if not (self.add.any or self.add.idempotent) or self.multiply.positional:
            return False
        return (x_iso or not self.multiply.uses("x")) and (y_iso or not self.multiply.uses("y"))


@dataclass(frozen=True, repr=False)
class Semiring:
    """A monoid and a binary operator.

    >>> from spgraph.semirings import any_pair, min_plus, min_secondi, plus_pair
    >>> min_plus.resolve("float32", "int64").dtype
    dtype('float64')
    >>> min_secondi.resolve("bool", "bool", index="int32").dtype
    dtype('int32')

    The result type is that of the operator over the types of both operands, except where it could
    not hold counts: pair gives int64 under plus, times, min and max, whatever the operands, and
    bool under any and the logical monoids; bool operands are converted to int64 where plus or times
    adds, or where plus or minus multiplies; positions are int64 where plus or times adds. Users'
    operators and monoids give what Numba infers.

    >>> plus_pair.resolve("int8", "float32").dtype, any_pair.resolve("int8", "float32").dtype
    (dtype('int64'), dtype('bool'))
    >>> min_plus.resolve("bool", "bool").dtype, min_plus.resolve("bool", "int8").dtype
    (dtype('int64'), dtype('int8'))
    """

    monoid: Monoid
    multiply: BinaryOp

    def __post_init__(self) -> None:
        if not isinstance(self.monoid, Monoid):
            raise DomainMismatch(
                f"Semiring: monoid must be a Monoid, got {self.monoid!r}; semirings.monoid has the "
                "built-in ones, and Monoid(op, identity) makes another"
            )
        if isinstance(self.multiply, Monoid):
            object.__setattr__(self, "multiply", self.multiply.op)
        if not isinstance(self.multiply, BinaryOp):
            raise DomainMismatch(
                f"Semiring: multiply must be a BinaryOp, got {self.multiply!r}; BinaryOp.define(f) "
                "makes one of a function f, and semirings.binary has the built-in ones"
            )

    def __hash__(self) -> int:
        """Of what tells most apart: caches look semirings up in every call."""
        return hash((self.monoid.op.name, self.multiply.name))

    @property
    def name(self) -> str:
        """The names of the monoid and of the operator: monoid_operator."""
        return f"{self.monoid.name}_{self.multiply.name}"

    def __repr__(self) -> str:
        return (
            self.name if self.multiply.built_in else f"Semiring({self.monoid!r}, {self.multiply!r})"
        )

    def resolve(self, x: DType, y: DType, index: DType = INT64) -> TypedSemiring:
        """The semiring over operands of types `x` and `y`; `index` is the result type of positional
        operators, of which plus and times make int64.

        DomainMismatch if the operator is not defined for the types, or the monoid for its result.
        """
        return _resolve(self, x, y, index)


@lru_cache(maxsize=1024)
def _resolve(semiring: Semiring, x: DType, y: DType, index: DType) -> TypedSemiring:
    multiply = _products(semiring, x, y, index)
    try:
        add = semiring.monoid.resolve(multiply.result)
    except DomainMismatch as error:
        types = ", ".join(dtype.name for dtype in multiply.arguments[:2])
        raise DomainMismatch(
            f"{semiring!r}: {semiring.multiply.name}({types}) gives {multiply.result.name}, "
            f"which the monoid does not take ({error})"
        ) from None
    return TypedSemiring(semiring.name, multiply, add)


def _products(semiring: Semiring, x: DType, y: DType, index: DType) -> Function:
    """`multiply` over operands of types x and y, with results of the semiring's type."""
    op, add = semiring.multiply, semiring.monoid.op
    if not (op.built_in and add.built_in):
        return op.resolve(x, y, index)
    left, right = scalar_type(x, repr(op)), scalar_type(y, repr(op))
    if op.positional and add in SUMS:  # sums of positions, which int32 may not hold
        return op.resolve(left, right, INT64)
    if op == binary.pair:
        kind = _PAIRS.get(add)
        return (
            op.resolve(left, right, index)
            if kind is None
            else _taking(op, kind, left, right, index)
        )
    if add not in SUMS and (op not in _DIFFERENCES or add in _LOGICAL):
        return op.resolve(left, right, index)
    product = (
        _taking(op, INT64, left, right, index)
        if left == right == BOOL
        else op.resolve(left, right, index)
    )
    # comparisons, and an operand that is bool beside one that is not
    return product.returning(INT64) if product.result == BOOL else product


def _taking(op: BinaryOp, kind: np.dtype, x: np.dtype, y: np.dtype, index: DType) -> Function:
    """The operator over `kind`, with operands of types x and y that are converted to it."""
    function = op.resolve(kind, kind, index)
    return replace(function, arguments=(x, y, *function.arguments[2:]))


@cache  # so that caches find the key that they hold, without a comparison by fields
def by_name(name: str) -> Semiring:
    """The semiring of the name monoid_operator; AttributeError, with similar names, if there is
    none.
    """
    add, _, multiply = name.partition("_")
    if add in monoid and multiply in binary:
        semiring = Semiring(getattr(monoid, add), getattr(binary, multiply))
        if _exists(semiring):
            return semiring
        raise AttributeError(
            f"no semiring {name}: {multiply} never gives a type that the monoid {add} takes"
        )
    raise AttributeError(f"module 'spgraph.semirings' has no attribute {name!r}; {_hint(name)}")


def _hint(name: str) -> str:
    """What a message says to somebody who asks for a semiring that does not exist."""
    rule = "semirings are named monoid_operator, as min_plus is"
    spaces = {"unary": unary, "binary": binary, "monoid": monoid, "indexunary": indexunary}
    homes = [f"{space}.{name}" for space, operators in spaces.items() if name in operators]
    if homes:
        return f"it is {' and '.join(homes)}; {rule}"
    close = difflib.get_close_matches(name, all_names(), n=3)
    return f"did you mean {' or '.join(close)}?" if close else rule


@cache
def all_names() -> tuple[str, ...]:
    """The names of all built-in semirings."""
    pairs = ((add, multiply) for add in monoid for multiply in binary)
    return tuple(
        f"{add}_{multiply}"
        for add, multiply in pairs
        if _exists(Semiring(getattr(monoid, add), getattr(binary, multiply)))
    )


def _exists(semiring: Semiring) -> bool:
    """Whether it is defined for some types."""
    for dtype in (BOOL, INT64, FLOAT64):
        try:
            # ldexp needs an integer as its second operand
            semiring.resolve(dtype, dtype if semiring.multiply != binary.ldexp else INT64)
        except DomainMismatch:
            continue
        return True
    return False
