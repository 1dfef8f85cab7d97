"""peel: vertices of the least degree taken away until none is left."""

from __future__ import annotations

from spgraph.containers import Matrix, Vector
from spgraph.operations import assign, mxv, reduce, select
from spgraph.semirings import binary, indexunary, monoid, plus_first
from spgraph.steps import backend


def peel(A: Matrix) -> Vector:
    """For each vertex its degree when it is taken away, or that of one taken before it if that is
    greater, where always one of the least degree is: a full Vector of A.nrows signed integers.

    `A` is a symmetric pattern without loops.

    >>> import spgraph as sg
    >>> from spgraph.iterations.peeling import peel
    >>> peel(sg.generators.grid(1, 3)).to_numpy().tolist()
    [1, 1, 1]
    """
    return getattr(backend(A.device), "peel", composed)(A)


def composed(A: Matrix) -> Vector:
    """`peel` made of operations. A round takes away all vertices of the least degree."""
    # entries are the vertices that are left
    degree = A.row_degrees()
    # ones of the type of degrees: they are counted in it, which plus.pair does in int64
    ones = A.pattern(degree.dtype)
    core = Vector.filled(0, size=A.nrows, dtype=degree.dtype, device=A.device)
    k = 0
    while degree.nvals:
        leaving = select(degree, indexunary.valuele, k)
        if leaving.nvals == 0:
            k = int(reduce(degree, monoid.min))
            continue
        assign(core, k, mask=leaving.S)
        degree = select(degree, indexunary.valuegt, k)
        # d<d> -= A plus.first l: each loses the neighbours that leave
        mxv(ones, leaving, plus_first, mask=degree.S, accum=binary.minus, out=degree)
    return core
