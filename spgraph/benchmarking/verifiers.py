"""The checks of the GAP Benchmark Suite for the results of its kernels.

Trees are checked by `spgraph.validation`, distances and ranks by one more step out of operations;
the others by plain algorithms on the CPU that share no code with the kernels.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from spgraph import late_imports
from spgraph.containers import Matrix, Vector
from spgraph.distributed import DistributedMatrix
from spgraph.operations import mxv, vxm
from spgraph.semirings import max_second, min_plus, min_second, plus_first
from spgraph.validation import validate_bfs

DAMPING = 0.85
PRODUCTS = 1 << 25  # so many products of entries are counted together


class Verifiers:
    """What a graph's right results are; W is the graph with the weights of sssp."""

    def __init__(self, A: Matrix, W: Matrix, tolerance: float) -> None:
        self.A, self.W, self.tolerance = A, W, tolerance

    def failures(self, kernel: str, start: Sequence[int], found: Any) -> list[str]:
        """What is wrong with a result of a kernel."""
        if kernel == "bfs":
            return [each.message for each in validate_bfs(self.A, start[0], *found)]
        wrong = getattr(self, f"_{kernel}")(found, start)
        return [] if wrong is None else [wrong]

    # --- distances: what the in-neighbours bring, and nothing less -------------------------------

    def _sssp(self, distance: Vector, start: Sequence[int]) -> str | None:
        right = self._dijkstra(start[0]) if self.W._value_range()[0] <= 0 else None
        found = distance.to_numpy(fill=-1)
        if right is None:
            # with weights above 0, a fixed point that leads back to the source
            right = vxm(distance, self.W, min_plus, direction="pull").to_numpy(fill=-1)
            right[start[0]] = 0
        wrong = np.flatnonzero(found != right)
        if not wrong.size:
            return None
        v = int(wrong[0])
        return f"vertex {v} has the distance {found[v]}, expected {right[v]}; -1: not reached"

    def _dijkstra(self, source: int) -> np.ndarray:
        """The distances by SciPy, -1 where there is none."""
        with late_imports.whole():
            from scipy.sparse import csgraph

        found = csgraph.dijkstra(host(self.W).astype(np.float64).to_scipy(), indices=source)
        return np.where(np.isinf(found), -1.0, found)

    @cached_property
    def plain(self) -> Any:
        """The pattern on the CPU, as a SciPy array of int64."""
        return host(self.A).pattern(np.int64).to_scipy()

    @cached_property
    def undirected(self) -> Any:
        """The pattern of the edges in either direction, without loops."""
        S = self.plain + self.plain.T
        S.setdiag(0)
        S.eliminate_zeros()
        S.data[:] = 1
        S.sort_indices()
        return S

    # --- PageRank: one more iteration changes less than the tolerance -----------------------------

    def _pr(self, rank: Vector, start: Sequence[int]) -> str | None:
        degree = self.A.row_degrees().to_numpy()
        x = rank.to_numpy()
        dangling = x[degree == 0].sum()
        flow = Vector.from_dense(x / np.maximum(degree, 1), missing=None).to(self.A.device)
        inflow = vxm(flow, self.A, plus_first, direction="pull").to_numpy(fill=0.0)
        again = (1 - DAMPING + DAMPING * dangling) / x.size + DAMPING * inflow
        error = np.abs(again - x).sum()
        if error < self.tolerance:
            return None
        return f"one more iteration changes the ranks by {error:g}, not below {self.tolerance:g}"

    # --- components: edges join one label, and there are as many labels as components -------------

    def _cc(self, label: Vector, start: Sequence[int]) -> str | None:
        own = label.to_numpy()
        for ring in (min_second, max_second):
            other = mxv(self.A, label, ring, direction="pull").to_numpy(fill=-1)
            wrong = np.flatnonzero((other >= 0) & (other != own))
            if wrong.size:
                v = int(wrong[0])
                return f"vertex {v} has the label {own[v]}, a neighbour of it {other[v]}"
        count = np.unique(own).size
        if count != self.components:
            return f"{count} labels for {self.components} components"
        return None

    @cached_property
    def components(self) -> int:
        """How many weak components there are, by SciPy."""
        with late_imports.whole():
            from scipy.sparse import csgraph

        return int(csgraph.connected_components(self.plain, return_labels=False))

    # --- betweenness: Brandes' algorithm, a level at a time ---------------------------------------

    def _bc(self, score: Vector, start: Sequence[int]) -> str | None:
        right = np.zeros(self.plain.shape[0])
        for source in set(start):  # one drawn twice counts once
            right += dependencies(self.plain.indptr, self.plain.indices, source)
        found = score.to_numpy()
        most = max(right.max(), found.max())
        difference = np.abs(found - right) / most if most else np.abs(found - right)
        v = int(difference.argmax())
        if difference[v] <= np.finfo(np.float32).eps:
            return None
        return f"vertex {v} has the score {found[v]:g}, expected {right[v]:g}"

    # --- triangles --------------------------------------------------------------------------------

    def _tc(self, count: int, start: Sequence[int]) -> str | None:
        return None if count == self.triangles else f"{count} triangles, not {self.triangles}"

    @cached_property
    def triangles(self) -> int:
        """The number of triangles: pairs of edges from a vertex of low degree to higher ones, whose
        ends an edge joins.
        """
        S = self.undirected
        order = np.argsort(np.diff(S.indptr), kind="stable")
        low = np.empty(order.size, np.int64)
        low[order] = np.arange(order.size)
        rows = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
        S = S.copy()
        S.data[low[rows] >= low[S.indices]] = 0
        S.eliminate_zeros()
        work = np.concatenate([[0], np.cumsum(S @ np.diff(S.indptr))])
        cuts = np.unique(np.searchsorted(work, np.arange(0, work[-1] + PRODUCTS, PRODUCTS)))
        cuts = np.unique([0, *cuts.clip(max=S.shape[0]), S.shape[0]])
        parts = (S[a:b] for a, b in itertools.pairwise(cuts))
        return int(sum((part @ S).multiply(part).sum() for part in parts))


def host(A: Matrix) -> Matrix:
    """A on the CPU, as a whole."""
    return A.gather() if isinstance(A, DistributedMatrix) else A.to("cpu")


def dependencies(indptr: np.ndarray, indices: np.ndarray, source: int) -> np.ndarray:
    """The share of the shortest paths from `source` that go through each vertex, summed over their
    ends; 0 at the source.
    """
    n = indptr.size - 1
    depth, paths = np.full(n, -1), np.zeros(n)
    depth[source], paths[source] = 0, 1.0
    levels = [np.array([source])]
    edges = []
    while levels[-1].size:
        frontier = levels[-1]
        counts = indptr[frontier + 1] - indptr[frontier]
        before = np.cumsum(counts) - counts
        at = np.repeat(indptr[frontier] - before, counts) + np.arange(counts.sum())
        tails, heads = np.repeat(frontier, counts), indices[at]
        depth[heads[depth[heads] < 0]] = len(levels)
        on = depth[heads] == len(levels)
        tails, heads = tails[on], heads[on]
        np.add.at(paths, heads, paths[tails])
        levels.append(np.unique(heads))
        edges.append((tails, heads))
    delta = np.zeros(n)
    for tails, heads in reversed(edges):
        np.add.at(delta, tails, paths[tails] / paths[heads] * (1 + delta[heads]))
    delta[source] = 0
    return delta
