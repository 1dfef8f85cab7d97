"""Semirings as values, their names and types, and the namespaces that hold them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import spgraph.semirings as semirings
from spgraph.errors import DomainMismatch
from spgraph.semirings import (
    Monoid,
    Semiring,
    any_pair,
    binary,
    lor_land,
    min_plus,
    min_secondi,
    monoid,
    plus_times,
)


def test_values() -> None:
    assert monoid.eq == monoid.lxnor and monoid.eq.name == "lxnor"
    assert Monoid(binary.plus, 0) != monoid.plus  # it knows no terminal over bool
    assert Semiring(monoid.min, binary.plus) == min_plus and hash(min_plus) == hash(
        semirings.min_plus
    )
    assert Semiring(monoid.min, monoid.plus) == min_plus  # type: ignore[arg-type]
    assert {repr(each) for each in (min_plus, monoid.min, binary.plus)} == {
        "min_plus",
        "monoid.min",
        "binary.plus",
    }
    for each in (min_plus, monoid.times, min_plus.resolve("int8", "int8")):
        assert pickle.loads(pickle.dumps(each)) == each
    assert min_plus.resolve("int8", "bool") == min_plus.resolve(np.int8, bool)


def test_typed_semirings() -> None:
    found = min_secondi.resolve("bool", "float64", index="int32")
    assert found.dtype == found.add.dtype == found.multiply.result == np.dtype("int32")
    assert found.name == "min_secondi" and found.add.identity == 2**31 - 1
    assert lor_land.resolve("float64", "int8").dtype == np.dtype(bool)
    assert any_pair.resolve("bool", "bool").add.any
    assert plus_times.resolve("int64", "uint64").dtype == np.dtype("float64")


def test_semirings_that_do_not_fit() -> None:
    with pytest.raises(
        DomainMismatch,
        match=r"lor_first: first\(float64, bool\) gives float64, which the monoid does not take",
    ):
        semirings.lor_first.resolve("float64", "bool")
    with pytest.raises(
        DomainMismatch, match=r"binary\.times: index must be int32 or int64, got float64"
    ):
        plus_times.resolve("int8", "int8", index="float64")
    with pytest.raises(DomainMismatch, match="Semiring: monoid must be a Monoid, got binary.min"):
        Semiring(binary.min, binary.plus)  # type: ignore[arg-type]
    with pytest.raises(DomainMismatch, match="Semiring: multiply must be a BinaryOp, got 'plus'"):
        Semiring(monoid.min, "plus")  # type: ignore[arg-type]


def test_semirings_by_name() -> None:
    names = semirings.all_names()
    assert len(names) > 400 and set(names) <= set(dir(semirings))
    for name in (
        "min_plus",
        "any_pair",
        "plus_first",
        "max_times",
        "min_secondi",
        "bor_band",
        "lor_eq",
        "eq_land",
        "plus_ldexp",
    ):
        assert name in names
    for name in ("lor_secondi", "bor_truediv", "band_eq", "land_hypot"):
        assert name not in names
        with pytest.raises(
            AttributeError, match=f"no semiring {name}: .* never gives a type that the monoid"
        ):
            getattr(semirings, name)
    for name in names:
        first, second = name.split("_")  # eq is another name of lxnor, oneb of pair
        found = {"eq": "lxnor"}.get(first, first), {"oneb": "pair"}.get(second, second)
        assert getattr(semirings, name).name == "_".join(found)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("min_plsu", "did you mean .*min_plus"),
        ("nothing", "named monoid_operator"),
        ("_private", "has no attribute"),
    ],
)
def test_attributes_that_are_not_there(name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=hint):
        getattr(semirings, name)


def test_namespaces_help() -> None:
    assert "plus" in dir(binary) and list(monoid)[:3] == ["plus", "times", "min"]
    with pytest.raises(AttributeError, match="binary has no operator 'add'; use plus"):
        _ = binary.add
    with pytest.raises(AttributeError, match=r"binary has no operator 'tims'; did you mean times"):
        _ = binary.tims
    with pytest.raises(
        AttributeError,
        match=r"unary has no operator 'positioni'; positions are indexunary.positioni",
    ):
        _ = semirings.unary.positioni
