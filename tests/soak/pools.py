"""Pools: the types, operators and operands that some thousands of cases share.

A kernel is compiled for its types and operators, which takes a second; what is drawn anew in every
case (entries, masks, storages, accumulation, direction) takes none.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from soak.entries import Entries, draw_entries

TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()
COMMON = ["int64", "float64", "bool", "int32", "float32"]

ENTRYWISE = "first second min max plus minus rminus times div rdiv truediv pair".split()
ENTRYWISE += "eq ne lt le gt ge iseq isne islt isle isgt isge lor land lxor lxnor".split()
REALS = "rtruediv hypot atan2 copysign".split()
BITS = "bor band bxor bxnor".split()
UNARY = "identity one abs ainv minv lnot sqrt isnan isinf isfinite".split()
INDEX_UNARY = "rowindex colindex diagindex".split()
SELECT_PLACES = "tril triu diag offdiag colle colgt rowle rowgt".split()
SELECT_VALUES = "valueeq valuene valuelt valuele valuegt valuege".split()
MONOIDS = "plus times min max".split()
ACCUMS = "plus minus times min max first second".split()
MULTIPLY = "first second pair plus minus rminus times min max".split()
PLACES = "firsti firstj secondi secondj firsti1 firstj1 secondi1 secondj1".split()
INDEX = [("int32", "int32")] * 4 + [("int64", "int64"), ("int64", "int32"), ("int32", "int64")]


class Pool:
    """What the cases of one number share; all of it follows from the number."""

    def __init__(self, number: int) -> None:
        rng = np.random.default_rng([2026, number])
        self.number = number
        common = [str(name) for name in rng.choice(COMMON, 3)]
        self.x = np.dtype(str(rng.choice(TYPES)))
        self.y = self.x if rng.random() < 0.5 else np.dtype(str(rng.choice(TYPES)))
        self.z = np.dtype(str(rng.choice(TYPES if rng.random() < 0.5 else common)))
        self.manner = str(rng.choice(["small", "special", "wild"]))
        self.index: Any = INDEX[int(rng.integers(len(INDEX)))]
        self.sizes = [int(k) for k in rng.choice([1, 2, 3, 5, 8, 9], 3)]
        self.sizes += [int(k) for k in rng.choice([0, 1, 31, 32, 33, 64, 70], 1)]
        self.threads = int(rng.choice([1, 1, 1, 1, 2, 3]))
        self.semirings = [self._semiring(rng) for _ in range(2)]
        self.binary = self._some(rng, self._entrywise(), 3)
        self.unary = self._some(rng, UNARY + (["bnot"] if self.x.kind in "iu" else []), 2)
        self.index_unary = str(rng.choice(INDEX_UNARY))
        self.select = self._some(rng, SELECT_PLACES, 2) + self._some(rng, SELECT_VALUES, 2)
        logic = ["lor", "land", "lxor", "lxnor"] if self.x.kind == "b" else []
        self.monoids = self._some(rng, MONOIDS + logic, 2)
        self.accum = self._some(rng, ACCUMS, 1)[0]
        self._operands: dict[Any, Entries] = {}

    @staticmethod
    def _some(rng: np.random.Generator, names: list[str], count: int) -> list[str]:
        return [str(name) for name in rng.choice(names, count, replace=False)]

    def _entrywise(self) -> list[str]:
        kinds = {self.x.kind, self.y.kind}
        if "f" in kinds or np.promote_types(self.x, self.y).kind == "f":
            return ENTRYWISE + REALS
        return ENTRYWISE + (BITS if kinds <= {"i", "u"} else [])

    def _semiring(self, rng: np.random.Generator) -> tuple[str, str]:
        """(monoid, operator), one that is defined for the pool's types."""
        common = np.promote_types(self.x, self.y)
        turn = rng.random()
        if turn < 0.15:
            return str(rng.choice(["min", "max"])), str(rng.choice(PLACES))
        if turn < 0.25:
            return "any", "pair"
        if turn < 0.35:
            multiply = ["land", "lor", "lxor", "pair"]
            multiply += ["eq", "ne", "lt", "gt"] if common.kind != "b" else []
            return str(rng.choice(["lor", "land", "lxor"])), str(rng.choice(multiply))
        if turn < 0.4 and common.kind == "u":
            return str(rng.choice(BITS)), str(rng.choice(BITS))
        return str(rng.choice(MONOIDS)), str(rng.choice(MULTIPLY))

    def operand(self, shape: tuple[int, ...], dtype: Any, manner: str, which: int) -> Entries:
        """One of the operands of a shape and type."""
        key = (shape, np.dtype(dtype).name, manner, which)
        if key not in self._operands:
            if len(self._operands) > 3000:
                self._operands.clear()
            words = [2026, self.number, zlib.crc32(repr(key).encode())]
            rng = np.random.default_rng(words)
            self._operands[key] = draw_entries(rng, shape, dtype, manner)
        return self._operands[key]
