"""Wrong arguments of operations on matrices: one clear error, and `out` exactly as it was."""

# ruff: noqa: E501  (the cases are a table, one line each)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from spgraph import operations as ops
from spgraph.backends.cpu.runtime import pool
from spgraph.containers import Matrix, Vector
from spgraph.errors import BackendMismatch, DimensionMismatch, DomainMismatch, IndexOutOfBound
from spgraph.semirings import binary, indexunary, monoid, plus_times, unary


def A(nrows: int = 2, ncols: int = 3) -> Matrix:
    return Matrix.from_dense(np.arange(nrows * ncols).reshape(nrows, ncols))


def v(size: int = 3) -> Vector:
    return Vector.from_dense(np.arange(size))


CASES: list[tuple[str, Callable[[Matrix], Any], type[Exception], str]] = [
    ("mxm shapes", lambda C: ops.mxm(A(), A(), out=C), DimensionMismatch, "mxm: B.nrows 2 != A.ncols 3"),
    ("mxm out", lambda C: ops.mxm(A(), A(3, 2), out=C), DimensionMismatch, r"mxm: out.shape \(2, 3\) != the result.shape \(2, 2\)"),
    ("mxm mask", lambda C: ops.mxm(A(), A(3, 3), mask=A(3, 3).S, out=C), DimensionMismatch, r"mask.shape \(3, 3\) != the result.shape \(2, 3\)"),
    ("mxm vector mask", lambda C: ops.mxm(A(), A(3, 3), mask=v().S, out=C), DimensionMismatch, "mask: expected the mask of a Matrix"),
    ("mxm vector", lambda C: ops.mxm(A(), v(), out=C), DomainMismatch, "mxm: B: expected a Matrix.*got Vector"),
    ("mxm semiring", lambda C: ops.mxm(A(), A(3, 3), binary.plus, out=C), DomainMismatch, "mxm: semiring: expected a Semiring"),
    ("mxm accum", lambda C: ops.mxm(A(), A(3, 3), accum=3, out=C), DomainMismatch, "accum: expected a BinaryOp or Monoid"),
    ("mxm vector out", lambda C: ops.mxm(A(), A(3, 3), out=v()), DomainMismatch, "mxm: out: expected a Matrix, got Vector"),
    ("ewise shapes", lambda C: ops.ewise_add(A(), A(3, 2), out=C), DimensionMismatch, r"ewise_add: v.shape \(3, 2\) != u.shape \(2, 3\)"),
    ("ewise kinds", lambda C: ops.ewise_mult(A(), v(), out=C), DimensionMismatch, "v: expected a Matrix as u is, got a Vector"),
    ("ewise op", lambda C: ops.ewise_add(A(), A(), indexunary.tril, out=C), DomainMismatch, "ewise_add: op: expected a BinaryOp"),
    ("ewise list", lambda C: ops.ewise_add(A(), [1, 2], out=C), DomainMismatch, "ewise_add: v: expected a Vector, a Matrix"),
    ("union scalar", lambda C: ops.ewise_union(A(), A(), left=[1], out=C), DomainMismatch, "ewise_union: left: expected a scalar"),
    ("apply both", lambda C: ops.apply(A(), binary.plus, left=1, right=1, out=C), DomainMismatch, "give one of left="),
    ("select op", lambda C: ops.select(A(), unary.ainv, out=C), DomainMismatch, "select: op: expected an IndexUnaryOp"),
    ("reduce", lambda C: ops.reduce(A(), binary.plus), DomainMismatch, "reduce: monoid: expected a Monoid"),
    ("rowwise", lambda C: ops.reduce_rowwise(A(), binary.plus), DomainMismatch, "reduce_rowwise: monoid: expected a Monoid"),
    ("columnwise out", lambda C: ops.reduce_columnwise(A(), out=v(2)), DimensionMismatch, "reduce_columnwise: out.size 2 != the result.size 3"),
    ("rowwise type", lambda C: ops.reduce_rowwise(A(), monoid.lxor), DomainMismatch, "reduce_rowwise: .*lxor"),
    ("extract high", lambda C: ops.extract(A(), [0, 2], out=C), IndexOutOfBound, "extract: indices: expected 0 <= index < 2, got 2"),
    ("extract low", lambda C: ops.extract(A(), None, [-1], out=C), IndexOutOfBound, "extract: columns: expected 0 <= index < 3, got -1"),
    ("extract element", lambda C: ops.extract(A(), 1, 1, out=C), DomainMismatch, r"A\[i, j\] reads one entry"),
    ("extract row", lambda C: ops.extract(A(), 2, out=C), IndexOutOfBound, "extract: indices: expected -2 <= index < 2, got 2"),
    ("extract column", lambda C: ops.extract(A(), None, 3, out=C), IndexOutOfBound, "extract: columns: expected -3 <= index < 3, got 3"),
    ("extract shape", lambda C: ops.extract(A(), [0], out=C), DimensionMismatch, r"out.shape \(2, 3\) != the result.shape \(1, 3\)"),
    ("extract float", lambda C: ops.extract(A(), None, [0.5], out=C), DomainMismatch, "columns: expected integers, got float64"),
    ("vector columns", lambda C: ops.extract(v(), None, [1]), DomainMismatch, "columns: a Vector has none"),
    ("assign repeats", lambda C: ops.assign(C, A(), [1, 1]), ValueError, "assign: indices: an index is given more than once; give accum="),
    ("assign repeated columns", lambda C: ops.assign(C, 1, None, [2, 2]), ValueError, "assign: columns: an index is given more"),
    ("assign shape", lambda C: ops.assign(C, A(), [1]), DimensionMismatch, r"value.shape \(2, 3\) != the region.shape \(1, 3\)"),
    ("assign vector", lambda C: ops.assign(C, v()), DimensionMismatch, "expected a Matrix of 2 x 3, got a Vector"),
    ("assign row size", lambda C: ops.assign(C, v(2), 0), DimensionMismatch, "assign: value.size 2"),
    ("assign high", lambda C: ops.assign(C, 1, 2), IndexOutOfBound, "assign: indices: expected -2 <= index < 2, got 2"),
    ("assign infinite", lambda C: ops.assign(C, float("inf")), DomainMismatch, "expected an integer to write into int64, got inf"),
    ("assign text", lambda C: ops.assign(C, "1"), DomainMismatch, "assign: value"),
    ("assign mask", lambda C: ops.assign(C, 1, mask=A(3, 2).S), DimensionMismatch, "mask.shape"),
    ("transpose out", lambda C: ops.transpose(A(), out=C), DimensionMismatch, r"out.shape \(2, 3\) != the result.shape \(3, 2\)"),
    ("kronecker op", lambda C: ops.kronecker(A(), A(), binary.firsti), DomainMismatch, "kronecker: op: expected an operator of two values"),
    ("kronecker size", lambda C: ops.kronecker(Matrix.empty(0, 2**62), Matrix.empty(0, 4)), OverflowError, "at most 2\\*\\*63 - 1 rows"),
    ("diag k", lambda C: ops.diag(v(), 1.0), DomainMismatch, "diag: k: expected an integer"),
    ("diag out", lambda C: ops.diag(v(), out=C), DimensionMismatch, "diag: out.shape"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "error", "message"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_out_is_left_alone(
    call: Callable[[Matrix], Any], error: type[Exception], message: str
) -> None:
    C = A()
    before, arrays = C.dup(), (C._indptr, C._indices, C._values)
    with pytest.raises(error, match=message) as raised:
        call(C)
    assert "\n" not in str(raised.value)
    assert C.isequal(before, check_dtype=True)
    assert all(x is y for x, y in zip(arrays, (C._indptr, C._indices, C._values), strict=True))


@pytest.mark.parametrize("option", ["accum", "replace"])
def test_accum_and_replace_need_out(option: str) -> None:
    given = {"accum": binary.plus, "replace": True}[option]
    for call in (
        lambda **options: ops.mxm(A(), A(3, 3), **options),
        lambda **options: ops.ewise_add(A(), A(), **options),
        lambda **options: ops.apply(A(), unary.ainv, **options),
        lambda **options: ops.select(A(), indexunary.tril, **options),
        lambda **options: ops.extract(A(), [0], **options),
        lambda **options: ops.transpose(A(), **options),
        lambda **options: ops.kronecker(A(), A(), **options),
        lambda **options: ops.diag(v(), **options),
        lambda **options: ops.reduce_rowwise(A(), **options),
    ):
        with pytest.raises(ValueError, match=f"{option} was given without out"):
            call(**{option: given})


def test_a_graph_that_is_not_square_is_told_of_the_sizes() -> None:
    """The largest ids said how many rows and columns there are."""
    G = Matrix.from_coo([0, 1], [1, 2])
    for call in (
        lambda: G @ G,
        lambda: ops.reduce_mxm(G, G),
        lambda: G + G.T,
        lambda: ops.transpose(G, out=G),
    ):
        with pytest.raises(DimensionMismatch, match=r"from_coo with nrows= and ncols="):
            call()
    with pytest.raises(DimensionMismatch, match=r"mxm: B\.nrows 3 != A\.ncols 2$"):
        ops.mxm(Matrix.empty(2, 2), Matrix.empty(3, 2))


def test_devices_must_agree() -> None:
    class Elsewhere(Matrix):
        """A matrix that says it is on a GPU."""

        __slots__ = ()
        device = "cuda:0"  # type: ignore[assignment]

    B = Elsewhere._of(2, 3, A().indptr, A().indices, A().values)
    for call in (
        lambda: ops.ewise_add(A(), B),
        lambda: ops.mxm(A(3, 2), B),
        lambda: ops.kronecker(A(), B),
        lambda: ops.apply(A(), unary.ainv, out=B),
        lambda: ops.select(A(), indexunary.tril, mask=B.S),
        lambda: ops.assign(A(), B),
    ):
        with pytest.raises(BackendMismatch, match=r"is on cuda:0.*cpu.*\.to\('cpu'\)"):
            call()


OPERATIONS: dict[str, Callable[[Matrix], Any]] = {
    "ewise": lambda C: ops.ewise_add(C, A(), accum=binary.plus, out=C),
    "apply": lambda C: ops.apply(C, unary.ainv, mask=C.S, out=C),
    "select": lambda C: ops.select(C, indexunary.tril, accum=binary.plus, out=C),
    "extract": lambda C: ops.extract(C, [1, 0], mask=C.S, out=C),
    "assign": lambda C: ops.assign(C, 7, [0], accum=binary.plus),
    "mxm": lambda C: ops.mxm(C, A(3, 3), mask=C.S, out=C),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_failure_inside_leaves_out_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever kernel runs out of memory, `out` is what it was."""
    C = A()
    before = C.dup()
    launch, calls, fails_at = pool.launch, [0], [10**9]

    def failing(*arguments: Any) -> None:
        calls[0] += 1
        if calls[0] == fails_at[0]:
            raise MemoryError("as if there were none")
        launch(*arguments)

    monkeypatch.setattr(pool, "launch", failing)
    OPERATIONS[name](C.dup())
    launches, failures = calls[0], 0
    assert launches > 0
    for turn in range(1, launches + 1):
        calls[0], fails_at[0] = 0, turn
        with pytest.raises(MemoryError):
            OPERATIONS[name](C)
        failures += 1
        assert C.isequal(before, check_dtype=True)
    assert failures == launches


def test_a_whole_region_of_too_many_positions() -> None:
    huge = Matrix.empty(8, 2**61)
    with pytest.raises(OverflowError, match="at most 2\\*\\*63 - 1 positions"):
        ops.assign(huge, Matrix.empty(1, 1), [3], [5])
    assert huge.nvals == 0


def test_types_promote_as_numpy_does() -> None:
    ints, floats = A(), A().dup(np.float32)
    assert ops.ewise_add(ints, floats).dtype == np.float64
    assert ops.mxm(floats, A(3, 3).dup(np.float32), plus_times).dtype == np.float32
    assert ops.apply(ints, binary.plus, right=0.5).dtype == np.float64
    assert ops.ewise_union(ints, ints, binary.minus, left=0.5, right=0).dtype == np.float64
    assert ops.apply(ints, binary.lt, right=3).dtype == np.bool_
    out = Matrix.empty(2, 3, np.float32)
    assert ops.ewise_add(ints, floats, out=out).dtype == np.float32
    with pytest.raises(DomainMismatch, match="ewise_add: expected values of a type that may be"):
        ops.ewise_add(ints, floats, out=Matrix.empty(2, 3, np.int8))
