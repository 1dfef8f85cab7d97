"""`reduce_mxm` against dense loops, and against `reduce` of `mxm`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph.backends.cpu.products import multiply
from spgraph.backends.cpu.runtime import pool
from spgraph.errors import BackendMismatch, DimensionMismatch, DomainMismatch
from spgraph.semirings import (
    any_pair,
    lor_land,
    max_first,
    min_plus,
    monoid,
    plus_pair,
    plus_times,
)

# (semiring, monoid, type of the values)
CASES = [
    (plus_times, monoid.plus, "int8"),
    (min_plus, monoid.min, "int32"),
    (lor_land, monoid.plus, "bool"),
]
FULL = [
    (plus_pair, monoid.plus, "bool"),
    (plus_times, monoid.max, "float64"),
    (min_plus, monoid.plus, "float32"),
    (max_first, monoid.plus, "int32"),
    (any_pair, monoid.plus, "int32"),
]
# of A, the inner extent, B: rows of A shorter and longer than kernels search instead of laying out
SHAPES = [(40, 60, 50, 0.05), (30, 200, 40, 0.4), (3, 2000, 5, 0.3)]


def drawn(rows: int, columns: int, density: float, dtype: str, seed: int) -> sg.Matrix:
    random = np.random.default_rng(seed)
    there = random.random((rows, columns)) < density
    values = random.integers(1, 5, there.sum()).astype(dtype)
    return sg.Matrix.from_coo(*np.nonzero(there), values, nrows=rows, ncols=columns)


@pytest.mark.parametrize(
    "case",
    [*CASES, *(pytest.param(case, marks=pytest.mark.full) for case in FULL)],
    ids=lambda case: f"{case[0].name}-{case[1].name}-{case[2]}",
)
def test_equals_reduce_of_mxm(case: Any, device: str) -> None:
    semiring, add, dtype = case
    for k, (n, m, p, density) in enumerate(SHAPES):
        A, B = drawn(n, m, density, dtype, k), drawn(p, m, density, dtype, k + 10)
        M = drawn(n, p, 0.4, "int8", k + 20)
        A, B, M = A.to(device), B.to(device), M.to(device)
        M._values[:5] = 0
        for mask in (None, M.S, M.V, ~M.S):
            expected = sg.reduce(sg.mxm(A, B.T, semiring, mask=mask), add)
            got = sg.reduce_mxm(A, B.T, semiring, add, mask=mask)
            assert got.dtype == expected.dtype
            assert got == pytest.approx(expected, rel=1e-6), (n, mask)


def test_equals_a_dense_loop(device: str) -> None:
    A, M = drawn(30, 25, 0.3, "int32", 1), drawn(30, 30, 0.2, "bool", 2)
    dense = A.to_scipy().toarray().astype(np.int64)
    wanted = int((dense @ dense.T)[M.to_scipy().toarray()].sum())
    A, M = A.to(device), M.to(device)
    assert int(sg.reduce_mxm(A, A.T, plus_times, mask=M.S)) == wanted
    assert sg.reduce_mxm(A, A.T, mask=M.S, dtype=np.float32) == np.float32(wanted)


def test_without_entries_it_is_the_identity(device: str) -> None:
    A, M = sg.Matrix.empty(4, 4, np.int32).to(device), sg.Matrix.empty(4, 4).to(device)
    full = sg.Matrix.from_dense(np.ones((4, 4), np.int32)).to(device)
    for A_, B_, M_ in ((A, A, full), (full, full, M), (A, full, full)):
        assert sg.reduce_mxm(A_, B_.T, plus_times, mask=M_.S) == 0
        assert sg.reduce_mxm(A_, B_.T, plus_times, monoid.min, mask=M_.S) == np.iinfo(np.int32).max
    with pytest.raises(ValueError, match="reduce_mxm: expected a product with entries"):
        sg.reduce_mxm(A, A.T, plus_times, monoid.any, mask=full.S)
    assert sg.reduce_mxm(full, full.T, plus_times, monoid.any, mask=full.S) == 4


def test_in_shards() -> None:
    A, M = drawn(30, 25, 0.3, "int32", 1), drawn(30, 30, 0.2, "bool", 2)
    expected = sg.reduce_mxm(A, A.T, plus_times, mask=M.S)
    D = A.distribute(2)
    N = M.to(D.device)
    assert sg.reduce_mxm(D, D.T, plus_times, mask=N.S) == expected


@pytest.mark.fused
def test_threads_do_not_change_a_sum_of_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partial sums belong to parts of the mask, whichever thread takes them."""
    A = sg.generators.kronecker(10, 16)
    values = np.random.default_rng(0).random(A.nvals)
    A = sg.Matrix._of(A.nrows, A.ncols, A.indptr, A.indices, values)
    sums = set()
    for threads in (1, 2, 3):
        with monkeypatch.context() as patch:
            patch.setattr(multiply.pool, "threads_for", lambda work, *share, n=threads: n)
            patch.setattr(pool, "processors", lambda: 3)
            pool.close()
            sums.add(float(sg.reduce_mxm(A, A.T, plus_times, mask=A.S)))
    pool.close()
    assert len(sums) == 1


@pytest.mark.fused
def test_stores_no_product(monkeypatch: pytest.MonkeyPatch) -> None:
    A = sg.generators.kronecker(8, 8)
    expected = sg.reduce(sg.mxm(A, A, plus_pair, mask=A.S))

    def refuse(*given: Any) -> Any:
        raise AssertionError("a product was made")

    for form in ("multiply_rows", "multiply_dots", "multiply_dense"):
        monkeypatch.setattr(f"spgraph.backends.cpu.{form}", refuse)
    assert sg.reduce_mxm(A, A.T, plus_pair, mask=A.S) == expected


def test_bad_input() -> None:
    A = sg.Matrix.from_dense([[1, 2], [3, 4]])
    with pytest.raises(DimensionMismatch, match=r"reduce_mxm: B\.nrows"):
        sg.reduce_mxm(A, sg.Matrix.empty(3, 2))
    with pytest.raises(DimensionMismatch, match="reduce_mxm: mask"):
        sg.reduce_mxm(A, A, mask=sg.Matrix.empty(3, 2).S)
    with pytest.raises(DomainMismatch, match="reduce_mxm: monoid: expected a Monoid"):
        sg.reduce_mxm(A, A, plus_times, sg.semirings.binary.plus)  # type: ignore[arg-type]
    with pytest.raises(DomainMismatch, match="reduce_mxm: semiring"):
        sg.reduce_mxm(A, A, monoid.plus)  # type: ignore[arg-type]
    with pytest.raises(BackendMismatch, match="reduce_mxm"):
        sg.reduce_mxm(A, A.distribute(2))
