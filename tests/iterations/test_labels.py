"""Labels of most neighbours, colour by colour: on all threads, on one, and made of operations."""

from __future__ import annotations

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph.algorithms.triangle_count import undirected
from spgraph.backends.cpu.runtime import pool
from spgraph.backends.cpu.structure import vertex_by_vertex
from spgraph.iterations.labels import composed, sweep_labels


def graph(n: int, m: int, seed: int) -> sg.Matrix:
    rows, columns = np.random.default_rng(seed).integers(0, n, (2, m))
    return undirected("test", sg.Matrix.from_coo(rows, columns, nrows=n, ncols=n))


@pytest.mark.fused
def test_random_graphs(device: str) -> None:
    for seed in range(20):
        A = graph(5 + 20 * seed, 30 * seed, seed).to(device)
        color = sg.greedy_color(A, seed=seed)
        for sweeps in (0, 1, 2, 60):
            label, settled = sweep_labels(A, color, sweeps)
            expected, whether = composed(A, color, sweeps)
            assert label.storage == "full" and label.device == A.device
            assert label.isequal(expected) and settled == whether, (seed, sweeps)


@pytest.mark.fused
@pytest.mark.parametrize("shared", [1, 300, 10**9])
def test_threads_take_the_labels_that_one_takes(
    shared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(5):
        A = graph(3000, 20_000, seed)
        color = sg.greedy_color(A, seed=seed)
        expected = sweep_labels(A, color, 100)
        with monkeypatch.context() as patch:
            patch.setattr(vertex_by_vertex, "SHARED", shared)
            patch.setattr(pool, "threads_for", lambda work, share=1: min(2, pool.processors()))
            for sweeps in (1, 100):
                label, settled = sweep_labels(A, color, sweeps)
                assert settled == (sweeps == 100)
            assert label.isequal(expected[0], check_dtype=True), seed


def test_colors_large_and_small() -> None:
    together = vertex_by_vertex._colors_together
    degrees = np.repeat([10_000, 1, 1, 10_000, 10_000, 1], 2)
    ends = np.arange(2, 13, 2)
    bounds, shared = together(ends, degrees, 2)
    assert bounds.tolist() == [0, 2, 6, 8, 10, 12]
    assert shared.tolist() == [True, False, True, True, False]
    assert together(ends, degrees, 1)[0].tolist() == [0, 12]
    assert together(ends[:0], degrees[:0], 2)[0].tolist() == [0, 0]
