"""Operations on matrices against plain loops and python-graphblas, a pairwise cover, and any small
matrices that hypothesis thinks of.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import oracle
import pytest
from fixtures_device import device, matrix_entries  # noqa: F401
from hypothesis import given, settings
from hypothesis import strategies as st
from pairwise import pairwise

from spgraph import operations, semirings
from spgraph.backends.cpu.runtime import pool
from spgraph.containers import Matrix, Vector
from tests.operations.test_products import MASKS, consistent, draw, mask_of, name_of

Entries = dict[tuple[int, int], Any]
SHAPE, INNER = (13, 17), 11
# rows, columns: distinct in any order; repeated
DISTINCT, REPEATED = ([5, 0, 12, 3], [16, 2, 9]), ([5, 0, 5], [2, 9, 2])
ROW, COLUMN = 4, 7
OPERATIONS = ["ewise_add", "ewise_mult", "ewise_union", "unary", "left", "right", "index"]
OPERATIONS += ["select tril", "select value", "extract", "extract rows", "extract slices"]
OPERATIONS += ["transpose", "kronecker", "mxm plus_times", "mxm any_pair", "mxm max_first"]
ASSIGNMENTS = ["all", "scalar all", "region", "scalar region", "repeated", "scalar repeated"]
ASSIGNMENTS += ["row", "column", "slices"]
PARAMETERS: dict[str, list[Any]] = {
    "what": OPERATIONS + [f"assign {kind}" for kind in ASSIGNMENTS],
    "dtype": ["int64", "int8", "float32"],
    "mask": MASKS,
    "accum": [None, "minus"],
    "replace": [False, True],
    "iso": [False, True],
    "index": ["int32", "int64", "mixed"],
    "out_storage": ["given", None],
    "threads": [1, 2],
}


def possible(case: dict[str, Any]) -> dict[str, Any]:
    if case["what"].startswith("assign"):
        case = {**case, "out_storage": "given"}
    case = consistent(case)
    return {**case, "accum": "minus"} if "repeated" in case["what"] else case


# Kernels are compiled for the types of values and of indices: by default each type of values goes
# with one of indices, int64 and int32 in all cases of an operation but one, which has another.
INDEX = {"int64": "int32", "int8": "int64", "float32": "mixed"}
# what these sum is the business of the backends: tests/backends/test_multiply.py has all masks
FEW_MASKS = {
    "mxm any_pair": ["none", "value"],
    "mxm max_first": ["structure", "complement value"],
}


# these run the kernels of others, or differ in the calls that they are compiled with alone
INT64 = ["assign all", "assign scalar all", "assign scalar region", "assign repeated"]
INT64 += ["assign column", "assign slices", "extract rows", "extract slices"]
INT64 += ["ewise_mult", "select tril", "index", "mxm max_first"]


def by_default() -> list[dict[str, Any]]:
    cases, seen = [], dict.fromkeys(PARAMETERS["what"], 0)
    others = {what: k for k, what in enumerate(PARAMETERS["what"])}
    tied = ("dtype", "index")
    for case in pairwise({k: v for k, v in PARAMETERS.items() if k not in tied}, seed=2):
        what = case["what"]
        if case["mask"] not in FEW_MASKS.get(what, MASKS):
            continue
        turn = others[what] % len(FEW_MASKS.get(what, MASKS))
        other = seen[what] == turn and what not in INT64
        dtype = ("int8", "float32")[others[what] % 2] if other else "int64"
        seen[what] += 1
        cases.append(possible({**case, "dtype": dtype, "index": INDEX[dtype]}))
    return cases


CASES = by_default()
FREE = [
    pytest.param(possible(case), marks=pytest.mark.full) for case in pairwise(PARAMETERS, seed=2)
]


@pytest.mark.parametrize("case", [*CASES, *FREE], ids=name_of)
def test_cover(case: dict[str, Any], device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "threads_for", lambda work, *share: case["threads"])
    check(case, device, *drawn(case))


def drawn(case: dict[str, Any]) -> list[Entries]:
    """A, B, out and the mask's matrix of a case."""
    chance = np.random.default_rng(zlib.crc32(name_of(case).encode()))
    shapes = shapes_of(case["what"])
    return [
        draw_matrix(chance, shape, case["dtype"], case["iso"] and k < 2)
        for k, shape in enumerate(shapes)
    ]


def draw_matrix(
    chance: np.random.Generator, shape: tuple[int, int], dtype: str, iso: bool
) -> Entries:
    present = chance.random(shape) < chance.choice([0.05, 0.3, 0.6])
    present[chance.integers(0, shape[0])] = False
    positions = [(int(i), int(j)) for i, j in zip(*np.nonzero(present), strict=True)]
    values = (
        [oracle.cast(2, dtype)] * len(positions) if iso else draw(chance, len(positions), dtype)
    )
    return dict(zip(positions, values, strict=True))


