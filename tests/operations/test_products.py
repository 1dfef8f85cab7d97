"""mxv and vxm against plain loops and against python-graphblas.

A pairwise cover of semiring x type x direction x mask x accum x replace x storage runs by default,
the whole product under the marker `full`."""

from __future__ import annotations

import itertools
import zlib
from typing import Any

import numpy as np
import oracle
import pytest
from fixtures_device import device, entries  # noqa: F401
from pairwise import pairwise

from spgraph import operations, semirings
from spgraph.backends.cpu.products import products
from spgraph.backends.cpu.runtime import pool
from spgraph.containers import Matrix, Vector

# a sum over all products, one that the first ends, one that a value ends, one of positions
SEMIRINGS = ["plus_times", "any_pair", "lor_land", "min_secondi"]
ALL_SEMIRINGS = [*SEMIRINGS, "min_plus", "max_first", "plus_pair", "max_times", "max_firstj"]
TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()
MASKS = ["none", "structure", "value", "complement structure", "complement value"]
STORAGES = ["sparse", "bitmap", "full"]
PARAMETERS: dict[str, list[Any]] = {
    "semiring": SEMIRINGS,
    "dtype": TYPES,
    "operation": ["mxv", "vxm"],
    "direction": ["push", "pull"],
    "mask": MASKS,
    "accum": [None, "plus"],
    "replace": [False, True],
    "storage": STORAGES,
    # the other storages of out: test_elements.py
    "out_storage": ["bitmap", None],
    "iso": [False, True],
    "index": ["int32", "int64"],
    "threads": [1, 2],
    "few": [False, True],
}


def name_of(case: dict[str, Any]) -> str:
    return "-".join(str(value).replace(" ", "_") for value in case.values())


def consistent(case: dict[str, Any]) -> dict[str, Any]:
    """accum and replace need an `out`."""
    return case if case["out_storage"] else {**case, "accum": None, "replace": False}


# Kernels are compiled for the semiring, the types of values and of indices: by default one type of
# each kind, which goes with one of indices.
INDEX = {"bool": "int32", "int64": "int32", "uint8": "int64", "float32": "int32"}
CASES = [
    consistent({**case, "index": INDEX[case["dtype"]]})
    for case in pairwise(
        {key: values for key, values in PARAMETERS.items() if key != "index"}
        | {"dtype": list(INDEX)}
    )
]
FREE = [pytest.param(consistent(case), marks=pytest.mark.full) for case in pairwise(PARAMETERS)]
WHOLE = {
    key: values
    for key, values in PARAMETERS.items()
    if key not in ("index", "threads", "few", "iso")
} | {"accum": [None, "plus", "second"], "out_storage": ["sparse", "bitmap", "full", None]}


def draw(chance: np.random.Generator, count: int, dtype: str) -> list[Any]:
    low = 0 if np.dtype(dtype).kind in "bu" else -3
    return [oracle.cast(value, dtype) for value in chance.integers(low, 6, count)]


def draw_vector(chance: np.random.Generator, size: int, storage: str, dtype: str) -> dict[int, Any]:
    share = {"sparse": 0.3, "bitmap": 0.6, "full": 1.1}[storage]
    positions = np.flatnonzero(chance.random(size) < share).tolist()
    return dict(zip(positions, draw(chance, len(positions), dtype), strict=True))


def make_vector(values: dict[int, Any], size: int, storage: str, dtype: str, device: str) -> Vector:
    v = Vector.from_coo(
        np.array(sorted(values), np.int64),
        [values[i] for i in sorted(values)],
        size=size,
        dtype=dtype,
    )
    v = v.to_sparse() if storage == "sparse" else v.to_bitmap()
    return v.to(device)


def mask_of(kind: str, v: Vector) -> Any:
    if kind == "none":
        return None
    mask = v.S if kind.endswith("structure") else v.V
    return ~mask if kind.startswith("complement") else mask


@pytest.mark.parametrize("case", [*CASES, *FREE], ids=name_of)
def test_cover(case: dict[str, Any], device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "threads_for", lambda work, *share: case["threads"])
    monkeypatch.setattr(products, "FEW", 0 if case["few"] else 1000)
    check(case, device)


@pytest.mark.full
@pytest.mark.parametrize("semiring", ALL_SEMIRINGS)
@pytest.mark.parametrize("dtype", TYPES)
def test_whole_product(semiring: str, dtype: str, device: str) -> None:
    rest = {key: values for key, values in WHOLE.items() if key not in ("semiring", "dtype")}
    for values in itertools.product(*rest.values()):
        case = dict(zip(rest, values, strict=True))
        whole = {"semiring": semiring, "dtype": dtype, "iso": False, "index": "int32", **case}
        check(consistent(whole), device)


