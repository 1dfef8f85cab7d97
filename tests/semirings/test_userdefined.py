"""Operators from Python functions: alike in Numba, CUDA and Python; what is refused, and how."""

from __future__ import annotations

import ast
import importlib.util
import linecache
import math
import pickle
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import semirings_cases as sc
import semirings_functions as sf
from numba import njit
from semirings_functions import LIMIT, pair_case, user_cases

from spgraph.errors import DomainMismatch
from spgraph.semirings import BinaryOp, IndexUnaryOp, UnaryOp
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


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64"])
def test_signs_are_changed_in_the_own_type(dtype: str) -> None:
    """As NumPy does, in both languages; only then integers widen."""
    info = np.iinfo(dtype)
    x = np.array([info.min, info.max, 0, 1, 5], dtype)
    named: dict[str, tuple[Any, np.ndarray]] = {
        "negative": (lambda x: -x, np.negative(x)),
        "inverted": (lambda x: ~x, np.invert(x)),
        "negative_and_more": (lambda x: -x * 1, np.negative(x)),
    }
    operators = {name: UnaryOp.define(f, name).resolve(dtype) for name, (f, _) in named.items()}
    cases = [sc.Case(name, op, (x,)) for name, op in operators.items()]
    for values in (sc.numba_values(cases), sc.host_values(cases)):
        for name, (_, expected) in named.items():
            assert values[name].dtype.itemsize == 8
            assert values[name].astype(np.int64).tolist() == expected.astype(np.int64).tolist()


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


# Translation on its own


def prints(x, y):
    print(x)
    return y


def test_cuda_function() -> None:
    types = (np.dtype("float64"), np.dtype("int32"))
    text = cuda_function(sf.branches, "decide", types, np.dtype("float32"))
    assert "__device__ __forceinline__ float decide(double x_0, int y_1) {" in text
    with pytest.raises(
        DomainMismatch, match=r"cuda_function\(decide\): prints|cuda_function\(decide\): line \d+"
    ):
        cuda_function(prints, "decide", types, np.dtype("float32"))


NESTED = """from __future__ import annotations
class Of:
    def made():
        factor = 2
        {0}
        return f
f = Of.made()
"""


@pytest.mark.parametrize("around", ["{0}", NESTED])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f = lambda x, y: x + y", "f = lambda x, y: x - y"),
        ("def f(x: int, y: int) -> int: return x + 2 * y", "def f(x, y): return x + 3 * y"),
        ("def f(x, y): return x + y * 0.0", "def f(x, y): return x + y * -0.0"),
        ("g, f = lambda x, y: y, lambda x, y: x * y", "g, f = lambda x, y: y, lambda x, y: y"),
        (
            "g, f = lambda x, y: x + y, lambda x, y: x - y",
            "g, f = lambda x, y: x - y, lambda x, y: x + y",
        ),
        ("def f(x, y): return max(x, y)", "def f(x, y): return min(x, y)"),
    ],
)
def test_refused_where_the_file_was_edited_since_its_import(
    around: str, before: str, after: str, tmp_path: Path
) -> None:
    path = tmp_path / "operators_of_a_user.py"
    path.write_text(around.format(before), encoding="utf-8")
    f = runpy.run_path(str(path))["f"]
    defined = BinaryOp.define(f)
    path.write_text(around.format(after) + "\n# more\n", encoding="utf-8")
    with pytest.raises(
        DomainMismatch, match=r"(cannot be|has changed since it was) read \(.*line \d"
    ):
        BinaryOp.define(f)
    path.write_text("\n" + around.format(before), encoding="utf-8")  # the line is another one
    with pytest.raises(DomainMismatch, match="the source of .* cannot be read"):
        BinaryOp.define(f)
    path.write_text(around.format(before), encoding="utf-8")
    assert BinaryOp.define(f) == defined


def test_a_file_that_was_compiled_without_columns(tmp_path: Path) -> None:
    path = tmp_path / "operators_compiled_elsewhere.py"
    path.write_text("def f(x, y):\n    return x + 2 * y\n", encoding="utf-8")
    compiler = [sys.executable, "-X", "no_debug_ranges", "-m", "py_compile", str(path)]
    subprocess.run(compiler, check=True)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert all(column is None for *_, column in module.f.__code__.co_positions())
    assert BinaryOp.define(module.f).resolve("int64", "int64").result == np.int64
    path.write_text("def f(x, y):\n    return x + 30 * y\n", encoding="utf-8")
    with pytest.raises(DomainMismatch, match="has changed since it was read"):
        BinaryOp.define(module.f)


def test_a_cell_of_a_notebook_is_compiled_statement_by_statement() -> None:
    text = "import math\ndef f(x, y): return math.floor(x) + y\nawait something()\n"
    linecache.cache["<a cell>"] = len(text), None, text.splitlines(keepends=True), "<a cell>"
    scope: dict[str, Any] = {}
    for statement in ast.parse(text).body[:2]:
        exec(compile(ast.Module([statement], []), "<a cell>", "exec"), scope)
    assert BinaryOp.define(scope["f"]).resolve("float64", "int8").result == np.int64