def shapes_of(what: str) -> list[tuple[int, int]]:
    """The shapes of A, B, and of out and mask."""
    first, second = SHAPE, SHAPE
    if what.startswith("mxm"):
        second = (SHAPE[1], INNER)
    if what == "kronecker":
        first, second = (3, 4), (2, 3)
    if what.startswith("assign"):
        second = region_shape(what)
    result = {
        "extract": (len(REPEATED[0]), len(REPEATED[1])),
        "extract rows": (len(REPEATED[0]), SHAPE[1]),
        "extract slices": (4, 6),
        "transpose": SHAPE[::-1],
        "kronecker": (6, 12),
    }.get(what, (SHAPE[0], INNER) if what.startswith("mxm") else SHAPE)
    return [first, second, result, result]


def regions(what: str) -> tuple[Any, Any]:
    """The rows and columns of an operation, as arguments."""
    kind = what.removeprefix("assign ").removeprefix("scalar ")
    if what.startswith("extract"):
        kind = {"extract": "repeated", "extract rows": "rows", "extract slices": "slices"}[what]
    return {
        "all": (None, None),
        "region": DISTINCT,
        "repeated": REPEATED,
        "rows": (REPEATED[0], None),
        "row": (ROW, None),
        "column": (None, COLUMN),
        "slices": (slice(2, 10, 2), slice(13, 1, -2)),
    }[kind]


def listed(what: str) -> tuple[list[int], list[int]]:
    """The same as lists of ids."""
    lists = []
    for part, size in zip(regions(what), SHAPE, strict=True):
        ids = range(size)
        part = slice(None) if part is None else part
        lists.append(
            list(ids[part])
            if isinstance(part, slice)
            else part
            if isinstance(part, list)
            else [part]
        )
    return lists[0], lists[1]


def region_shape(what: str) -> tuple[int, int]:
    rows, columns = listed(what)
    return len(rows), len(columns)


def check(
    case: dict[str, Any],
    device: str,
    a: Entries,
    b: Entries,
    out: Entries,
    m: Entries,
    *,
    peer: bool = True,
) -> None:
    what, dtype, accum, replace = case["what"], case["dtype"], case["accum"], case["replace"]
    shapes = shapes_of(what)
    kind = np.dtype(np.int64) if what == "index" else np.dtype(dtype)
    if what.startswith("mxm"):
        kind = oracle.product_type(*what.split()[1].split("_"), dtype, dtype)
    given = case["out_storage"] is not None
    may = oracle.allowed(shapes[2], case["mask"], m)
    expected = reference(case, a, b, out if given else {}, may, dtype if given else kind)

    made = [
        library_matrix(x, shape, case, device)
        for x, shape in zip((a, b, out, m), shapes, strict=True)
    ]
    A, B, C, M = made
    operator = accum and getattr(semirings.binary, accum)
    mask = None if case["mask"] == "none" else mask_of(case["mask"], M)
    options: dict[str, Any] = {"mask": mask, "accum": operator, "replace": replace}
    if what.startswith("assign"):
        rows, columns = regions(what)
        value: Any = 4 if "scalar" in what else B
        if what in ("assign row", "assign column"):
            value = Vector.from_coo(
                [max(key) for key in sorted(b)],
                [b[key] for key in sorted(b)],
                size=max(shapes[1]),
                dtype=dtype,
            ).to(device)
        assert operations.assign(C, value, rows, columns, **options) is C
        result = C
    else:
        result = called(what, A, B, {**options, "out": C if given else None})
        assert (result is C) == given
        assert result.dtype == (dtype if given else kind)
    canonical(result)
    assert matrix_entries(result) == expected
    if peer and device == "cpu" and "repeated" not in what and what != "index":
        assert graphblas(case, a, b, out, m, shapes) == expected


def canonical(A: Matrix) -> None:
    """Offsets that ascend from 0 to the number of entries; columns that ascend in each row."""
    A = A.to("cpu")
    indptr, indices = A.indptr.astype(np.int64), A.indices.astype(np.int64)
    assert indptr[0] == 0 and indptr[-1] == indices.size and indptr.size == A.nrows + 1
    assert (np.diff(indptr) >= 0).all()
    assert A.values.size == (1 if A.iso else indices.size)
    rows = np.repeat(np.arange(A.nrows), np.diff(indptr))
    assert (np.diff(rows * max(A.ncols, 1) + indices) > 0).all()


