"""BFS on real graphs, against SciPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401
from scipy.sparse import csgraph

import spgraph as sg


@pytest.mark.parametrize(
    "name", ["usa-road-NY.gr.xz", "usa-road-BAY.mtx.gz", "soc-Epinions1.txt.gz"]
)
def test_levels_equal_scipy(name: str, device: str, shared_data: Path) -> None:
    A = sg.read(shared_data / name)
    S, G = A.to_scipy().astype(np.float64), A.to(device)
    for source in (0, 1234, 70_000):
        expected = csgraph.dijkstra(S, unweighted=True, indices=source)
        for direction in ("auto", "push"):
            level, parent = sg.bfs(G, source, direction=direction)
            levels = level.to_numpy(fill=-1)
            np.testing.assert_array_equal(levels, np.where(np.isinf(expected), -1, expected))
            parents = parent.to_numpy(fill=-1)
            found = np.flatnonzero(levels > 0)
            np.testing.assert_array_equal(levels[parents[found]], levels[found] - 1)
