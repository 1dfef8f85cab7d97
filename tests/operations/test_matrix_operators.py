"""Operations on matrices: shapes down to nothing, sums, operators of positions and of users, and
an `out` that is an argument, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import oracle
import pytest
from fixtures_device import device, matrix_entries  # noqa: F401

from spgraph import operations, semirings
from spgraph.containers import Matrix
from tests.operations.test_matrices import SHAPE, canonical, draw_matrix, library_matrix


@pytest.mark.parametrize("nrows", [0, 1, 5])
@pytest.mark.parametrize("ncols", [0, 1, 4])
def test_shapes_down_to_nothing(nrows: int, ncols: int, device: str) -> None:
    A = Matrix.empty(nrows, ncols, np.int64, device=device)
    full = operations.assign(A.dup(), 3)
    assert full.nvals == nrows * ncols and full.shape == (nrows, ncols)
    for made in (
        operations.ewise_add(A, full),
        operations.ewise_mult(full, full),
        operations.apply(full, semirings.unary.ainv),
        operations.select(full, semirings.indexunary.valuegt, 0),
        operations.extract(full, np.arange(nrows), np.arange(ncols)),
        operations.apply(full, semirings.unary.identity, mask=~A.S),
    ):
        canonical(made)
        assert made.nvals in (0, full.nvals) and made.shape == full.shape
    assert operations.ewise_add(A, full).isequal(full)
    assert operations.transpose(full).shape == (ncols, nrows)
    square = operations.mxm(full, full.T)
    assert square.shape == (nrows, nrows) and square.nvals == (nrows * nrows if ncols else 0)
    assert operations.kronecker(full, full).shape == (nrows**2, ncols**2)
    assert int(operations.reduce(full)) == 3 * nrows * ncols
    assert operations.reduce_rowwise(full).nvals == (nrows if ncols else 0)
    assert operations.reduce_columnwise(full).nvals == (ncols if nrows else 0)


# one value for all entries is a way of its own where a monoid repeats it, and where any takes it
SUMMED = [("plus", False), ("plus", True), ("any", False), ("any", True), ("lor", False)]
REPEATED_VALUES = [
    pytest.param(name, iso, marks=[] if (name, iso) in SUMMED else pytest.mark.full)
    for name in ("plus", "min", "lor", "any", "times")
    for iso in (False, True)
]


@pytest.mark.parametrize(("name", "iso"), REPEATED_VALUES)
def test_reductions(name: str, iso: bool, device: str) -> None:
    dtype = "bool" if name == "lor" else "int64"
    case = {"dtype": dtype, "iso": iso, "index": "int32"}
    a = draw_matrix(np.random.default_rng(3), SHAPE, dtype, iso)
    A, monoid = library_matrix(a, SHAPE, case, device), getattr(semirings.monoid, name)
    for axis, reduced in enumerate((operations.reduce_rowwise, operations.reduce_columnwise)):
        lines: dict[int, list[Any]] = {}
        for at in sorted(a):
            lines.setdefault(at[axis], []).append(a[at])
        found = reduced(A, monoid)
        assert found.dtype == oracle.sum_type(name, dtype) and found.size == SHAPE[axis]
        got = dict(found)
        assert got.keys() == lines.keys()
        for k, values in lines.items():
            assert (
                got[k] in values if name == "any" else got[k] == oracle.total(name, dtype, values)
            )
    whole = operations.reduce(A, monoid)
    values = list(a.values())
    assert whole in values if name == "any" else whole == oracle.total(name, dtype, values)


def test_a_large_iso_matrix_is_summed_without_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    from spgraph.operations import reductions

    monkeypatch.setattr(reductions, "CHUNK", 10)
    A = Matrix.from_coo(np.repeat(np.arange(41), 3), np.tile(np.arange(3), 41), 7)
    assert A.iso and operations.reduce(A) == 7 * 123
    assert operations.reduce(A, semirings.monoid.max) == 7


def test_positional_products(device: str) -> None:
    a = {(0, 0): 1, (0, 2): 1, (1, 1): 1}
    b = {(0, 1): 1, (1, 0): 1, (2, 1): 1, (2, 2): 1}
    case = {"dtype": "int64", "iso": False, "index": "int32"}
    A, B = (library_matrix(x, (3, 3), case, device) for x in (a, b))
    least = operations.mxm(A, B, semirings.min_secondi)
    assert matrix_entries(least) == {(0, 1): 0, (0, 2): 2, (1, 0): 1} and least.dtype == np.int32
    most = operations.mxm(A, B, semirings.max_firsti, mask=B.S)
    assert matrix_entries(most) == {(0, 1): 0, (1, 0): 1}


def test_user_defined_operators(device: str) -> None:
    def nearest(x, y):  # type: ignore[no-untyped-def]
        return x if abs(x) < abs(y) else y

    op = semirings.BinaryOp.define(nearest)
    case = {"dtype": "float32", "iso": False, "index": "int32"}
    A = library_matrix({(0, 0): -1.0, (0, 1): 5.0}, (2, 2), case, device)
    B = library_matrix({(0, 0): 2.0, (1, 1): 3.0}, (2, 2), case, device)
    assert matrix_entries(operations.ewise_add(A, B, op)) == {(0, 0): -1, (0, 1): 5, (1, 1): 3}
    least = semirings.Monoid(semirings.binary.min, np.inf)
    semiring = semirings.Semiring(least, op)
    assert matrix_entries(operations.mxm(A, B, semiring)) == {(0, 0): -1, (0, 1): 3}


def test_out_may_be_an_argument_and_its_own_mask(device: str) -> None:
    case = {"dtype": "int64", "iso": False, "index": "int32"}
    a = draw_matrix(np.random.default_rng(8), (9, 9), "int64", False)

    def A() -> Matrix:
        return library_matrix(a, (9, 9), case, device)

    square = operations.mxm(A(), A())
    out = A()
    assert operations.mxm(out, out, out=out) is out and out.isequal(square)
    out = A()
    operations.mxm(out, out, mask=out.S, out=out, accum=semirings.binary.plus)
    expected = operations.mxm(A(), A(), mask=A().S, out=A(), accum=semirings.binary.plus)
    assert out.isequal(expected)
    out = A()
    before = out.T.dup()
    operations.assign(out, 0, mask=out.V)
    assert set(out.to("cpu").values.tolist()) <= {0}
    # what was cached of the old entries is gone, and what was taken before is not touched
    assert before.isequal(A().T) and set(out.T.to("cpu").values.tolist()) <= {0}
