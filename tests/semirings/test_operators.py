"""Every operator over a spread of types, in both languages, against NumPy and Python's integers."""

from __future__ import annotations

import math
import operator
import pickle
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import semirings_cases as sc
from semirings_cases import Case

import spgraph as sg
from spgraph import semirings
from spgraph.errors import DomainMismatch
from spgraph.semirings import (
    TYPES,
    BinaryOp,
    IndexUnaryOp,
    UnaryOp,
    binary,
    indexunary,
    monoid,
    unary,
)

special = pytest.importorskip("scipy.special")

# Functions whose last digits are the libraries' own; everything else has to agree exactly.
TRANSCENDENTAL = {
    *"cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh".split(),
    *"asinh acosh atanh erf erfc lgamma tgamma pow hypot atan2".split(),
}


def tolerance(case: Case) -> float:
    return 64.0 if case.function.name in TRANSCENDENTAL else 0.0


@cache
def values(namespace: str) -> tuple[list[Case], dict[str, np.ndarray]]:
    cases = sc.cases(namespace)
    return cases, sc.numba_values(cases)


# The expectation: NumPy arrays of the promoted type, and Python's integers where types have edges


def on_integers(
    f: Callable[[int, int, int, int], int],
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """f(x, y, lowest, highest) over Python integers, wrapped around to the type."""

    def over(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        dtype = x.dtype
        low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        size = high - low + 1
        exact = [f(int(a), int(b), low, high) for a, b in zip(x, y, strict=True)]
        if dtype.kind == "b":
            return np.array([value != 0 for value in exact])
        return np.array([(value - low) % size + low for value in exact], dtype=object).astype(dtype)

    return over


def by_zero(x: int, low: int, high: int) -> int:
    return 0 if x == 0 else low if x < 0 else high


def truncated(x: int, y: int, low: int, high: int) -> int:
    if y == 0:
        return by_zero(x, low, high)
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def floored(x: int, y: int, low: int, high: int) -> int:
    return by_zero(x, low, high) if y == 0 else x // y


def modulo(x: int, y: int, low: int, high: int) -> int:
    return 0 if y == 0 else x % y


def power(x: int, y: int, low: int, high: int) -> int:
    if y >= 0:
        return pow(x, y, 2**64)
    return high if x == 0 else x ** (-y % 2) if x in (1, -1) else 0


def real_type(*types: np.dtype[Any]) -> np.dtype[Any]:
    return np.result_type(*types, np.float32)


def either(integers: Any, reals: Any) -> Callable[..., np.ndarray]:
    return lambda x, *rest: (reals if x.dtype.kind == "f" else integers)(x, *rest)


def real(f: Any) -> Callable[..., np.ndarray]:
    """Computed in the floating type."""
    return lambda *arrays: f(*(array.astype(real_type(array.dtype)) for array in arrays))


def truth(f: Any) -> Callable[..., np.ndarray]:
    return lambda *arrays: f(*(array.astype(bool) for array in arrays))


def typed(f: Any) -> Callable[..., np.ndarray]:
    """The comparisons that give 0 and 1 in the operands' type."""
    return lambda x, y: f(x, y).astype(x.dtype)


def swapped(f: Any) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return lambda x, y: f(y, x)


def logical(over_bool: Any, other: Any) -> Callable[..., np.ndarray]:
    return lambda x, *rest: (over_bool if x.dtype.kind == "b" else other)(x, *rest)


def rounded(x: np.ndarray) -> np.ndarray:
    """Halves away from zero."""
    whole = np.trunc(x)
    with np.errstate(invalid="ignore"):
        return whole + np.copysign((np.abs(x - whole) >= 0.5).astype(x.dtype), x)


def same(x: np.ndarray) -> np.ndarray:
    return x


def gamma(x: np.ndarray) -> np.ndarray:
    """C's tgamma: nan at the negative integers and at -inf, an infinity of zero's sign at zero."""
    found = special.gamma(x.astype(np.float64))
    found = np.where((x < 0) & (x == np.floor(x)), math.nan, found)
    found = np.where(x == 0, np.copysign(math.inf, x), found)
    return found.astype(x.dtype)


UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "identity": same,
    "one": lambda x: np.ones_like(x),
    "abs": logical(same, np.abs),
    "ainv": logical(same, np.negative),
    "minv": either(lambda x: on_integers(truncated)(np.ones_like(x), x), lambda x: 1 / x),
    "lnot": lambda x: ~x.astype(bool),
    "bnot": np.invert,
    "signum": logical(same, np.sign),
    "floor": either(same, np.floor),
    "ceil": either(same, np.ceil),
    "trunc": either(same, np.trunc),
    "round": either(same, rounded),
    "isinf": real(np.isinf),
    "isnan": real(np.isnan),
    "isfinite": real(np.isfinite),
    **{
        name: real(getattr(np, name))
        for name in "sqrt cbrt exp exp2 expm1 log log2 log10 log1p".split()
    },
    **{name: real(getattr(np, name)) for name in "sin cos tan sinh cosh tanh".split()},
    **{
        name: real(getattr(np, f"arc{name[1:]}"))
        for name in "asin acos atan asinh acosh atanh".split()
    },
    "erf": real(special.erf),
    "erfc": real(special.erfc),
    "lgamma": real(special.gammaln),
    "tgamma": real(gamma),
}

BINARY: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "any": lambda x, y: y,
    "pair": lambda x, y: np.ones_like(x),
    "min": np.fmin,
    "max": np.fmax,
    "plus": np.add,
    "minus": logical(np.logical_xor, np.subtract),
    "rminus": logical(np.logical_xor, swapped(np.subtract)),
    "times": np.multiply,
    "div": either(on_integers(truncated), np.true_divide),
    "rdiv": swapped(either(on_integers(truncated), np.true_divide)),
    "truediv": real(np.true_divide),
    "rtruediv": real(swapped(np.true_divide)),
    "floordiv": either(on_integers(floored), np.floor_divide),
    "mod": either(on_integers(modulo), np.remainder),
    "fmod": real(np.fmod),
    "pow": either(on_integers(power), np.power),
    "hypot": real(np.hypot),
    "atan2": real(np.arctan2),
    "copysign": real(np.copysign),
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "iseq": typed(np.equal),
    "isne": typed(np.not_equal),
    "islt": typed(np.less),
    "isle": typed(np.less_equal),
    "isgt": typed(np.greater),
    "isge": typed(np.greater_equal),
    "lor": truth(np.logical_or),
    "land": truth(np.logical_and),
    "lxor": truth(np.logical_xor),
    "lxnor": lambda x, y: x.astype(bool) == y.astype(bool),
    "bor": np.bitwise_or,
    "band": np.bitwise_and,
    "bxor": np.bitwise_xor,
    "bxnor": lambda x, y: ~(x ^ y),
}
BINARY["oneb"] = BINARY["pair"]

