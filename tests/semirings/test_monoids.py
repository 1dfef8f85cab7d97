"""The laws of every monoid over every type, and the monoids of users."""

from __future__ import annotations

import math
import pickle
from functools import cache
from typing import Any

import numpy as np
import pytest
import semirings_cases as sc

import spgraph as sg
from spgraph.errors import DomainMismatch
from spgraph.semirings import (
    TYPES,
    BinaryOp,
    Monoid,
    Semiring,
    TypedMonoid,
    binary,
    monoid,
)

INTEGER_ONLY = ("bor", "band", "bxor", "bxnor")
TRUTH_ONLY = ("lor", "land", "lxor", "lxnor")


def exists(name: str, dtype: np.dtype[Any]) -> bool:
    if name in TRUTH_ONLY:
        return dtype.kind == "b"
    return dtype.kind in "iu" if name in INTEGER_ONLY else True


def typed(name: str, dtype: np.dtype[Any]) -> TypedMonoid:
    found: TypedMonoid = getattr(monoid, name).resolve(dtype)
    return found


# The identity and the terminal value that each one's definition asks for, written a second time


def limits(dtype: np.dtype[Any]) -> tuple[Any, Any, Any]:
    """Lowest, highest, and the value all of whose bits are set."""
    if dtype.kind == "b":
        return False, True, True
    if dtype.kind == "f":
        return -math.inf, math.inf, None
    bits = 8 * dtype.itemsize
    if dtype.kind == "u":
        return 0, 2**bits - 1, 2**bits - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, -1


def constants(name: str, dtype: np.dtype[Any]) -> tuple[Any, Any]:
    low, high, ones = limits(dtype)
    return {
        "plus": (0, True if dtype.kind == "b" else None),
        "times": (1, None if dtype.kind == "f" else 0),
        "min": (high, low),
        "max": (low, high),
        "any": (0, None),
        "lor": (False, True),
        "land": (True, False),
        "lxor": (False, None),
        "lxnor": (True, None),
        "bor": (0, ones),
        "band": (ones, 0),
        "bxor": (0, None),
        "bxnor": (ones, None),
    }[name]


PAIRS = [
    pytest.param(name, dtype, id=f"{name}-{dtype.name}")
    for name in dict.fromkeys(getattr(monoid, each).name for each in monoid)
    for dtype in TYPES
    if exists(name, dtype)
]


