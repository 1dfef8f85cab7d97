"""Connected components."""

from __future__ import annotations

import numpy as np

from spgraph.algorithms import connected_components as least_members
from spgraph.containers.storage.arrays import Array, array_module
from spgraph.csgraph.graphs import rows_of, traversals
from spgraph.csgraph.kinds import GraphLike, flags


def connected_components(
    csgraph: GraphLike, directed: bool = True, connection: str = "weak", return_labels: bool = True
) -> int | tuple[int, Array]:
    """The pair of the number of components and an int32 array with the component of each vertex;
    without `return_labels` the number alone.

    `connection` is "weak" (edges connect in both directions) or "strong" (every vertex of a
    component reaches every other along the edges); in an undirected graph (`directed=False`) both
    are the same. `csgraph` is a graph in any form that SciPy accepts, or CuPy's on a GPU, where the
    labels stay. Every stored entry is an edge, whatever its value.

    SciPy's documentation leaves the numbering of components open. Weak ones are numbered by their
    least vertices, as in SciPy, and so are strong ones on a GPU; on the CPU strong ones are
    numbered in the order in which a depth-first search completes them. SciPy's own search does not
    terminate for some graphs with parallel edges; this one does.

    Raises ValueError for another `connection` and for a graph that is not square.

    Source: Tarjan, "Depth-first search and linear graph algorithms" (1972); Pearce, "A
    space-efficient algorithm for finding strongly connected components" (2016); weak ones as in
    `spgraph.connected_components`.

    >>> from spgraph.csgraph import connected_components
    >>> connected_components([[0, 1, 0], [0, 0, 0], [0, 0, 0]])
    (2, array([0, 0, 1], dtype=int32))
    """
    flags("connected_components", directed=directed, return_labels=return_labels)
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
    """(number of components, the component of each vertex), numbered in the order of their least
    vertices, given the least vertex of each vertex's component.
    """
    xp = array_module(least)
    if not bool(least.any()):  # one component, or no vertex but the first
        return 1, least.astype(np.int32, copy=False)
    first = least == xp.arange(least.size, dtype=least.dtype)
    numbers = xp.cumsum(first, dtype=np.int32)
    numbers -= np.int32(1)
    return int(numbers[-1]) + 1, numbers[least]
