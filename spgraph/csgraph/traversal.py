"""Breadth-first orders and trees, and trees along given predecessors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from spgraph.algorithms import bfs
from spgraph.containers import Matrix
from spgraph.containers.annotations import SparseArray
from spgraph.containers.storage.arrays import Array, array_module, on_device, unpack_bits
from spgraph.csgraph.graphs import NULL, Rows, known, like, rows_of, traversals
from spgraph.csgraph.kinds import GraphLike, flags, is_gpu, is_sparse
from spgraph.operations import ewise_add
from spgraph.semirings import binary


def breadth_first_order(
    csgraph: GraphLike, i_start: int, directed: bool = True, return_predecessors: bool = True
) -> Array | tuple[Array, Array]:
    """The vertices reachable from `i_start` in breadth-first order, and the predecessor of every
    vertex in the breadth-first tree, -9999 for the start and for vertices that are not reached: two
    arrays of int32; without `return_predecessors` the first alone.

    `csgraph` is a graph in any form that SciPy accepts, or CuPy's on a GPU, where results stay.
    Every stored entry is an edge, whatever its value. In an undirected graph (`directed=False`)
    edges are followed in both directions.

    The order is not unique. On the CPU both results equal SciPy's; on a GPU the vertices of a level
    are in ascending order, and the predecessor is the one of least id.

    Raises ValueError for a graph that is not square and for a start out of range (OverflowError for
    a negative one and for 2^32 or more, as in SciPy), TypeError for one that is not a number.

    >>> from spgraph.csgraph import breadth_first_order
    >>> breadth_first_order([[0, 1, 1], [0, 0, 1], [0, 0, 0]], 0)
    (array([0, 1, 2], dtype=int32), array([-9999,     0,     0], dtype=int32))
    """
    flags("breadth_first_order", directed=directed, return_predecessors=return_predecessors)
    rows = rows_of(csgraph, directed)
    start = check_start(i_start, rows.n)
    order, parent = _order(rows, start, directed)
    return (order, parent) if return_predecessors else order


def breadth_first_tree(csgraph: GraphLike, i_start: int, directed: bool = True) -> SparseArray:
    """The tree of a breadth-first search from `i_start`: compressed rows of float64 with the edges
    from each vertex to its children.

    `csgraph`, `directed`, order and errors are those of `breadth_first_order`, the values of edges
    and the type of the result those of `reconstruct_path`.

    >>> from spgraph.csgraph import breadth_first_tree
    >>> breadth_first_tree([[0, 1, 1], [0, 0, 1], [0, 0, 0]], 0).toarray()
    array([[0., 1., 1.],
           [0., 0., 0.],
           [0., 0., 0.]])
    """
    flags("breadth_first_tree", directed=directed)
    rows = rows_of(csgraph, directed)
    _, parent = _order(rows, check_start(i_start, rows.n), directed)
    return like(csgraph, _tree(rows, parent, directed, _kind(csgraph, rows)))


def reconstruct_path(
    csgraph: GraphLike, predecessors: npt.ArrayLike, directed: bool = True
) -> SparseArray:
    """The tree given by `predecessors`: compressed rows of float64 with an entry from the
    predecessor of each vertex to the vertex; a csr_matrix for a sparse matrix, else a csr_array; on
    a GPU CuPy's csr_matrix.

    `predecessors` is an array of N integers, negative for vertices without one. The value of an
    entry is that of the edge in `csgraph`: the sum of parallel edges, 0 if there is no edge; in an
    undirected graph (`directed=False`) the lesser of both directions, where 0 counts as infinite.

    Raises ValueError for a graph that is not square and for predecessors that are not a 1-D array
    of integers, IndexError for a wrong number of them, a single one, or one that is out of range.

    >>> import numpy as np
    >>> from spgraph.csgraph import reconstruct_path
    >>> reconstruct_path([[0, 4, 1], [0, 0, 0], [0, 2, 0]], np.array([-9999, 2, 0])).toarray()
    array([[0., 0., 1.],
           [0., 0., 0.],
           [0., 2., 0.]])
    """
    flags("reconstruct_path", directed=directed)
    rows = rows_of(csgraph, directed)
    parent: Array = predecessors if is_gpu(predecessors) else np.asarray(predecessors)
    if parent.ndim != 1 or parent.dtype.kind not in "iu":
        single = parent.ndim == 0 and parent.dtype.kind in "iu"
        raise (IndexError if single else ValueError)(  # as in SciPy
            "predecessors: expected a 1-D array of an integral type, "
            f"got {parent.ndim} dimensions of {parent.dtype}"
        )
    if parent.size != rows.n or (rows.n and int(parent.max()) >= rows.n):
        raise IndexError(f"predecessors: expected {rows.n} ids below {rows.n}")
    return like(csgraph, _tree(rows, parent, directed, _kind(csgraph, rows)))


def _order(rows: Rows, start: int, directed: bool) -> tuple[Array, Array]:
    if rows.on_gpu:
        return by_levels(rows, start, directed)
    back = None if directed else rows.transposed(values=False).arrays()
    return traversals(rows.indices).breadth_first_order(rows.arrays(), back, start)


def by_levels(rows: Rows, start: int, directed: bool) -> tuple[Array, Array]:
    """(order, predecessors) by spgraph's BFS: vertices sorted by level and id, with the least
    possible predecessors.
    """
    A = pattern(rows, directed)
    found = bfs(A, start)
    assert found.parent is not None
    with on_device(A.device) as xp:
        level, before = found.level.to_bitmap(), found.parent.to_bitmap()
        every = xp.ones(rows.n, bool)
        reached = every if level._bits is None else unpack_bits(level._bits, rows.n)
        ids = xp.flatnonzero(reached).astype(np.int32)
        order = ids[xp.argsort(level._values[ids], kind="stable")]
        parent = xp.where(reached, before._values, NULL).astype(np.int32)
        parent[start] = NULL
        return order, parent


def pattern(rows: Rows, directed: bool) -> Matrix:
    """The pattern of the edges, of an undirected graph in both directions."""
    A = rows.canonical(rows.lengths()).pattern()
    return A if directed else ewise_add(A, A._T, binary.pair).pattern()


def _tree(rows: Rows, parent: Array, directed: bool, kind: type) -> Any:
    xp = array_module(rows.indices)
    parent = xp.asarray(parent)
    children = xp.argsort(parent, kind="stable")
    children = children[int((parent < 0).sum()) :].astype(np.int32)
    heads = parent[children]
    ids = xp.arange(rows.n + 1, dtype=heads.dtype)
    indptr = xp.searchsorted(heads, ids).astype(np.int32)
    values = _values_at(rows, heads, children)
    if not directed:
        back = _values_at(rows, children, heads)
        values[values == 0] = np.inf
        back[back == 0] = np.inf
        values = xp.minimum(values, back)
    return kind((values, children, indptr), shape=(rows.n, rows.n))


def _values_at(rows: Rows, i: Array, j: Array) -> Array:
    """The values of the entries (i, j): the sum of parallel edges, 0 if there is none."""
    xp = array_module(rows.indices)
    if not rows.ascend():
        arrays = rows.values.copy(), rows.indices.copy(), rows.indptr.copy()
        made = rows.kind(arrays, shape=(rows.n, rows.n))
        made.sum_duplicates()
        rows = Rows(rows.n, made.indptr, made.indices, made.data, rows.kind)
    if rows.indices.size == 0:
        return xp.zeros(i.size)
    low, high = rows.indptr[i].astype(np.int64), rows.indptr[i + 1].astype(np.int64)
    end, last = high.copy(), rows.indices.size - 1
    # a binary search in all rows at once: the first column of row i that is not below j
    for _ in range(int((high - low).max()).bit_length() if i.size else 0):
        middle = (low + high) >> 1
        below = (rows.indices[xp.minimum(middle, last)] < j) & (low < high)
        low = xp.where(below, middle + 1, low)
        high = xp.where(below, high, middle)
    at = xp.minimum(low, last)
    found = (low < end) & (rows.indices[at] == j)
    return xp.where(found, rows.values[at], 0).astype(np.float64)


def _kind(csgraph: Any, rows: Rows) -> Any:
    """The class of a tree: a csr_matrix only for a sparse matrix."""
    if rows.on_gpu or is_sparse(known(csgraph)):
        return rows.kind
    return scipy.sparse.csr_array


def check_start(i_start: object, n: int) -> int:
    """The start as an int: ValueError, OverflowError or TypeError for what is no vertex of n."""
    given = i_start[()] if isinstance(i_start, np.ndarray) else i_start
    if not isinstance(given, int | float | np.number | np.bool):
        raise TypeError(f"i_start: an integer is required, got {type(i_start).__name__}")
    start = int(given)  # truncated, as in SciPy
    if start < 0:
        raise OverflowError(f"i_start: can't convert negative value to unsigned int, got {start}")
    if start >= 2**32:
        raise OverflowError(f"i_start: value too large to convert to unsigned int, got {start}")
    if start >= n:
        raise ValueError(f"i_start: expected 0 <= i_start < {n}, got {start}")
    return start
