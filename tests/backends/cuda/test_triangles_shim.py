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
    monkeypatch.setattr(on_cuda, "shared_memory", lambda device: 1 << 14)


def of_long_rows(monkeypatch: pytest.MonkeyPatch, **chosen: int) -> None:
    """Count by the form of graphs with long rows, under other limits."""
    monkeypatch.setattr(direction, "SHORT_ROWS", -1.0)
    for name, value in chosen.items():
        monkeypatch.setattr(on_cuda, name, value)


# all by warps, all by blocks in parts, and columns in more than one window of bits
LIMITS: dict[str, dict[str, int]] = {
    "warps": {},
    "parts": {"WARP_WORK": 0, "TASK_WORK": 16},
    "windows": {"WARP_WORK": 0, "FAR_WORK": 0, "RESERVED": (1 << 14) - 4},
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


def test_no_entry(shim: None) -> None:
    assert cuda.triangles(sg.Matrix.empty(0, 0)) == 0
    assert cuda.triangles(sg.Matrix.empty(5, 5)) == 0