def sample(dtype: np.dtype[Any]) -> np.ndarray:
    """Few enough values to try all triples: limits, zeros, infinities, nan, small ones."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind == "f":
        limit = np.finfo(dtype)
        values = [
            -math.inf,
            limit.min,
            -3.0,
            -1.0,
            -0.0,
            0.0,
            0.5,
            1.0,
            2.0,
            7.0,
            limit.max,
            math.inf,
        ]
        return np.array([*values, math.nan], dtype)
    info = np.iinfo(dtype)
    values = {info.min, info.min + 1, info.max - 1, info.max, 0, 1, 2, 3, 85}
    return np.array(sorted(values | ({-1, -2, -85} if info.min else {170})), dtype)


@cache
def tables(dtype: np.dtype[Any]) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """For each monoid over the type: op(x, y), op(op(x, y), z) and op(x, op(y, z)) for all values
    of the sample.
    """
    names = [param.values[0] for param in PAIRS if param.values[1] == dtype]
    text = "".join(typed(name, dtype).define_python(f"f{row}") for row, name in enumerate(names))
    text += "@entry\ndef run(v, pairs, left, right):\n"
    text += "    for i in range(v.size):\n        for j in range(v.size):\n"
    text += "".join(
        f"            pairs[{row}, i, j] = f{row}(v[i], v[j])\n" for row in range(len(names))
    )
    text += "            for k in range(v.size):\n"
    for row in range(len(names)):
        text += f"                left[{row}, i, j, k] = f{row}(f{row}(v[i], v[j]), v[k])\n"
        text += f"                right[{row}, i, j, k] = f{row}(v[i], f{row}(v[j], v[k]))\n"
    scope = dict(sc.SCOPE)
    exec(text, scope)
    values = sample(dtype)
    size, count = len(values), len(names)
    pairs = np.empty((count, size, size), dtype)
    left, right = (
        np.empty((count, size, size, size), dtype),
        np.empty((count, size, size, size), dtype),
    )
    scope["run"](values, pairs, left, right)
    return {name: (pairs[row], left[row], right[row]) for row, name in enumerate(names)}


def equal(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    found: np.ndarray = (x == y) | ((x != x) & (y != y))
    return found


@pytest.mark.parametrize(("name", "dtype"), PAIRS)
def test_constants(name: str, dtype: np.dtype[Any]) -> None:
    found = typed(name, dtype)
    identity, terminal = constants(name, dtype)
    assert found.dtype == dtype and found.name == name and found.any == (name == "any")
    assert type(found.identity) is dtype.type and found.identity == identity
    assert (found.terminal is None) == (terminal is None)
    if terminal is not None:
        assert type(found.terminal) is dtype.type and found.terminal == terminal


@pytest.mark.parametrize(("name", "dtype"), PAIRS)
def test_identity(name: str, dtype: np.dtype[Any]) -> None:
    values = sample(dtype)
    pairs = tables(dtype)[name][0]
    there = np.flatnonzero(values == typed(name, dtype).identity)
    assert len(there) >= 1
    for place in there:
        if name != "any":  # gives either operand: this one gives the second
            keeps = equal(pairs[:, place], values)
            # leaving NaN out, min and max give their identity for it
            assert np.all(
                keeps
                | (np.isnan(values) if name in ("min", "max") and dtype.kind == "f" else False)
            )
            assert name in ("min", "max") or keeps.all()
        assert np.all(
            equal(pairs[place], values)
            | (np.isnan(values) if name in ("min", "max") and dtype.kind == "f" else False)
        )


@pytest.mark.parametrize(("name", "dtype"), PAIRS)
def test_associative(name: str, dtype: np.dtype[Any]) -> None:
    _, left, right = tables(dtype)[name]
    same = equal(left, right)
    if dtype.kind == "f" and name in ("plus", "times"):
        # rounding and overflow to inf: only where every step is exact is there a law
        values = np.abs(sample(dtype))
        modest = (values < 1000) | ~np.isfinite(values)
        same = same[np.ix_(modest, modest, modest)]
        assert same.size >= 1000
    assert same.all()


@pytest.mark.parametrize(("name", "dtype"), PAIRS)
def test_commutative(name: str, dtype: np.dtype[Any]) -> None:
    pairs = tables(dtype)[name][0]
    if name == "any":
        values = sample(dtype)
        first, second = np.meshgrid(values, values, indexing="ij")
        assert np.all(equal(pairs, first) | equal(pairs, second))
    else:
        assert equal(pairs, pairs.T).all()


@pytest.mark.parametrize(("name", "dtype"), PAIRS)
def test_terminal_absorbs_and_nothing_else_does(name: str, dtype: np.dtype[Any]) -> None:
    values, pairs = sample(dtype), tables(dtype)[name][0]
    absorbing = {
        value.item()
        for place, value in enumerate(values)
        if np.all(pairs[place] == value) and np.all(pairs[:, place] == value)
    }
    terminal = typed(name, dtype).terminal
    if name == "any":
        assert not absorbing  # every value ends it
    elif dtype.kind == "f" and name in ("plus", "times"):
        assert terminal is None  # nan absorbs, and is equal to nothing
    else:
        assert absorbing == (set() if terminal is None else {terminal.item()})


@pytest.mark.parametrize(("name", "dtype"), PAIRS)
def test_idempotent_where_it_says_so(name: str, dtype: np.dtype[Any]) -> None:
    values, pairs = sample(dtype), tables(dtype)[name][0]
    assert equal(np.diagonal(pairs), values).all() == typed(name, dtype).idempotent


@pytest.mark.parametrize("dtype", sc.REAL, ids=str)
@pytest.mark.parametrize("name", ["min", "max"])
def test_min_and_max_leave_nan_out(name: str, dtype: np.dtype[Any]) -> None:
    values, pairs = sample(dtype), tables(dtype)[name][0]
    nan = int(np.flatnonzero(np.isnan(values))[0])
    assert equal(pairs[nan], values).all() and equal(pairs[:, nan], values).all()


def test_two_argument_texts_agree_in_both_languages() -> None:
    cases = []
    for number, param in enumerate(PAIRS):
        name, dtype = param.values
        if number % 4 == 0 or name in ("min", "times"):
            function = typed(name, dtype).function.taking(2)
            cases.append(sc.Case(f"{name}-{dtype.name}", function, sc.grid(dtype, dtype)))
    by_host = sc.host_values(cases)
    by_numba = sc.numba_values(cases[::3])
    wrong = [
        text
        for case in cases[::3]
        if (text := sc.difference(case, by_host[case.label], by_numba[case.label]))
    ]
    assert not wrong, "\n".join(wrong)
    assert typed("min", sc.REAL[0]).define_cuda("add") == typed("min", sc.REAL[0]).function.taking(
        2
    ).define_cuda("add")


@pytest.mark.parametrize("name", TRUTH_ONLY)
def test_logical_monoids_take_bool_alone(name: str) -> None:
    with pytest.raises(
        DomainMismatch, match=rf"monoid\.{name}: int8 with int8 gives bool, not int8"
    ):
        getattr(monoid, name).resolve("int8")


def test_bitwise_monoids_take_integers_alone() -> None:
    with pytest.raises(
        DomainMismatch,
        match=r"binary\.bor: takes unsigned integers and signed integers, got float64",
    ):
        monoid.bor.resolve("float64")
    with pytest.raises(
        DomainMismatch, match=r"Monoid\.resolve: expected one of the types bool, int8"
    ):
        monoid.min.resolve("complex128")


# Monoids of users


def gcd(x, y):  # type: ignore[no-untyped-def]
    while y != 0:
        x, y = y, x % y
    return abs(x)


def near(dtype: np.dtype[Any]) -> float:
    return 1.0 if dtype.kind == "f" else 0


def test_a_monoid_of_a_user() -> None:
    op = BinaryOp.define(gcd)
    mine = Monoid(op, identity=0, terminal=1, idempotent=True)
    found = mine.resolve("int32")
    assert found.dtype == found.function.result == np.dtype("int32")  # int64 in Numba, cast back
    assert (found.identity, found.terminal, found.idempotent, found.any) == (0, 1, True, False)
    assert mine == Monoid(BinaryOp.define(gcd), 0, 1, True) and mine != Monoid(op, 0)
    assert (
        Monoid(op, near).resolve("float64").identity == 1.0
        and Monoid(op, near).resolve("int8").identity == 0
    )
    semiring = Semiring(mine, binary.times).resolve("int16", "int16")
    assert semiring.name == "gcd_times" and semiring.dtype == np.dtype("int16")
    values = np.array([0, 4, 6, 9, 35, -12], np.int32)
    x, y = (np.ascontiguousarray(a.ravel()) for a in np.meshgrid(values, values, indexing="ij"))
    case = sc.Case("gcd", found.function.taking(2), (x, y))
    want = np.array([math.gcd(int(a), int(b)) for a, b in zip(x, y, strict=True)], np.int32)
    for got in (sc.numba_values([case]), sc.host_values([case])):
        assert np.array_equal(got["gcd"], want)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Monoid(monoid.plus, 0), "Monoid: op must be a BinaryOp, got monoid.plus"),
        (lambda: Monoid(binary.plus, None), r"Monoid\(plus\): identity must be a number"),
        (lambda: Monoid(binary.firsti, 0), "Monoid: binary.firsti gives positions"),
        (lambda: Monoid(binary.plus, 0.5).resolve("int8"), r"identity 0\.5 is not a value of int8"),
        (lambda: Monoid(binary.plus, 300).resolve("uint8"), "identity 300 is not a value of uint8"),
        (lambda: Monoid(binary.plus, -1).resolve("uint8"), "identity -1 is not a value of uint8"),
        (
            lambda: Monoid(binary.max, math.inf).resolve("int64"),
            "identity inf is not a value of int64",
        ),
        (
            lambda: Monoid(binary.max, 0, "high").resolve("int64"),
            "Monoid\\(max\\): terminal must be a number or a function of the type, got 'high'",
        ),
        (
            lambda: Monoid(binary.max, lambda dtype: None).resolve("int64"),
            "identity is None for int64; give it a value",
        ),
        (lambda: Monoid(binary.lt, 0).resolve("int64"), "int64 with int64 gives bool, not int64"),
    ],
)
def test_monoids_that_are_refused(build: Any, message: str) -> None:
    with pytest.raises(DomainMismatch, match=message):
        build()


def test_an_identity_may_be_nan() -> None:
    assert math.isnan(Monoid(binary.min, math.nan).resolve("float32").identity)


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_monoids_of_zeros_of_either_sign_are_two(kind: str) -> None:
    below, above = (Monoid(binary.plus, zero) for zero in (-0.0, 0.0))
    assert below != above and below == Monoid(binary.plus, np.float64(-0.0))
    for each, sign in ((above, 1), (below, -1), (above, 1)):
        for found in (each.resolve(kind).identity, each.reduction(kind).identity):
            assert math.copysign(1, found) == sign
        semiring = Semiring(each, binary.times).resolve(kind, kind)
        assert math.copysign(1, semiring.add.identity) == sign
        assert semiring != Semiring(below if sign > 0 else above, binary.times).resolve(kind, kind)
        assert math.copysign(1, sg.reduce(sg.Vector.empty(3, kind), each)) == sign


def test_a_monoid_whose_identity_is_nan_equals_itself() -> None:
    one, other = (Monoid(binary.min, value) for value in (math.nan, np.float32("nan")))
    assert one == other and hash(one) == hash(other) and one != Monoid(binary.min, math.inf)
    assert pickle.loads(pickle.dumps(one)) == one and one.resolve("float32") is other.resolve(
        "float32"
    )
