"""Graphs for the tests of spgraph.csgraph, and what makes a tree of shortest paths one."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from hypothesis import strategies as st

LENGTHS = (0.0, 0.25, 1.0, 1.0, 2.0, 3.5, 7.0, np.inf, np.nan)
SIGNED = (-2.0, -1.0, -0.5, 0.0, 1.0, 2.0, 3.0, np.inf)


@st.composite
def graphs(draw: Any, lengths: tuple[float, ...] = LENGTHS, most: int = 9) -> Any:
    """Compressed rows, neither sorted nor free of repetitions, with loops."""
    n = draw(st.integers(1, most))
    ends = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(ends, ends, st.sampled_from(lengths)), max_size=3 * n))
    return rows_of(n, edges)


def rows_of(n: int, edges: list[tuple[int, int, float]]) -> Any:
    """A csr_array of the edges in their order, none of them added up."""
    edges = sorted(edges, key=lambda edge: edge[0])  # stable: columns stay as they come
    counts = np.bincount(np.array([edge[0] for edge in edges], int), minlength=n)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    indices = np.array([edge[1] for edge in edges], np.int32)
    data = np.array([edge[2] for edge in edges], float)
    return scipy.sparse.csr_array((data, indices, indptr), shape=(n, n))


def edges_of(S: Any, directed: bool) -> list[tuple[int, int, float]]:
    rows = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
    edges = list(zip(rows.tolist(), S.indices.tolist(), S.data.tolist(), strict=True))
    return edges if directed else edges + [(v, u, w) for u, v, w in edges]


def check_paths(
    S: Any, directed: bool, starts: list[int], distance: Any, parent: Any, unweighted: bool = False
) -> Any:
    """The predecessors of one row lead over shortest edges to a start; gives the starts they end
    at, -9999 where there is none.
    """
    least: dict[tuple[int, int], list[float]] = {}
    for u, v, w in edges_of(S, directed):
        least.setdefault((u, v), []).append(1.0 if unweighted else w)
    ends = np.full(len(distance), -9999)
    for v in range(len(distance)):
        at, steps = v, 0
        while parent[at] != -9999:
            u = int(parent[at])
            lengths = least[u, at]
            assert any(np.isclose(distance[u] + w, distance[at]) for w in lengths), (u, at)
            at, steps = u, steps + 1
            assert steps <= len(distance), "predecessors lead around a cycle"
        if np.isinf(distance[v]):
            assert parent[v] == -9999
        else:
            assert at in starts
            ends[v] = at
    return ends
