"""Columns and tables of pandas, polars and Arrow, and lists of mixed numbers, as arrays of NumPy,
which by itself converts missing values, and rounds integers beside floats, without a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from spgraph.containers.storage.masked import refuse_masked_parts
from spgraph.errors import DimensionMismatch, DomainMismatch

LIBRARIES = {"pandas", "polars", "pyarrow"}
EXACT = 2**53  # up to here float64 holds every integer


def is_tabular(given: Any) -> bool:
    """Whether it is an object of pandas, polars or Arrow that is made an array by NumPy."""
    kind = type(given)
    return kind.__module__.partition(".")[0] in LIBRARIES and hasattr(kind, "__array__")


def is_column(given: Any) -> bool:
    """Whether it is one column, such as a Series, rather than a table."""
    return is_tabular(given) and not _is_table(given)


def array_of(name: str, given: Any) -> np.ndarray:
    """The NumPy array of a column or a table; DomainMismatch for one with missing values, which
    NumPy makes NaN, and for integers that float64, beside columns of floats, rounds.
    """
    missing = sum(map(_nulls, _columns(given)))
    if missing:
        raise DomainMismatch(
            f"{name}: expected a {type(given).__name__} without missing values (null, NA, None), "
            f"got {missing}; fill them (fillna of pandas, fill_null of the others), and from_dense "
            "with missing= of that value leaves them out"
        )
    made = np.asarray(given)
    if made.dtype == np.float64 and _is_table(given):
        for column in _columns(given):
            values = np.asarray(column)
            if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
                _refuse_rounded(name, values, values.astype(made.dtype))
    return made


def array_of_list(name: str, given: Sequence[Any]) -> np.ndarray:
    """The NumPy array of a list; DimensionMismatch where its lists differ in length, DomainMismatch
    where it has masked numbers, columns with missing values, or integers that float64, beside
    floats, rounds.
    """
    try:
        made = np.asarray(given)
    except ValueError as error:  # of NumPy, whose message names no argument
        if "inhomogeneous" not in str(error):
            raise
        raise DimensionMismatch(
            f"{name}: expected numbers, or lists that all have the same length, got lists of "
            "several lengths; from_coo takes the positions of entries and their values"
        ) from None
    if made.ndim > 1 or made.dtype.kind in "bfO":
        refuse_masked_parts(name, given, made)
    if made.ndim > 1:
        for part in filter(is_tabular, given):
            array_of(name, part)
    if made.dtype == np.float64 and made.ndim:
        _refuse_rounded_parts(name, given, made)
    return made


def _refuse_rounded_parts(name: str, given: Sequence[Any], made: np.ndarray) -> None:
    """DomainMismatch where an integer of a list is another number in `made`, its floats."""
    if not (np.isfinite(made) & (np.abs(made) >= EXACT)).any():
        return
    for part, values in zip(given, made, strict=True):
        if isinstance(part, list | tuple):
            _refuse_rounded_parts(name, part, values)
        elif isinstance(part, int) or getattr(part, "dtype", made.dtype).kind in "iu":
            _refuse_rounded(name, np.atleast_1d(part), np.atleast_1d(values))


def _refuse_rounded(name: str, values: np.ndarray, made: np.ndarray) -> None:
    for value, found in zip(values.tolist(), made.tolist(), strict=True):
        if abs(value) > EXACT and value != int(found):
            raise DomainMismatch(
                f"{name}: expected integers that float64 holds, as they stand beside floats or "
                f"numbers of another sign, got {value}, which it rounds; give all of one integer "
                "type, or convert them to float first, which rounds on purpose"
            )


def _is_table(given: Any) -> bool:
    return hasattr(given, "columns")


def _columns(given: Any) -> Iterator[Any]:
    """The columns of a table, or the one that was given."""
    if not _is_table(given):
        yield given
    elif hasattr(given, "iloc"):  # of pandas, whose names may stand for several
        for k in range(given.shape[1]):
            yield given.iloc[:, k]
    else:
        yield from given.get_columns() if hasattr(given, "get_columns") else given.columns


def _nulls(column: Any) -> int:
    """How many values are missing. In pandas' columns of NumPy's types NaN is a number."""
    if hasattr(column, "null_count"):
        count = column.null_count
        return int(count() if callable(count) else count)
    kind = getattr(column, "dtype", None)
    if kind is None or isinstance(kind, np.dtype) or hasattr(kind, "fill_value"):
        return 0
    return int(np.asarray(column.isna()).sum())
