"""Generate preambles: constants and scalar functions as source text in front of a kernel's text.

Constants have the same names as in CUDA's preambles. Types need no names here: Numba compiles a
kernel for the types of the arrays that it is called with.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache

import numpy as np

from spgraph.semirings import Function, TypedMonoid, TypedSemiring, python_literal
from spgraph.semirings import monoid as monoids

# TERMINAL: what ends the sum over a row early: nothing, the first product, or the sum being
# TERMINAL_VALUE
RUNS_ON, FIRST, VALUE = 0, 1, 2


@lru_cache(maxsize=1024)
def cast(name: str, dtype: np.dtype) -> str:
    """A function name(x) that converts a scalar to `dtype`."""
    body = "x != 0" if dtype == np.bool_ else f"np.{dtype.name}(x)"
    return f"@njit(error_model='numpy')\ndef {name}(x):\n    return {body}\n"


def constants(**values: Hashable) -> str:
    """One line per constant."""
    return "".join(f"{name} = {value!r}\n" for name, value in values.items())


@lru_cache(maxsize=1024)
def monoid(add: TypedMonoid) -> str:
    """`add`, IDENTITY, TERMINAL and TERMINAL_VALUE."""
    ends = FIRST if add.any else RUNS_ON if add.terminal is None else VALUE
    terminal = add.identity if add.terminal is None else add.terminal
    return (
        f"{add.define_python('add')}\n"
        f"IDENTITY = {python_literal(add.identity)}\n"
        f"TERMINAL = {ends}\n"
        f"TERMINAL_VALUE = {python_literal(terminal)}\n"
    )


@lru_cache(maxsize=1024)
def accumulate(add: TypedMonoid) -> str:
    """`accumulate`: what `add` gives where its first operand is no NaN. For min and max of floats
    that is one instruction, which takes a third of the time where a loop is vectorised.
    """
    sign = {"min": "<", "max": ">"}.get(add.name)
    if sign is None or add.dtype.kind != "f" or add.identity != add.identity:
        return add.define_python("accumulate")
    # a user's monoid may carry any name
    if getattr(monoids, add.name).resolve(add.dtype).function != add.function:
        return add.define_python("accumulate")
    body = f"y if y {sign} x else x"
    return f"@njit(error_model='numpy')\ndef accumulate(x, y):\n    return {body}\n"


@lru_cache(maxsize=1024)
def semiring(semiring: TypedSemiring, **values: Hashable) -> str:
    """The preamble of a product."""
    return "\n".join(
        (constants(**values), semiring.multiply.define_python("multiply"), monoid(semiring.add))
    )


@lru_cache(maxsize=1024)
def function(op: Function, name: str = "op", **values: Hashable) -> str:
    """The preamble of a kernel of one operator, `op`; `cast` converts to its result type."""
    return "\n".join((constants(**values), op.define_python(name), cast("cast", op.result)))
