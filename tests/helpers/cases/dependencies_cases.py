"""Graphs, and numbers of shortest paths through vertices by plain loops."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from networkx_cases import directed_of
from search_cases import GRAPHS, edges_of

import spgraph as sg

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")

# beside the graphs of the searches
MORE = ("empty", "acyclic", "rmat 8", "rmat 10", "rmat 9 directed", "layers", "braid")


@functools.cache
def edges(name: str) -> tuple[int, np.ndarray]:
    """(vertices, directed edges as pairs)."""
    if name in GRAPHS:
        return edges_of(name)[:2]
    rng = np.random.default_rng(5)
    if name == "empty":
        return 0, np.empty((0, 2), int)
    if name == "acyclic":
        pairs = np.sort(rng.integers(0, 150, (600, 2)), axis=1)
        return 150, pairs[pairs[:, 0] < pairs[:, 1]]
    if name in ("layers", "braid"):  # 16 ** 260 paths from end to end are more than float64 holds
        i, j, k = np.meshgrid(np.arange(16), np.arange(16), np.arange(260), indexing="ij")
        pairs = np.stack([(16 * k + i).ravel(), (16 * k + 16 + j).ravel()], axis=1)
        n = 16 * 261
        if name == "braid":  # and one path of the same length beside them
            line = n + np.arange(261)
            n += 261
            beside = np.stack([line[:-1], line[1:]], axis=1)
            pairs = np.concatenate([pairs, beside, [[0, line[1]], [line[-1], 16 * 260]]])
        return n, np.concatenate([pairs, pairs[:, ::-1]])
    directed = "directed" in name
    A = sg.generators.kronecker(int(name.split()[1]), 6, seed=2, symmetric=not directed)
    return A.nrows, np.stack(A.to_coo()[:2], axis=1)


@functools.cache
def matrix(name: str) -> sg.Matrix:
    n, pairs = edges(name)
    A = sg.Matrix.from_coo(pairs[:, 0], pairs[:, 1], nrows=n, ncols=n)
    A.is_symmetric()
    return A


def some_sources(n: int, most: int = 7) -> np.ndarray:
    return np.random.default_rng(n).permutation(n)[:most]


@functools.cache
def by_loops(name: str, sources: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """(scores, a row of levels for each source); numbers of paths are Python's own integers."""
    n, pairs = edges(name)
    after: list[set[int]] = [set() for _ in range(n)]
    for i, j in pairs.tolist():
        after[i].add(j)
    score, rows = [0.0] * n, []
    for s in sources:
        level, paths, order = [-1] * n, [0] * n, [s]
        level[s], paths[s] = 0, 1
        for u in order:
            for v in after[u]:
                if level[v] < 0:
                    level[v] = level[u] + 1
                    order.append(v)
                if level[v] == level[u] + 1:
                    paths[v] += paths[u]
        carried = [0.0] * n
        for u in reversed(order):
            for v in after[u]:
                if level[v] == level[u] + 1:
                    carried[u] += paths[u] / paths[v] * (1 + carried[v])
            if u != s:
                score[u] += carried[u]
        rows.append(level)
    return np.array(score), np.array(rows).reshape(len(rows), n)


def same(got: Any, expected: np.ndarray) -> None:
    assert got.storage == "full" and got.dtype == np.float64
    np.testing.assert_allclose(got.to_numpy(), expected, rtol=1e-10, atol=1e-300)


def dense(found: sg.Matrix) -> np.ndarray:
    """Levels as an array, -1 where there is none."""
    rows, columns, values = found.to("cpu").to_coo()
    array = np.full(found.shape, -1, values.dtype)
    array[rows, columns] = values
    return array


def networkx_of(name: str, weights: np.ndarray | None = None) -> nx.DiGraph:
    return directed_of(matrix(name), weights)


def two(name: str) -> list[int]:
    return some_sources(matrix(name).nrows, 2).tolist()
