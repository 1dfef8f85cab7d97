"""The CUDA kernels of spgraph.csgraph without a GPU: their host code on NumPy arrays, their texts
under the shim.
"""

from __future__ import annotations

import cuda_host_shim
import numpy as np
import pytest
from csgraph_cases import check_paths
from scipy.sparse import csgraph as theirs

import spgraph.csgraph as ours
from spgraph.backends.cuda.traversals import traversals

pytestmark = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")


@pytest.fixture(autouse=True)
def on_the_shim(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda_host_shim.install(monkeypatch)
    monkeypatch.setattr(traversals, "TILE", 8)  # a block of 1024 threads takes its time


@pytest.mark.parametrize("n", [1, 7, 8, 9, 40])
def test_floyd_warshall(n: int) -> None:
    chance = np.random.default_rng(n)
    lengths = np.where(chance.random((n, n)) < 0.2, chance.integers(1, 9, (n, n)), np.inf)
    np.fill_diagonal(lengths, 0)
    expected = theirs.floyd_warshall(lengths)
    ids = np.arange(n, dtype=np.int32)[:, None]
    parents = np.where(np.isinf(lengths), np.int32(-9999), ids)
    np.fill_diagonal(parents, -9999)
    alone, distance = lengths.copy(), lengths.copy()
    traversals.floyd_warshall(alone, None)
    np.testing.assert_array_equal(alone, expected)
    traversals.floyd_warshall(distance, parents)
    np.testing.assert_array_equal(distance, expected)
    edges = ours.csgraph_from_dense(lengths, null_value=np.inf)
    for s in range(n):
        check_paths(edges, True, [s], distance[s], parents[s])
    along, failed = traversals.path_lengths(lengths, parents, np.inf)
    np.testing.assert_array_equal(along, expected)
    assert not failed[0]


def test_lengths_along_cycles_and_out_of_the_graph() -> None:
    lengths = np.ones((3, 3))
    for parents in ([-9999, 2, 1], [-9999, 3, 0], [-9999, -5, 0]):
        before = np.full((3, 3), -9999, np.int32)
        before[0] = parents
        assert traversals.path_lengths(lengths, before, 0.0)[1][0]
    found, failed = traversals.path_lengths(lengths, np.full((3, 3), -9999, np.int32), -1.0)
    np.testing.assert_array_equal(found, np.eye(3) - 1)
    assert not failed[0]
