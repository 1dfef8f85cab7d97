"""Hook and compress: the components of a graph in a few launches, without a look at what they
found.
"""

from __future__ import annotations

import numpy as np

from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import Array, array_module, index_dtype, words

# as in kernels/contract.cu
LONG_ROW = 2048
CONTROL, GIANT, PIECE = 3, 2, 2  # 64-bit words


@jit.on_device
def contract(A: Matrix, undirected: bool) -> Vector:
    """The smallest vertex of every vertex's weakly connected component.

    `undirected` says that every edge is stored both ways: then those of the giant component are
    hardly read; otherwise every edge is. Six launches, seven for a directed graph; nothing is
    read back.
    """
    forest = Forest(A)
    forest.sample()
    forest.rest(undirected)
    return Vector._of(A.nrows, forest.label)


class Forest:
    """Labels of A's vertices while components are found: each leads straight to the smallest vertex
    that is known to be in its component. `giant`, an array of one, is the root that most edges lead
    to, by a sample of them, or -1 where there are no edges.
    """

    def __init__(self, A: Matrix) -> None:
        xp, n = array_module(A._indptr), A.nrows
        self.A, self.kind = A, index_dtype(n)
        self.text = preamble.types(I=A._indices.dtype, O=A._indptr.dtype, L=self.kind)
        self.label = xp.empty(n, self.kind)
        self.control = xp.empty(CONTROL, np.int64)
        self.blocks = -(-n // jit.BLOCK)
        self.kernels = A._derived.setdefault("contract", {})

    @property
    def giant(self) -> Array:
        """The root of the giant component, on the device."""
        return self.control[GIANT:]

    def run(self, name: str, *arguments: object) -> None:
        if not self.blocks:
            return
        found = self.kernels.get(name)
        if found is None:
            kernel = jit.kernel("contract", name, self.text)
            grid = min(self.blocks, jit.occupancy(kernel))
            found = self.kernels[name] = kernel, (grid,)
        kernel, grid = found
        kernel(grid, (jit.BLOCK,), arguments)

    def sample(self) -> None:
        """Follow two edges of every vertex, then elect the giant component."""
        A, label = self.A, self.label
        other = array_module(label).empty_like(label)
        self.run("start", A.nrows, A._indptr, A._indices, label, other, self.control)
        self.run("hook", A.nrows, other, label)
        self.compress(vote=True)

    def rest(self, undirected: bool) -> None:
        """Follow the other edges, but for those inside of the giant component."""
        A = self.A
        self.follow(A._indptr, A._indices, A.nvals, self.inside(undirected))
        self.compress(vote=False)

    def inside(self, undirected: bool) -> Array:
        """One bit a vertex, set in the giant component; none for an undirected graph, in which no
        edge of such a vertex has to be followed.
        """
        if undirected:
            return jit.NULL
        bits = array_module(self.label).empty(words(self.A.nrows), np.uint32)
        self.run("mark", self.A.nrows, self.label, self.control, bits)
        return bits

    def follow(self, indptr: Array, indices: Array, most: int, inside: Array) -> None:
        """Follow the edges of the rows that have these offsets and columns, up to `most` in all,
        but for the first of each, which `sample` has followed, and those inside of the giant
        component.
        """
        n, label, control = self.A.nrows, self.label, self.control
        # no row is cut into more pieces than twice its edges fill
        pieces = array_module(label).empty(PIECE * (2 * most // LONG_ROW), np.int64)
        self.run("rest", n, indptr, indices, label, inside, control, pieces)
        self.run("rest_long", indptr, indices, label, inside, control, pieces)

    def compress(self, vote: bool) -> None:
        """Put every vertex under its root; `vote` elects the giant component afterwards."""
        A = self.A
        self.run("compress", A.nrows, A.nvals, A._indices, self.label, self.control, np.int32(vote))
