"""Closeness centrality."""

from __future__ import annotations

import numpy as np

from ..checks import square
from ..containers import MatrixLike, Vector
from ..containers.annotations import Vertices
from ..containers.storage.numbers import flags
from ..iterations import level_sums
from .vertices import vertices


def closeness_centrality(
    A: MatrixLike, *, sources: Vertices | None = None, wf_improved: bool = True
) -> Vector:
    """How near every vertex is to all that reach it: a Vector of float64 on A's device.

    If r vertices reach v, v itself among them, and their distances to v, in edges, sum to d, the
    closeness of v is (r - 1) / d. `wf_improved` multiplies it by (r - 1) / (n - 1), which lowers it
    in small components. It is 0 where no other vertex reaches v. As in NetworkX, distances are
    those along in-edges (A[i, j] is the edge i -> j); give A.T for those along out-edges.

    Parameters:
        sources: the vertices whose distances count, from 0; None: all.
        wf_improved: multiply by the share of vertices that reach the vertex (Wasserman and Faust).

    `A` is a square Matrix or what `Matrix` can be made from, whose values are not looked at.
    The Vector is full, or, with `sources`, a vertex or a sequence of vertices, has entries at
    these only. The cost is that of a search from each.

    Raises DimensionMismatch for an A that is not square, IndexOutOfBound for a source outside of
    it, DomainMismatch for one that is no integer.

    Source: Freeman, "Centrality in social networks: conceptual clarification" (1979); Wasserman,
    Faust, "Social network analysis" (1994).

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 1, 1, 2], [1, 0, 2, 1], nrows=4, ncols=4)
    >>> sg.closeness_centrality(A).to_numpy().round(3).tolist()
    [0.444, 0.667, 0.444, 0.0]
    """
    flags("closeness_centrality", wf_improved=wf_improved)
    A = square("closeness_centrality", A)
    n = A.nrows
    asked = np.arange(n) if sources is None else vertices("closeness_centrality", A, sources)
    visited, distance = level_sums(A._T, asked)
    others = visited - 1
    score = others / np.maximum(distance, 1)
    if wf_improved:
        score *= others / max(n - 1, 1)
    return Vector.from_coo(asked, score, size=n, device=A.device)
