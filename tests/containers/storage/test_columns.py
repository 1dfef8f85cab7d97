"""Columns and tables of pandas, polars and Arrow, and lists of mixed numbers, as containers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow
import pytest

import spgraph as sg
from spgraph.errors import DomainMismatch

pandas = pytest.importorskip("pandas", reason="pip install 'spgraph[dev]'")
polars = pytest.importorskip("polars", reason="pip install 'spgraph[dev]'")

COLUMNS: dict[str, Callable[[list[Any]], Any]] = {
    "pandas": lambda x: pandas.Series(x, dtype="Int64"),
    "pandas float": lambda x: pandas.Series(x, dtype="Float64"),
    "pandas arrow": lambda x: pandas.Series(x, dtype="int64[pyarrow]"),
    "pandas array": lambda x: pandas.array(x, dtype="Int64"),
    "polars": polars.Series,
    "arrow": pyarrow.array,
    "chunks": lambda x: pyarrow.chunked_array([x[:1], x[1:]]),
}
TABLES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "pandas": lambda x: pandas.DataFrame(
        {k: pandas.array(v) if None in v else v for k, v in x.items()}
    ),
    "polars": polars.DataFrame,
    "arrow": pyarrow.table,
    "batch": pyarrow.record_batch,
}
BIG = 2**53 + 1


def graph() -> sg.Matrix:
    return sg.Matrix.from_coo([0, 1, 2], [1, 2, 0], [1, 2, 3])


def write(x: Any) -> None:
    sg.Vector.empty(3)[:] = x


USES: dict[str, Callable[[Any], Any]] = {
    "Vector": sg.Vector,
    "missing": lambda x: sg.Vector.from_dense(x, missing=np.nan),
    "from_coo": lambda x: sg.Vector.from_coo([0, 1, 2], x, dtype=float),
    "rows": lambda x: sg.Matrix.from_dense([x, x]),
    "written": write,
    "product": lambda x: graph() @ x,
    "operator": lambda x: graph() * x,
    "mxv": lambda x: sg.mxv(graph(), x),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", COLUMNS)
def test_missing_values_are_refused(kind: str, use: str) -> None:
    """Of NumPy's making they would be NaN."""
    with pytest.raises(DomainMismatch, match=r"without missing values \(null, NA, None\), got 1"):
        USES[use](COLUMNS[kind]([1, None, 3]))
    USES[use](COLUMNS[kind]([1, 2, 3]))


@pytest.mark.parametrize("kind", TABLES)
def test_tables(kind: str) -> None:
    table = TABLES[kind]
    assert sg.Matrix(table({"a": [1, 2], "b": [0, 4]})).to_coo()[2].tolist() == [1, 2, 4]
    with pytest.raises(DomainMismatch, match="without missing values"):
        sg.Matrix(table({"a": [1, None], "b": [3, 4]}))
    with pytest.raises(DomainMismatch, match=f"integers that float64 holds.*, got {BIG}, which"):
        sg.Matrix(table({"a": [BIG, 1], "b": [0.5, 1.5]}))
    assert sg.Matrix(table({"a": [BIG - 1, 1], "b": [0.5, 1.5]}))[0, 0] == BIG - 1
    assert sg.Matrix(table({"a": [BIG, 1], "b": [3, 4]}))[0, 0] == BIG


@pytest.mark.parametrize("kind", COLUMNS)
def test_products_with_columns(kind: str) -> None:
    A, x = graph(), COLUMNS[kind]([1, 2, 3])
    assert (A @ x).tolist() == sg.mxv(A, x).tolist() == [2, 6, 3]
    assert (sg.Vector([1, 2, 3]) + x).to_numpy().tolist() == [2, 4, 6]
    if kind.startswith("pandas"):  # others do not ask what stands on the right
        assert list(x * A) == list(A * x) == [(0, 1, 2), (1, 2, 6), (2, 0, 3)]


MIXED: dict[str, Callable[[], Any]] = {
    "list": lambda: sg.Vector([BIG, 0.5]),
    "values": lambda: sg.Vector.from_coo([0, 1], [BIG, 0.5]),
    "rows": lambda: sg.Matrix([[1, 2], [BIG, 0.5]]),
    "arrays": lambda: sg.Matrix([np.array([1, BIG]), np.array([0.5, 1.0])]),
    "signs": lambda: sg.Vector([np.uint64(BIG + 2**63), np.int64(1)]),
    "operand": lambda: sg.Vector([1, 2]) * (BIG, 0.5),
}


@pytest.mark.parametrize("case", MIXED)
def test_integers_that_numpy_rounds_beside_floats_are_refused(case: str) -> None:
    with pytest.raises(DomainMismatch, match="expected integers that float64 holds"):
        MIXED[case]()


def test_integers_that_floats_hold_may_stand_beside_them() -> None:
    assert sg.Vector([2**60, 0.5, 1e300, np.inf])[0] == 2**60
    assert sg.Vector([BIG, 1])[0] == BIG and sg.Vector([float(BIG), 1])[0] == BIG - 1
    assert sg.Vector([2**63, -1])[0] == 2**63
