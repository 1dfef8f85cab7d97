"""The CUDA search without a GPU: its host code on NumPy arrays, its kernels under the shim."""

from __future__ import annotations

import importlib
from typing import Any

import cuda_host_shim
import numpy as np
import pytest
from search_cases import GRAPHS, check_against_dense, matrix

import spgraph as sg
from spgraph.backends import cuda
from spgraph.backends.cuda.runtime import jit
from spgraph.iterations import level_search as searches
from spgraph.semirings import any_pair, any_secondi, min_plus, min_secondi, plus_first

pytestmark = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")

# graphs that between them take every path of the kernel; the rest take long for what they add
COVER = ("one", "no edges", "star in", "two components", "sparse directed", "skewed both")
RINGS = (any_pair, min_secondi, plus_first)
CASES = [
    pytest.param(graph, ring, marks=() if ring in RINGS and graph in COVER else pytest.mark.full)
    for graph in GRAPHS
    for ring in (*RINGS, any_secondi, min_plus)
]


@pytest.fixture(autouse=True)
def on_the_shim(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda_host_shim.install(monkeypatch)
    monkeypatch.setattr(searches, "backend", lambda device: cuda)
    monkeypatch.setattr(jit, "current_device", lambda: 0)


@pytest.mark.parametrize(("graph", "ring"), CASES, ids=repr)
def test_search_equals_dense_loops(graph: str, ring: Any) -> None:
    for direction in ("auto", "push", "pull"):
        check_against_dense(graph, ring, direction, "cpu")


@pytest.mark.parametrize("ring", RINGS, ids=repr)
def test_graphs_of_all_types_of_values_share_a_program(
    ring: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module(cuda.search.__module__)
    compile_, texts = module._kernel, []
    monkeypatch.setattr(
        module, "_kernel", lambda text, *rest: texts.append(text) or compile_(text, *rest)
    )
    pattern = matrix("two components").pattern()
    rows, columns, _ = pattern.to_coo()
    start = sg.Vector.unit(5, 1, size=pattern.nrows, dtype=pattern.index_dtype)
    expected = searches.search(pattern, start, ring)
    for dtype in (np.int32, np.float64):
        values = np.arange(pattern.nvals).astype(dtype)
        A = sg.Matrix.from_coo(rows, columns, values, nrows=pattern.nrows, ncols=pattern.ncols)
        for direction in ("auto", "pull"):
            found = searches.search(A, start, ring, direction=direction)
            assert found.level.isequal(expected.level)
            assert ring == any_pair or found.value.isequal(expected.value)
    assert len(texts) == 5 and len(set(texts)) == 1


def test_trace_counts_what_was_looked_at() -> None:
    A = sg.generators.grid(9, 11)
    start = sg.Vector.unit(0, True, size=99, dtype=bool)
    found = searches.search(A, start, any_pair, trace=True)
    assert [level.frontier for level in found.trace][:3] == [1, 2, 3]
    assert sum(level.frontier for level in found.trace) == 99


def test_a_transpose_of_other_index_types() -> None:
    """Transposes have the smallest types that will do; the kernel knows one of each kind."""
    A = matrix("sparse directed")
    n = A.nrows
    start = sg.Vector.from_coo([3], 3, size=n)
    wide = sg.Matrix(n, n, A._indptr.astype(np.int64), A._indices.astype(np.int64), A._values)
    for direction in ("auto", "push", "pull"):
        given = (start, None, True, direction, n, False)
        expected, _, _ = cuda.search(A, A.T, *given)
        found, _, _ = cuda.search(wide, A.T, *given)
        assert found.isequal(expected) and found.nvals > 1
