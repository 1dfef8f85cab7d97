"""Matrix times vector: rows that gather (pull), or entries that scatter (push)."""

from __future__ import annotations

import numpy as np

from spgraph.backends.cuda.entrywise.masks import NOT_INVERTED, mask_words, settle
from spgraph.backends.cuda.products import tiles
from spgraph.backends.cuda.products.row_bins import row_bins
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.containers import Mask, Matrix, Vector
from spgraph.containers.storage.arrays import Array, array_module, index_dtype, words
from spgraph.semirings import TypedSemiring


@jit.on_device
def pull(A: Matrix, u: Vector, semiring: TypedSemiring, mask: Mask | None, flip: bool) -> Vector:
    """t[i] = sum over k of A[i, k] * u[k] (flip: u[k] * A[i, k]) for the rows the mask allows.

    Launches: those of `gather`, and fills. With a full u and no mask nothing is read back, and
    tiles are used where `prepare` has made some; else the entries are counted.
    """
    u = u.to_bitmap()
    xp = array_module(A._indptr)
    full, masked = u._bits is None, mask is not None
    cut = A._derived.get("shared_tiles") if full and not masked and tiles.takes(semiring) else None
    nonempty = row_bins(A).nonempty if cut is None else cut.nonempty
    text = preamble.semiring(semiring, ISO=A.iso, FLIP=flip, MASKED=masked, FULL=full)
    text += preamble.types(
        O=A._indptr.dtype, I=A._indices.dtype, A=A.dtype, U=u.dtype, R=index_dtype(A.nrows)
    )
    bits, invert = mask_words(mask)
    nvals: int | None = None
    if not full:
        z_bits = xp.zeros(words(A.nrows), np.uint32)
    elif masked:
        # what lies under the bits of empty rows stays out
        z_bits = A._nonempty_rows() & (bits ^ invert)
    elif nonempty < A.nrows:
        z_bits, nvals = A._nonempty_rows().copy(), nonempty
    else:
        z_bits, nvals = jit.NULL, A.nrows
    complete = full and not masked and nvals == A.nrows
    z = (xp.empty if complete else xp.zeros)(A.nrows, semiring.dtype)
    gather(A, cut, u, text, z, bits, invert, z_bits)
    return (
        Vector._of(A.nrows, z)
        if complete
        else settle(Vector._of(A.nrows, z, bits=z_bits, nvals=nvals))
    )


def gather(
    A: Matrix,
    cut: tiles.Tiles | None,
    u: Vector,
    text: str,
    z: Array,
    bits: Array = jit.NULL,
    invert: np.uint32 = NOT_INVERTED,
    z_bits: Array = jit.NULL,
) -> None:
    """Write to z the sum of every row that the mask allows and that meets an entry of u, by way of
    A's tiles `cut` where there are some; `text` is the preamble of pull. Where u is not full the
    bits of these rows are set in z_bits.

    One launch, one more where a row has over 1024 entries; with tiles those of `tiles.product`.
    """
    if cut is not None:
        tiles.product(A, cut, u, text, z)
        return
    bins = row_bins(A)
    xp, pieces = array_module(z), bins.piece_row.size
    product, join = jit.kernel("pull", "pull", text), jit.kernel("pull", "pull_split", text)
    settled = hits = partial = jit.NULL
    if pieces:
        settled, hits = xp.zeros(bins.split, np.uint32), xp.empty(pieces, bool)
        partial = xp.empty(pieces, z.dtype)
    warps = pieces + bins.wide + -(-bins.narrow // 4) + -(-bins.single // 32)
    u_bits = jit.NULL if u._bits is None else u._bits
    if warps:
        jit.launch(
            product,
            32 * warps,
            *(A._indptr, A._indices, A._values, u_bits, u._values, bits, invert),
            *(bins.rows, bins.split, pieces, bins.wide, bins.narrow, bins.single),
            *(bins.piece_row, bins.piece_first, settled, hits, partial, z_bits, z),
        )
    if bins.split:
        jit.launch(
            join,
            32 * bins.split,
            *(bins.rows, bins.split, bins.piece_first, hits, partial, z_bits, z),
        )


@jit.on_device
def push(A: Matrix, u: Vector, semiring: TypedSemiring, mask: Mask | None, flip: bool) -> Vector:
    """t[j] = sum over k of u[k] * A[k, j] (flip: A[k, j] * u[k]) for columns the mask allows.

    Launches: degrees, their running sum, the product, two fills, and the count of entries, which is
    read back.
    """
    u = u.to_sparse()
    assert u._indices is not None
    xp = array_module(A._indptr)
    if u.nvals == 0 or A.nvals == 0:
        return Vector._of(
            A.ncols, xp.empty(0, semiring.dtype), indices=xp.empty(0, index_dtype(A.ncols))
        )
    text = preamble.semiring(semiring, ISO=A.iso, FLIP=flip, MASKED=mask is not None)
    text += preamble.types(
        O=A._indptr.dtype, I=A._indices.dtype, A=A.dtype, U=u.dtype, N=u._indices.dtype
    )
    degrees_of, scatter = jit.kernel("push", "push_degrees", text), jit.kernel("push", "push", text)
    bits, invert = mask_words(mask)
    degrees = xp.empty(u.nvals, np.int64)
    jit.sweep(degrees_of, u.nvals, A._indptr, u._indices, u.nvals, degrees)
    through = xp.cumsum(degrees)
    z_bits = xp.zeros(words(A.ncols), np.uint32)
    start = semiring.dtype.type(0) if semiring.add.any else semiring.add.identity
    z = xp.full(A.ncols, start, semiring.dtype)
    # every warp takes at least 128 edges; how many there are is known on the device
    threads = min(jit.occupancy(scatter) * jit.BLOCK, -(-A.nvals // 128) * 32)
    jit.launch(
        scatter,
        threads,
        *(A._indptr, A._indices, A._values, u._indices, u._values, u.nvals),
        *(through, bits, invert, z_bits, z),
    )
    return settle(Vector._of(A.ncols, z, bits=z_bits))
