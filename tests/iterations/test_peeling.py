"""Vertices taken away by degree, against NetworkX's cores."""

from __future__ import annotations

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401
from networkx_cases import GRAPHS, case

import spgraph as sg
from spgraph.algorithms.triangle_count import undirected
from spgraph.iterations.peeling import composed, peel

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")


@pytest.mark.parametrize("name", GRAPHS)
def test_degrees_are_cores(name: str, device: str) -> None:
    S, both = case(name)
    both = nx.Graph(both)
    both.remove_edges_from(list(nx.selfloop_edges(both)))
    A = undirected("test", sg.Matrix.from_scipy(S).to(device))
    found = peel(A)
    assert found.storage == "full" and found.dtype == np.int32 and found.device == A.device
    assert dict(enumerate(found.to_numpy().tolist())) == nx.core_number(both)
    assert found.isequal(composed(A), check_dtype=True)


@pytest.mark.fused
def test_random_graphs(device: str) -> None:
    for seed in range(40):
        n = 5 + 5 * seed
        G = nx.gnm_random_graph(n, 3 * n, seed=seed)
        A = undirected("test", sg.Matrix.from_networkx(G).to(device))
        assert peel(A).to_numpy().tolist() == [c for _, c in sorted(nx.core_number(G).items())]
