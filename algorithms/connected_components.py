"""Weakly and strongly connected components."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..containers import Matrix, Vector, as_matrix
from ..containers.arrays import INT32_MAX, Array, array_module, index_dtype, on_device
from ..errors import DimensionMismatch
from ..iterations.contract import contract
from ..iterations.search import search
from ..operations import assign, ewise_mult, extract, mxv
from ..semirings import any_pair, binary, min_second


def connected_components(A: Any, *, connection: str = "weak") -> Vector:
    """The component of every vertex, named by its smallest vertex: a full Vector of A.nrows signed
    integers on A's device.

    Two vertices are in one component if edges join them, whichever way each points ("weak"), or if
    each reaches the other along the edges ("strong"). In an undirected graph both are the same.
    `A` is a square Matrix or what `Matrix` can be made from; A[i, j] is the edge i -> j, its value
    is not looked at. Weak components of a Matrix that is known to be symmetric (`A.symmetric`) are
    found without a look at most of its edges.

    Strong components are found on the CPU by SciPy's depth-first search: no loop of rounds comes
    near a linear walk there. On a GPU they are found by `forward_backward`.

    Raises DimensionMismatch for an A that is not square, ValueError for another `connection`.

    Source: Sutton, Ben-Nun, Barak, "Optimizing parallel graph connectivity computation via subgraph
    sampling" (2018); Pearce, "A space-efficient algorithm for finding strongly connected
    components" (2016).

    >>> import spgraph as sg
    >>> from spgraph.algorithms.connected_components import connected_components
    >>> A = sg.Matrix.from_coo([0, 1, 2, 2], [1, 2, 1, 3], nrows=5, ncols=5)
    >>> connected_components(A).to_numpy().tolist()
    [0, 0, 0, 0, 4]
    >>> connected_components(A, connection="strong").to_numpy().tolist()
    [0, 1, 1, 3, 4]
    """
    A = as_matrix(A)
    if A.nrows != A.ncols:
        raise DimensionMismatch(
            f"connected_components: A: expected a square matrix, got {A.nrows} x {A.ncols}"
        )
    if connection not in ("weak", "strong"):
        raise ValueError(
            f"connected_components: connection: expected 'weak' or 'strong', got {connection!r}"
        )
    if connection == "weak" or A.symmetric or A.nvals == 0:
        return contract(A)
    # SciPy's offsets have 32 bits
    if A.device == "cpu" and A.nvals <= INT32_MAX:
        return depth_first(A)
    return forward_backward(A)


def depth_first(A: Matrix) -> Vector:
    """The strong components of a Matrix on the CPU, by SciPy: one thread, linear time."""
    from scipy.sparse import csgraph, csr_array

    n = A.nrows
    # of type float64, or SciPy would make a copy that is
    pattern = csr_array((np.ones(A.nvals), A.indices, A.indptr), shape=A.shape)
    _, component = csgraph.connected_components(pattern, connection="strong")
    ids = np.arange(n, dtype=index_dtype(n))
    least = np.empty_like(ids)
    least[component[::-1]] = ids[::-1]  # of those that write to one place, the last stays
    return Vector(n, least[component])


def forward_backward(A: Matrix) -> Vector:
    """The strong components by what each vertex reaches, and what reaches it; on any device.

    A search forward and one backward from the vertex with the most edges take out the component
    that holds most of many graphs. Then, all at once: every vertex learns the first, in a random
    order of all vertices, of those that reach it and of those that it reaches. Where both are the
    same, it is in that one's component. Vertices of one component have this pair in common, so that
    an edge between vertices of different pairs can go, and so can vertices without in- or
    out-edges. What is left falls into pieces as the subproblems of quicksort do: the expected
    number of rounds is logarithmic.

    Source: Fleischer, Hendrickson, Pinar, "On identifying strongly connected components in
    parallel" (2000); Slota, Rajamanickam, Madduri, "BFS and coloring-based parallel algorithms for
    strongly connected components and related problems" (2014); Alabandi, Sands, Biros, Burtscher,
    "A high-performance strongly connected components implementation for GPUs" (2023).
    """
    with on_device(A.device) as xp:
        n, T = A.nrows, A.T
        ids = xp.arange(n, dtype=index_dtype(n))
        rank = xp.random.RandomState(1).permutation(n).astype(ids.dtype)
        of_rank = xp.empty_like(rank)
        of_rank[rank] = ids
        component = Vector(n, rank.copy())  # named by the rank of one of its vertices

        pivot = int(xp.argmax(_degrees(A).astype(np.float64) * _degrees(T)))
        start = Vector.unit(pivot, True, size=n, dtype=bool, device=A.device)
        after, before = search(A, start, any_pair).level, search(T, start, any_pair).level
        giant = ewise_mult(after, before, binary.pair)
        assign(component, int(rank[pivot]), mask=giant.S)
        sides = Vector(n, xp.zeros(n, np.int64))
        assign(sides, 1, mask=after.S)
        assign(sides, 2, mask=before.S)
        assign(sides, -1, mask=giant.S)
        part = sides.values
        A, T = _within(A, part), _within(T, part)

        while A.nvals:
            first_before, first_after = (_first(M, rank, of_rank) for M in (T, A))
            found = (first_before == first_after) & (part >= 0)
            component.values[found] = first_before[found]
            done = found | (part < 0) | (_degrees(A) == 0) | (_degrees(T) == 0)
            part = xp.where(done, -1, first_before.astype(np.int64) * n + first_after)
            A, T = _within(A, part), _within(T, part)

        least = Vector(n, xp.full(n, n - 1, ids.dtype))
        assign(least, Vector(n, ids), component.values, accum=binary.min)
        return extract(least, component.values)


def _first(A: Matrix, rank: Array, of_rank: Array) -> Array:
    """The least rank among the vertices that each vertex reaches in A, itself included."""
    f = Vector(rank.size, rank.copy())
    while True:
        last = f.dup()
        # f min= A min.second f; then f min= f[the vertex of rank f], for that is reached as well
        mxv(A, f, min_second, accum=binary.min, out=f, direction="pull")
        f = extract(extract(f, of_rank), f.values)
        if f.isequal(last):
            return f.values


def _within(A: Matrix, part: Array) -> Matrix:
    """The edges of A, as a pattern, between vertices of the same part; none of part -1."""
    xp = array_module(A.indices)
    to = part[A.indices]
    kept = (part[A.row_indices()] == to) & (to >= 0)
    places = xp.zeros(A.nvals + 1, A.indptr.dtype)
    xp.cumsum(kept, dtype=places.dtype, out=places[1:])
    indptr, indices = places[A.indptr], A.indices[kept]
    return Matrix(A.nrows, A.ncols, indptr, indices, xp.ones(1, bool), iso=True)


def _degrees(A: Matrix) -> Array:
    return A.indptr[1:] - A.indptr[:-1]
