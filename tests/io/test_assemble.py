"""Entries of a file put together by the backend's sort, as many are, and by SciPy's."""

from __future__ import annotations

import numpy as np
import pytest

from spgraph.io import coordinates


@pytest.mark.parametrize("duplicates", ["min", "plus"])
@pytest.mark.parametrize("kind", [None, "int64", "float64"])
def test_both_sorts_give_the_same(
    duplicates: str, kind: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repeated positions, also the last of a row and the first of the next in one column."""
    random = np.random.default_rng(4)
    ends = np.append(random.integers(0, 9, (2, 60)), [[3, 4, 4], [9, 9, 9]], axis=1)
    rows, columns = ends.astype(np.int32)
    values = None if kind is None else random.integers(-9, 9, rows.size).astype(kind)
    if kind == "float64" and values is not None:
        values[5] = np.nan
    made = []
    for many in (1, 10**9):
        monkeypatch.setattr(coordinates, "MANY", many)
        given = (rows.copy(), columns.copy(), None if values is None else values.copy())
        made.append(coordinates.assemble(*given, 11, 12, duplicates, symmetric=None))
    for name in ("indptr", "indices", "values"):
        ours, theirs = (getattr(A, name) for A in made)
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs, equal_nan=kind == "float64")
    wanted = {(int(i), int(j)) for i, j in zip(rows, columns, strict=True)}
    assert made[0].nvals == len(wanted) < rows.size and made[0].iso == (kind is None)
