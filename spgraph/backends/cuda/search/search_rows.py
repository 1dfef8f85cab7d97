"""What a search that pulls is told of the rows of the transpose, on one device or in shards: which
have entries, and four entries of each to look at first.
"""

from __future__ import annotations

import numpy as np

from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.backends.shards.graph import GraphRows
from spgraph.containers.storage.arrays import Array, array_module, words


def nonempty_text(offsets: np.dtype) -> str:
    """The preamble of kernels/nonempty.cu."""
    return preamble.types(O=offsets)


def leading_text(hubs: bool, ids: np.dtype, offsets: np.dtype) -> str:
    """The preamble of kernels/leading_neighbours.cu."""
    return preamble.constants(HUBS=hubs) + preamble.types(I=ids, O=offsets)


def nonempty(indptr: Array) -> tuple[Array, Array]:
    """(one bit a row that has an entry, an array of how many there are).

    One small program instead of the six of CuPy's that `Matrix._nonempty_rows` needs: in the first
    call of a process each takes a quarter of a second to compile.
    """
    xp, n = array_module(indptr), indptr.size - 1
    with jit.device(indptr):
        bits, count = xp.empty(words(n), np.uint32), xp.zeros(1, np.int64)
        kernel = jit.kernel("nonempty", "nonempty", nonempty_text(indptr.dtype))
        jit.sweep(kernel, 32 * bits.size, n, indptr, bits, count)
        return bits, count


def leading(indptr: Array, indices: Array, degrees: Array | None) -> Array:
    """Four column ids of each row: those of largest degree, where `degrees` are those of all
    columns as an indptr; else the row's first. See kernels/leading_neighbours.cu.
    """
    hubs, n = degrees is not None, indptr.size - 1
    if degrees is None:
        degrees = indptr
    with jit.device(indptr):
        indptr = indptr.astype(degrees.dtype, copy=False)
        text = leading_text(hubs, indices.dtype, indptr.dtype)
        made = array_module(indptr).empty((n, 4), indices.dtype)
        kernel = jit.kernel("leading_neighbours", "leading_neighbours", text)
        jit.sweep(kernel, n, n, indptr, indices, degrees, made)
        return made


def leading_and_nonempty(
    shard: GraphRows, degrees: Array | None = None
) -> tuple[tuple[Array, Array], int]:
    """((`leading`, the bits of `nonempty`), how many rows) of a shard's transpose. Waits for it."""
    assert shard.t_indptr is not None and shard.t_indices is not None
    bits, count = nonempty(shard.t_indptr)
    return (leading(shard.t_indptr, shard.t_indices, degrees), bits), int(count[0])
