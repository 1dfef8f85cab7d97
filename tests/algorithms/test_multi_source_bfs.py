"""Searches from several vertices on every device, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from dependencies_cases import by_loops, matrix, some_sources
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph.algorithms.multi_source_bfs import multi_source_bfs
from spgraph.errors import DomainMismatch, IndexOutOfBound


@pytest.mark.parametrize("graph", ["one", "no edges", "two components", "sparse directed", "grid"])
def test_equals_plain_loops(graph: str, device: str) -> None:
    A = matrix(graph).to(device)
    sources = [*some_sources(A.nrows, 5).tolist(), 0, 0]
    L = multi_source_bfs(A, sources).to("cpu")
    rows = by_loops(graph, tuple(sources))[1]
    assert L.shape == (len(sources), A.nrows) and L.nvals == (rows >= 0).sum()
    i, j, level = L.to_coo()
    np.testing.assert_array_equal(level, rows[i, j])
    np.testing.assert_array_equal(np.lexsort((j, i)), np.arange(L.nvals))
    assert level.dtype == np.int32
    for k, source in enumerate(sources[:3]):  # and as one search after the other
        found = sg.bfs(A, source, parents=False).level.to("cpu")
        np.testing.assert_array_equal(found.to_numpy(fill=-1), rows[k])


def test_no_source_and_one(device: str) -> None:
    A = matrix("path").to(device)
    assert multi_source_bfs(A, []).shape == (0, 64)
    assert multi_source_bfs(A, 5).nvals == 64
    with pytest.raises(IndexOutOfBound, match="multi_source_bfs: sources"):
        multi_source_bfs(A, [64])
    with pytest.raises(DomainMismatch, match="multi_source_bfs: sources"):
        multi_source_bfs(A, "0")
