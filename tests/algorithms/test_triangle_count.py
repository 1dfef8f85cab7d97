"""Triangles on every device, against NetworkX and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from fixtures_device import device  # noqa: F401
from networkx_cases import TRIANGLES, triangular

import spgraph as sg
from spgraph.errors import DimensionMismatch

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")


@pytest.mark.parametrize("name", TRIANGLES)
@pytest.mark.parametrize("loops", [False, True])
def test_equals_networkx(name: str, loops: bool, device: str) -> None:
    G, A = triangular(name, loops)
    assert sg.triangle_count(A.to(device)) == sum(nx.triangles(G).values()) // 3


def test_directions_and_values_do_not_matter(device: str) -> None:
    G = nx.gnp_random_graph(80, 0.15, seed=1, directed=True)
    A = sg.Matrix.from_networkx(G).to(device)
    both = G.to_undirected()
    assert sg.triangle_count(A) == sum(nx.triangles(both).values()) // 3
    heavy = A.dup(np.float32)
    heavy._values[:] = 0.0  # an entry of value zero is an edge all the same
    assert sg.triangle_count(heavy) == sg.triangle_count(A)


def test_kronecker_graph_against_scipy(device: str) -> None:
    A = sg.generators.kronecker(11, 16)
    L = scipy.sparse.tril(A.to_scipy().astype(np.int64), -1, format="csr")
    assert sg.triangle_count(A.to(device)) == int((L @ L.T).multiply(L).sum())


def test_bad_input() -> None:
    assert sg.triangle_count(sg.Matrix.empty(0, 0)) == 0
    with pytest.raises(DimensionMismatch, match="triangle_count: A: expected a square"):
        sg.triangle_count(sg.Matrix.empty(2, 3))
