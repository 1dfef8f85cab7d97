"""The types that semirings and reductions compute in: what counts has room to count."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import oracle
import pytest
import semirings_cases as sc
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph import semirings
from spgraph.errors import DomainMismatch
from spgraph.iterations.integer_sums import plus_and_one, saturating_plus
from spgraph.semirings import (
    TYPES,
    BinaryOp,
    Monoid,
    Semiring,
    binary,
    inference,
    monoid,
    vocabulary,
)
from spgraph.semirings.userdefined import Scalar

FORMULAS = (
    *("x", "1", "0.5", "True", "-1", "-x", "i * 2 - 1", "x * i + (n - 1 - i)", "n - 1 - i % 3"),
    *(
        "i / 2",
        "i // 2",
        "x % 2",
        "i == n",
        "x < 1",
        "x + (i < 2)",
        "0 < i < 9",
        "i ** 2",
        "x + True",
        "not x",
    ),
    *("i + 9223372036854775807", "i + 9223372036854775808", "min(i, n)", "i if x > 0 else n"),
)
PAIRS = (
    *("f4 f4", "f8 f8", "i8 i8", "i4 i4", "i8 f8", "f8 i8", "i4 i8", "i8 i4", "i4 f8", "f8 i4"),
    *("f4 f8", "i8 f4", "u8 i8", "i2 i2", "b1 b1", "b1 i4", "i4 b1", "i8 b1", "b1 f8", "f8 b1"),
    *("b1 f4", "u1 b1"),
)
SUMS, LOGICAL = ("plus", "times"), ("lor", "land", "lxor", "lxnor", "eq")


def takes(operator: str, dtype: np.dtype[Any]) -> bool:
    """Whether an operator of the tables has a function for the type."""
    return dtype.kind in "iu" if operator in ("bor", "band", "bxor", "bxnor") else True


@pytest.mark.parametrize("types", PAIRS)
def test_types_that_are_known_without_numba_are_those_of_numba(types: str) -> None:
    x, y = map(np.dtype, types.split())
    for function in vocabulary.OPERATORS.values():
        found = inference._resolve(function, (x, y))
        kinds = found and tuple(map(inference._dtype, (*found.args, found.return_type)))
        assert inference.operation_types(function, (x, y)) == kinds, function
        assert inference._known_types(function, (x, y)) in (None, kinds), function
    assert inference.unify(x, x) == x


@pytest.mark.parametrize("x", [*map(np.dtype, ("bool", "i4", "i8", "f4"))], ids=str)
def test_formulas_have_the_types_that_numba_infers(
    x: np.dtype[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = set()
    for formula in FORMULAS:
        text = f"def user(x, i, n):\n    return {formula}\n"
        types = x, np.dtype("i8"), np.dtype("f8")
        if inference._known_result(text, types) is not None:
            known.add(formula)
        found = inference.infer.__wrapped__(text, types)
        with monkeypatch.context() as patch:
            patch.setattr(inference, "_known_result", lambda *given: None)
            assert inference.infer.__wrapped__(text, types) == found, formula
    assert {"x", "1", "i * 2 - 1", "i / 2", "i == n"} <= known
    assert ("x * i + (n - 1 - i)" in known) == (x.name != "float32")


def test_a_formula_that_is_none_is_refused_by_numba() -> None:
    with pytest.raises(DomainMismatch, match="missing"):
        BinaryOp.from_expressions("wrong", python="x + missing", cuda="x")


def test_integer_sums_have_the_types_that_numba_infers() -> None:
    for y in (dtype for dtype in TYPES if dtype.kind != "f"):
        for op, x in (
            (plus_and_one(16), np.dtype("i8")),
            (saturating_plus(np.dtype("i8")), np.dtype("i8")),
            (saturating_plus(np.dtype("u8")), np.dtype("u8")),
        ):
            assert isinstance(op.body, Scalar)
            assert op.resolve(x, y).result == inference.infer(op.body.python, (x, y)), (op, y)


@pytest.mark.parametrize("x", TYPES, ids=str)
@pytest.mark.parametrize("add", list(monoid))
def test_every_semiring_over_every_type(add: str, x: np.dtype[Any]) -> None:
    for multiply, y in itertools.product(binary, TYPES):
        if multiply == "ldexp" and not np.can_cast(y, np.int64):
            continue
        semiring = Semiring(getattr(monoid, add), getattr(binary, multiply))
        expected = oracle.product_type(add, multiply, x, y, np.int32)
        both_bool = x == y == sc.BOOL and expected == np.int64
        common = np.dtype(np.int64) if both_bool else np.promote_types(x, y)
        fits = takes(multiply, common) and takes(add, expected)
        fits &= add not in LOGICAL or expected == sc.BOOL
        label = f"{semiring.name}({x}, {y})"
        if not fits:
            with pytest.raises(DomainMismatch):
                semiring.resolve(x, y, index="int32")
            continue
        typed = semiring.resolve(x, y, index="int32")
        assert typed.dtype == typed.add.dtype == typed.multiply.result == expected, label
        assert typed.multiply.arguments[:2] == (x, y), label


@pytest.mark.parametrize("add", list(monoid))
def test_every_reduction_over_every_type(add: str) -> None:
    made = getattr(monoid, add)
    for dtype in TYPES:
        if not takes(add, dtype) or (add in LOGICAL and dtype != sc.BOOL):
            with pytest.raises(DomainMismatch):
                made.reduction(dtype)
            continue
        assert made.reduction(dtype) == made.resolve(oracle.sum_type(add, dtype))
        for asked in TYPES:
            if not takes(add, asked) or (add in LOGICAL and asked != sc.BOOL):
                continue
            if np.can_cast(dtype, asked, "same_kind"):
                assert made.reduction(dtype, asked) == made.resolve(asked)
            else:
                with pytest.raises(DomainMismatch, match=f"got {asked}; convert .* with astype"):
                    made.reduction(dtype, asked)


def counting() -> list[sc.Case]:
    """The multiplies of semirings whose type is another one than their operator's alone."""
    made = []
    pairs = [("bool", "bool"), ("bool", "int8"), ("float32", "bool"), ("uint8", "uint8")]
    for add, multiply, (x, y) in itertools.product(("plus", "min", "any", "lor"), binary, pairs):
        try:
            found = getattr(semirings, f"{add}_{multiply}").resolve(x, y).multiply
        except (AttributeError, DomainMismatch):
            continue
        try:
            if found == getattr(binary, multiply).resolve(x, y):
                continue
        except DomainMismatch:
            pass
        if any(found == case.function for case in made):
            continue  # of another semiring
        made.append(sc.binary_case(f"{add}_{multiply}({x}, {y})", found))
    return made


