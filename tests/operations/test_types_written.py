"""What is written into a container: NumPy's same_kind, ranges, Python's weak numbers (NEP 50).

NumPy and Python's exact numbers are the oracles.
"""

from __future__ import annotations

import itertools
import math
import operator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401
from hypothesis import given, settings
from hypothesis import strategies as st

import spgraph as sg
from spgraph.errors import DomainMismatch
from spgraph.scalars import compared
from spgraph.semirings import BinaryOp, binary, indexunary, lor_land
from spgraph.semirings.functions import TYPES

PAIRS = list(itertools.product(TYPES, TYPES))
TESTS = ("lt", "le", "gt", "ge", "eq", "ne")
INTEGERS = [dtype for dtype in TYPES if dtype.kind in "iu"]

whole = st.one_of(
    st.integers(-4, 4),
    st.integers(-(2**70), 2**70),
    st.builds(lambda k, d: 2**k + d, st.integers(6, 66), st.integers(-2, 2)),
    st.builds(lambda k, d: -(2**k) + d, st.integers(6, 66), st.integers(-2, 2)),
)
reals = st.one_of(st.floats(), st.sampled_from([0.5, -0.5, 2.0**63, 2.0**64, -(2.0**63), 300.5]))
numbers = st.one_of(st.booleans(), whole, reals)


def limits(dtype: np.dtype) -> tuple[int, int]:
    return (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)


def values_of(dtype: np.dtype) -> st.SearchStrategy[np.ndarray]:
    """A few values of a type, often at the ends of others."""
    if dtype.kind == "f":
        single = st.floats(width=8 * dtype.itemsize)
    else:
        low, high = limits(dtype)
        ends = [s * 2**k + d for k in range(65) for s in (1, -1) for d in (-1, 0, 1)]
        ends = [x for x in ends if low <= x <= high]
        single = st.one_of(st.integers(low, high), st.sampled_from(ends))
    return st.lists(single, min_size=1, max_size=5).map(lambda given: np.array(given, dtype))


def vectors(values: np.ndarray, device: str, shards: int) -> Any:
    """Makers of Vectors and Matrices on a device or in shards."""
    A = sg.Matrix.from_coo(np.arange(values.size), np.arange(values.size), values)
    v = sg.Vector.from_coo(np.arange(values.size) * 2, values)
    if not shards:
        return A.to(device), v.to(device), v.to_sparse().to(device)
    A = A.distribute(shards, devices=device)
    return A, v.to(A.device)


# --- containers into containers -------------------------------------------------------------------


@pytest.mark.parametrize(("before", "target"), PAIRS, ids=lambda dtype: dtype.name)
def test_out_follows_same_kind(before: np.dtype, target: np.dtype, device: str) -> None:
    @settings(max_examples=8, deadline=None)
    @given(values_of(before), st.sampled_from([0, 1, 2]))
    def check(values: np.ndarray, shards: int) -> None:
        for t in vectors(values, device, shards):
            out = type(t).empty(*t.shape, target, device=t.device)
            allowed = np.can_cast(before, target, "same_kind")
            fits = True
            if before.kind in "iu" and target.kind in "iu":
                low, high = limits(target)
                fits = all(low <= x <= high for x in values.tolist())
            if not allowed:
                with pytest.raises(DomainMismatch, match="extract: .* same_kind"):
                    sg.extract(t, out=out)
            elif not fits:
                with pytest.raises(OverflowError, match=f"extract: .* into {target}, got"):
                    sg.extract(t, out=out)
            else:
                sg.extract(t, out=out)
                assert out.isequal(t.astype(target)) and out.dtype == target
            assert out.nvals == (t.nvals if allowed and fits else 0)

    check()


