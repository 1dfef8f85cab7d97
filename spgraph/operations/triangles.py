"""Triangles of an undirected graph."""

from __future__ import annotations

import numpy as np

from spgraph.containers import Matrix
from spgraph.operations.ewise import ewise_union
from spgraph.operations.products import mxm
from spgraph.operations.reductions import reduce_mxm
from spgraph.operations.structure import orient
from spgraph.semirings import binary, plus_pair
from spgraph.steps import backend


def triangles(A: Matrix) -> int:
    """How many sets of three vertices have an edge between each two; A is a symmetric pattern,
    loops are no edges.

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_dense([[0, 1, 1], [1, 0, 1], [1, 1, 0]]).pattern()
    >>> A.symmetric = True
    >>> triangles(A)
    1
    """
    form = getattr(backend(A.device), "triangles", None)
    found = form(A) if form else None
    if found is not None:
        return found
    L = orient(A)
    # the sum of C<L> = L plus.pair L': at each edge the third vertices that both its ends lead to
    return int(reduce_mxm(L, L.T, plus_pair, mask=L.S))


def support(A: Matrix) -> Matrix:
    """How many triangles each edge is in: a Matrix of int64 with an entry for each of A, which is a
    symmetric pattern without loops.

    Source: the support of an edge, Cohen, "Trusses: cohesive subgraphs for social network analysis"
    (2008).

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_dense([[0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 1], [0, 0, 1, 0]]).pattern()
    >>> A.symmetric = True
    >>> support(A).to_dense().tolist()
    [[0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0]]
    """
    form = getattr(backend(A.device), "support", None)
    if form:
        return form(A)
    # C<A> = A plus.pair A: at each edge the third vertices, where there are any
    C = mxm(A, A, plus_pair, mask=A.S)
    C = ewise_union(C, A.pattern(np.int64), binary.first, left=0, right=0)
    C.symmetric = True
    return C
