"""The five Graph500 checks of a breadth-first tree, and the least parents, on the graph's device.

A symmetric graph of a thousand million edges is checked in steps, on NumPy or CuPy arrays alike.
`spgraph.validation` does the same on the CPU and says more about what it finds; it shares no code
with this.
"""

from __future__ import annotations

from typing import Any

import spgraph as sg
from spgraph.containers.storage.arrays import array_module

STEP = 1 << 25  # edges looked at together: about 2 GB of temporary arrays


def dense(v: sg.Vector) -> Any:
    """The values on the vector's device, -1 where there is no entry."""
    return v.to_numpy(fill=-1) if v.device == "cpu" else v.to_cupy(fill=-1)


def faults(A: sg.Matrix, source: int, level: sg.Vector, parent: sg.Vector) -> list[str]:
    """What is wrong with a tree of the symmetric matrix A; nothing if all is right.

    Levels that pass 2 are those of real paths, and with 3 and 4 no path is shorter. Check 5 is part
    of the last: the least neighbour one level up is a neighbour.
    """
    xp = array_module(A.indices)
    depth, above = dense(level), dense(parent)
    reached = depth >= 0
    found = []
    if not (reached == (above >= 0)).all() or (above >= A.nrows).any():
        return ["1: a vertex has a level or a parent and not the other, or a parent out of range"]
    if int(above[source]) != source or int(depth[source]) != 0:
        found.append("1: the source is not the root, at level 0")
    child = xp.flatnonzero(reached)
    child = child[child != source]
    if (depth[above[child]] + 1 != depth[child]).any():
        found.append("2: a vertex is not one level below its parent")
    least = xp.full(A.nrows, A.nrows, A.indices.dtype)
    stretched = left = False
    for tail, head in _edges(A, xp):
        tail_depth, head_depth = depth[tail], depth[head]
        step = head_depth - tail_depth
        left = left or bool(((tail_depth >= 0) != (head_depth >= 0)).any())
        stretched = stretched or bool((abs(step) > 1).any())
        leads = (step == 1) & (tail_depth >= 0)
        xp.minimum.at(least, head[leads], tail[leads])
    if stretched:
        found.append("3: an edge joins levels that differ by more than one")
    if left:
        found.append("4: an edge leads from a reached vertex to one that is not")
    if (least[child] == A.nrows).any():
        found.append("5: a vertex has no neighbour one level up")
    elif (least[child] != above[child]).any():
        found.append("least parent: a parent is not the least neighbour one level up")
    return found


def _edges(A: sg.Matrix, xp: Any) -> Any:
    """(rows, columns) of the entries, in steps."""
    for first in range(0, A.nvals, STEP):
        last = min(first + STEP, A.nvals)
        places = xp.arange(first, last, dtype=A.indptr.dtype)
        rows = xp.searchsorted(A.indptr[1:], places, side="right").astype(A.indices.dtype)
        yield rows, A.indices[first:last]
