"""Parents on the best walks of the fewest edges, from the values of a closure."""

from __future__ import annotations

import numpy as np

from spgraph.containers import Matrix, Vector
from spgraph.iterations.fixed_point import checked, counting, least_fixed_point
from spgraph.iterations.level_search import search, typed_for_rounds
from spgraph.iterations.shortest_path_dag import dag_edges
from spgraph.semirings import Semiring, min_plus, min_secondi
from spgraph.steps import backend

INT64 = np.dtype(np.int64)


def shortest_paths(name: str, A: Matrix, source: int, delta: float | None) -> tuple[Vector, Vector]:
    """(What the closure of A over min_plus brings from `source`, its `path_parents`), of an A of
    floats, for the function `name`; `delta` as for `closure`. On a GPU one loop finds both, of
    float32, where hardly a vertex has several parents to choose from.

    >>> import spgraph as sg
    >>> from spgraph.iterations.path_parents import shortest_paths
    >>> A = sg.Matrix.from_coo([0, 0, 1], [1, 2, 2], [1.0, 5.0, 2.0], nrows=3, ncols=3)
    >>> [v.to_numpy().tolist() for v in shortest_paths("sssp", A, 0, None)]
    [[0.0, 1.0, 3.0], [0, 0, 1]]
    """
    found = with_paths(name, A, source, delta)
    if found is not None:
        distance, parent = found
        return distance, path_tree(A, distance, min_plus, source) if parent is None else parent
    start = Vector.unit(source, 0, size=A.nrows, dtype=A.dtype, device=A.device)
    distance = least_fixed_point(name, A, start, min_plus, delta)
    return distance, path_parents(A, distance, source)


def with_paths(
    name: str, A: Matrix, source: int, delta: float | None
) -> tuple[Vector, Vector | None] | None:
    """The closure over min_plus from `source`; and its `path_parents`, or None where too many
    vertices have several. None where the backend does not find both in one loop for A's types.
    """
    on, dtype = backend(A.device), A.dtype
    if dtype.kind == "f":
        fused = getattr(on, "closure_path_parents", None)
        if fused is None or dtype != np.float32 or A.index_dtype != np.int32 or A.nvals == 0:
            return None
        start = Vector.unit(source, 0, size=A.nrows, dtype=A.dtype, device=A.device)
        A, plan = checked(name, A, start, min_plus, delta)
        return fused(A, source, plan.delta, plan.reach)
    fused = getattr(on, "closure_counted", None)
    if fused is None or A.nvals == 0:
        return None
    start = Vector.unit(source, 0, size=A.nrows, dtype=INT64, device=A.device)
    # where values are the same along some edges, what counts edges tells them apart
    found = counting(name, A, start, delta)
    if found is None:
        return None
    A, plan, bits = found
    T = A._T if A.has_transpose else None
    return fused(A, T, start, plan.typed, plan.delta, plan.reach, bits)


def path_parents(A: Matrix, distance: Vector, source: int) -> Vector:
    """For each vertex that `distance` has an entry of, the one before it on a shortest path: of all
    of these on one of the fewest edges, and there the vertex of least id; `source` for itself.

    A Vector of A.nrows and of the type of A.indices. `distance` is what the closure of A over
    min_plus brings from `source`, of the weights' own type. Where hardly a vertex has several to
    choose from, as among floats, one pass over the edges finds them, and of few edges on a CPU a
    search along them; otherwise they are those of a search over the shortest-path DAG. Looks at A's
    transpose only where it is at hand already.

    >>> import spgraph as sg
    >>> from spgraph.iterations.path_parents import path_parents
    >>> A = sg.Matrix.from_coo([0, 0, 1], [1, 2, 2], [1.0, 5.0, 2.0], nrows=3, ncols=3)
    >>> path_parents(A, sg.Vector.from_dense([0.0, 1.0, 3.0]), 0).to_numpy().tolist()
    [0, 0, 1]
    """
    typed = min_plus.resolve(distance.dtype, A.dtype, index=A.index_dtype)
    found = getattr(backend(A.device), "path_parents", None)
    # x <= y makes x + a <= y + a for floats, whatever is rounded; integers may overflow
    if found is not None and distance.dtype.kind == "f" and A.nvals:
        parent = found(A, A._T if A.has_transpose else None, distance, typed, source)
        if parent is not None:
            return parent
    return path_tree(A, distance, min_plus, source)


def path_tree(A: Matrix, x: Vector, semiring: Semiring, source: int) -> Vector:
    """For each vertex that `x` has an entry of, the one before it on a best walk from `source`: of
    all of these on one of the fewest edges, and there the vertex of least id; `source` for itself.

    A Vector of A.nrows and of the type of A.indices. `x` is what the closure of A over `semiring`
    brings from `source`, of the semiring's type; no edge makes a value better.

    >>> import spgraph as sg
    >>> from spgraph.iterations.path_parents import path_tree
    >>> from spgraph.semirings import max_min
    >>> A = sg.Matrix.from_coo([0, 0, 1], [1, 2, 2], [4.0, 2.0, 3.0], nrows=3, ncols=3)
    >>> path_tree(A, sg.Vector.from_dense([9.0, 4.0, 3.0]), max_min, 0).to_numpy().tolist()
    [0, 0, 1]
    """
    fused = getattr(backend(A.device), "path_tree", None)
    if fused is not None:
        typed = typed_for_rounds("path_tree", semiring, x.dtype, A.dtype, A.index_dtype)
        found = fused(A, x, typed, source)
        if found is not None:
            return found
    # q<!parent> = q min.secondi T, over the edges T(i, j) = (x(i) * A(i, j) == x(j))
    root = Vector.unit(source, source, size=A.nrows, dtype=A.index_dtype, device=A.device)
    parent = search(dag_edges(A, x, semiring), root, min_secondi).value
    assert parent is not None
    return parent


def path_from_root(name: str, parent: Vector, v: int) -> list[int]:
    """The vertices on the path from the root of the tree `parent`, which is its own parent, to v;
    none if v is not in it. ValueError of the function `name` where there is no tree.
    """
    # on a GPU, and of shards, one copy takes less time than a step for each vertex
    tree = parent.to("cpu").to_bitmap()
    values, bits = tree._values, tree._bits
    path: list[int] = []
    while bits is None or bits.item(v >> 5) >> (v & 31) & 1:
        path.append(v)
        before = values.item(v)
        if before == v:
            break
        if not 0 <= before < tree.size or len(path) == tree.size:
            raise ValueError(
                f"{name}: parent: expected a tree, got {before} before {v} on the way from "
                f"{path[0]} to a root"
            )
        v = before
    return path[::-1]
