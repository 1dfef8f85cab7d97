"""Connected components."""

from __future__ import annotations

from typing import Any

import numpy as np

from spgraph.algorithms import connected_components as least_members
from spgraph.containers.arrays import Array, array_module
from spgraph.csgraph.graphs import rows_of, traversals


def connected_components(
    csgraph: Any, directed: bool = True, connection: str = "weak", return_labels: bool = True
) -> Any:
    """(how many components there are, an int32 array: the number of each vertex's); without
    `return_labels` the former alone.

    `connection` is "weak", whichever way edges point, or "strong", where each vertex of a component
    reaches the other along the edges; an undirected graph (`directed=False`) knows only the former.
    `csgraph` is a graph as SciPy takes it, or on a GPU as CuPy has it; labels lie where it does.
    Every stored entry is an edge, whatever its value.

    SciPy's documentation leaves open which component has which number. Weak ones are numbered by
    their least vertices, which gives SciPy's own labels, and so are strong ones on a GPU; on the
    CPU strong ones are numbered in the order in which a walk in depth completes them. SciPy's own
    walk never comes back from some graphs that hold an edge twice; this one does.

    Raises ValueError for another `connection` and for a graph that is not square.

    Source: Tarjan, "Depth-first search and linear graph algorithms" (1972); Pearce, "A
    space-efficient algorithm for finding strongly connected components" (2016); weak ones as in
    `spgraph.connected_components`.

    >>> from spgraph.csgraph import connected_components
    >>> connected_components([[0, 1, 0], [0, 0, 0], [0, 0, 0]])
    (2, array([0, 0, 1], dtype=int32))
    """
    if connection.lower() not in ("weak", "strong"):
        raise ValueError(f"connection must be 'weak' or 'strong', got {connection!r}")
    strong = directed and connection.lower() == "strong"
    rows = rows_of(csgraph, strong)
    if strong and not rows.on_gpu:
        count, label = traversals(rows.indices).strong_components(rows.arrays())
    elif rows.n == 0:
        count, label = 0, array_module(rows.indices).empty(0, np.int32)
    else:
        A = rows.canonical(rows.lengths()) if strong else rows.matrix()
        found = least_members(A, connection="strong" if strong else "weak")
        count, label = _numbered(found._values)
    return (count, label) if return_labels else count


def _numbered(least: Array) -> tuple[int, Array]:
    """(how many there are, their numbers by rising least members)."""
    xp = array_module(least)
    if not bool(least.any()):  # one component, or no vertex but the first
        return 1, least.astype(np.int32, copy=False)
    first = least == xp.arange(least.size, dtype=least.dtype)
    numbers = xp.cumsum(first, dtype=np.int32)
    numbers -= np.int32(1)
    return int(numbers[-1]) + 1, numbers[least]
