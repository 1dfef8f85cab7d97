"""Greedy colourings and choices on any number of threads, against a loop over the vertices."""

from __future__ import annotations

import numpy as np
import pytest

import spgraph as sg
from spgraph.algorithms.triangle_count import undirected
from spgraph.backends.cpu.structure import vertex_by_vertex as module


def graph(name: str) -> sg.Matrix:
    """A symmetric pattern without loops."""
    if name == "complete":  # each vertex waits for the one before
        A = sg.Matrix.from_dense(np.ones((150, 150)))
    elif name == "none":
        A = sg.Matrix.empty(70, 70)
    elif name == "kronecker":  # with hubs
        A = sg.generators.kronecker(10)
    elif name == "grid":
        A = sg.generators.grid(30, 30)
    else:
        A = sg.generators.uniform_random(800, float(name))
    return undirected("test", A)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["complete", "none", "kronecker", "grid", "0.5", "4", "40"])
def test_colours(name: str, seed: int, threads: int) -> None:
    A = graph(name)
    n, random = A.nrows, np.random.default_rng(seed)
    power = np.floor(np.log2(np.diff(A.indptr) + 0.5)).astype(np.int8)
    word = random.permutation(n).astype(np.uint64) << np.uint64(40)
    color = np.full(n, -1)
    for v in np.lexsort((word, -power)):
        seen = set(color[A.indices[A.indptr[v] : A.indptr[v + 1]]].tolist())
        color[v] = next(c for c in range(n) if c not in seen)
    order = sg.Vector.from_dense(power), sg.Vector.from_dense(word)
    for _ in range(5):  # which thread waits for which depends on chance
        found = module.color_greedily(A, *order)
        np.testing.assert_array_equal(found.to_numpy(), color)


@pytest.mark.parametrize("shared", [0, 1, 3])
@pytest.mark.parametrize("n", [0, 1, 300, 40_000])
def test_the_order(n: int, shared: int, threads: int) -> None:
    """Also of words that differ in their lowest bits alone."""
    random = np.random.default_rng(n + shared)
    word = random.permutation(n).astype(np.uint64)
    word = (word >> np.uint64(shared)) << np.uint64(45) | word & np.uint64((1 << shared) - 1)
    for groups in (np.zeros(n, np.int8), random.integers(0, 33, n).astype(np.int8)):
        order = module._order(groups, word)
        np.testing.assert_array_equal(order, np.lexsort((word, groups)))
