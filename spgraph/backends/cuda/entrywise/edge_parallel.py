"""The edge-parallel view of a matrix, for kernels that take it entry by entry: the row of each
entry, and bits for the entries that a result keeps.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

import numpy as np

from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import Array, array_module, index_dtype, words

# as in kernels/rows.cuh
TILE, BATCH = 256, 4


def tiles_of(A: Matrix) -> Array:
    """`row_tiles` of A, found once and kept with A."""
    if "row_tiles" not in A._derived:
        A._keep("row_tiles", row_tiles(A._indptr, A.nvals))
    return A._derived["row_tiles"]


def row_tiles(indptr: Array, count: int) -> Array:
    """The row of every TILE-th of `count` entries, and of the last: kernels look for the others
    between two. One launch; 8 bytes for TILE entries.
    """
    xp = array_module(indptr)
    if count == 0:
        return xp.empty(0, np.int64)
    tiles = xp.empty((count - 1) // TILE + 2, np.int64)
    kernel = jit.kernel("rows", "rows", preamble.types(O=indptr.dtype))
    jit.sweep(kernel, tiles.size, indptr, indptr.size - 1, count, tiles)
    return tiles


def sweep(kernel: jit.Kernel, entries: int, *arguments: object) -> None:
    """Run a kernel whose threads take BATCH entries at a time."""
    jit.sweep(kernel, -(-entries // BATCH), *arguments)


class Kept(NamedTuple):
    """A bit for each entry of a list, and how many are set before each word of bits: 3/8 of a byte
    an entry.

    A kernel that calls put_word of rows.cuh fills in the bits and the counts of single words.
    """

    bits: Array
    before: Array

    @classmethod
    def empty(cls, xp: ModuleType, count: int) -> Kept:
        """For a list of `count` entries; filled in already where that is 0."""
        before = xp.empty(words(count) + 1, np.int64) if count else xp.zeros(1, np.int64)
        return cls(xp.empty(words(count), np.uint32), before)

    def counted(self) -> tuple[Kept, int]:
        """With the counts summed up, and their total: a copy, a running sum, one read back."""
        before = array_module(self.before).cumsum(self.before)
        return Kept(self.bits, before), int(before[-1])


def keep(A: Matrix) -> int:
    """The value of entry p is values[p & keep]: keep is 0 for an iso matrix, else -1."""
    return 0 if A.iso else -1


def as_bits(values: Array) -> Array:
    """Values as unsigned integers of their size, for kernels that only move them: one program for
    all types of a size.
    """
    return values.view(np.dtype(f"u{values.dtype.itemsize}"))


def sized_kernel(
    stem: str, types: str, shape: tuple[int, int], name: str, nvals: int
) -> jit.Kernel:
    """A kernel under the preamble `types` and the types of a result of `shape` and `nvals`."""
    return jit.kernel(stem, name, types + preamble.types(**result_types(*shape, nvals)))


def empty_pattern(xp: ModuleType, nrows: int, ncols: int, nvals: int) -> tuple[Array, Array]:
    """Offsets and columns of a result, still to be written."""
    types = result_types(nrows, ncols, nvals)
    return xp.empty(nrows + 1, types["Q"]), xp.empty(nvals, types["N"])


def result_types(nrows: int, ncols: int, nvals: int) -> dict[str, np.dtype]:
    """The types of a result's offsets, Q, and columns, N: the smallest that hold them."""
    return {"Q": index_dtype(nvals), "N": index_dtype(max(nrows, ncols))}
