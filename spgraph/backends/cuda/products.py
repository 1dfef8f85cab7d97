"""Matrix times vector: rows that gather (pull), or entries that scatter (push)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spgraph.backends.cuda import jit, preamble
from spgraph.backends.cuda.masks import mask_words, settle
from spgraph.containers import Mask, Matrix, Vector
from spgraph.containers.arrays import array_module, index_dtype, words
from spgraph.semirings import TypedSemiring

# as in kernels/pull.cu: entries of a piece of a split row, of the longest narrow row, of the
# longest single one
PIECE, NARROW, SINGLE = 1024, 32, 4


class RowClasses(NamedTuple):
    """The rows of a matrix that have entries, sorted by how many: what pull gives to its warps."""

    rows: Any  # split, wide, narrow and single ones, each class ascending
    split: int
    wide: int
    narrow: int
    single: int
    piece_row: Any  # for each piece, its place among the split rows
    piece_first: Any  # for each split row, its first piece; and the number of pieces

    @property
    def nonempty(self) -> int:
        return self.split + self.wide + self.narrow + self.single


def row_classes(A: Matrix) -> RowClasses:
    """The classes of A's rows, found once (about 20 launches, 5 read back) and kept with A."""
    if "row_classes" not in A._derived:
        xp = array_module(A.indptr)
        degrees = A.indptr[1:] - A.indptr[:-1]
        parts = [xp.flatnonzero(degrees > PIECE)]
        for low, high in ((NARROW, PIECE), (SINGLE, NARROW), (0, SINGLE)):
            parts.append(xp.flatnonzero((degrees > low) & (degrees <= high)))
        rows = xp.concatenate(parts).astype(index_dtype(A.nrows))
        piece_first, piece_row = xp.zeros(parts[0].size + 1, np.int64), xp.empty(0, np.int32)
        if parts[0].size:
            pieces = (degrees[parts[0]].astype(np.int64) + (PIECE - 1)) // PIECE
            piece_first[1:] = xp.cumsum(pieces)
            places = xp.arange(int(piece_first[-1]))
            piece_row = xp.searchsorted(piece_first[1:], places, side="right").astype(np.int32)
        split, wide, narrow, single = (int(part.size) for part in parts)
        A._derived["row_classes"] = RowClasses(
            rows, split, wide, narrow, single, piece_row, piece_first
        )
    return A._derived["row_classes"]


@jit.on_device
def pull(A: Matrix, u: Vector, semiring: TypedSemiring, mask: Mask | None, flip: bool) -> Vector:
    """t[i] = sum over k of A[i, k] * u[k] (flip: u[k] * A[i, k]) for the rows the mask allows.

    Launches: the product, one more where a row has over 1024 entries, and fills. With a full u and
    no mask nothing is read back; else the entries are counted.
    """
    u = u.to_bitmap()
    classes = row_classes(A)
    xp = array_module(A.indptr)
    full, masked = u.bits is None, mask is not None
    text = preamble.semiring(semiring, ISO=A.iso, FLIP=flip, MASKED=masked, FULL=full)
    text += preamble.types(
        O=A.indptr.dtype, I=A.indices.dtype, A=A.dtype, U=u.dtype, R=classes.rows.dtype
    )
    product, gather = jit.kernel("pull", "pull", text), jit.kernel("pull", "pull_split", text)
    bits, invert = mask_words(mask)
    nvals: int | None = None
    if not full:
        z_bits = xp.zeros(words(A.nrows), np.uint32)
    elif masked:
        # what lies under the bits of empty rows stays out
        z_bits = A.nonempty_rows() & (bits ^ invert)
    elif classes.nonempty < A.nrows:
        z_bits, nvals = A.nonempty_rows().copy(), classes.nonempty
    else:
        z_bits, nvals = jit.NULL, A.nrows
    complete = full and not masked and nvals == A.nrows
    z = (xp.empty if complete else xp.zeros)(A.nrows, semiring.dtype)
    pieces = classes.piece_row.size
    settled = hits = partial = jit.NULL
    if pieces:
        settled, hits = xp.zeros(classes.split, np.uint32), xp.empty(pieces, bool)
        partial = xp.empty(pieces, semiring.dtype)
    warps = pieces + classes.wide + -(-classes.narrow // 4) + -(-classes.single // 32)
    if warps:
        jit.launch(
            product,
            32 * warps,
            *(A.indptr, A.indices, A.values, jit.NULL if full else u.bits, u.values, bits, invert),
            *(classes.rows, classes.split, pieces, classes.wide, classes.narrow, classes.single),
            *(classes.piece_row, classes.piece_first, settled, hits, partial, z_bits, z),
        )
    if classes.split:
        jit.launch(
            gather,
            32 * classes.split,
            *(classes.rows, classes.split, classes.piece_first, hits, partial, z_bits, z),
        )
    return Vector(A.nrows, z) if complete else settle(Vector(A.nrows, z, bits=z_bits, nvals=nvals))


@jit.on_device
def push(A: Matrix, u: Vector, semiring: TypedSemiring, mask: Mask | None, flip: bool) -> Vector:
    """t[j] = sum over k of u[k] * A[k, j] (flip: A[k, j] * u[k]) for columns the mask allows.

    Launches: degrees, their running sum, the product, two fills, and the count of entries, which is
    read back.
    """
    u = u.to_sparse()
    assert u.indices is not None
    xp = array_module(A.indptr)
    if u.nvals == 0 or A.nvals == 0:
        return Vector(
            A.ncols, xp.empty(0, semiring.dtype), indices=xp.empty(0, index_dtype(A.ncols))
        )
    text = preamble.semiring(semiring, ISO=A.iso, FLIP=flip, MASKED=mask is not None)
    text += preamble.types(
        O=A.indptr.dtype, I=A.indices.dtype, A=A.dtype, U=u.dtype, N=u.indices.dtype
    )
    degrees_of, scatter = jit.kernel("push", "push_degrees", text), jit.kernel("push", "push", text)
    bits, invert = mask_words(mask)
    degrees = xp.empty(u.nvals, np.int64)
    jit.sweep(degrees_of, u.nvals, A.indptr, u.indices, u.nvals, degrees)
    through = xp.cumsum(degrees)
    z_bits = xp.zeros(words(A.ncols), np.uint32)
    start = semiring.dtype.type(0) if semiring.add.any else semiring.add.identity
    z = xp.full(A.ncols, start, semiring.dtype)
    # every warp takes at least 128 edges; how many there are is known on the device
    threads = min(jit.occupancy(scatter) * jit.BLOCK, -(-A.nvals // 128) * 32)
    jit.launch(
        scatter,
        threads,
        *(A.indptr, A.indices, A.values, u.indices, u.values, u.nvals),
        *(through, bits, invert, z_bits, z),
    )
    return settle(Vector(A.ncols, z, bits=z_bits))
