"""Containers, masks and aliasing over random sizes, index types, unsorted, repeated input."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracle
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from spgraph import operations
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import count_bits, pack_bits, unpack_bits, words
from spgraph.semirings import binary, plus_times

INDEX_TYPES = st.sampled_from(
    ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
)
SIZES = st.integers(0, 40)
VALUES = st.integers(-3, 3)


@st.composite
def coordinates(draw: Any) -> tuple[int, int, np.ndarray, np.ndarray, np.ndarray]:
    """(nrows, ncols, rows, columns, values): unsorted, with repeats, of any index type."""
    nrows, ncols = draw(SIZES), draw(SIZES)
    some = st.lists(
        st.tuples(st.integers(0, nrows - 1), st.integers(0, ncols - 1), VALUES), max_size=60
    )
    triples = draw(some) if nrows and ncols else []
    rows, columns, values = (np.array([t[k] for t in triples], np.int64) for k in range(3))
    return nrows, ncols, rows.astype(draw(INDEX_TYPES)), columns.astype(draw(INDEX_TYPES)), values


def summed(rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> dict[tuple[int, int], int]:
    entries: dict[tuple[int, int], int] = {}
    for i, j, x in zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True):
        entries[i, j] = entries.get((i, j), 0) + x
    return entries


def entries_of(A: Matrix) -> dict[tuple[int, int], int]:
    rows, columns, values = A.to_coo()
    return dict(
        zip(zip(rows.tolist(), columns.tolist(), strict=True), values.tolist(), strict=True)
    )


def check_canonical(A: Matrix) -> None:
    assert A.indptr.size == A.nrows + 1 and A.indptr[0] == 0 and A.indptr[-1] == A.nvals
    for i in range(A.nrows):
        assert (np.diff(A.indices[A.indptr[i] : A.indptr[i + 1]]) > 0).all()


@given(coordinates())
def test_matrix_from_coordinates(given: Any) -> None:
    nrows, ncols, rows, columns, values = given
    A = Matrix.from_coo(rows, columns, values, nrows=nrows, ncols=ncols, dup_op=binary.plus)
    check_canonical(A)
    assert A.shape == (nrows, ncols) and entries_of(A) == summed(rows, columns, values)
    pattern = Matrix.from_coo(rows, columns, nrows=nrows, ncols=ncols)
    check_canonical(pattern)
    assert pattern.iso and set(entries_of(pattern)) == set(entries_of(A))


@given(coordinates(), st.sampled_from(["csr", "csc", "coo", "lil"]), st.booleans())
def test_matrix_and_scipy_there_and_back(given: Any, format: str, wide: bool) -> None:
    nrows, ncols, rows, columns, values = given
    if nrows == 0 or ncols == 0:
        return
    S = sp.coo_array(
        (values, (rows.astype(np.int64), columns.astype(np.int64))), shape=(nrows, ncols)
    )
    S = S.asformat(format)
    if wide and format == "csr":
        S.indptr, S.indices = S.indptr.astype(np.int64), S.indices.astype(np.int64)
    A = Matrix.from_scipy(S)
    check_canonical(A)
    assert entries_of(A) == summed(rows, columns, values)
    assert np.array_equal(A.to_scipy().toarray(), S.toarray())
    assert np.array_equal(A.T.to_scipy().toarray(), S.toarray().T)
    assert A.is_symmetric() == (
        nrows == ncols and entries_of(A) == {(j, i): x for (i, j), x in entries_of(A).items()}
    )


@st.composite
def vectors(draw: Any, size: int | None = None) -> tuple[int, dict[int, int]]:
    size = draw(SIZES) if size is None else size
    return size, draw(
        st.dictionaries(st.integers(0, size - 1), VALUES, max_size=size)
    ) if size else {}


def make(size: int, entries: dict[int, int], storage: str = "own") -> Vector:
    order = sorted(entries, key=lambda i: (i * 7) % 11)
    v = Vector.from_coo(
        np.array(order, np.int64), np.array([entries[i] for i in order], np.int64), size=size
    )
    return {"own": v, "sparse": v.to_sparse(), "by position": v.to_bitmap()}[storage]


def entries(v: Vector) -> dict[int, int]:
    indices, values = v.to_coo()
    return dict(zip(indices.tolist(), values.tolist(), strict=True))


def check_invariants(v: Vector) -> None:
    """What every Vector keeps: sorted indices, no bit past the end, a right count."""
    if v.indices is not None:
        assert (np.diff(v.indices) > 0).all() and v.indices.size == v.values.size == v.nvals
        return
    assert v.values.size == v.size
    if v.bits is not None:
        assert (
            v.bits.size == words(v.size)
            and not unpack_bits(v.bits, 32 * v.bits.size)[v.size :].any()
        )
        assert count_bits(v.bits) == v.nvals


@given(vectors())
def test_vector_storages_hold_the_same(given: Any) -> None:
    size, expected = given
    v = make(size, expected)
    for w in (
        v,
        v.to_sparse(),
        v.to_bitmap(),
        v._conform(),
        v.dup(),
        v.to_bitmap().to_sparse(),
        v.to_bitmap()._conform(),
    ):
        check_invariants(w)
        assert entries(w) == expected and w.nvals == len(expected) and w.isequal(v)
    assert v.to_numpy(fill=9).tolist() == [expected.get(i, 9) for i in range(size)]


@given(st.lists(st.booleans(), max_size=100))
def test_bits_pack_and_unpack(flags: list[bool]) -> None:
    array = np.array(flags, bool)
    bits = pack_bits(array)
    assert bits.size == words(array.size) and count_bits(bits) == sum(flags)
    assert unpack_bits(bits, array.size).tolist() == flags


@st.composite
def products(draw: Any) -> Any:
    nrows, ncols, rows, columns, values = draw(coordinates())
    left = draw(st.booleans())
    u = draw(vectors(nrows if left else ncols))
    out, m = (draw(vectors(ncols if left else nrows)) for _ in range(2))
    storages = [draw(st.sampled_from(["sparse", "by position"])) for _ in range(3)]
    mask = draw(st.sampled_from(["structure", "value", "complement structure", "complement value"]))
    way = draw(st.sampled_from(["push", "pull", "auto"]))
    return (
        (nrows, ncols, rows, columns, values),
        left,
        (u, out, m),
        storages,
        mask,
        way,
        draw(st.booleans()),
    )


@given(products())
def test_products_of_any_shape(situation: Any) -> None:
    (nrows, ncols, rows, columns, values), left, drawn, storages, kind, way, replace = situation
    A = Matrix.from_coo(rows, columns, values, nrows=nrows, ncols=ncols, dup_op=binary.plus)
    (u, w, m) = (make(*v, storage) for v, storage in zip(drawn, storages, strict=True))
    a, size = entries_of(A), w.size
    t = {
        i: sum(x)
        for i, x in oracle.product(a, drawn[0][1], "plus", "times", "int64", left=left).items()
    }
    expected = oracle.write(
        drawn[1][1], t, oracle.allowed(size, kind, drawn[2][1]), "plus", replace, "int64"
    )
    mask = {
        "structure": m.S,
        "value": m.V,
        "complement structure": ~m.S,
        "complement value": ~m.V,
    }[kind]
    options: dict[str, Any] = {
        "mask": mask,
        "accum": binary.plus,
        "replace": replace,
        "out": w,
        "direction": way,
    }
    result = (
        operations.vxm(u, A, plus_times, **options)
        if left
        else operations.mxv(A, u, plus_times, **options)
    )
    assert result is w and entries(w) == expected
    check_invariants(w)


@given(
    st.integers(1, 40).flatmap(lambda n: st.tuples(vectors(n), vectors(n))),
    st.booleans(),
    st.booleans(),
)
def test_out_may_be_the_operand_and_the_mask(given: Any, complement: bool, replace: bool) -> None:
    (size, x), (_, y) = given
    for storage in ("sparse", "by position"):
        u, v = make(size, x, storage), make(size, y, storage)
        t = x | y | {i: x[i] + y[i] for i in x.keys() & y.keys()}
        may = set(range(size)) - set(x) if complement else set(x)
        operations.ewise_add(u, v, out=u, mask=~u.S if complement else u.S, replace=replace)
        check_invariants(u)
        assert entries(u) == oracle.write(x, t, may, None, replace, "int64")
        assert entries(v) == y, "the other operand is untouched"


@given(st.integers(1, 40).flatmap(lambda n: vectors(n)), st.sampled_from(["sparse", "by position"]))
def test_results_share_nothing_with_operands(given: Any, storage: str) -> None:
    size, x = given
    u = make(size, x, storage)
    for result in (
        operations.extract(u, slice(None)),
        operations.extract(u, np.arange(size)),
        operations.ewise_add(u, u, binary.first),
        operations.assign(Vector.empty(size, np.int64), u),
    ):
        assert entries(result) == x
        operations.assign(result, 7)
        assert entries(result) == dict.fromkeys(range(size), 7) and entries(u) == x
