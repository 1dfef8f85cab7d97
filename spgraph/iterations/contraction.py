"""contract: hook and compress, labels that fall over edges and by pointer jumping until they
no longer change.
"""

from __future__ import annotations

from spgraph import checks
from spgraph.containers import MatrixLike, Vector
from spgraph.operations import assign, ewise_add, extract, mxv, vxm
from spgraph.semirings import binary, min_first, min_second
from spgraph.steps import backend


def contract(A: MatrixLike) -> Vector:
    """The smallest vertex of every vertex's component: a full Vector of A.nrows signed integers.

    Two vertices are in one component if edges join them, whichever way each edge points. `A` is a
    square Matrix or what `Matrix` can be made from; its values are not looked at. Where it is known
    to be symmetric (`A.symmetric`) most edges are never read: those of the giant component say
    nothing new. Otherwise each edge is read once, which is cheaper than to test the symmetry.

    The labels are a forest, every vertex below a smaller one. First each vertex is hooked under its
    least neighbour; then one more edge of each vertex joins trees, the larger root under the
    smaller. The trees are compressed to stars, a vote over a sample of the edges names the giant
    component, and only the edges outside of it are left.

    Raises DimensionMismatch for an A that is not square.

    Source: Sutton, Ben-Nun, Barak, "Optimizing parallel graph connectivity computation via
    subgraph sampling" (2018); the first step as in Jaiganesh, Burtscher, "A high-performance
    connected components implementation for GPUs" (2018).

    >>> import spgraph as sg
    >>> from spgraph.iterations import contract
    >>> A = sg.Matrix.from_coo([4, 3, 1], [0, 1, 3], nrows=5, ncols=5)
    >>> contract(A).to_numpy().tolist()
    [0, 1, 2, 1, 0]
    """
    A = checks.square("contract", A)
    fused = getattr(backend(A.device), "contract", None)
    return composed(A) if fused is None else fused(A, bool(A.symmetric))


def composed(A: MatrixLike) -> Vector:
    """`contract` made of operations: the reference for tests, and what runs where a backend has no
    fused form.

    Source: Zhang, Azad, Hu, "FastSV: a distributed-memory connected component algorithm with fast
    convergence" (2020).
    """
    A = checks.square("contract", A)
    label = Vector.arange(A.nrows, device=A.device)
    while True:
        last = label.dup()
        # the least label among the neighbours: over in-edges, over out-edges
        least = vxm(last, A, min_first, direction="push")
        least = ewise_add(least, mxv(A, last, min_second, direction="pull"), binary.min)
        # it falls to the vertex itself, and to the one that its label names
        assign(label, least, accum=binary.min)
        assign(label, least, last, accum=binary.min)
        label = extract(label, label)
        if label.isequal(last):
            return label
