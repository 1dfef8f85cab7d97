"""Triangles by the CUDA backend without a GPU, against NetworkX and the CPU."""

from __future__ import annotations

import importlib
from typing import Any

import cuda_host_shim
import numpy as np
import pytest
from networkx_cases import TRIANGLES, triangular

import spgraph as sg
from spgraph import direction
from spgraph.backends import cuda
from spgraph.backends.cuda.runtime import jit

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")
pytestmark = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")
on_cuda = importlib.import_module("spgraph.backends.cuda.structure.triangles")


@pytest.fixture
def shim(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda_host_shim.install(monkeypatch)
    monkeypatch.setattr(jit, "current_device", lambda: 0)


def of_long_rows(monkeypatch: pytest.MonkeyPatch, **chosen: int) -> None:
    """Count by the form of graphs with long rows, under other limits."""
    monkeypatch.setattr(direction, "SHORT_ROWS", -1.0)
    for name, value in chosen.items():
        monkeypatch.setattr(on_cuda, name, value)


# rows that lead to hubs alone or not, rows for blocks in parts, and with most columns in pieces of
# a hash table
LIMITS: dict[str, dict[str, int]] = {
    "hubs": {},
    "few hubs": {"HUB_BITS": 0},
    "parts": {"SHORT": 0, "PART": 8, "HUB_BITS": 0},
    "pieces": {"SHORT": 0, "WINDOW": 32, "SLOTS": 32},
}


@pytest.mark.parametrize("name", TRIANGLES)
def test_equals_networkx(name: str, shim: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for loops in (False, True):
        G, A = triangular(name, loops)
        expected = sum(nx.triangles(G).values()) // 3
        with monkeypatch.context() as patched:
            patched.setattr(direction, "SHORT_ROWS", 1e9)
            assert cuda.triangles(A.pattern()) == expected
        for limits in LIMITS.values():
            with monkeypatch.context() as patched:
                of_long_rows(patched, **limits)
                assert cuda.triangles(A.pattern()) == expected


@pytest.mark.parametrize("limits", LIMITS)
def test_kronecker_graph(limits: str, shim: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of up to some hundred entries, isolated vertices, a hub."""
    A = sg.generators.kronecker(10, 16, seed=2)
    expected = sg.triangle_count(A)
    assert expected > 10_000 and not direction.rows_are_short(on_cuda._squares(A), A.nvals)
    of_long_rows(monkeypatch, **LIMITS[limits])
    assert cuda.triangles(A) == expected


def test_long_rows_among_short_ones(shim: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel on a grid: a thread takes the others, a warp the hub's row."""
    G = nx.Graph(nx.wheel_graph(150))
    G.add_edges_from((150 + i, 151 + i) for i in range(3000))
    G.add_edges_from((150 + i, 152 + i) for i in range(0, 3000, 7))
    A = sg.Matrix.from_networkx(G).pattern()
    monkeypatch.setattr(direction, "SHORT_ROWS", 1e9)
    expected = sum(nx.triangles(G).values()) // 3
    assert expected > 500 and cuda.triangles(A) == expected


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_index_types(index: Any, shim: None, monkeypatch: pytest.MonkeyPatch) -> None:
    A = sg.generators.kronecker(7, 8, seed=3)
    expected = sg.triangle_count(A)
    B = sg.Matrix._of(
        *(*A.shape, A.indptr.astype(index), A.indices.astype(index), A._values),
        iso=A.iso,
        symmetric=True,
    )
    for short in (-1.0, 1e9):
        monkeypatch.setattr(direction, "SHORT_ROWS", short)
        assert cuda.triangles(B) == expected


def test_hubs_take_no_more_memory_than_columns() -> None:
    for n, edges, hubs in ((5, 4, 32), (5000, 4, 4096), (1 << 21, 90_573_457, 1 << 15)):
        assert on_cuda._hubs(n, edges) == hubs
        assert hubs**2 // 8 <= max(on_cuda.HUB_BITS, 4 * edges)
    assert on_cuda._hubs(1 << 26, 1 << 31) == on_cuda.WINDOW


def test_no_entry(shim: None) -> None:
    assert cuda.triangles(sg.Matrix.empty(0, 0)) == 0
    assert cuda.triangles(sg.Matrix.empty(5, 5)) == 0
