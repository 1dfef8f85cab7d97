"""Functions and expressions that make no operator, and what the message says of them."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
import semirings_functions as sf

from spgraph.errors import DomainMismatch
from spgraph.semirings import BinaryOp, monoid


def prints(x, y):
    print(x)
    return y


def subscripts(x, y):
    return x[0] + y


def comprehends(x, y):
    return sum([x, y])


def raises(x, y):
    if x > y:
        raise ValueError
    return x


def tries(x, y):
    try:
        return x
    finally:
        pass


def falls_off(x, y):
    if x > y:
        return x


def falls_off_a_loop(x, y):
    for i in range(3):
        if i > x:
            return y


def returns_nothing(x, y):
    return


def returns_none(x, y):
    return None


def returns_a_tuple(x, y):
    return x, y


def maybe_unassigned(x, y):
    if x > 0:
        found = y
    return found


def calls_another(x, y):
    return sf.clamp(x, y)


def captures_a_string(x, y):
    return x + __name__


def uses_an_unknown(x, y):
    return x + no_such_name  # noqa: F821


def loops_over_a_number(x, y):
    for i in x:
        y = y + i
    return y


def varying_step(x, y):
    for i in range(0, 10, x):
        y = y + i
    return y


def finishes_a_loop(x, y):
    while x > 0:
        x = x - 1
    else:
        x = y
    return x


def imaginary(x, y):
    return x + 1j


def is_compared(x, y):
    return x is y


def keyword_call(x, y):
    return max(x, y, key=abs)


def assigns_twice(x, y):
    a = b = x
    return a + b + y


def walrus(x, y):
    return (a := x) + a + y


def matrix_product(x, y):
    return x @ y


def hides_numpy(x, y):
    np = x
    return np + y


def huge(x, y):
    return x + 2**70


def no_type(x, y):
    return x & 1.5


def with_default(x, y=1):
    return x + y


def variadic(*x):
    return x


def of_one(x):
    return x


def inner(x, y):
    def g(a):
        return a

    return g(x)


def attribute(x, y):
    return x.real + y


def divides_constants(x, y):
    return x + 1 / 0


def variable_power(x, y):
    return x ** (y // 1 if y > 2 else 2) if x > 3 else x ** int(y)


def rest_of_integers(x, y):
    return math.fmod(int(x), int(y))


REFUSED: list[tuple[Any, str]] = [
    (
        prints,
        r"line \d+ of test_userdefined_refused.py: an expression whose value is not used cannot "
        r"be translated to CUDA; allowed are",
    ),
    (subscripts, r"an index \[\.\.\.\] cannot be translated"),
    (comprehends, r"the call sum\(\[x, y\]\) cannot"),
    (raises, r"raise cannot"),
    (tries, r"try cannot"),
    (falls_off, r"line \d+ of .*: a function that can end without a value cannot .* on every path"),
    (falls_off_a_loop, r"a function that can end without a value"),
    (returns_nothing, r"a return without a value cannot"),
    (returns_none, r"the constant None cannot"),
    (returns_a_tuple, r"a tuple cannot"),
    (
        maybe_unassigned,
        r"line \d+: found may be used before it is assigned; assign it on every path",
    ),
    (calls_another, r"the call sf\.clamp\(x, y\) cannot"),
    (captures_a_string, r"__name__, which is not a number, cannot"),
    (uses_an_unknown, r"no_such_name, which has no value yet, cannot"),
    (loops_over_a_number, r"a loop over x cannot be translated to CUDA; loop over range"),
    (varying_step, r"a loop over range\(0, 10, x\) cannot .* give range a constant step"),
    (finishes_a_loop, r"the else of a loop cannot"),
    (imaginary, r"the constant 1j cannot"),
    (is_compared, r": is cannot"),
    (keyword_call, r"the call max\(x, y, key=abs\) cannot"),
    (assigns_twice, r"the assignment 'a = b = x' cannot .* assign one value to one name"),
    (walrus, r"the assignment expression := cannot"),
    (matrix_product, r"the operator @ cannot"),
    (hides_numpy, r"a variable called np cannot"),
    (huge, r"the constant 2 \*\* 70 cannot .* integers are 64 bits wide"),
    (no_type, r"not defined for float64, float64: Numba has no and_\(float64, float64\)"),
    (
        with_default,
        r"must take exactly 2 plain arguments without defaults, it is defined as \(x, y=1\)",
    ),
    (variadic, r"must take exactly 2 plain arguments without defaults, it is defined as \(\*x\)"),
    (of_one, r"must take exactly 2 plain arguments without defaults, it is defined as \(x\)"),
    (inner, r"a function inside the function cannot"),
    (attribute, r"the call of x cannot|the attribute x\.real cannot"),
    (variable_power, r"line \d+: 'x \*\* int\(y\)' has an integer exponent .* x \*\* float\(y\)"),
    (rest_of_integers, r"line \d+: 'np.fmod\(int\(x\), int\(y\)\)' is for floats here"),
    (divides_constants, r"the constant 1 / 0 \(division by zero\) cannot"),
]


@pytest.mark.parametrize(("f", "message"), REFUSED, ids=[f.__name__ for f, _ in REFUSED])
def test_refused_at_definition(f: Any, message: str) -> None:
    with pytest.raises(DomainMismatch, match=rf"^BinaryOp\.define\({f.__name__}\): .*{message}"):
        BinaryOp.define(f)


def test_the_line_is_the_files() -> None:
    first = calls_another.__code__.co_firstlineno
    with pytest.raises(DomainMismatch, match=rf"line {first + 1} of"):
        BinaryOp.define(calls_another)
    first = maybe_unassigned.__code__.co_firstlineno
    with pytest.raises(DomainMismatch, match=rf"line {first + 3}: found"):
        BinaryOp.define(maybe_unassigned)


@pytest.mark.parametrize("f", [max, np.add, functools.partial(sf.clamp, 1), 3, "x + y", monoid.min])
def test_refused_for_what_is_no_function(f: Any) -> None:
    with pytest.raises(
        DomainMismatch, match="expected a Python function or lambda, got .*; wrap it in one"
    ):
        BinaryOp.define(f, "mine")


def test_refused_without_a_source() -> None:
    scope: dict[str, Any] = {}
    exec("def typed_in(x, y):\n    return x + y\n", scope)
    for f in (scope["typed_in"], eval("lambda x, y: x")):
        with pytest.raises(
            DomainMismatch,
            match=r"the source of .* cannot be read \(<string>, line 1\); .* from_expressions",
        ):
            BinaryOp.define(f, "mine")


@pytest.mark.parametrize("name", ["two words", "", "class", 3])
def test_names_are_identifiers(name: Any) -> None:
    with pytest.raises(
        DomainMismatch, match=r"BinaryOp\.define: the name must be an identifier, got"
    ):
        BinaryOp.define(sf.clamp, name)


@pytest.mark.parametrize(
    ("python", "cuda", "message"),
    [
        ("x +", "x", r"python='x \+' is not an expression"),
        ("x + z", "x", r"not defined for float64, float64: .*name 'z' is not defined"),
        ("x + y", " ", "cuda must be an expression of x, y"),
        ("", "x", "python must be an expression of x, y"),
        (
            "(x, y)",
            "x",
            r"returns UniTuple\(float64 x 2\) for float64, float64; expected one number",
        ),
        (
            "x & 0.5",
            "x",
            r"not defined for float64, float64: Numba has no and_\(float64, float64\)",
        ),
    ],
)
def test_expressions_that_are_refused(python: str, cuda: str, message: str) -> None:
    with pytest.raises(DomainMismatch, match=rf"BinaryOp\.from_expressions\(mine\): {message}"):
        BinaryOp.from_expressions("mine", python=python, cuda=cuda)