# --- Python's numbers are weak --------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize(
    "number", [True, 1, -1, 127, 128, 300, 2**31, 2**63, 2**64, -(2**63) - 1, 1.5]
)
def test_operands_promote_as_numpy(dtype: np.dtype, number: Any, device: str) -> None:
    values = np.array([0, 1, 1], dtype)
    v = sg.Vector.from_dense(values).to(device)
    A = sg.Matrix.from_dense([values], missing=None).to(device)
    # on the left of some types and on the right of the others: each is a kernel to compile
    left = TYPES.index(dtype) % 2 == 1
    op, function = (np.multiply, binary.times) if left else (np.add, binary.plus)
    side = {"left" if left else "right": number}
    try:
        expected = op(number, values) if left else op(values, number)
    except OverflowError:
        for u in (v, A):
            with pytest.raises(OverflowError, match="apply: .*: expected a number that .*int"):
                sg.apply(u, function, **side)
        return
    made = sg.apply(v, function, **side)
    assert made.dtype == expected.dtype
    assert np.array_equal(made.to_numpy(), expected)
    made = (number * A) if left else (A + number)
    assert made.dtype == expected.dtype
    assert np.array_equal(made.to("cpu").expanded_values(), expected)


def test_numpys_numbers_are_strong(device: str) -> None:
    v = sg.Vector.from_dense(np.array([1, 2], np.int8)).to(device)
    w = v.astype(np.float32)
    assert (v * np.int64(2)).dtype == np.int64 and (v * 2).dtype == np.int8
    assert (w * np.float64(2)).dtype == np.float64 and (w * 2.0).dtype == np.float32
    assert (v.astype(bool) * 1).dtype == np.int64 and (v.astype(bool) * 0.5).dtype == np.float64
    assert (v + np.int16(1)).dtype == np.int16


def test_fills_of_a_union_are_weak(device: str) -> None:
    u = sg.Vector.from_coo([0, 1], np.array([100, 2], np.int8), size=3).to(device)
    v = sg.Vector.from_coo([1, 2], np.array([1, 5], np.int8), size=3).to(device)
    made = sg.ewise_union(u, v, binary.minus, left=1, right=-1)
    assert made.dtype == np.int8 and made.to_numpy().tolist() == [101, 1, -4]
    assert (u.astype(bool) - v.astype(bool)).dtype == np.int64
    assert (u.astype(bool) - v.astype(bool)).to_numpy().tolist() == [1, 0, -1]
    assert sg.ewise_union(u, v, left=0.5, right=0.5).dtype == np.float64
    with pytest.raises(OverflowError, match="ewise_union: left: expected a number that int8 holds"):
        sg.ewise_union(u, v, binary.minus, left=300)


# --- comparisons are exact ------------------------------------------------------------------------


def exactly(test: str, x: Any, number: Any, dtype: np.dtype) -> bool:
    """By Python's exact comparisons; a Python float beside floats takes their type."""
    if dtype.kind == "f" and type(number) is float:
        with np.errstate(over="ignore"):
            near = dtype.type(number).item()
        number = near if math.isfinite(near) or not math.isfinite(number) else number
    number = number.item() if isinstance(number, np.generic) else number
    if all(isinstance(each, int) or math.isfinite(each) for each in (x, number)):
        x, number = Fraction(x), Fraction(number)
    return getattr(operator, test)(x, number)


strong = st.sampled_from(TYPES).flatmap(values_of).map(lambda values: values[0])


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_thresholds_tell_apart_what_the_numbers_do(data: Any) -> None:
    dtype = data.draw(st.sampled_from(TYPES))
    values = data.draw(values_of(dtype))
    test = data.draw(st.sampled_from(TESTS))
    number = data.draw(st.one_of(numbers, strong, st.just(10**400), st.just(-(10**400))))
    found, scalar = compared(test, number, dtype)
    assert scalar.dtype == dtype
    with np.errstate(invalid="ignore"):
        made = getattr(operator, found)(values, scalar)
    assert made.tolist() == [exactly(test, x, number, dtype) for x in values.tolist()]


