"""The five checks of the Graph500 benchmark for trees of breadth-first searches and of shortest
paths, where the graph is: on the CPU, on a GPU, in shards.

They know nothing of the loops that found the tree: one product of the levels or distances with the
graph, one look for the edge from each parent, and passes over the vertices.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, NamedTuple

from spgraph.checks import square
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.numbers import is_integer
from spgraph.errors import DimensionMismatch, DomainMismatch, IndexOutOfBound
from spgraph.semirings import min_first, min_plus
from spgraph.validation.tree import Fault, faults

__all__ = ["Failure", "validate_bfs", "validate_sssp"]


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
    the last level may lead anywhere, and no vertex lies below it.

    A is n x n; `level` and `parent` have size n and entries at the reached vertices; entries of -1
    count as none. They are checked where A is, on the CPU, on a GPU or in shards, and moved there
    if need be; of several processes each calls it and gets the same list. Raises DimensionMismatch
    for sizes that differ, IndexOutOfBound for a `source` that is not a vertex, and DomainMismatch
    for one that is no integer, parents that are none, and what is no Vector; ValueError for a
    `max_depth` that is no integer >= 0.

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 1, 1, 2], [1, 0, 2, 1], symmetric=True)
    >>> level, parent = sg.bfs(A, 0)
    >>> sg.validation.validate_bfs(A, 0, level, parent)
    []
    >>> wrong = sg.Vector.from_dense([0, 1, 1])
    >>> [failure.message for failure in sg.validation.validate_bfs(A, 0, wrong, parent)]
    ['vertex 2 at level 1 has parent 1 at level 1; expected level 0']

    Source: Graph500 benchmark specification 2.0, section "Validation"; https://graph500.org.
    """
    A, source, level, parent = _checked("validate_bfs", A, source, level=level, parent=parent)
    if max_depth is not None:
        if not is_integer(max_depth) or max_depth < 0:
            raise ValueError(
                f"validate_bfs: max_depth: expected an integer >= 0 or None, got {max_depth!r}"
            )
        max_depth = int(max_depth)
    found = faults(A, source, level, parent, min_first, max_depth)
    return [Failure(fault.check, int(fault.vertex), _of_levels(fault, A.nrows)) for fault in found]


def validate_sssp(A: Matrix, source: int, distance: Vector, parent: Vector) -> list[Failure]:
    """The failed checks of a tree of shortest paths of `A` from `source`; an empty list if it is
    right.

    1. The parents form a tree with the root `source`, without cycles.
    2. The distance of each vertex is that of its parent and the weight of the edge between them,
       added in the type of the two; that of the source is 0.
    3. No edge leads to a vertex on a shorter way.
    4. The tree spans all reachable vertices: no edge leads from a vertex with an entry to one
       without.
    5. Each vertex and its parent are joined by an edge of the graph.

    Distances that pass are those of shortest paths, whatever found them. The specification asks
    less in check 2, that they differ by at most the weight, which distances of 0 everywhere do.

    A is n x n, its values weights >= 0; `distance` and `parent` have size n and entries at the
    reached vertices; entries of -1 count as none. They are checked where A is, on the CPU, on a GPU
    or in shards, and moved there if need be; of several processes each calls it and gets the same
    list. Raises as `validate_bfs` does.

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 1, 0], [1, 2, 2], [4, 3, 9], nrows=3, ncols=3)
    >>> distance, parent = sg.sssp(A, 0)
    >>> sg.validation.validate_sssp(A, 0, distance, parent)
    []
    >>> wrong = sg.Vector.from_dense([0, 4, 9]), sg.Vector.from_dense([0, 0, 0])
    >>> [failure.message for failure in sg.validation.validate_sssp(A, 0, *wrong)]
    ['edge (1, 2) leads to vertex 2, at distance 9, at distance 7']

    Source: Graph500 benchmark specification 2.0, section "Validation"; https://graph500.org.
    """
    A, source, distance, parent = _checked(
        "validate_sssp", A, source, distance=distance, parent=parent
    )
    found = faults(A, source, distance, parent, min_plus, None)
    return [Failure(f.check, int(f.vertex), _of_distances(f, A.nrows)) for f in found]