def library_matrix(a: Entries, shape: tuple[int, int], case: dict[str, Any], device: str) -> Matrix:
    keys, dtype = sorted(a), case["dtype"]
    iso = case["iso"] and len(set(a.values())) == 1
    A = Matrix.from_coo(
        np.array([i for i, _ in keys], np.int64),
        np.array([j for _, j in keys], np.int64),
        np.dtype(dtype).type(next(iter(a.values()))) if iso else [a[key] for key in keys],
        nrows=shape[0],
        ncols=shape[1],
        dtype=dtype,
    )
    offsets, ids = {"mixed": ("int64", "int32")}.get(case["index"], (case["index"],) * 2)
    arrays = A.indptr.astype(offsets), A.indices.astype(ids), A.values
    return Matrix._of(*shape, *arrays, iso=A.iso).to(device)


def reference(
    case: dict[str, Any], a: Entries, b: Entries, out: Entries, may: set[Any], kind: Any
) -> Entries:
    what, dtype, accum, replace = case["what"], case["dtype"], case["accum"], case["replace"]
    if not what.startswith("assign"):
        return oracle.write(out, computed(what, dtype, a, b), may, accum, replace, kind)
    rows, columns = listed(what)
    if "scalar" in what:
        b = {(k, m): 4 for k in range(len(rows)) for m in range(len(columns))}
    z, inside = dict(out), {(i, j) for i in rows for j in columns}
    if accum is None:
        z = {at: x for at, x in out.items() if at not in inside}
    for k, i in enumerate(rows):
        for m, j in enumerate(columns):
            if (k, m) in b:
                x = b[k, m]
                old = z.get((i, j))
                z[i, j] = oracle.cast(
                    x if old is None or accum is None else oracle.call(accum, dtype, old, x), dtype
                )
    return oracle.write(out, z, may, None, replace, dtype)


def computed(what: str, dtype: str, a: Entries, b: Entries) -> Entries:
    call = oracle.call
    if what.startswith("ewise"):
        both = {at: call("minus", dtype, a[at], b[at]) for at in a.keys() & b.keys()}
        if what == "ewise_mult":
            return both
        if what == "ewise_add":
            return a | b | both
        left = {at: call("minus", dtype, x, 5) for at, x in a.items()}
        right = {at: call("minus", dtype, 3, x) for at, x in b.items()}
        return left | right | both
    simple = {
        "unary": lambda at, x: oracle.cast(-x, dtype),
        "left": lambda at, x: call("minus", dtype, 4, x),
        "right": lambda at, x: call("minus", dtype, x, 4),
        "index": lambda at, x: at[1] + 2,
    }
    if what in simple:
        return {at: simple[what](at, x) for at, x in a.items()}
    if what == "select tril":
        return {(i, j): x for (i, j), x in a.items() if j <= i - 1}
    if what == "select value":
        return {at: x for at, x in a.items() if x > 1}
    if what == "transpose":
        return {(j, i): x for (i, j), x in a.items()}
    if what == "kronecker":
        return {
            (i * 2 + k, j * 3 + m): call("minus", dtype, x, y)
            for (i, j), x in a.items()
            for (k, m), y in b.items()
        }
    if what.startswith("mxm"):
        add, multiply = what.split()[1].split("_")
        found: dict[tuple[int, int], list[Any]] = {}
        for (i, k), x in sorted(a.items()):
            for (m, j), y in sorted(b.items()):
                if k == m:
                    found.setdefault((i, j), []).append(call(multiply, dtype, x, y))
        return {at: oracle.total(add, dtype, values) for at, values in found.items()}
    rows, columns = listed(what)
    return {
        (k, m): a[i, j] for k, i in enumerate(rows) for m, j in enumerate(columns) if (i, j) in a
    }


def called(what: str, A: Matrix, B: Matrix, options: dict[str, Any]) -> Matrix:
    binary = semirings.binary
    if what == "ewise_union":
        return operations.ewise_union(A, B, binary.minus, left=3, right=5, **options)
    if what.startswith("ewise"):
        return getattr(operations, what)(A, B, binary.minus, **options)
    if what == "unary":
        return operations.apply(A, semirings.unary.ainv, **options)
    if what in ("left", "right"):
        return operations.apply(A, binary.minus, **{what: 4}, **options)
    if what == "index":
        return operations.apply(A, semirings.indexunary.colindex, right=2, **options)
    if what == "select tril":
        return operations.select(A, semirings.indexunary.tril, -1, **options)
    if what == "select value":
        return operations.select(A, semirings.indexunary.valuegt, 1, **options)
    if what == "transpose":
        return operations.transpose(A, **options)
    if what == "kronecker":
        return operations.kronecker(A, B, binary.minus, **options)
    if what.startswith("mxm"):
        return operations.mxm(A, B, getattr(semirings, what.split()[1]), **options)
    return operations.extract(A, *regions(what), **options)