# the thresholds of all types and tests are compared above; here those of a whole and of a real type
# are, by tests that have the others as their mirrors: each of a type is five kernels to compile
@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([("int8", "lt"), ("float32", "eq")]),
    st.one_of(numbers, st.just(10**400)),
    st.data(),
)
def test_operators_and_select_compare_exactly(
    case: tuple[str, str], number: Any, data: Any
) -> None:
    dtype, test = np.dtype(case[0]), case[1]
    values = data.draw(values_of(dtype))
    v = sg.Vector.from_dense(values)
    A = sg.Matrix.from_coo(np.arange(values.size), np.arange(values.size), values)
    truth = [exactly(test, x, number, dtype) for x in values.tolist()]
    compare, op = getattr(operator, test), getattr(binary, test)
    mirror = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}.get(test, test)
    for made in (
        compare(v, number),
        getattr(operator, mirror)(number, v),
        sg.apply(v, op, right=number),
        sg.apply(v, getattr(binary, mirror), left=number),
        sg.apply(v, getattr(indexunary, f"value{test}"), right=number),
        sg.Vector.from_dense(compare(A, number).expanded_values()),
    ):
        assert made.dtype == bool and made.to_numpy().tolist() == truth
    kept = np.flatnonzero(truth).tolist()
    assert sg.select(v, getattr(indexunary, f"value{test}"), number).to_coo()[0].tolist() == kept
    assert sg.select(A, getattr(indexunary, f"value{test}"), number).to_coo()[1].tolist() == kept


def test_comparisons_never_raise(device: str) -> None:
    v = sg.Vector.from_dense(np.array([-128, 1, 127], np.int8)).to(device)
    big = sg.Vector.from_dense(np.array([0, 2**63, 2**64 - 1], np.uint64)).to(device)
    for u, test, number, expected in (
        (v, operator.gt, 300, [False] * 3),
        (v, operator.lt, 300, [True] * 3),
        (v, operator.ne, 10**400, [True] * 3),
        (v, operator.ge, -math.inf, [True] * 3),
        (v, operator.le, math.nan, [False] * 3),
        (v, operator.gt, 0.5, [False, True, True]),
        (v, operator.eq, np.uint64(2**64 - 128), [False] * 3),
        (big, operator.lt, 2.0**64, [True] * 3),
        (big, operator.ge, -1, [True] * 3),
        (big, operator.gt, np.int64(-1), [True] * 3),
        (big, operator.eq, 2**64 - 1, [False, False, True]),
        (big, operator.lt, float(2**64 - 1), [True] * 3),
    ):
        assert test(u, number).to_numpy().tolist() == expected
        G = sg.Matrix.empty(3, 3, bool, device=device).distribute(2, devices=device)
        assert test(u.to(G.device), number).to_numpy().tolist() == expected
    islt = sg.apply(v, binary.islt, right=300)
    assert islt.dtype == np.int8 and islt.to_numpy().tolist() == [1, 1, 1]
    assert sg.apply(v, binary.islt, left=0.5).dtype == np.float64


@pytest.mark.parametrize(
    "name", ["tril", "triu", "diag", "offdiag", "colle", "colgt", "rowle", "rowgt"]
)
@pytest.mark.parametrize(
    "number", [0, -1, 0.5, -0.5, 10**30, -(10**30), math.inf, -math.inf, math.nan, np.uint64(2**63)]
)
def test_positions_compare_exactly(name: str, number: Any, device: str) -> None:
    A = sg.Matrix.from_dense(np.ones((3, 3), np.int8)).to(device)
    of = {"t": lambda i, j: j - i, "d": lambda i, j: j - i, "o": lambda i, j: j - i}
    place = of.get(name[0], (lambda i, j: j) if name.startswith("col") else (lambda i, j: i))
    tests = {"tril": "le", "triu": "ge", "diag": "eq", "offdiag": "ne"}
    test = getattr(operator, tests.get(name, name[-2:]))
    plain = number.item() if isinstance(number, np.generic) else number
    expected = {(i, j) for i in range(3) for j in range(3) if test(place(i, j), plain)}
    found = sg.select(A, getattr(indexunary, name), number).to("cpu")
    assert {(i, j) for i, j, _ in found} == expected


