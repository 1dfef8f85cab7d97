"""Operators from Python functions: alike in Numba, CUDA and Python; what is refused, and how."""

from __future__ import annotations

import functools
import math
import pickle
from functools import cache
from typing import Any

import numpy as np
import pytest
import semirings_cases as sc
import semirings_functions as sf
from numba import njit
from semirings_functions import LIMIT, pair_case, user_cases

from spgraph.errors import DomainMismatch
from spgraph.semirings import BinaryOp, IndexUnaryOp, UnaryOp, monoid
from spgraph.semirings.translate import cuda_function


@cache
def numba_values(full: bool) -> dict[str, np.ndarray]:
    return sc.numba_values(user_cases(full))


def check_both_languages(full: bool) -> None:
    cases = user_cases(full)
    on_host, found = sc.host_values(cases), numba_values(full)
    wrong = []
    for case in cases:
        close = 4 if case.label.startswith(sf.ROUNDS) else 0
        wrong.append(sc.difference(case, on_host[case.label], found[case.label], close))
    assert not any(wrong), "\n".join(text for text in wrong if text)


def test_both_languages_agree() -> None:
    check_both_languages(full=False)


@pytest.mark.full
def test_both_languages_agree_over_all_types() -> None:
    check_both_languages(full=True)


def test_numba_agrees_with_python() -> None:
    """Over the types that Python has, wherever Python gives a number."""
    compared = 0
    by_name = {f.__name__: f for f, _ in sf.CORPUS}
    for case in user_cases():
        name, *types = case.label.split()
        if types not in (["int64"], ["float64"], ["bool"]) or (name, types) == ("bits", ["bool"]):
            continue
        for x, y, got in zip(*case.samples[:2], numba_values(False)[case.label], strict=True):
            try:
                want = by_name[name](x.item(), y.item())
            except (ArithmeticError, ValueError):
                continue  # Python raises where NumPy and Numba give inf, nan or 0
            if isinstance(want, complex | np.float32):
                continue  # Python has complex powers; NumPy's scalars pull Python's floats down
            compared += 1
            same = got == want or (got != got and want != want)
            assert same or abs(got - want) <= 1e-12 * abs(want), (case.label, x, y, got, want)
    assert compared > 2500


def test_division_by_zero_and_at_the_limits() -> None:
    op = BinaryOp.define(sf.floor_and_rest)
    low = np.iinfo(np.int64).min
    x = np.array([5, -5, 0, low, 7], np.int64)
    y = np.array([0, 0, 0, -1, 2], np.int64)
    case = sc.Case("whole", op.resolve("int64", "int64"), (x, y, *sc.positions(4, 5)))
    real = sc.Case(
        "real", op.resolve("float64", "float64"), (x * 1.0, y * 1.0, *sc.positions(4, 5))
    )
    values, on_host = sc.numba_values([case, real]), sc.host_values([case, real])
    assert values["whole"].tolist() == [0, 0, 0, 0, 301]  # as Numba: no exception, 0
    assert np.array_equal(values["real"][:3], [math.nan] * 3, equal_nan=True)
    for each in (case, real):
        assert sc.difference(each, on_host[each.label], values[each.label]) == ""


# The other two kinds of operators


def far(x, i, j, y):
    return abs(i - j) > y and x > 0


def halved(x):
    return x / 2


def test_unary_and_index_unary() -> None:
    half = UnaryOp.define(halved).resolve("int8")
    assert half.parameters == ("x",) and half.result == np.dtype("float64")
    off = IndexUnaryOp.define(far).resolve("float32", "int64")
    assert off.arguments == tuple(np.dtype(name) for name in ("float32", "int64", "int64", "int64"))
    x, i, j = np.array([1, 1, -1], np.float32), np.array([0, 5, 0]), np.array([9, 6, 9])
    cases = [
        sc.Case("far", off, (x, i, j, np.array([3, 3, 3]))),
        sc.Case("halved", half, (np.array([-3, 0, 127], np.int8),)),
    ]
    for values in (sc.numba_values(cases), sc.host_values(cases)):
        assert values["far"].tolist() == [True, False, False]
        assert values["halved"].tolist() == [-1.5, 0.0, 63.5]


def test_types_are_inferred() -> None:
    op = BinaryOp.define(lambda x, y: x * y + 1)
    types = {
        "int8": "int64",
        "uint8": "int64",
        "float32": "float64",
        "bool": "int64",
        "float64": "float64",
    }
    for given, result in types.items():
        assert op.resolve(given, given).result == np.dtype(result)
    assert BinaryOp.define(sf.between).resolve("float32", "int8").result == np.dtype(bool)
    assert BinaryOp.define(sf.clamp).resolve("int8", "int8").result == np.dtype("int64")
    assert BinaryOp.define(sf.clamp).resolve("float32", "float32").result == np.dtype("float32")