def test_products_that_count_in_both_languages() -> None:
    """Over the integers 0 and 1 they are what the operator gives over int64."""
    cases = counting()
    assert len(cases) > 40
    by_numba, by_host = sc.numba_values(cases), sc.host_values(cases)
    wide = []
    for case in cases:
        op = getattr(binary, case.function.name)
        x, y = (
            values.astype(np.int64) if values.dtype == np.bool_ else values
            for values in case.samples[:2]
        )
        function = op.resolve(x.dtype, y.dtype)
        wide.append(sc.Case(case.label, function, (x, y, *case.samples[2:])))
    expected = sc.numba_values(wide)
    wrong = [
        text
        for case in cases
        for got in (by_numba, by_host)
        if (
            text := sc.difference(
                case, got[case.label], expected[case.label].astype(case.function.result)
            )
        )
    ]
    assert not wrong, "\n".join(wrong)


def test_users_operators_keep_what_numba_infers() -> None:
    both = BinaryOp.define(lambda x, y: x and y, "both")
    assert (
        Semiring(monoid.plus, both).resolve("bool", "bool").dtype
        == both.resolve("bool", "bool").result
    )
    longer = Monoid(BinaryOp.define(lambda x, y: x if x > y else y, "longer"), 0)
    assert Semiring(longer, binary.pair).resolve("int8", "int8").dtype == np.int8
    assert Semiring(longer, binary.times).resolve("int8", "int8").dtype == np.int8
    assert longer.reduction("int8").dtype == np.int8


def test_entrywise_operations_keep_numpys_types(device: str) -> None:
    u = sg.Vector.from_dense([True, True, False]).to(device)
    v = sg.Vector.from_dense(np.array([100, 100, 1], np.int8)).to(device)
    assert (u + u).dtype == np.bool_ and (u * u).dtype == np.bool_
    assert sg.apply(u, binary.plus, right=True).dtype == np.bool_
    assert (v + v).to_numpy().tolist() == [-56, -56, 2]