def graphblas(
    case: dict[str, Any],
    a: Entries,
    b: Entries,
    out: Entries,
    m: Entries,
    shapes: list[tuple[int, int]],
) -> Entries:
    """The same by SuiteSparse:GraphBLAS."""
    gb = pytest.importorskip("graphblas")
    what, dtype = case["what"], case["dtype"]

    def matrix(x: Entries, shape: tuple[int, int]) -> Any:
        rows, columns = [i for i, _ in x], [j for _, j in x]
        return gb.Matrix.from_coo(
            rows, columns, list(x.values()), dtype=dtype, nrows=shape[0], ncols=shape[1]
        )

    A, B, C, M = (matrix(x, shape) for x, shape in zip((a, b, out, m), shapes, strict=True))
    options: dict[str, Any] = {}
    if case["mask"] != "none":
        options["mask"] = mask_of(case["mask"], M)
    if case["accum"]:
        options["accum"] = getattr(gb.binary, case["accum"])[dtype]
    replace = case["replace"] and case["mask"] != "none"
    if what.startswith("assign"):
        region, value = gb_assignment(what, B, case["mask"] != "none")
        C(replace=replace, **options)[region] << value
        return matrix_dict(C)
    expression = gb_expression(what, dtype, A, B)
    if case["out_storage"] is None:
        return matrix_dict(expression.new(**options))
    C(replace=replace, **options) << expression
    return matrix_dict(C)


def gb_assignment(what: str, B: Any, masked: bool) -> tuple[tuple[Any, ...], Any]:
    """(region, value) of an assign."""
    value: Any = 4 if "scalar" in what else B
    if what == "assign row":
        value = B[0, :].new()
    if what == "assign column":
        value = B[:, 0].new()
    region = tuple(slice(None) if part is None else part for part in regions(what))
    if what in ("assign row", "assign column") and masked:
        # GrB_Row_assign's mask is of the row alone: the same as a matrix of one row
        region = tuple([part] if isinstance(part, int) else part for part in region)
        value = B
    return region, value


def gb_expression(what: str, dtype: str, A: Any, B: Any) -> Any:
    """The result of another operation, not computed yet."""
    import graphblas as gb

    minus = gb.binary.minus[dtype]
    expression = {
        "ewise_add": lambda: A.ewise_add(B, minus),
        "ewise_mult": lambda: A.ewise_mult(B, minus),
        "ewise_union": lambda: A.ewise_union(B, minus, 3, 5),
        "unary": lambda: A.apply(gb.unary.ainv),
        "left": lambda: A.apply(minus, left=4),
        "right": lambda: A.apply(minus, right=4),
        "select tril": lambda: A.select(gb.select.tril, -1),
        "select value": lambda: A.select(
            gb.select.valuegt[dtype], gb.Scalar.from_value(1, dtype=dtype)
        ),
        "transpose": lambda: A.T,
        "kronecker": lambda: A.kronecker(B, minus),
    }.get(what)
    if expression is not None:
        return expression()
    if what.startswith("mxm"):
        return getattr(gb.semiring, what.split()[1])[dtype](A @ B)
    return A[tuple(slice(None) if part is None else part for part in regions(what))]


def matrix_dict(C: Any) -> Entries:
    rows, columns, values = (a.tolist() for a in C.to_coo())
    return dict(zip(zip(rows, columns, strict=True), values, strict=True))


@st.composite
def situations(draw: Any) -> tuple[dict[str, Any], list[Entries]]:
    case = {key: draw(st.sampled_from(values)) for key, values in PARAMETERS.items()}
    if case["what"] in FEW_MASKS:
        case["mask"] = draw(st.sampled_from(FEW_MASKS[case["what"]]))
    case = possible({**case, "dtype": "int64", "index": INDEX["int64"], "iso": False})
    matrices = []
    for nrows, ncols in shapes_of(case["what"]):
        at = st.tuples(st.integers(0, nrows - 1), st.integers(0, ncols - 1))
        matrices.append(draw(st.dictionaries(at, st.integers(-3, 3), max_size=nrows * ncols)))
    return case, matrices


@settings(max_examples=300)
@given(situations())
def test_any_matrices(situation: tuple[dict[str, Any], list[Entries]]) -> None:
    case, matrices = situation
    check(case, "cpu", *matrices, peer=False)