def test_positions_are_integers_of_64_bits() -> None:
    v = sg.Vector.from_dense([1, 2])
    with pytest.raises(DomainMismatch, match=r"apply: thunk: .* indexunary.rowindex, got 0.5"):
        sg.apply(v, indexunary.rowindex, right=0.5)
    with pytest.raises(OverflowError, match="apply: thunk: expected a number that int64 holds"):
        sg.apply(v, indexunary.rowindex, right=2**63)


# --- numbers that are written ---------------------------------------------------------------------


# numbers are looked at before anybody asks where they go: Matrices of all types are more kernels
@pytest.mark.parametrize(
    ("dtype", "matrix"),
    [
        pytest.param(
            *(dtype, matrix),
            marks=pytest.mark.full if matrix and dtype.name not in ("int8", "float64") else (),
        )
        for dtype in TYPES
        for matrix in (False, True)
    ],
    ids=str,
)
def test_numbers_that_are_written(dtype: np.dtype, matrix: bool, device: str) -> None:
    start = np.zeros(2, dtype)
    w: Any = sg.Vector.from_dense(start).to(device)
    w = sg.Matrix.from_dense([start], missing=None).to(device) if matrix else w
    at: Any = (0, 1) if matrix else 1

    @settings(max_examples=40, deadline=None)
    @given(st.one_of(numbers, strong))
    def check(number: Any) -> None:
        z = w.dup()
        python = type(number) in (bool, int, float)
        kind = "f" if isinstance(number, float | np.floating) else "i"
        if python:
            refused = kind == "f" and dtype.kind != "f"
        else:
            refused = not np.can_cast(number.dtype, dtype, "same_kind")
        plain = number if python else number.item()
        if refused:
            with pytest.raises(DomainMismatch, match="assign: value: expected"):
                z[at] = number
        elif dtype.kind != "f" and not limits(dtype)[0] <= plain <= limits(dtype)[1]:
            with pytest.raises(OverflowError, match="assign: value: expected a number that"):
                z[at] = number
        else:
            with np.errstate(over="ignore"):
                expected = dtype.type(plain)
                z[at] = number
            assert z.dtype == dtype and (z[at] == expected or expected != expected)
            return
        assert z.isequal(w, check_dtype=True)

    check()


def test_numpys_numbers_that_are_combined_keep_their_type(device: str) -> None:
    w = sg.Vector.from_dense(np.array([100, 1], np.int8)).to(device)
    with pytest.raises(OverflowError, match="assign: expected values from -128 to 127"):
        sg.assign(w, np.int64(100), accum=binary.plus)
    assert w.to_numpy().tolist() == [100, 1]
    assert sg.assign(w, np.int64(27), accum=binary.plus).to_numpy().tolist() == [127, 28]
    # int8 with int8 wraps around, as NumPy's does
    assert sg.assign(w, 1, accum=binary.plus).to_numpy().tolist() == [-128, 29]


# --- conversions ----------------------------------------------------------------------------------


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_dtype_of_from_coo_converts_or_raises(data: Any) -> None:
    before, target = data.draw(st.sampled_from(PAIRS))
    values = data.draw(values_of(before))
    ids = np.arange(values.size)

    def held(x: Any) -> bool:
        if target.kind == "f":
            with np.errstate(over="ignore"):
                return not math.isfinite(x) or math.isfinite(target.type(x))
        return math.isfinite(x) and x == int(x) and limits(target)[0] <= x <= limits(target)[1]

    for given_, at in ((values, ids), (values[0], ids)):
        for make in (
            lambda x, at: sg.Vector.from_coo(at, x, dtype=target).to_coo()[1],
            lambda x, at: sg.Matrix.from_coo(at, at, x, dtype=target).to_coo()[2],
        ):
            if before != target and not all(held(x) for x in np.ravel(given_).tolist()):
                with pytest.raises(ValueError, match=f"values: .* numbers that {target} holds"):
                    make(given_, at)
            else:
                expected = np.broadcast_to(np.asarray(given_, before), at.shape).astype(target)
                made = make(given_, at)
                assert made.dtype == target and np.array_equal(
                    made, expected, equal_nan=target.kind == "f"
                )


