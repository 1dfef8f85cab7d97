"""The five checks of the Graph500 benchmark for a breadth-first tree, in NumPy alone.

They share no code with the search: they read only the arrays of the graph and of the two Vectors.
The cost is one pass over the edges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spgraph.containers import Matrix, Vector, as_matrix
from spgraph.errors import DimensionMismatch, IndexOutOfBound

# edges checked at a time: bounds the memory of the pass to some hundred megabytes
CHUNK = 1 << 22


class Failure(NamedTuple):
    """A failed check: its number in the Graph500 list, the first vertex and what is wrong."""

    check: int
    vertex: int
    message: str


def validate_bfs(
    A: Matrix, source: int, level: Vector, parent: Vector, *, max_depth: int | None = None
) -> list[Failure]:
    """The failed checks of a breadth-first tree of `A` from `source`; an empty list if it is right.

    1. The parents form a tree with the root `source`, without cycles.
    2. Each vertex lies one level below its parent, and the source at level 0.
    3. Each edge leads at most one level down.
    4. The tree spans all reachable vertices: no edge leads from a vertex with an entry to one
       without.
    5. Each vertex and its parent are joined by an edge of the graph.

    Edges of a directed graph are checked along their direction. With `max_depth`, edges that leave
    the last level may lead anywhere.

    A is n x n; `level` and `parent` have size n and entries at the reached vertices; all on any
    device. Raises DimensionMismatch for sizes that differ, and IndexOutOfBound for a `source` that
    is not a vertex.

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 1, 1, 2], [1, 0, 2, 1], symmetric=True)
    >>> level, parent = sg.bfs(A, 0)
    >>> validate_bfs(A, 0, level, parent)
    []
    >>> wrong = sg.Vector.from_dense([0, 1, 1])
    >>> [failure.message for failure in validate_bfs(A, 0, wrong, parent)]
    ['vertex 2 at level 1 has parent 1 at level 1; expected level 0']

    Source: Graph500 benchmark specification 2.0, section "Validation"; https://graph500.org.
    """
    A = as_matrix(A)
    n = A.nrows
    if A.ncols != n:
        raise DimensionMismatch(f"A: expected a square matrix, got {n} x {A.ncols}")
    for name, vector in (("level", level), ("parent", parent)):
        if vector.size != n:
            raise DimensionMismatch(f"{name}: expected size {n}, the rows of A, got {vector.size}")
    if not 0 <= source < n:
        raise IndexOutOfBound(f"source: expected a vertex from 0 to {n - 1}, got {source}")
    # -1 stands for "no entry" in both; an entry of -1 is then caught as a vertex without one
    depth = level.to_numpy(fill=-1).astype(np.int64, copy=False)
    above = parent.to_numpy(fill=-1).astype(np.int64, copy=False)
    A = A.to("cpu")

    failures = _check_tree(source, depth, above)
    failures += _check_levels(source, depth, above)
    failures += _check_edges(A, source, depth, above, max_depth)
    return sorted(failures)


def _check_tree(source: int, depth: np.ndarray, above: np.ndarray) -> list[Failure]:
    """Check 1, by pointer doubling: after k rounds each vertex knows its 2**k-th ancestor."""
    n = depth.size
    one_sided = np.flatnonzero((depth < 0) != (above < 0))
    if one_sided.size:
        v = int(one_sided[0])
        lacks, has = ("a parent", "level") if above[v] < 0 else ("a level", "parent")
        value = depth[v] if has == "level" else above[v]
        return [Failure(1, v, f"vertex {v} has {has} {value} and lacks {lacks}")]
    outside = np.flatnonzero((above >= n) | (above < -1))
    if outside.size:
        v = int(outside[0])
        return [Failure(1, v, f"vertex {v} has parent {above[v]}, which is no vertex of {n}")]
    if above[source] != source:
        has = f"parent {above[source]}" if above[source] >= 0 else "no parent"
        return [Failure(1, source, f"source {source} has {has}; expected itself")]

    ancestor = np.where(above < 0, source, above)
    for _ in range(n.bit_length()):
        if (ancestor == source).all():
            break
        ancestor = ancestor[ancestor]
    lost = np.flatnonzero(ancestor != source)
    if not lost.size:
        return []
    v = int(lost[0])
    return [Failure(1, v, f"vertex {v} does not lead to source {source} through its parents")]


def _check_levels(source: int, depth: np.ndarray, above: np.ndarray) -> list[Failure]:
    """Check 2."""
    if depth[source] != 0:
        has = f"is at level {depth[source]}" if depth[source] >= 0 else "has no level"
        return [Failure(2, source, f"source {source} {has}; expected level 0")]
    child = np.flatnonzero((depth >= 0) & (above >= 0) & (above < depth.size))
    child = child[child != source]
    wrong = child[depth[above[child]] != depth[child] - 1]
    if not wrong.size:
        return []
    v = int(wrong[0])
    at = f"at level {depth[above[v]]}" if depth[above[v]] >= 0 else "without a level"
    has = f"vertex {v} at level {depth[v]} has parent {above[v]} {at}"
    return [Failure(2, v, f"{has}; expected level {depth[v] - 1}")]


def _check_edges(
    A: Matrix, source: int, depth: np.ndarray, above: np.ndarray, max_depth: int | None
) -> list[Failure]:
    """Checks 3, 4 and 5, in one pass over the edges."""
    skips: Failure | None = None
    leaves: Failure | None = None
    joined = above < 0
    joined[source] = True
    indptr = A._indptr.astype(np.int64, copy=False)
    for first in range(0, int(indptr[-1]), CHUNK):
        last = min(first + CHUNK, int(indptr[-1]))
        top = int(np.searchsorted(indptr, first, side="right")) - 1
        end = int(np.searchsorted(indptr, last, side="left"))
        counts = np.diff(indptr[top : end + 1].clip(first, last))
        tail = np.repeat(np.arange(top, end), counts)
        head = A._indices[first:last]
        joined[head[above[head] == tail]] = True
        tail_depth, head_depth = depth[tail], depth[head]
        leading = tail_depth >= 0
        if max_depth is not None:
            leading &= tail_depth < max_depth
        if skips is None:
            skips = _first_edge(3, leading & (head_depth > tail_depth + 1), tail, head, depth)
        if leaves is None:
            leaves = _first_edge(4, leading & (head_depth < 0), tail, head, depth)
    failures = [failure for failure in (skips, leaves) if failure]
    if not joined.all():
        v = int(np.flatnonzero(~joined)[0])
        message = f"vertex {v} has parent {above[v]}, but no edge leads from {above[v]} to {v}"
        failures.append(Failure(5, v, message))
    return failures


def _first_edge(
    check: int, wrong: np.ndarray, tail: np.ndarray, head: np.ndarray, depth: np.ndarray
) -> Failure | None:
    """The failure of the first edge that is wrong."""
    if not wrong.any():
        return None
    k = int(wrong.argmax())
    u, v = int(tail[k]), int(head[k])
    at = f"at level {depth[v]}" if depth[v] >= 0 else "which was not reached"
    return Failure(check, v, f"edge ({u}, {v}) leads from level {depth[u]} to vertex {v}, {at}")