# Of the values as they are stored, and of positions
RAW: dict[str, Callable[..., np.ndarray]] = {
    "first": lambda x, y, *_: x,
    "second": lambda x, y, *_: y,
    "ldexp": lambda x, y, *_: np.ldexp(
        x.astype(real_type(x.dtype)), np.clip(y.astype(np.int64), -4000, 4000).astype(np.int32)
    ),
    "firsti": lambda x, y, ix, jx, iy, jy: ix,
    "firstj": lambda x, y, ix, jx, iy, jy: jx,
    "secondi": lambda x, y, ix, jx, iy, jy: iy,
    "secondj": lambda x, y, ix, jx, iy, jy: jy,
    "firsti1": lambda x, y, ix, jx, iy, jy: ix + 1,
    "firstj1": lambda x, y, ix, jx, iy, jy: jx + 1,
    "secondi1": lambda x, y, ix, jx, iy, jy: iy + 1,
    "secondj1": lambda x, y, ix, jx, iy, jy: jy + 1,
}

POSITION: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "positioni": lambda i, j, y: i,
    "positionj": lambda i, j, y: j,
    "rowindex": lambda i, j, y: i + y,
    "colindex": lambda i, j, y: j + y,
    "diagindex": lambda i, j, y: j - i + y,
    "tril": lambda i, j, y: j <= i + y,
    "triu": lambda i, j, y: j >= i + y,
    "diag": lambda i, j, y: j == i + y,
    "offdiag": lambda i, j, y: j != i + y,
    "colle": lambda i, j, y: j <= y,
    "colgt": lambda i, j, y: j > y,
    "rowle": lambda i, j, y: i <= y,
    "rowgt": lambda i, j, y: i > y,
}


COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


@np.errstate(all="ignore")
def expected(namespace: str, case: Case) -> np.ndarray:
    name, samples = case.function.name, case.samples
    if namespace == "unary":
        return UNARY[name](*samples)
    if namespace == "indexunary" and name in POSITION:
        _, i, j, y = samples
        return POSITION[name](i, j, y.astype(np.int64))
    if name in RAW:
        return RAW[name](*samples)
    x, y = samples[0], samples[3] if namespace == "indexunary" else samples[1]
    common = np.result_type(x, y)
    if name[-2:] in COMPARISONS and {x.dtype.kind, y.dtype.kind} == {"i", "u"}:
        truths = getattr(operator, name[-2:])(
            x.astype(object), y.astype(object)
        )  # Python's integers are exact
        return truths.astype(common if name.startswith("is") else bool)
    return BINARY[name.removeprefix("value")](x.astype(common), y.astype(common))