def test_semirings_over_truths_take_any_start() -> None:
    A = sg.Matrix.from_coo([0, 1], [1, 2], nrows=3, ncols=3)
    from spgraph.iterations import search
    from spgraph.iterations.fixed_point import closure, composed
    from spgraph.semirings import min_first, min_secondi

    start = sg.Vector.from_coo([0], [2.5], size=3)
    for loop in (closure, composed):
        assert loop(A, start, lor_land).to_numpy(fill=False).tolist() == [True] * 3
    with pytest.raises(DomainMismatch, match="search: expected values of a type .* got float64"):
        search(A, start, min_secondi)
    with pytest.raises(OverflowError, match="search: expected values from -2147483648 to"):
        search(A, sg.Vector.from_coo([0], [2**40], size=3), min_secondi)
    assert search(A, start, min_first).value.to_numpy().tolist() == [2.5] * 3


def test_users_operators_widen_and_are_checked() -> None:
    add = BinaryOp.define(lambda x, y: x + y, "add")
    w = sg.Vector.from_dense(np.array([100, 1], np.int8))
    with pytest.raises(OverflowError, match="assign: expected values from -128 to 127"):
        sg.assign(w, sg.Vector.from_dense(np.array([100, 1], np.int8)), accum=add)
    assert w.to_numpy().tolist() == [100, 1]


def test_makers_of_vectors_hold_their_number(device: str) -> None:
    A = sg.Matrix.empty(300, 300, bool, device=device)
    for where in (device, A.distribute(2, devices=device).device):
        for make in (
            lambda x, dtype: sg.Vector.unit(2, x, size=300, dtype=dtype, device=where),  # noqa: B023
            lambda x, dtype: sg.Vector.filled(x, size=300, dtype=dtype, device=where),  # noqa: B023
        ):
            for x, dtype in ((300, "int8"), (1.5, "int8"), (math.nan, "int64"), (2, "bool")):
                with pytest.raises(ValueError, match=f"value: expected .* that {dtype} holds, got"):
                    make(x, dtype)
            for x, dtype in ((np.int64(300), "int8"), (-1, "uint64"), (1e300, "float32")):
                with pytest.raises(ValueError, match=f"value: expected .* that {dtype} holds, got"):
                    make(x, dtype)
            for x, dtype in ((2.0, "int8"), (1, "bool"), (True, "int8"), (2**64 - 1, "uint64")):
                made = make(x, dtype)
                assert made.dtype == dtype and made.to("cpu").to_coo()[1][0] == x
            assert make(2**53 + 1, "float64").dtype == np.float64
            assert make(math.inf, "float32").to("cpu").to_coo()[1][0] == math.inf
        with pytest.raises(ValueError, match="size - 1: .* that int8 holds, got 299"):
            sg.Vector.arange(300, dtype=np.int8, device=where)
        assert sg.Vector.arange(300, dtype=np.int16, device=where)._value_range() == (0, 299)


def test_repeated_positions_are_combined_in_the_type_of_the_values(device: str) -> None:
    wide = BinaryOp.define(lambda x, y: x + y, "wide")
    small = np.array([100, 100, -90], np.int8)
    for make in (
        lambda op, x: sg.Vector.from_coo([1, 1, 1], x, dup_op=op, device=device).to_coo()[1],
        lambda op, x: (
            sg.Matrix.from_coo([1, 1, 1], [0, 0, 0], x, dup_op=op, device=device)
            .to("cpu")
            .to_coo()[2]
        ),
    ):
        with pytest.raises(DomainMismatch, match="from_coo: dup_op: .* same_kind.* got float"):
            make(binary.truediv, small)
        assert make(wide, small)[0] == 110
        assert make(binary.plus, small)[0] == 110
        with pytest.raises(OverflowError, match="from_coo: dup_op: expected values from -128 to"):
            make(wide, abs(small))
        with pytest.raises(OverflowError, match="from_coo: dup_op: expected numbers that int8 hol"):
            make(binary.plus, abs(small))
        assert make(binary.truediv, small.astype(float))[0] == 1 / -90
