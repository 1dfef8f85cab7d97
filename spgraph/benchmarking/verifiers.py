"""The checks of the GAP Benchmark Suite for the results of its kernels.

Trees are checked by `spgraph.validation`, distances and ranks by one more step out of operations,
the others by the plain algorithms of `oracles`, where the graph is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from spgraph.benchmarking import oracles
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import move, on_device
from spgraph.containers.storage.host_matrix import HostMatrix
from spgraph.distributed import DistributedMatrix
from spgraph.operations import vxm
from spgraph.process import lazy_imports
from spgraph.semirings import min_plus, plus_first
from spgraph.validation import validate_bfs

DAMPING = 0.85


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
        with lazy_imports.whole():
            from scipy.sparse import csgraph

        found = csgraph.dijkstra(host(self.W).astype(np.float64).to_scipy(), indices=source)
        return np.where(np.isinf(found), -1.0, found)

    @cached_property
    def whole(self) -> Matrix:
        """A on one device; one in shards is brought together on the first of theirs, one whose
        columns are in host memory on the CPU.
        """
        A = self.A
        if isinstance(A, DistributedMatrix):
            return A.gather(A.device.devices[0])
        return A.to("cpu") if isinstance(A, HostMatrix) else A

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

    # --- components: one label in each, and in no two the same ------------------------------------

    def _cc(self, label: Vector, start: Sequence[int]) -> str | None:
        own, least = label.to_numpy(), self.components
        wrong = np.flatnonzero(own != own[least])
        if wrong.size:
            v = int(wrong[0])
            return f"vertex {v} has the label {own[v]}, {least[v]} of its component {own[least[v]]}"
        labels, count = np.unique(own).size, np.unique(least).size
        return None if labels == count else f"{labels} labels for {count} components"

    @cached_property
    def components(self) -> np.ndarray:
        """The least vertex of the weak component of each vertex."""
        return move(oracles.components(self.whole), "cpu")

    # --- betweenness ------------------------------------------------------------------------------

    def _bc(self, score: Vector, start: Sequence[int]) -> str | None:
        with on_device(self.whole.device):  # a source drawn twice counts once
            right = sum(oracles.dependencies(self.whole, source) for source in set(start))
        right, found = move(right, "cpu"), score.to_numpy()
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
        """The number of triangles of the edges in either direction."""
        return oracles.triangles(self.whole)


def host(A: Matrix) -> Matrix:
    """A on the CPU, as a whole."""
    return A.gather() if isinstance(A, DistributedMatrix) else A.to("cpu")
