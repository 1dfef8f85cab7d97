"""What a process keeps of operators that users define."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import warnings
from types import ModuleType

import pytest

import spgraph
from spgraph import operations
from spgraph.backends.cpu.runtime import jit
from spgraph.containers import Vector
from spgraph.semirings import BinaryOp, UnaryOp, userdefined

TYPED = {"Function", "TypedMonoid", "TypedSemiring", "Monoid", "Semiring", "_Operator"}


def test_equal_texts_are_one_operator() -> None:
    u = Vector.from_dense([1.0, 2.0])

    def kernels() -> int:
        return jit.module.cache_info().misses

    for step in range(3):
        first = BinaryOp.define(lambda x, y: x + 3 * y, "first")
        same = BinaryOp.define(lambda x, y: x + (3 * y), "first")  # the same tree
        other = BinaryOp.define(lambda x, y: x + 3 * y, "second")
        assert first == same and hash(first) == hash(same) and first != other
        for op in (first, same, other):
            assert operations.ewise_mult(u, u, op).to_numpy().tolist() == [4.0, 8.0]
            if step == 0 and op is first:
                before = kernels()
    assert kernels() == before, "neither a new object nor a new name is a new kernel"


def modules() -> list[ModuleType]:
    found = pkgutil.walk_packages(spgraph.__path__, "spgraph.")
    return [
        importlib.import_module(part.name)
        for part in found
        if ".kernels" not in part.name and not part.name.endswith("__main__")
    ]


def test_caches_of_operators_are_bounded() -> None:
    bounded, unbounded = [], []
    for module in modules():
        for name, value in vars(module).items():
            if not hasattr(value, "cache_parameters") or value.__module__ != module.__name__:
                continue
            taken = {
                word
                for parameter in inspect.signature(value).parameters.values()
                for word in str(getattr(parameter.annotation, "__name__", parameter.annotation))
                .replace("|", " ")
                .split()
            }
            if taken & TYPED or {"preamble", "text"} & set(inspect.signature(value).parameters):
                kept = unbounded if value.cache_parameters()["maxsize"] is None else bounded
                kept.append(f"{module.__name__}.{name}")
    assert len(bounded) > 20
    assert sorted(unbounded) == ["spgraph.process.cache_folder.warn"]  # a warning is a text of ours


def test_many_operators_are_warned_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(userdefined, "MANY", 3)
    monkeypatch.setattr(userdefined, "_used", set())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number in range(6):
            assert len(caught) == (number >= 3)
            op = UnaryOp.from_expressions("f", python=f"x + {number}.125", cuda="x")
            assert len(caught) == (number >= 3), "defined, not used"
            for _ in range(2):
                op.resolve("float32")
    assert "3 different operators" in str(caught[0].message) and "operand" in str(caught[0].message)
