"""Clustering coefficients on every device, against NetworkX."""

from __future__ import annotations

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401
from networkx_cases import TRIANGLES, triangular

import spgraph as sg
from spgraph.errors import DimensionMismatch

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")


@pytest.mark.parametrize("name", TRIANGLES)
@pytest.mark.parametrize("loops", [False, True])
def test_equals_networkx(name: str, loops: bool, device: str) -> None:
    G, A = triangular(name, loops)
    expected = nx.clustering(G)
    found = sg.clustering(A.to(device))
    assert found.storage == "full" and found.dtype == np.float64
    assert np.allclose(found.to_numpy(), [expected[v] for v in G], rtol=1e-15)


def test_directions_do_not_matter(device: str) -> None:
    G = nx.gnp_random_graph(80, 0.15, seed=1, directed=True)
    expected = nx.clustering(G.to_undirected())
    found = sg.clustering(sg.Matrix.from_networkx(G).to(device))
    assert np.allclose(found.to_numpy(), [expected[v] for v in G])


def test_bad_input() -> None:
    assert sg.clustering(sg.Matrix.empty(0, 0)).size == 0
    with pytest.raises(DimensionMismatch, match="clustering: A: expected a square"):
        sg.clustering(sg.Matrix.empty(2, 3))
