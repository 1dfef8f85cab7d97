"""The transpose of a matrix, by a radix sort."""

from __future__ import annotations

import numpy as np

from spgraph.backends.cuda.entrywise.edge_parallel import as_bits, result_types, tiles_of
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import array_module

# as in kernels/transpose.cu: the entries that a block sorts, and the bits of a digit at most
PART, WIDTH = 4096, 8
BLOCK = 256


@jit.on_device
def transpose(A: Matrix) -> Matrix:
    """T[j, i] = A[i, j].

    A radix sort by column in passes of at most 8 bits, of 7 for 2^21 columns. An entry of v bytes
    and 32-bit indices costs: first pass 12 + 2v, each further one 20 + 2v, the last 4 less; the
    most memory, beside A, is two lists of entries, 16 + 2v (the result, 4 + v, is part of it). Per
    pass two launches and a running sum; two more sums and A's tiles; nothing is read back.
    """
    xp, count = array_module(A._indices), A.nvals
    types = result_types(A.ncols, A.nrows, count)
    lengths = xp.zeros(A.ncols + 1, types["Q"])
    keys, rows = A._indices, jit.NULL
    values = jit.NULL if A.iso else as_bits(A._values)
    if count:
        counts_type = types["Q"]
        unsigned = np.dtype(f"u{counts_type.itemsize}")
        text = preamble.types(
            O=A._indptr.dtype,
            I=keys.dtype,
            N=types["N"],
            V=as_bits(A._values).dtype,
            C=counts_type,
            Q=unsigned,
        ) + preamble.constants(VALUES=not A.iso)
        tally = jit.kernel("transpose", "transpose_count", text)
        scatter = jit.kernel("transpose", "transpose", text)
        parts = -(-count // PART)
        bits = max(1, (A.ncols - 1).bit_length())
        passes = -(-bits // WIDTH)
        width = -(-bits // passes)
        for k in range(passes):
            at = count, k * width, width, parts
            counts = xp.empty(parts << width, counts_type)
            jit.launch(tally, parts * BLOCK, keys, *at, counts)
            through = xp.cumsum(counts, dtype=counts_type)
            z_keys = xp.empty(count, keys.dtype) if k + 1 < passes else jit.NULL
            z_rows = xp.empty(count, types["N"])
            z_values = jit.NULL if A.iso else xp.empty_like(values)
            jit.launch(
                scatter,
                parts * BLOCK,
                *(A._indptr, tiles_of(A), keys, rows, values, *at, through),
                *(z_keys, z_rows, z_values, lengths),
            )
            keys, rows, values = z_keys, z_rows, z_values
    else:
        rows = xp.empty(0, types["N"])
    indptr = xp.cumsum(lengths, dtype=lengths.dtype)
    z = values.view(A.dtype) if count and not A.iso else A._values.copy()
    return Matrix._of(A.ncols, A.nrows, indptr, rows, z, iso=A.iso, symmetric=A.symmetric)
