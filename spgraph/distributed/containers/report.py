"""What a partition costs: the work of each shard, and its border, the vertices of other shards that
its edges lead to (the halo), whose values are exchanged.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from spgraph.containers.methods import display
from spgraph.containers.storage.arrays import Array, array_module
from spgraph.distributed.containers.partition import Partition


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Report:
    """`vertices`, `edges` and `nbytes` of each shard, and `border`: border[p, q] is the number of
    vertices of shard q with an edge from shard p, the most values that p sends to q in a round.
    """

    vertices: np.ndarray
    edges: np.ndarray
    nbytes: np.ndarray
    border: np.ndarray

    @property
    def vertex_imbalance(self) -> float:
        """The vertices of the largest shard, over the mean."""
        return _imbalance(self.vertices)

    @property
    def edge_imbalance(self) -> float:
        """The edges of the largest shard, over the mean."""
        return _imbalance(self.edges)

    def _describe(self) -> display.Shown:
        """Headings, and a row of each shard."""
        shards = len(self.vertices)
        shown = min(shards, display.ROWS)
        facts = [
            f"{self.vertices.sum()} vertices",
            f"{self.edges.sum()} edges",
            f"border {self.border.sum()}",
            f"imbalance {self.edge_imbalance:.3f} of edges",
            f"{self.vertex_imbalance:.3f} of vertices",
            display.size_of(int(self.nbytes.sum())),
        ]
        pairs = [f"to {q}" for q in range(shown)] if shown == shards else []
        rows: list[tuple[object, ...]] = [("shard", "vertices", "edges", "bytes", "border", *pairs)]
        for p in range(shown):
            numbers = int(self.vertices[p]), int(self.edges[p])
            size = display.size_of(int(self.nbytes[p]))
            border = self.border[p].tolist()
            rows.append((p, *numbers, size, sum(border), *(border if pairs else ())))
        return display.Shown(f"Partition in {shards} shards", facts, rows, shards + 1)

    def __repr__(self) -> str:
        return self._describe().text()

    def _repr_html_(self) -> str:
        return self._describe().html()


def border(indices: Array, partition: Partition, p: int) -> np.ndarray:
    """The number of vertices of each shard with an edge from shard p, 0 for p itself: int64.

    `indices` are the columns of the rows of shard p, internal ids, on its device.
    """
    xp = array_module(indices)
    reached = xp.zeros(partition.size, bool)
    reached[indices] = True
    counts = [xp.count_nonzero(reached[partition.slice(q)]) for q in range(partition.num_shards)]
    counts[p] = xp.zeros((), np.int64)
    found = xp.stack([xp.asarray(count, np.int64) for count in counts])
    return found if xp is np else found.get()


def _imbalance(amounts: np.ndarray) -> float:
    """Largest over mean; 1 where all are 0."""
    total = int(amounts.sum())
    return float(amounts.max() * amounts.size / total) if total else 1.0
