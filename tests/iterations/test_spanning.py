"""Spanning forests, against a loop over the entries by value."""

from __future__ import annotations

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph.iterations.spanning import composed, spanning_forest

KINDS = {"ties": np.int64, "float64": np.float64, "bool": bool}


def by_value(A: sg.Matrix) -> list[tuple[int, int, float]]:
    root = list(range(A.nrows))

    def of(v: int) -> int:
        while root[v] != v:
            v = root[v]
        return v

    kept = []
    for i, j, w in sorted(A, key=lambda entry: (entry[2], entry[:2])):
        if of(i) != of(j):
            root[of(i)] = of(j)
            kept.append((i, j, w))
    return sorted(kept)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("kind", [*KINDS, "one value", "ids of 64 bits"])
def test_the_first_of_least_entries(kind: str, symmetric: bool, device: str) -> None:
    random = np.random.default_rng(7)
    for n, entries in ((1, 1), (12, 0), (40, 30), (40, 300)):
        at = np.unique(random.integers(0, n * n, entries))
        rows, columns = np.divmod(at, n)
        if symmetric:
            rows, columns = rows[rows <= columns], columns[rows <= columns]
        values = random.permutation(rows.size) - rows.size / 3
        weights = 3 if kind == "one value" else (values // 8 if kind == "ties" else values)
        A = sg.Matrix.from_coo(rows, columns, weights, nrows=n, ncols=n)
        if symmetric:
            A = sg.ewise_add(A, A.T.dup(), "min")
            A.symmetric = True
        if kind in KINDS:
            A = A.astype(KINDS[kind])
        if kind == "ids of 64 bits":
            S = A.to_scipy()
            S.indptr, S.indices = S.indptr.astype(np.int64), S.indices.astype(np.int64)
            A = sg.Matrix.from_scipy(S)
            A.symmetric = symmetric or None
            assert A.index_dtype == np.int64
        A = A.to(device)
        found = spanning_forest(A)
        assert found.device == A.device and found.dtype == A.dtype
        assert list(found.to("cpu")) == by_value(A.to("cpu"))
        assert found.isequal(composed(A), check_dtype=True)
