"""Operations on vectors alone against plain loops and python-graphblas, a pairwise cover."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import oracle
import pytest
from fixtures_device import device, entries  # noqa: F401
from hypothesis import given, settings
from hypothesis import strategies as st
from pairwise import pairwise

import spgraph as sg
from spgraph import operations, semirings
from spgraph.backends.cpu.runtime import pool
from spgraph.containers import Vector
from tests.operations.test_products import (
    MASKS,
    STORAGES,
    consistent,
    draw_vector,
    make_vector,
    mask_of,
    name_of,
)

SIZE = 70
INDICES = [5, 0, 69, 33, 33, 7, 64, 12]
DISTINCT = [5, 0, 69, 33, 7, 64, 12]
WHAT = [
    "ewise_add",
    "ewise_mult",
    "unary",
    "left",
    "right",
    "index",
    "select",
    "extract",
    "extract slice",
    "assign",
    "assign scalar",
    "assign indices",
    "assign scalar indices",
    "assign repeated",
    "assign slice",
]
PARAMETERS: dict[str, list[Any]] = {
    "what": WHAT,
    "dtype": ["int64", "int8", "float32"],
    "mask": MASKS,
    "accum": [None, "minus"],
    "replace": [False, True],
    "storage": STORAGES,
    "other_storage": STORAGES,
    "out_storage": ["sparse", "bitmap", "full", None],
    "mask_storage": STORAGES,
    "threads": [1, 2],
}


def possible(case: dict[str, Any]) -> dict[str, Any]:
    if case["what"].startswith("assign"):
        case = {**case, "out_storage": case["out_storage"] or "bitmap"}
    case = consistent(case)
    if case["what"] == "assign repeated":
        case = {**case, "accum": case["accum"] or "minus"}
    return case


# Kernels are compiled for the types of values: by default int64 in all cases of an operation but
# one; those that assign by the same kernels as others have no other type.
INT64 = ["assign slice", "assign indices", "assign scalar"]


def by_default() -> list[dict[str, Any]]:
    cases, seen = [], dict.fromkeys(WHAT, 0)
    for case in pairwise({k: v for k, v in PARAMETERS.items() if k != "dtype"}, seed=1):
        turn, what = WHAT.index(case["what"]), case["what"]
        other = seen[what] == turn % 4 and what not in INT64
        seen[what] += 1
        dtype = ("int8", "float32")[turn % 2] if other else "int64"
        cases.append(possible({**case, "dtype": dtype}))
    return cases


CASES = by_default()
FREE = [
    pytest.param(possible(case), marks=pytest.mark.full) for case in pairwise(PARAMETERS, seed=1)
]


@pytest.mark.parametrize("case", [*CASES, *FREE], ids=name_of)
def test_cover(case: dict[str, Any], device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "threads_for", lambda work, *share: case["threads"])
    chance = np.random.default_rng(zlib.crc32(name_of(case).encode()))
    check(
        case,
        device,
        *(draw_vector(chance, SIZE, case[key] or "sparse", case["dtype"]) for key in FOUR),
    )


FOUR = ("storage", "other_storage", "out_storage", "mask_storage")


@st.composite
def situations(draw: Any) -> tuple[dict[str, Any], list[dict[int, Any]]]:
    case = {key: draw(st.sampled_from(values)) for key, values in PARAMETERS.items()}
    case = possible({**case, "dtype": "int64", "out_storage": draw(st.sampled_from(STORAGES))})
    vectors = [
        draw(st.dictionaries(st.integers(0, SIZE - 1), st.integers(-3, 3), max_size=SIZE))
        if case[key] != "full"
        else dict(enumerate(draw(st.lists(st.integers(-3, 3), min_size=SIZE, max_size=SIZE))))
        for key in FOUR
    ]
    return case, vectors


@settings(max_examples=300)
@given(situations())
def test_any_vectors(situation: tuple[dict[str, Any], list[dict[int, Any]]]) -> None:
    case, vectors = situation
    check(case, "cpu", *vectors, peer=False)


def check(
    case: dict[str, Any],
    device: str,
    u: dict[int, Any],
    v: dict[int, Any],
    out: dict[int, Any],
    m: dict[int, Any],
    *,
    peer: bool = True,
) -> None:
    what, dtype, accum, replace = case["what"], case["dtype"], case["accum"], case["replace"]
    t, size, region = reference(what, dtype, u, v)
    kind = np.dtype("int64") if what == "index" else np.dtype(dtype)
    out, m, w_given = cut(out, size), cut(m, size), case["out_storage"] is not None
    may = oracle.allowed(size, case["mask"], m)
    if what == "assign repeated":
        expected = repeated(out, v, may, accum, replace, dtype)
    elif accum is None and region is not None:
        # assign to some positions: the others keep their entries
        whole = {i: x for i, x in out.items() if i not in region} | t
        expected = oracle.write(out, whole, may, None, replace, dtype)
    else:
        expected = oracle.write(
            out if w_given else {}, t, may, accum, replace, dtype if w_given else kind
        )

    def vector(values: dict[int, Any], key: str, length: int) -> Vector:
        return make_vector(values, length, case[key], dtype, device)

    mask = mask_of(case["mask"], vector(m, "mask_storage", size))
    operator = accum and getattr(semirings.binary, accum)
    options: dict[str, Any] = {"mask": mask, "accum": operator, "replace": replace}
    w = vector(out, "out_storage", size) if w_given else None
    if what.startswith("assign"):
        assert w is not None
        given = (
            4 if "scalar" in what else vector(value_of(what, v), "other_storage", length_of(what))
        )
        assert operations.assign(w, given, indices_of(what), **options) is w
        result = w
    else:
        result = called(
            what,
            vector(u, "storage", SIZE),
            vector(v, "other_storage", SIZE),
            {**options, "out": w},
        )
        assert result is w or w is None
        assert result.dtype == (dtype if w_given else kind)
    assert entries(result) == expected
    if peer and what not in ("assign repeated", "extract slice", "assign slice"):
        assert graphblas(case, u, v, out, m, size) == expected


def cut(values: dict[int, Any], size: int) -> dict[int, Any]:
    return {i: x for i, x in values.items() if i < size}


def indices_of(what: str) -> Any:
    if "slice" in what:
        return slice(60, 2, -5)
    if "repeated" in what:
        return INDICES
    return DISTINCT if "indices" in what else None


def length_of(what: str) -> int:
    indices = indices_of(what)
    return (
        SIZE
        if indices is None
        else len(range(SIZE)[indices])
        if isinstance(indices, slice)
        else len(indices)
    )


def value_of(what: str, v: dict[int, Any]) -> dict[int, Any]:
    return cut(v, length_of(what))


def reference(
    what: str, dtype: str, u: dict[int, Any], v: dict[int, Any]
) -> tuple[dict[int, Any], int, set[int] | None]:
    """(result, its size, the positions assigned to or None for all)."""
    call = oracle.call
    if what == "ewise_add":
        both = {i: call("minus", dtype, u[i], v[i]) for i in u.keys() & v.keys()}
        return u | v | both, SIZE, None
    if what == "ewise_mult":
        return {i: call("minus", dtype, u[i], v[i]) for i in u.keys() & v.keys()}, SIZE, None
    if what == "unary":
        return {i: oracle.cast(-x, dtype) for i, x in u.items()}, SIZE, None
    if what == "left":
        return {i: call("minus", dtype, 4, x) for i, x in u.items()}, SIZE, None
    if what == "right":
        return {i: call("minus", dtype, x, 4) for i, x in u.items()}, SIZE, None
    if what == "index":
        return {i: i + 2 for i in u}, SIZE, None
    if what == "select":
        return {i: x for i, x in u.items() if x > 1}, SIZE, None
    if what in ("extract", "extract slice"):
        at = INDICES if what == "extract" else range(SIZE)[slice(60, 2, -5)]
        return {k: u[i] for k, i in enumerate(at) if i in u}, len(at), None
    if what == "assign scalar":
        return dict.fromkeys(range(SIZE), 4), SIZE, None
    if what == "assign":
        return v, SIZE, None
    at = range(SIZE)[indices_of(what)] if "slice" in what else indices_of(what)
    values = dict.fromkeys(range(len(at)), 4) if "scalar" in what else v
    return {i: values[k] for k, i in enumerate(at) if k in values}, SIZE, set(at)


def repeated(
    out: dict[int, Any], v: dict[int, Any], may: set[int], accum: str, replace: bool, dtype: str
) -> dict[int, Any]:
    z = dict(out)
    for k, i in enumerate(INDICES):
        if k in v:
            z[i] = oracle.call(accum, dtype, z[i], v[k]) if i in z else v[k]
    return oracle.write(out, z, may, None, replace, dtype)


def called(what: str, u: Vector, v: Vector, options: dict[str, Any]) -> Vector:
    binary = semirings.binary
    if what.startswith("ewise"):
        return getattr(operations, what)(u, v, binary.minus, **options)
    if what == "unary":
        return operations.apply(u, semirings.unary.ainv, **options)
    if what in ("left", "right"):
        return operations.apply(u, binary.minus, **{what: 4}, **options)
    if what == "index":
        return operations.apply(u, semirings.indexunary.rowindex, right=2, **options)
    if what == "select":
        return operations.select(u, semirings.indexunary.valuegt, 1, **options)
    return operations.extract(u, INDICES if what == "extract" else slice(60, 2, -5), **options)


def graphblas(
    case: dict[str, Any],
    u: dict[int, Any],
    v: dict[int, Any],
    out: dict[int, Any],
    m: dict[int, Any],
    size: int,
) -> dict[int, Any]:
    """The same by SuiteSparse:GraphBLAS."""
    gb = pytest.importorskip("graphblas")
    what, dtype = case["what"], case["dtype"]

    def vector(values: dict[int, Any], length: int) -> Any:
        return gb.Vector.from_coo(list(values), list(values.values()), dtype=dtype, size=length)

    options: dict[str, Any] = {}
    if case["mask"] != "none":
        options["mask"] = mask_of(case["mask"], vector(m, size))
    if case["accum"]:
        options["accum"] = getattr(gb.binary, case["accum"])
    minus, U, V = gb.binary.minus[dtype], vector(u, SIZE), vector(v, SIZE)
    if what.startswith("assign"):
        w = vector(out, size)
        value = 4 if "scalar" in what else vector(value_of(what, v), length_of(what))
        target = w(replace=case["replace"] and case["mask"] != "none", **options)
        target[indices_of(what) or slice(None)] << value
        return dict(zip(*(a.tolist() for a in w.to_coo()), strict=True))
    expression = {
        "ewise_add": lambda: U.ewise_add(V, minus),
        "ewise_mult": lambda: U.ewise_mult(V, minus),
        "unary": lambda: U.apply(gb.unary.ainv),
        "left": lambda: U.apply(minus, left=4),
        "right": lambda: U.apply(minus, right=4),
        "index": lambda: U.apply(gb.indexunary.rowindex, 2),
        # python-graphblas reads a Python 1 as an int64 whatever the type of the operator
        "select": lambda: U.select(gb.select.valuegt[dtype], gb.Scalar.from_value(1, dtype=dtype)),
        "extract": lambda: U[INDICES],
    }[what]()
    if case["out_storage"] is None:
        w = expression.new(**options)
    else:
        w = vector(out, size)
        w(replace=case["replace"] and case["mask"] != "none", **options) << expression
    return dict(zip(*(a.tolist() for a in w.to_coo()), strict=True))


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("plus", "bool"),
        ("plus", "int8"),
        ("plus", "uint8"),
        ("plus", "float64"),
        ("min", "float32"),
        ("max", "int64"),
        ("lor", "bool"),
        ("any", "int64"),
    ],
)
def test_reduce(name: str, dtype: str, storage: str, device: str) -> None:
    chance = np.random.default_rng(5)
    size = 3000
    values = draw_vector(chance, size, storage, dtype)
    result = operations.reduce(
        make_vector(values, size, storage, dtype, device), getattr(semirings.monoid, name)
    )
    kind = oracle.sum_type(name, dtype)
    assert result.dtype == kind
    if name == "any":
        assert int(result) in values.values()
    else:
        assert result == oracle.total(name, kind, list(values.values()))


def test_reduce_of_many_values_does_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).random(1 << 17).astype(np.float32)
    results = []
    for threads in (1, 2):
        monkeypatch.setattr(pool, "threads_for", lambda work, *share, threads=threads: threads)
        results.append(operations.reduce(Vector.from_dense(values)))
    assert results[0] == results[1]
    assert np.isclose(float(results[0]), values.sum(dtype=np.float64), rtol=1e-5)


def test_reduce_of_nothing_is_the_identity(device: str) -> None:
    v = Vector.empty(5, np.int32, device=device)
    assert operations.reduce(v) == 0
    assert operations.reduce(v, semirings.monoid.min) == np.iinfo(np.int32).max
    assert operations.reduce(v, semirings.monoid.times) == 1
    assert (
        operations.reduce(Vector.empty(0, np.float64, device=device), semirings.monoid.max)
        == -np.inf
    )


def test_minimum_omits_nan(device: str) -> None:
    minimum = semirings.monoid.min
    assert operations.reduce(Vector.from_dense([np.nan, 2.0, np.nan]).to(device), minimum) == 2.0
    assert operations.reduce(Vector.from_dense([np.nan, np.nan]).to(device), minimum) == np.inf


def test_user_defined_operator(device: str) -> None:
    def distance(x, y):  # type: ignore[no-untyped-def]
        return x - y if x > y else y - x

    op = semirings.BinaryOp.define(distance)
    u, v = (Vector.from_dense(np.array(values)).to(device) for values in ([1, 5, 9], [4, 4, 4]))
    assert operations.ewise_mult(u, v, op).to_numpy().tolist() == [3, 1, 5]
    assert operations.apply(u, op, right=6).to_numpy().tolist() == [5, 1, 3]


def test_int64_and_uint64_compare_exactly(device: str) -> None:
    """float64, which both promote to, has no 2**53 + 1; Python's integers are the oracle."""
    x = np.array([2**63 + 1, 2**53 + 1, 5, 0, 2**64 - 1, 2**63], np.uint64)
    y = np.array([-1, 2**53, 5, -(2**63), -1, 2**63 - 1], np.int64)
    u, v = (sg.Vector.from_dense(values).to(device) for values in (x, y))
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    assert (u > v).to_numpy().tolist() == [a > b for a, b in pairs]
    assert (v != u).to_numpy().tolist() == [a != b for a, b in pairs]
    larger = sg.select(u, semirings.indexunary.valuegt, np.int64(2**53))
    assert larger.to("cpu").to_coo()[0].tolist() == [0, 1, 4, 5]
    assert not u.isequal(v)
    assert not u[[1]].isequal(v[[1]]) and u[[2]].isequal(v[[2]])
    A, B = (sg.Matrix.from_coo([0], [0], w[1:2]).to(device) for w in (x, y))
    assert not A.isequal(B) and A.isequal(A.astype("int64"))