def test_a_function_for_integers_only() -> None:
    op = BinaryOp.define(sf.bits)
    assert op.resolve("uint8", "uint8").result.kind in "iu"
    with pytest.raises(
        DomainMismatch,
        match=r"^BinaryOp\('bits'\): not defined for float64, float64: Numba has no and_\(float64,",
    ):
        op.resolve("float64", "float64")


# Sources


def test_lambdas() -> None:
    one, two = (
        BinaryOp.define(lambda x, y: x + 2 * y, "one"),
        BinaryOp.define(lambda x, y: x - 2 * y, "two"),
    )
    table = {
        "three": BinaryOp.define(
            lambda x, y: x * 3 if x > y else y,
            name="three",
        )
    }
    cases = [pair_case(op.name, op.resolve("int64", "int64")) for op in (one, two, table["three"])]
    found = sc.numba_values(cases)
    x, y = cases[0].samples[:2]
    assert np.array_equal(found["one"], x + 2 * y) and np.array_equal(found["two"], x - 2 * y)
    assert np.array_equal(found["three"], np.where(x > y, x * 3, y))
    assert BinaryOp.define(lambda a, b: a).name == "anonymous"


def test_constants_are_captured_by_value() -> None:
    weight = 4

    def weighted(x, y):
        return x + weight * y

    op = BinaryOp.define(weighted)
    weight = 100
    changed = BinaryOp.define(weighted)
    assert op != changed
    case = pair_case("weighted", op.resolve("int64", "int64"))
    x, y = case.samples[:2]
    assert np.array_equal(sc.numba_values([case])["weighted"], x + 4 * y)
    assert np.array_equal(sc.host_values([case])["weighted"], x + 4 * y)


def test_constants_are_folded_as_python_does() -> None:
    op = UnaryOp.define(lambda x: x + 2**-1 + 7 // -2 + (3 > 2) + -(2**63) * 0)
    case = sc.Case("folded", op.resolve("float64"), (np.zeros(1),))
    assert sc.numba_values([case])["folded"] == sc.host_values([case])["folded"] == [0.5 - 4 + 1]


@njit
def compiled(x, y):
    return x - y


def test_numbas_functions_are_taken_apart() -> None:
    assert BinaryOp.define(compiled) == BinaryOp.define(compiled.py_func)


def test_equality_is_by_value() -> None:
    def same(x, y):
        return x * (LIMIT + y)  # spacing and comments are no part of the value

    first = BinaryOp.define(same)

    def same(x, y):
        return x * (3 + y)

    second = BinaryOp.define(same)
    assert first == second and hash(first) == hash(second)
    assert first != BinaryOp.define(same, "other") and first != UnaryOp.define(halved)
    assert pickle.loads(pickle.dumps(first)) == second
    assert first.resolve("int8", "int8") == second.resolve("int8", "int8")
    assert first.resolve("int8", "int8") != second.resolve("int8", "int16")
    assert repr(first) == "BinaryOp('same')"


# What is refused, and the sentence that says so

missing_value: Any


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
        r"line \d+ of test_userdefined.py: an expression whose value is not used cannot "
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


# Pairs of expressions


def test_from_expressions() -> None:
    op = BinaryOp.from_expressions("gap", python="abs(x - y)", cuda="fabs((double)x - y)")
    assert op == BinaryOp.from_expressions("gap", python=" abs(x-y) ", cuda="fabs((double)x - y)")
    assert op != BinaryOp.from_expressions("gap", python="abs(x - y)", cuda="fabs((double)y - x)")
    case = pair_case("gap", op.resolve("float32", "float64"))
    x, y = case.samples[:2]
    for values in (sc.numba_values([case]), sc.host_values([case])):
        assert np.array_equal(values["gap"], np.abs(x - y))
    band = IndexUnaryOp.from_expressions(
        "band", python="abs(i - j) <= y", cuda="(i < j ? j - i : i - j) <= y"
    )
    assert band.resolve("int8", "int64").result == np.dtype(bool)
    assert UnaryOp.from_expressions("third", python="x / 3", cuda="x / 3.0").resolve(
        "int8"
    ).result == np.dtype("float64")


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


# Translation on its own


def test_cuda_function() -> None:
    types = (np.dtype("float64"), np.dtype("int32"))
    text = cuda_function(sf.branches, "decide", types, np.dtype("float32"))
    assert "__device__ __forceinline__ float decide(double x_0, int y_1) {" in text
    with pytest.raises(
        DomainMismatch, match=r"cuda_function\(decide\): prints|cuda_function\(decide\): line \d+"
    ):
        cuda_function(prints, "decide", types, np.dtype("float32"))
