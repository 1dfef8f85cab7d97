"""The sort of entries by row and column, against NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import spgraph as sg
from spgraph import build
from spgraph.backends.cpu.runtime import pool
from spgraph.backends.cpu.structure.sort_entries import sort_entries
from spgraph.semirings import BinaryOp, binary

# rows, columns, entries: fewer bits than buckets have, one row, one column, ids beyond 32 bits
SHAPES = [(1, 1, 5), (5, 7, 300), (1000, 3, 5000), (3, 100_000, 20_000), (70_000, 70_000, 30_000)]
LARGE = [(1, 1 << 40, 3000), (1 << 14, 1 << 49, 3000)]


def drawn(shape: tuple[int, int, int], kind: type) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    nrows, ncols, count = shape
    random = np.random.default_rng(count)
    rows = (nrows * random.random(count) ** 3).astype(kind)  # most in the first rows
    columns = random.integers(0, ncols, count).astype(kind)
    columns[count // 2 :: 7] = columns[: len(columns[count // 2 :: 7])]
    rows[count // 2 :: 7] = rows[: len(rows[count // 2 :: 7])]
    return rows, columns, random.integers(0, 100, count)


@pytest.fixture(params=[1, 3])
def threads(request: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(pool, "processors", lambda: 3)
    monkeypatch.setattr(pool, "threads_for", lambda work, *share: request.param)
    pool.close()
    yield request.param
    pool.close()


@pytest.mark.parametrize("values", [None, "int8", "float64"])
@pytest.mark.parametrize(
    ("shape", "kind"), [(s, k) for k in (np.int32, np.int64) for s in SHAPES if s[1] < 2**31]
    + [(s, np.int64) for s in LARGE],
)  # fmt: skip
def test_equals_lexsort(shape: Any, kind: Any, values: str | None, threads: int) -> None:
    rows, columns, z = drawn(shape, kind)
    z = z.astype(values or "int8")
    for order in (np.arange(rows.size), np.lexsort((columns, rows))):
        i, j, x = rows[order], columns[order], z[order]
        indptr, indices, sums, repeats = sort_entries(
            i, j, None if values is None else x, *shape[:2]
        )
        wanted = np.lexsort((j, i))
        assert np.array_equal(np.repeat(np.arange(shape[0]), np.diff(indptr)), i[wanted])
        assert np.array_equal(indices, j[wanted])
        assert sums is None if values is None else np.array_equal(sums, x[wanted])
        again = (np.diff(i[wanted]) == 0) & (np.diff(j[wanted]) == 0)
        assert repeats == again.sum()


def test_distinct_ascending_entries_share_no_array_with_the_callers() -> None:
    rows, columns = np.repeat(np.arange(4), 2), np.tile([0, 3], 4)
    values = np.arange(8.0)
    _, indices, kept, repeats = sort_entries(rows, columns.astype(np.int32), values, 4, 4)
    assert repeats == 0 and kept is not None
    assert not np.shares_memory(kept, values) and not np.shares_memory(indices, columns)
    same = columns.astype(np.int32)
    _, indices, _, _ = sort_entries(rows.astype(np.int32), same, None, 4, 4)
    assert not np.shares_memory(indices, same)


@pytest.mark.parametrize("given", ["values", "scalar", "scalar and operator"])
def test_from_coo_is_the_same_either_way(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many entries go through the kernel, few through NumPy; `first` and `minus` show the order."""
    rows, columns, z = drawn((300, 200, 5000), np.int64)
    values: Any = z if given == "values" else 2
    for op in (binary.plus, binary.first, binary.minus) if given != "scalar" else (None,):
        made = []
        for many in (1, 10**9):
            monkeypatch.setattr(build, "MANY", many)
            made.append(sg.Matrix.from_coo(rows, columns, values, dup_op=op))
        assert made[0].isequal(made[1], check_dtype=True)
        for name in ("indptr", "indices", "values"):
            ours, theirs = (getattr(A, name) for A in made)
            assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs)


def test_a_repeated_position_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "MANY", 1)
    with pytest.raises(ValueError, match=r"rows, columns: position \(2, 1\) is given more than"):
        sg.Matrix.from_coo([2, 0, 2, 3], [1, 1, 1, 1], [1, 2, 3, 4])


def test_a_users_operator_of_wider_integers_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its results have 64 bits; they must fit in the type of the values, many as few."""
    add = BinaryOp.define(lambda x, y: x + y)
    values = np.array([60, 3, 60, 7], np.int8)
    for many in (1, 10**9):
        monkeypatch.setattr(build, "MANY", many)
        A = sg.Matrix.from_coo([1, 0, 1, 1], [2, 0, 2, 0], values, dup_op=add)
        assert A.dtype == np.int8
        assert [part.tolist() for part in A.to_coo()] == [[0, 1, 1], [0, 0, 2], [3, 7, 120]]
        with pytest.raises(OverflowError, match="from_coo: dup_op"):
            sg.Matrix.from_coo([1, 1, 1], [2, 2, 2], values[[0, 0, 0]], dup_op=add)


@pytest.mark.parametrize("size", [3000, 1 << 30, 1 << 40, 1 << 62])
@pytest.mark.parametrize("count", [10, 2000])
def test_few_entries_keep_the_order_of_repeated_ones(size: int, count: int) -> None:
    """Sorted with their places behind them where both fit in 63 bits, else by a stable argsort."""
    random = np.random.default_rng(3)
    ids = random.choice(random.integers(0, size, count // 2), count)
    values = random.integers(0, 1000, count)
    found, kept = sg.Vector.from_coo(ids, values, size=size, dup_op=binary.first).to_coo()
    wanted, first = np.unique(ids, return_index=True)
    assert np.array_equal(found, wanted) and np.array_equal(kept, values[first])
