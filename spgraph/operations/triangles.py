"""Triangles of an undirected graph."""

from __future__ import annotations

from spgraph.containers import Matrix
from spgraph.operations.reductions import reduce_mxm
from spgraph.operations.structure import orient
from spgraph.semirings import plus_pair
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
