"""Reading published graphs, where they are beside the checkout."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from spgraph.io import read
from tests.io.test_read import large  # noqa: F401


def test_road_networks(shared_data: Path) -> None:
    for name, vertices, edges in (
        ("usa-road-NY.gr.xz", 264_346, 365_050),
        ("usa-road-BAY.mtx.gz", 321_270, 397_415),
    ):
        path = shared_data / name
        if not path.exists():
            pytest.skip(f"shared: {name} is missing")
        A = read(path)
        assert A.shape == (vertices, vertices) and A.nvals == 2 * edges and A.iso
        assert A.symmetric is True
        S = A.to_scipy()
        assert (S != S.T).nnz == 0 and S.diagonal().sum() == 0
        if ".mtx" in name:
            T = scipy.io.mmread(path, spmatrix=False).tocsr()
            assert np.array_equal(A.indptr, T.indptr) and np.array_equal(A.indices, T.indices)


def test_epinions(shared_data: Path) -> None:
    path = shared_data / "soc-Epinions1.txt.gz"
    if not path.exists():
        pytest.skip("shared: soc-Epinions1.txt.gz is missing")
    A = read(path)
    assert A.nvals == 508_837 and A.iso and A.symmetric is None
    rows, columns, _ = A.to_coo()
    seen = np.union1d(rows, columns)
    assert seen.size == 75_879 and A.shape == (seen[-1] + 1,) * 2  # some ids were never given
    table = np.loadtxt(path, dtype=np.int64)
    expected = scipy.sparse.coo_array((np.ones(len(table)), table.T), shape=A.shape).tocsr()
    assert np.array_equal(expected.indptr, A.indptr)
    assert np.array_equal(expected.indices, A.indices)
    B = read(path, symmetric=True)
    assert B.symmetric and np.array_equal(B.indptr, (expected + expected.T).tocsr().indptr)