def check(case: dict[str, Any], device: str) -> None:
    """One random product by the library, by the oracle and by python-graphblas."""
    chance = np.random.default_rng(zlib.crc32(name_of(case).encode()))
    dtype, left = case["dtype"], case["operation"] == "vxm"
    nrows, ncols = 37, 45
    size_in, size_out = (nrows, ncols) if left else (ncols, nrows)

    add, multiply = case["semiring"].split("_")
    kind = oracle.product_type(add, multiply, dtype, dtype, case["index"])
    present = chance.random((nrows, ncols)) < 0.12
    present[[3, 36]] = False
    rows, columns = np.nonzero(present)
    values = draw(chance, rows.size, dtype)
    if case["iso"]:
        values = [oracle.cast(1, dtype)] * rows.size
    a = dict(zip(zip(rows.tolist(), columns.tolist(), strict=True), values, strict=True))
    u = draw_vector(chance, size_in, case["storage"], dtype)
    m = draw_vector(chance, size_out, "bitmap", dtype)
    out = draw_vector(chance, size_out, case["out_storage"] or "sparse", kind.name)

    found = oracle.product(a, u, add, multiply, kind, left=left)
    may = oracle.allowed(size_out, case["mask"], m)
    t = {i: oracle.total(add, kind, values) for i, values in found.items()}
    expected = oracle.write(
        out if case["out_storage"] else {}, t, may, case["accum"], case["replace"], kind
    )

    A = library_matrix(a, (nrows, ncols), case, dtype).to(device)
    result = getattr(operations, case["operation"])(
        *((make_vector(u, size_in, case["storage"], dtype, device), A)[:: 1 if left else -1]),
        getattr(semirings, case["semiring"]),
        mask=mask_of(case["mask"], make_vector(m, size_out, "bitmap", dtype, device)),
        accum=case["accum"] and getattr(semirings.binary, case["accum"]),
        replace=case["replace"],
        out=make_vector(out, size_out, case["out_storage"], kind.name, device)
        if case["out_storage"]
        else None,
        direction=case["direction"],
    )
    assert result.dtype == np.dtype(kind)
    assert entries(result) == expected
    if np.dtype(dtype) != np.bool_ or case["semiring"] == "lor_land":
        assert graphblas(case, a, u, m, out, (nrows, ncols)) == expected


def library_matrix(
    a: dict[tuple[int, int], Any], shape: tuple[int, int], case: dict[str, Any], dtype: str
) -> Matrix:
    keys = sorted(a)
    A = Matrix.from_coo(
        [i for i, _ in keys],
        [j for _, j in keys],
        np.dtype(dtype).type(1) if case["iso"] else [a[key] for key in keys],
        nrows=shape[0],
        ncols=shape[1],
        dtype=dtype,
    )
    index = np.dtype(case["index"])
    return Matrix._of(*shape, A.indptr.astype(index), A.indices.astype(index), A.values, iso=A.iso)


def graphblas(
    case: dict[str, Any],
    a: dict[tuple[int, int], Any],
    u: dict[int, Any],
    m: dict[int, Any],
    out: dict[int, Any],
    shape: tuple[int, int],
) -> dict[int, Any]:
    """The same product by SuiteSparse:GraphBLAS."""
    gb = pytest.importorskip("graphblas")
    left, dtype = case["operation"] == "vxm", case["dtype"]
    size_in, size_out = shape if left else shape[::-1]

    def vector(values: dict[int, Any], size: int, kind: str = dtype) -> Any:
        return gb.Vector.from_coo(list(values), list(values.values()), dtype=kind, size=size)

    keys = list(a)
    A = gb.Matrix.from_coo(
        [i for i, _ in keys],
        [j for _, j in keys],
        list(a.values()),
        dtype=dtype,
        nrows=shape[0],
        ncols=shape[1],
    )
    semiring = getattr(
        gb.semiring.ss if case["semiring"][-1] in "ij" else gb.semiring,
        case["semiring"],
    )
    product = semiring(vector(u, size_in) @ A) if left else semiring(A @ vector(u, size_in))
    options: dict[str, Any] = {}
    if case["mask"] != "none":
        options["mask"] = mask_of(case["mask"], vector(m, size_out))
    if case["out_storage"]:
        kind = oracle.product_type(*case["semiring"].split("_"), dtype, dtype).name
        w = vector(out, size_out, kind)
        if case["accum"]:
            options["accum"] = getattr(gb.binary, case["accum"])
        w(replace=case["replace"] and case["mask"] != "none", **options) << product
    else:
        w = product.new(**options)
    indices, values = w.to_coo()
    return dict(zip(indices.tolist(), values.tolist(), strict=True))
