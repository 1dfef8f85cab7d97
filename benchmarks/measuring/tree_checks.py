"""The five Graph500 checks of a breadth-first tree, and the least parents, on the graph's device.

The least parents of a thousand million edges are found in steps, on NumPy or CuPy arrays alike.
"""

from __future__ import annotations

from typing import Any

import spgraph as sg
from spgraph.containers.storage.arrays import array_module
from spgraph.validation import validate_bfs

STEP = 1 << 25  # edges looked at together: about 2 GB of temporary arrays


def dense(v: sg.Vector) -> Any:
    """The values on the vector's device, -1 where there is no entry."""
    return v.to_numpy(fill=-1) if v.device == "cpu" else v.to_cupy(fill=-1)


def faults(A: sg.Matrix, source: int, level: sg.Vector, parent: sg.Vector) -> list[str]:
    """What is wrong with a tree of the symmetric matrix A; nothing if all is right."""
    failures = validate_bfs(A, source, level, parent)
    if failures:
        return [f"{failure.check}: {failure.message}" for failure in failures]
    xp = array_module(A.indices)
    depth, above = dense(level), dense(parent)
    least = xp.full(A.nrows, A.nrows, A.indices.dtype)
    for tail, head in _edges(A, xp):
        leads = (depth[head] - depth[tail] == 1) & (depth[tail] >= 0)
        xp.minimum.at(least, head[leads], tail[leads])
    child = depth > 0
    if (least[child] != above[child]).any():
        return ["least parent: a parent is not the least neighbour one level up"]
    return []


def _edges(A: sg.Matrix, xp: Any) -> Any:
    """(rows, columns) of the entries, in steps."""
    for first in range(0, A.nvals, STEP):
        last = min(first + STEP, A.nvals)
        places = xp.arange(first, last, dtype=A.indptr.dtype)
        rows = xp.searchsorted(A.indptr[1:], places, side="right").astype(A.indices.dtype)
        yield rows, A.indices[first:last]
