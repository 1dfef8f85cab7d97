"""Graphs and a dense oracle for searches."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.sparse

import spgraph as sg
from spgraph.iterations import search
from spgraph.semirings import any_pair, any_secondi, min_plus, min_secondi, plus_first


def edges_of(name: str) -> tuple[int, np.ndarray, list[int]]:
    """(vertices, edges as pairs, sources)."""
    rng = np.random.default_rng(sum(map(ord, name)))

    def random(n: int, m: int) -> np.ndarray:
        return rng.integers(0, n, (m, 2))

    def both(pairs: np.ndarray) -> np.ndarray:
        return np.concatenate([pairs, pairs[:, ::-1]])

    star = np.stack([np.zeros(199, int), np.arange(1, 200)], axis=1)
    path = np.stack([np.arange(63), np.arange(1, 64)], axis=1)
    table = {
        "one": (1, np.empty((0, 2), int), [0]),
        "loop": (1, np.array([[0, 0]]), [0]),
        "no edges": (33, np.empty((0, 2), int), [32]),
        "path": (64, both(path), [0]),
        "directed path": (64, path, [10]),
        "star out": (200, star, [0]),
        "star in": (200, star[:, ::-1], [7]),
        "star both": (200, both(star), [7]),
        "cycle": (65, np.stack([np.arange(65), (np.arange(65) + 1) % 65], axis=1), [64]),
        "complete": (40, np.array([(i, j) for i in range(40) for j in range(40)]), [3]),
        "two components": (96, both(np.concatenate([random(48, 90), 48 + random(48, 90)])), [5]),
        "sparse directed": (1000, random(1000, 1500), [1, 2, 500]),
        "dense directed": (300, random(300, 9000), [0]),
        "sparse both": (1000, both(random(1000, 1600)), [999]),
        "skewed both": (
            1500,
            both((random(1500, 12000) * rng.random((12000, 2)) ** 2).astype(int)),
            [3],
        ),
        "many sources": (1200, both(random(1200, 3000)), list(range(0, 1200, 7))),
    }
    return table[name]


GRAPHS = (
    "one", "loop", "no edges", "path", "directed path", "star out", "star in", "star both",
    "cycle", "complete", "two components", "sparse directed", "dense directed", "sparse both",
    "skewed both", "many sources",
)  # fmt: skip


@functools.cache
def matrix(name: str) -> sg.Matrix:
    n, pairs, _ = edges_of(name)
    return sg.Matrix.from_coo(pairs[:, 0], pairs[:, 1], 2, nrows=n, ncols=n)


@functools.cache
def dense_search(name: str, ring: Any) -> tuple[np.ndarray, np.ndarray]:
    """(levels, values), -1 where not reached: plain loops over a dense adjacency."""
    n, pairs, sources = edges_of(name)
    neighbours: list[set[int]] = [set() for _ in range(n)]
    for i, j in pairs.tolist():
        neighbours[i].add(j)
    level, value = [-1] * n, [-1] * n
    for s in sources:
        level[s], value[s] = 0, start_value(ring, s)
    frontier, depth = sorted(sources), 0
    while frontier:
        depth += 1
        found: dict[int, int] = {}
        for u in frontier:
            for v in neighbours[u]:
                if level[v] >= 0:
                    continue
                if ring == plus_first:
                    found[v] = found.get(v, 0) + value[u]
                elif ring == min_plus:
                    found[v] = min(found.get(v, 10**9), value[u] + 2)
                else:
                    found[v] = min(found.get(v, 10**9), u)
        for v, z in found.items():
            level[v], value[v] = depth, z
        frontier = sorted(found)
    return np.array(level), np.array(value)


def start_value(ring: Any, s: int) -> int:
    return 1 if ring == plus_first else s % 5 if ring == min_plus else s


def check_against_dense(
    name: str, ring: Any, direction: str, device: str, max_depth: int | None = None
) -> None:
    """One search, compared with the dense one."""
    n, pairs, sources = edges_of(name)
    level, value = dense_search(name, ring)
    reached = level >= 0 if max_depth is None else (level >= 0) & (level <= max_depth)
    start = sg.Vector.from_coo(
        np.array(sources),
        np.array([start_value(ring, s) for s in sources], np.int32),
        size=n,
        device=device,
    )
    found = search(matrix(name).to(device), start, ring, direction=direction, max_depth=max_depth)
    assert found.level.nvals == reached.sum()
    np.testing.assert_array_equal(found.level.to_numpy(fill=-1), np.where(reached, level, -1))
    if ring == any_pair:
        assert found.value is None
        return
    got = found.value.to_numpy(fill=-1)
    assert found.value.nvals == reached.sum()
    if ring == any_secondi:  # any neighbour of the level before
        edges = set(map(tuple, pairs.tolist()))
        for v in np.flatnonzero(reached & (level > 0)):
            assert (int(got[v]), int(v)) in edges and level[got[v]] == level[v] - 1
    else:
        assert ring in (min_secondi, plus_first, min_plus)
        np.testing.assert_array_equal(got, np.where(reached, value, -1))


def check_index_types(ids: Any, offsets: Any, device: str) -> None:
    """A directed graph with index arrays of these types, its transpose with narrow ones: searches
    of every direction find what they find over narrow ones alone.
    """
    chance = np.random.default_rng(3)
    S = scipy.sparse.random_array((200, 200), density=0.05, rng=chance, format="csr")
    A = sg.Matrix.from_scipy(S)
    arrays = A._indptr.astype(offsets), A._indices.astype(ids), A._values
    B = sg.Matrix(200, 200, *arrays).to(device)
    for direction in ("auto", "push", "pull"):
        for parents in (True, False):
            found: Any = sg.bfs(B, 7, parents=parents, direction=direction)
            expected: Any = sg.bfs(A, 7, parents=parents)
            for k in range(1 + parents):
                assert found[k].to("cpu").isequal(expected[k])


def weighted_graph(n: int, m: int, seed: int = 0) -> sg.Matrix:
    """A directed graph with hubs, loops, values and vertices without out-edges."""
    rng = np.random.default_rng(seed)
    rows, columns = (rng.random(m) ** 3 * n).astype(int), (rng.random(m) ** 2 * n).astype(int)
    rows = rng.permutation(n)[rows]
    keep = rows % 7 != 3
    keys = np.unique(rows[keep] * n + columns[keep])
    values = rng.random(keys.size) + 0.1
    return sg.Matrix.from_coo(keys // n, keys % n, values, nrows=n, ncols=n)