def check(cases: list[Case], found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> None:
    wrong = [
        sc.difference(case, found[case.label], wanted[case.label], tolerance(case))
        for case in cases
    ]
    assert cases and not any(wrong), "\n".join(text for text in wrong if text)


@pytest.mark.parametrize("namespace", ["unary", "binary", "indexunary"])
def test_python_text_against_numpy(namespace: str) -> None:
    cases, found = values(namespace)
    check(cases, found, {case.label: expected(namespace, case) for case in cases})


@pytest.mark.parametrize("namespace", ["unary", "binary", "indexunary"])
def test_cuda_text_agrees_with_python_text(namespace: str) -> None:
    cases, found = values(namespace)
    check(cases, sc.host_values(cases), found)


@pytest.mark.full
@pytest.mark.parametrize("namespace", ["unary", "binary", "indexunary"])
@pytest.mark.parametrize("first", TYPES, ids=str)
def test_all_types_in_both_languages(namespace: str, first: np.dtype[Any]) -> None:
    cases = sc.cases(namespace, first)
    found = sc.numba_values(cases)
    check(cases, found, {case.label: expected(namespace, case) for case in cases})
    check(cases, sc.host_values(cases), found)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_powers_that_need_no_pow(kind: type) -> None:
    x = np.array([-np.inf, -2.5, -1e-30, -0.0, 0.0, 0.3, 3.0, 1e30, np.inf, np.nan], kind)
    for exponent in (2, 0.5, -1):
        with np.errstate(all="ignore"):
            wanted = np.array([np.float_power(v, exponent) for v in x]).astype(kind)
        found = (sg.Vector(x) ** exponent).to_numpy()
        assert found.dtype == kind
        np.testing.assert_array_equal(np.signbit(found[:-1]), np.signbit(wanted[:-1]))
        np.testing.assert_allclose(found, wanted, rtol=2 * np.finfo(kind).eps)
    assert (sg.Vector(x) ** 2).isequal(sg.Vector(x * x))


# Types


@pytest.mark.parametrize("types", ["int8 uint8", "int64 uint64", "bool float32", "uint16 int32"])
def test_the_rule_for_types(types: str) -> None:
    x, y = types.split()
    common, floating = np.result_type(x, y), np.result_type(x, y, np.float32)
    expected = {
        "plus": common,
        "min": common,
        "any": common,
        "pair": common,
        "iseq": common,
        "truediv": floating,
        "hypot": floating,
        "eq": np.dtype(bool),
        "land": np.dtype(bool),
        "first": np.dtype(x),
        "second": np.dtype(y),
        "secondi": np.dtype("int32"),
    }
    for name, result in expected.items():
        function = getattr(binary, name).resolve(x, y, index="int32")
        assert function.result == result, name
        assert [dtype.name for dtype in function.arguments] == [x, y, *["int64"] * 4]
    assert indexunary.tril.resolve(x, y).result == np.dtype(bool)
    assert indexunary.rowindex.resolve(x, y, index="int32").result == np.dtype("int32")


def test_floating_types_of_integers() -> None:
    found = {dtype.name: unary.sqrt.resolve(dtype).result.name for dtype in TYPES}
    small = dict.fromkeys(["bool", "int8", "int16", "uint8", "uint16", "float32"], "float32")
    assert found == dict.fromkeys(found, "float64") | small


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: unary.bnot.resolve("float32"), "unary.bnot: takes .*integers, got float32"),
        (
            lambda: binary.bor.resolve("int64", "uint64"),
            "binary.bor: takes .*integers, got int64, uint64, which promote to float64",
        ),
        (
            lambda: binary.ldexp.resolve("float32", "float32"),
            "binary.ldexp: the exponent y must be an integer that fits int64, got float32",
        ),
        (lambda: unary.abs.resolve("complex64"), "unary.abs: expected one of the types bool, int8"),
        (lambda: unary.abs.resolve(">i4"), "in native byte order, got '>i4'"),
        (lambda: unary.abs.resolve(None), "got None"),
        (lambda: unary.abs.resolve("weight"), "got 'weight'"),
        (lambda: binary.firsti.resolve("int8", "int8", "int8"), "index must be int32 or int64"),
    ],
)
def test_types_that_are_refused(call: Any, message: str) -> None:
    with pytest.raises(DomainMismatch, match=message):
        call()


def test_a_semiring_is_made_once() -> None:
    # caches then find it by identity: a comparison by fields takes longer than all other checks
    assert semirings.min_plus is semirings.min_plus is semirings.by_name("min_plus")


def test_operators_are_values() -> None:
    assert binary.oneb is binary.pair and binary.oneb.name == "pair"
    assert binary.plus == BinaryOp("plus", binary.plus.body) != binary.minus
    assert binary.min != monoid.min and unary.one != UnaryOp("one", unary.abs.body)
    assert {binary.plus: 1}[pickle.loads(pickle.dumps(binary.plus))] == 1
    assert binary.plus.resolve("int8", "int8") is binary.plus.resolve(np.int8, np.dtype("int8"))
    assert binary.firsti.positional and not binary.first.positional and binary.first.built_in
    assert isinstance(indexunary.tril, IndexUnaryOp) and repr(indexunary.tril) == "indexunary.tril"
    with pytest.raises(AttributeError):
        binary.plus.name = "minus"  # type: ignore[misc]


def test_the_namespaces_are_complete() -> None:
    assert {case.function.name for case in sc.cases("unary")} == set(unary) == UNARY.keys()
    known = (BINARY.keys() - {"oneb"}) | RAW.keys()
    assert {case.function.name for case in sc.cases("binary")} == known == set(binary) - {"oneb"}
    assert {case.function.name for case in sc.cases("indexunary")} == set(indexunary)
