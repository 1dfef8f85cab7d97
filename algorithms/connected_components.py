"""Weakly and strongly connected components."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..checks import square
from ..containers import Matrix, MatrixLike, Vector
from ..containers.annotations import Device
from ..iterations import contract, search
from ..operations import apply, assign, ewise_mult, extract, mxv, reduce, select
from ..semirings import any_pair, binary, indexunary, min_second, monoid
from ..steps import backend
from .random_words import random_words


def connected_components(
    A: MatrixLike, *, connection: Literal["weak", "strong"] = "weak"
) -> Vector:
    """The component of every vertex, named by its smallest vertex: a full Vector of A.nrows signed
    integers on A's device.

    Two vertices are in one component if edges join them, whichever way each points ("weak"), or if
    each reaches the other along the edges ("strong"). In an undirected graph both are the same.
    `A` is a square Matrix or what `Matrix` can be made from; A[i, j] is the edge i -> j, its value
    is not looked at. Weak components of a Matrix that is known to be symmetric (`A.symmetric`) are
    found without a look at most of its edges.

    Parameters:
        connection: "weak": whichever way edges point; "strong": there and back.

    Strong components are found on the CPU by a depth-first search of one thread, in linear time;
    where the transpose is there already (`A.has_transpose`), by all threads as far as the giant
    component goes. On a GPU they are found by `forward_backward`.

    Raises DimensionMismatch for an A that is not square, ValueError for another `connection`.

    Source: Sutton, Ben-Nun, Barak, "Optimizing parallel graph connectivity computation via subgraph
    sampling" (2018); Pearce, "A space-efficient algorithm for finding strongly connected
    components" (2016); Hong, Rodia, Olukotun, "On fast parallel detection of strongly connected
    components (SCC) in small-world graphs" (2013).

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 1, 2, 2], [1, 2, 1, 3], nrows=5, ncols=5)
    >>> sg.connected_components(A).to_numpy().tolist()
    [0, 0, 0, 0, 4]
    >>> sg.connected_components(A, connection="strong").to_numpy().tolist()
    [0, 1, 1, 3, 4]
    """
    A = square("connected_components", A)
    if connection not in ("weak", "strong"):
        raise ValueError(
            f"connected_components: connection: expected 'weak' or 'strong', got {connection!r}"
        )
    if connection == "weak" or A.symmetric or A.nvals == 0:
        return contract(A)
    return getattr(backend(A.device), "strong_components", forward_backward)(A)


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
    n, T, device = A.nrows, A._T, A.device
    # a vertex is the low bits of its key
    low = (1 << n.bit_length()) - 1
    key = _random_keys(n, low, device)
    component = Vector.arange(n, dtype=np.int64, device=device)  # named by one of its vertices

    pivot = _most_edges(A, T)
    start = Vector.unit(pivot, True, size=n, dtype=bool, device=device)
    after, before = search(A, start, any_pair).level, search(T, start, any_pair).level
    giant = ewise_mult(after, before, binary.pair)
    assign(component, pivot, mask=giant.S)
    part = Vector.filled(0, size=n, dtype=np.int64, device=device)
    for number, side in ((1, after), (2, before), (-1, giant)):
        assign(part, number, mask=side.S)
    A, T = _within(A, part), _within(T, part)

    while A.nvals:
        f, g = (_first(M, key, low) for M in (T, A))
        into, out_of = (apply(keys, binary.band, right=low) for keys in (f, g))
        # both are the same: that is the component; the others go on, if they have edges both ways
        same = f == g
        assign(component, into, mask=(same & (part >= 0)).V)
        done = same | (part < 0) | (A.row_degrees() == 0) | (T.row_degrees() == 0)
        part = assign(into * n + out_of, -1, mask=done.V)
        A, T = _within(A, part), _within(T, part)
    return _named_by_least(component)


def _random_keys(n: int, low: int, device: Device) -> Vector:
    """A random number for each vertex, whose bits `low` are the vertex."""
    words = random_words("connected_components", 1, n, device)
    high = apply(words, binary.floordiv, right=np.uint64(2 * (low + 1))).astype(np.int64)
    return high * (low + 1) + Vector.arange(n, dtype=np.int64, device=device)


def _most_edges(A: Matrix, T: Matrix) -> int:
    """The vertex with the greatest product of its in- and out-degrees."""
    product = A.row_degrees().astype(np.float64) * T.row_degrees()
    most = reduce(product, monoid.max)
    return int(select(product, indexunary.valuege, most).to_coo()[0][0])


def _first(A: Matrix, key: Vector, low: int) -> Vector:
    """The least key among the vertices that each vertex reaches in A, itself included."""
    f = key.dup()
    while True:
        last = f.dup()
        # f min= A min.second f; then f min= f[the vertex of f], for that is reached as well
        mxv(A, f, min_second, accum=binary.min, out=f, direction="pull")
        f = extract(f, apply(f, binary.band, right=low))
        if f.isequal(last):
            return f


def _within(A: Matrix, part: Vector) -> Matrix:
    """The edges of A, as a pattern, between vertices of the same part; none of part -1."""
    return A._where(lambda a, p, q: (p == q) & (q >= 0), part).pattern()


def _named_by_least(component: Vector) -> Vector:
    """The components of vertices, named by their smallest vertex instead of another number < n."""
    ids = Vector.arange(component.size, device=component.device)
    least = Vector.filled(component.size, size=component.size, dtype=ids.dtype, device=ids.device)
    return extract(assign(least, ids, component, accum=binary.min), component)
