"""Wrong arguments: one clear error from the operation called, and `out` exactly as it was."""

# ruff: noqa: E501  (the cases are a table, one line each)

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph import operations as ops
from spgraph.containers import Matrix, Vector
from spgraph.errors import BackendMismatch, DimensionMismatch, DomainMismatch, IndexOutOfBound
from spgraph.semirings import binary, indexunary, lor_land, min_plus, monoid, plus_times, unary


def A() -> Matrix:
    return Matrix.from_dense([[1, 2, 0], [0, 0, 3]])


def u(size: int = 3) -> Vector:
    return Vector.from_dense(np.arange(1, size + 1))


CASES: list[tuple[str, Callable[[Vector], Any], type[Exception], str]] = [
    ("mxv size", lambda w: ops.mxv(A(), u(2), out=w), DimensionMismatch, "mxv: u.size 2 != A.ncols 3"),
    ("vxm size", lambda w: ops.vxm(u(3), A(), out=w), DimensionMismatch, "vxm: u.size 3 != A.nrows 2"),
    ("mxv vector", lambda w: ops.mxv(A(), [1, 2, 3], out=w), DomainMismatch, "mxv: u: expected a Vector, got list"),
    ("mxv array", lambda w: ops.mxv(A(), np.ones(3), out=w), ValueError, "mxv: out: expected none beside an array"),
    ("mxv matrix", lambda w: ops.mxv("A", u(), out=w), DomainMismatch, "mxv: A: expected a Matrix.*got str"),
    ("mxv semiring", lambda w: ops.mxv(A(), u(), monoid.plus, out=w), DomainMismatch, "mxv: semiring: expected a Semiring"),
    ("mxv direction", lambda w: ops.mxv(A(), u(), direction="down", out=w), ValueError, "mxv: direction: expected 'auto'"),
    ("out size", lambda w: ops.vxm(u(2), A(), out=w), DimensionMismatch, "vxm: out.size 2 != the result.size 3"),
    ("mask size", lambda w: ops.mxv(A(), u(), mask=u(3).S, out=w), DimensionMismatch, "mask.size 3 != the result.size 2"),
    ("bare mask", lambda w: ops.mxv(A(), u(), mask=u(2), out=w), DomainMismatch, "got a Vector; v.S is its structure, v.V its truth"),
    ("matrix mask", lambda w: ops.mxv(A(), u(), mask=A().S, out=w), DimensionMismatch, "mask: expected the mask of a Vector"),
    ("array mask", lambda w: ops.mxv(A(), u(), mask=[1, 0], out=w), DomainMismatch, "mask: expected a Mask.*got list"),
    ("accum kind", lambda w: ops.mxv(A(), u(), accum=3, out=w), DomainMismatch, "accum: expected a BinaryOp or Monoid"),
    ("out kind", lambda w: ops.mxv(A(), u(), out=np.zeros(2)), DomainMismatch, "mxv: out: expected a Vector"),
    ("accum position", lambda w: ops.mxv(A(), u(), accum=binary.firsti, out=w), DomainMismatch, "accum.*firsti"),
    ("ewise size", lambda w: ops.ewise_add(u(2), u(3), out=w), DimensionMismatch, "ewise_add: v.size 3 != u.size 2"),
    ("ewise op", lambda w: ops.ewise_mult(u(2), u(2), unary.ainv, out=w), DomainMismatch, "ewise_mult: op: expected a BinaryOp"),
    ("apply none", lambda w: ops.apply(u(2), binary.plus, out=w), DomainMismatch, "give one of left= and right="),
    ("apply both", lambda w: ops.apply(u(2), binary.plus, left=1, right=1, out=w), DomainMismatch, "give one of left="),
    ("apply unary", lambda w: ops.apply(u(2), unary.ainv, right=1, out=w), DomainMismatch, "a UnaryOp takes neither"),
    ("apply array", lambda w: ops.apply(u(2), binary.plus, right=[1, 2], out=w), DomainMismatch, "right: expected a scalar"),
    ("apply text", lambda w: ops.apply(u(2), binary.plus, right="1", out=w), DomainMismatch, "apply: right"),
    ("apply op", lambda w: ops.apply(u(2), abs, out=w), DomainMismatch, "apply: op: expected a UnaryOp"),
    ("select op", lambda w: ops.select(u(2), binary.plus, out=w), DomainMismatch, "select: op: expected an IndexUnaryOp"),
    ("reduce op", lambda w: ops.reduce(u(2), binary.plus), DomainMismatch, "reduce: monoid: expected a Monoid"),
    ("extract low", lambda w: ops.extract(u(), [0, -1], out=w), IndexOutOfBound, "extract: indices: expected 0 <= index < 3, got -1"),
    ("extract high", lambda w: ops.extract(u(), [0, 3], out=w), IndexOutOfBound, "0 <= index < 3, got 3"),
    ("extract float", lambda w: ops.extract(u(), [0.0, 1.0], out=w), DomainMismatch, "expected integers, got float64"),
    ("extract shape", lambda w: ops.extract(u(), [[0]], out=w), DomainMismatch, "expected a slice or 1 dimension"),
    ("extract out", lambda w: ops.extract(u(), [0, 1, 2], out=w), DimensionMismatch, "out.size 2 != the result.size 3"),
    ("assign repeats", lambda w: ops.assign(w, u(2), [1, 1]), ValueError, "given more than once; give accum="),
    ("assign size", lambda w: ops.assign(w, u(3), [1, 0]), DimensionMismatch, "value.size 3 != the number of indices 2"),
    ("assign whole", lambda w: ops.assign(w, u(3)), DimensionMismatch, "value.size 3 != w.size 2"),
    ("assign high", lambda w: ops.assign(w, 1, [2]), IndexOutOfBound, "0 <= index < 2, got 2"),
    ("assign array", lambda w: ops.assign(w, [1, 2]), DomainMismatch, "value: expected a scalar, a Vector or a Matrix, got list"),
    ("assign none", lambda w: ops.assign(w, None), DomainMismatch, "assign: value"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "error", "message"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
@pytest.mark.parametrize("storage", ["sparse", "full"])
def test_out_is_left_alone(
    call: Callable[[Vector], Any], error: type[Exception], message: str, storage: str
) -> None:
    w = u(2) if storage == "full" else u(2).to_sparse()
    before = w.dup()
    with pytest.raises(error, match=message) as raised:
        call(w)
    assert "\n" not in str(raised.value)
    assert w.storage == before.storage and w.isequal(before, check_dtype=True)


@pytest.mark.parametrize("option", ["accum", "replace"])
def test_accum_and_replace_need_out(option: str) -> None:
    given = {"accum": binary.plus, "replace": True}[option]
    for call in (
        lambda **options: ops.mxv(A(), u(), **options),
        lambda **options: ops.ewise_add(u(), u(), **options),
        lambda **options: ops.apply(u(), unary.ainv, **options),
        lambda **options: ops.select(u(), indexunary.valuegt, **options),
        lambda **options: ops.extract(u(), slice(2), **options),
    ):
        with pytest.raises(ValueError, match=f"{option} was given without out"):
            call(**{option: given})


def test_types_that_an_operator_does_not_take() -> None:
    with pytest.raises(DomainMismatch, match="band"):
        ops.ewise_mult(u(), Vector.from_dense(np.ones(3)), binary.band)
    with pytest.raises(DomainMismatch, match="lor"):
        ops.reduce(u(), monoid.lxor if not hasattr(monoid, "lor") else monoid.lor)


def test_devices_must_agree() -> None:
    class Elsewhere(Vector):
        """A vector that says it is on a GPU."""

        __slots__ = ()
        device = "cuda:0"  # type: ignore[assignment]

    v = Elsewhere._of(3, np.ones(3))
    for call in (
        lambda: ops.mxv(A(), v),
        lambda: ops.ewise_add(u(), v),
        lambda: ops.mxv(A(), u(), mask=Elsewhere._of(2, np.ones(2)).S),
        lambda: ops.mxv(A(), u(), out=Elsewhere._of(2, np.ones(2))),
        lambda: ops.assign(u(), v),
    ):
        with pytest.raises(BackendMismatch, match=r"is on cuda:0.*cpu.*\.to\('cpu'\)"):
            call()


def test_a_matrix_is_whatever_one_can_be_made_from(device: str) -> None:
    S = sp.csr_array(np.array([[1.0, 2.0], [0.0, 3.0]]))
    v = Vector.from_dense([10.0, 100.0])
    expected = [210.0, 300.0]
    for given in (S, sp.coo_matrix(S), S.toarray(), S.toarray().tolist(), Matrix.from_scipy(S)):
        assert ops.mxv(given, v).to_numpy().tolist() == expected
    assert (Matrix.from_scipy(S).to(device) @ v.to(device)).to_numpy().tolist() == expected
    assert (v.to(device) @ Matrix.from_scipy(S).to(device)).to_numpy().tolist() == [10.0, 320.0]


def test_one_call_on_a_foreign_matrix_makes_no_transpose(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(self: Matrix) -> Matrix:
        raise AssertionError("a transpose was made")

    monkeypatch.setattr(Matrix, "T", property(never))
    S = sp.random_array((50, 50), density=0.2, rng=np.random.default_rng(0)).tocsr()
    for v in (Vector.from_coo([3], [1.0], size=50), Vector.from_dense(np.ones(50))):
        assert np.allclose(ops.mxv(S, v).to_numpy(fill=0), S @ v.to_numpy(fill=0))
        assert np.allclose(ops.vxm(v, S).to_numpy(fill=0), v.to_numpy(fill=0) @ S)
    with pytest.raises(AssertionError, match="a transpose was made"):
        ops.mxv(S, v, direction="push")


def test_both_directions_agree_on_floats() -> None:
    S = sp.random_array((200, 150), density=0.1, rng=np.random.default_rng(1)).tocsr()
    B, x = Matrix.from_scipy(S), np.random.default_rng(2).random(150)
    for direction in ("push", "pull", "auto"):
        y = ops.mxv(B, Vector.from_dense(x), plus_times, direction=direction)
        assert np.allclose(y.to_numpy(fill=0), S @ x, rtol=1e-13)


def test_infinite_and_missing_values_travel() -> None:
    B = Matrix.from_coo([0, 0, 1], [0, 1, 1], [np.inf, 1.0, np.nan])
    v = Vector.from_dense([1.0, 2.0])
    assert ops.mxv(B, v, min_plus).to_numpy(fill=-1).tolist() == [3.0, np.inf], "min leaves NaN out"
    assert np.isnan(ops.mxv(B, v, plus_times).to_numpy(fill=-1)[1])
    assert ops.mxv(B, v, lor_land).to_numpy(fill=False).tolist() == [True, True]


def test_empty_shapes(device: str) -> None:
    for nrows, ncols in ((0, 0), (0, 5), (5, 0), (40, 33)):
        B = Matrix.empty(nrows, ncols, np.int64, device=device)
        for direction in ("push", "pull", "auto"):
            y = ops.mxv(B, Vector.empty(ncols, np.int64, device=device), direction=direction)
            assert (y.size, y.nvals, y.dtype) == (nrows, 0, np.int64)
            y = ops.vxm(Vector.from_dense(np.ones(nrows, int)).to(device), B, direction=direction)
            assert (y.size, y.nvals, y.dtype) == (ncols, 0, np.int64)
    none = Vector.empty(0, np.int8, device=device)
    assert ops.ewise_add(none, none).nvals == ops.select(none, indexunary.valuegt).nvals == 0
    assert ops.extract(Vector.from_dense([1]).to(device), []).size == 0
    assert ops.assign(none, 3) is none and ops.transpose(Matrix.empty(2, 3)).shape == (3, 2)


@pytest.mark.parametrize("storage", ["sparse", "full"])
def test_out_keeps_its_type(storage: str, device: str) -> None:
    B, v = A().to(device), u().to(device)
    out = Vector.from_dense(np.array([1, 2], np.int8)).to(device)
    out = out.to_sparse() if storage == "sparse" else out
    ops.mxv(B, v, accum=binary.plus, out=out)
    assert out.dtype == np.int8 and out.to_numpy().tolist() == [1 + 5, 2 + 9]
    ops.ewise_mult(out, out, out=out)
    assert out.dtype == np.int8 and out.to_numpy().tolist() == [36, 121]


def test_scalars_take_the_vectors_type_where_they_fit() -> None:
    small = Vector.from_dense(np.array([1, 2], np.int8))
    assert ops.apply(small, binary.plus, right=1).dtype == np.int8
    with pytest.raises(OverflowError, match="apply: right: expected a number that int8 holds"):
        ops.apply(small, binary.plus, right=1000)
    assert ops.apply(small, binary.plus, right=0.5).dtype.kind == "f"
    assert ops.apply(small, binary.plus, right=np.int64(1)).dtype == np.int64
    real = Vector.from_dense(np.array([0.1, 0.2], np.float32))
    assert ops.select(real, indexunary.valueeq, 0.1).nvals == 1, "0.1 as the vector has it"
    with pytest.raises(OverflowError, match="assign: value: expected a number that int8 holds"):
        ops.assign(small, 300)
    assert small.to_numpy().tolist() == [1, 2]


def test_messages_are_one_sentence_with_names() -> None:
    for _, call, _, _ in CASES:
        with pytest.raises((ValueError, TypeError, IndexError)) as found:
            call(u(2))
        assert re.match(
            r"(mxv|vxm|ewise_add|ewise_mult|apply|select|reduce|extract|assign): ", str(found.value)
        )


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize(("rows", "columns"), [(0, []), ([], 0)])
def test_an_empty_part_of_a_row_or_column_takes_an_empty_vector(
    shards: int, rows: Any, columns: Any
) -> None:
    whole = Matrix.from_dense([[1, 2], [3, 4]])
    A = whole if shards == 1 else whole.distribute(shards)
    ops.assign(A, Vector.empty(0, np.int64, device=A.device), rows, columns)
    assert sorted(A.to("cpu")) == [(0, 0, 1), (0, 1, 2), (1, 0, 3), (1, 1, 4)]
    with pytest.raises(DimensionMismatch, match="value.size 1"):
        ops.assign(A, Vector.empty(1, np.int64, device=A.device), rows, columns)


ELSEWHERE: list[tuple[str, Callable[[], Any], type[Exception], str]] = [
    ("csgraph", lambda: sg.shortest_path, AttributeError, "it is spgraph.csgraph.shortest_path"),
    ("semirings", lambda: sg.min_plus, AttributeError, "it is spgraph.semirings.min_plus"),
    ("iterations", lambda: sg.closure, AttributeError, "it is spgraph.iterations.closure"),
    ("names", lambda: sg.louvain, AttributeError, "docs/names.md has the names of"),
    ("method", lambda: A().mxm, AttributeError, r"it is a function, sg.mxm\(A, \.\.\.\)"),
    ("in Matrix", lambda: (0, 1) in A(), TypeError, r"A\[i, j\] is not None"),
    ("in Vector", lambda: 0 in u(), TypeError, r"v\[i\] is not None"),
    ("mxv", lambda: ops.mxv(A(), u(), max), DomainMismatch, "BinaryOp.define"),
    ("accum", lambda: ops.mxv(A(), u(), accum=max, out=u(2)), DomainMismatch, "BinaryOp.define"),
    ("apply", lambda: ops.apply(u(), abs), DomainMismatch, "UnaryOp.define"),
    ("select", lambda: ops.select(u(), abs), DomainMismatch, "IndexUnaryOp.define"),
    ("Monoid", lambda: sg.semirings.Monoid(max, 0), DomainMismatch, "BinaryOp.define"),
    ("Semiring", lambda: sg.semirings.Semiring("min", "plus"), DomainMismatch, "semirings.monoid"),
    ("Vector", lambda: sg.Vector(6), DomainMismatch, "of 0 dimensions; .* Vector.empty a size"),
    ("save", lambda: sg.save(A(), "a.npz"), TypeError, r"save: path: .* a Matrix; save\(path, x\)"),
    ("dict", lambda: sg.pagerank(sg.diag(u()), personalization={0: 1}), DomainMismatch, "got dict; .*from_coo"),
    ("lengths", lambda: sg.sssp(-sg.diag(u()), 0), ValueError, "csgraph.bellman_ford takes A.tocsr"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [each[1:] for each in ELSEWHERE],
    ids=[each[0] for each in ELSEWHERE],
)
def test_the_message_says_what_to_write_instead(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


def test_names_that_tools_ask_for_are_just_missing() -> None:
    assert not hasattr(sg, "__wrapped__")
    assert not hasattr(A(), "__array_interface__")