def _checked(
    name: str, A: Any, source: int, **vectors: Vector
) -> tuple[Matrix, int, Vector, Vector]:
    """A as a Matrix, the source as an int and the vectors on A's device; raises where they do not
    fit.
    """
    A = square(name, A)
    n = A.nrows
    for what, vector in vectors.items():
        if not isinstance(vector, Vector):
            raise DomainMismatch(
                f"{name}: {what}: expected a Vector, got {type(vector).__name__}; "
                "Vector.from_dense(array, missing=-1) makes one"
            )
        if vector.size != n:
            raise DimensionMismatch(
                f"{name}: {what}: expected size {n}, the rows of A, got {vector.size}"
            )
    if vectors["parent"].dtype.kind not in "iub":
        raise DomainMismatch(
            f"{name}: parent: expected vertices, integers, got {vectors['parent'].dtype}"
        )
    if not is_integer(source):
        raise DomainMismatch(f"{name}: source: expected an integer, got {source!r}")
    if not 0 <= source < n:
        raise IndexOutOfBound(f"{name}: source: expected a vertex from 0 to {n - 1}, got {source}")
    value, parent = (vector.to(A.device) for vector in vectors.values())
    return A, int(source), value, parent


# --- what to say of a fault -----------------------------------------------------------------------


def _of_levels(fault: Fault, n: int) -> str:
    """What is wrong with a tree of levels."""
    v, u, own, other = (int(x) if isfinite(x) else x for x in fault[2:6])
    at = f"at level {own}"
    if fault.check == 1:
        return _of_tree(fault, n, "level")
    if fault.kind == "source":
        return f"source {v} {f'is {at}' if own >= 0 else 'has no level'}; expected level 0"
    if fault.kind == "deep":
        return f"vertex {v} is {at}; expected at most max_depth, {int(fault.sum)}"
    if fault.check == 2:
        above = f"at level {other}" if other >= 0 else "without a level"
        return f"vertex {v} {at} has parent {u} {above}; expected level {own - 1}"
    if fault.check == 5:
        return f"vertex {v} has parent {u}, but no edge leads from {u} to {v}"
    at = at if own >= 0 else "which was not reached"
    return f"edge ({u}, {v}) leads from level {other} to vertex {v}, {at}"


def _of_distances(fault: Fault, n: int) -> str:
    """What is wrong with a tree of distances."""
    v, u = int(fault.vertex), int(fault.other)
    own, other, sum = (f"{x:.17g}" for x in fault[4:])
    if fault.check == 1:
        return _of_tree(fault, n, "distance")
    if fault.kind == "source":
        has = f"is at distance {own}" if fault.value >= 0 else "has no distance"
        return f"source {v} {has}; expected 0"
    if fault.check == 2:
        above = f"at distance {other}" if fault.at_other >= 0 else "without a distance"
        return f"vertex {v} at distance {own} has parent {u} {above}; expected distance {sum}"
    if fault.check == 5:
        return f"vertex {v} has parent {u}, but no edge leads from {u} to {v}"
    at = f"at distance {own}" if fault.value >= 0 else "which was not reached"
    return f"edge ({u}, {v}) leads to vertex {v}, {at}, at distance {sum}"


def _of_tree(fault: Fault, n: int, what: str) -> str:
    """What is wrong with the parents alone."""
    v, u = int(fault.vertex), int(fault.other)
    own = f"{fault.value:.17g}"
    messages = {
        "negative": f"vertex {v} has {what} {own}; expected one from 0 on, or -1 for none",
        "no parent": f"vertex {v} has {what} {own} and lacks a parent",
        "no value": f"vertex {v} has parent {u} and lacks a {what}",
        "no vertex": f"vertex {v} has parent {u}, which is no vertex of {n}",
        "source": f"source {v} has {f'parent {u}' if u >= 0 else 'no parent'}; expected itself",
        "cycle": f"vertex {v} does not lead to source {int(fault.at_other)} through its parents",
    }
    return messages[fault.kind]


def __dir__() -> list[str]:
    return sorted(__all__)
