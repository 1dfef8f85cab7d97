"""Hook and compress: the components of a graph in a few launches, without a look at what they
found.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spgraph.backends.cuda import jit, preamble
from spgraph.containers import Matrix, Vector
from spgraph.containers.arrays import array_module, index_dtype, words

# as in kernels/contract.cu
LONG_ROW = 2048
CONTROL, PIECE = 3, 2  # 64-bit words


@jit.on_device
def contract(A: Matrix, undirected: bool) -> Vector:
    """The smallest vertex of every vertex's weakly connected component.

    `undirected` says that every edge is stored both ways: then those of the giant component are
    hardly read; otherwise every edge is. Six launches, seven for a directed graph; nothing is
    read back.
    """
    xp = array_module(A.indptr)
    n, m = A.nrows, A.nvals
    text = preamble.types(I=A.indices.dtype, O=A.indptr.dtype, L=index_dtype(n))

    def run(name: str, *arguments: Any) -> None:
        kernel = jit.kernel("contract", name, text)
        grid = min(-(-n // jit.BLOCK), jit.occupancy(kernel))
        kernel((grid,), (jit.BLOCK,), arguments)

    label = xp.empty(n, index_dtype(n))
    if n == 0:
        return Vector(0, label)
    other, control = xp.empty_like(label), xp.empty(CONTROL, np.int64)
    # no row is cut into more pieces than twice its edges fill
    pieces = xp.empty(PIECE * (2 * m // LONG_ROW), np.int64)
    inside = jit.NULL if undirected else xp.empty(words(n), np.uint32)
    run("start", n, A.indptr, A.indices, label, other, control)
    run("hook", n, other, label)
    run("compress", n, m, A.indices, label, control, np.int32(True))
    if not undirected:
        run("mark", n, label, control, inside)
    run("rest", n, A.indptr, A.indices, label, inside, control, pieces)
    run("rest_long", A.indptr, A.indices, label, inside, control, pieces)
    run("compress", n, m, A.indices, label, control, np.int32(False))
    return Vector(n, label)
