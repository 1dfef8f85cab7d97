"""Matrix times vector: rows that gather (pull), or entries that scatter (push)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spgraph.backends.cuda.entrywise.masks import NOT_INVERTED, bits_of, mask_words
from spgraph.backends.cuda.entrywise.storage import conform, to_sparse
from spgraph.backends.cuda.products import tiles
from spgraph.backends.cuda.products.row_bins import RowBins, row_bins
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.containers import Mask, Matrix, Vector
from spgraph.containers.storage.arrays import Array, array_module, index_dtype, words
from spgraph.containers.storage.device_memory import copied
from spgraph.semirings import TypedSemiring

FEW = 4096  # entries whose degrees one block adds up


@jit.on_device
def pull(A: Matrix, u: Vector, semiring: TypedSemiring, mask: Mask | None, flip: bool) -> Vector:
    """t[i] = sum over k of A[i, k] * u[k] (flip: u[k] * A[i, k]) for the rows the mask allows.

    Launches: those of `gather`, and fills. With a full u and no mask nothing is read back, and
    tiles are used where `prepare` has made some; else the entries are counted.
    """
    u = u.to_bitmap()
    dense = u._bits is None and mask is None
    cut = A._derived.get("shared_tiles") if dense and tiles.takes(semiring) else None
    nonempty = row_bins(A).nonempty if cut is None else cut.nonempty

    def product(*given: Any) -> None:
        gather(A, cut, u, *given)

    return pulled(A, u, semiring, mask, flip, nonempty, product)


def pulled(
    A: Matrix,
    u: Vector,
    semiring: TypedSemiring,
    mask: Mask | None,
    flip: bool,
    nonempty: int,
    product: Callable[..., None],
) -> Vector:
    """The Vector of what `product(text, z, bits, invert, z_bits)`, as `gather`, writes of A times
    u, a bitmap or full; `nonempty` rows of A have entries.
    """
    xp = array_module(A._indptr)
    full, masked = u._bits is None, mask is not None
    text = preamble.semiring(semiring, ISO=A.iso, FLIP=flip, MASKED=masked, FULL=full)
    text += preamble.types(
        O=A._indptr.dtype, I=A.index_dtype, A=A.dtype, U=u.dtype, R=index_dtype(A.nrows)
    )
    bits, invert = mask_words(mask)
    nvals: int | None = None
    if not full:
        z_bits = xp.zeros(words(A.nrows), np.uint32)
    elif masked:
        # what lies under the bits of empty rows stays out
        z_bits = A._nonempty_rows() & (bits ^ invert)
    elif nonempty < A.nrows:
        z_bits, nvals = copied(A._nonempty_rows()), nonempty
    else:
        z_bits, nvals = jit.NULL, A.nrows
    complete = full and not masked and nvals == A.nrows
    z = (xp.empty if complete else xp.zeros)(A.nrows, semiring.dtype)
    product(text, z, bits, invert, z_bits)
    return (
        Vector._of(A.nrows, z)
        if complete
        else conform(Vector._of(A.nrows, z, bits=z_bits, nvals=nvals))
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
    else:
        arrays = A._indptr, A._indices, A._values
        gather_rows(row_bins(A), arrays, u, text, z, bits, invert, z_bits)


def gather_rows(
    bins: RowBins,
    arrays: tuple[Array, Array, Array],
    u: Vector,
    text: str,
    z: Array,
    bits: Array,
    invert: np.uint32,
    z_bits: Array,
) -> None:
    """`gather` over the rows in `bins`, of a matrix of these offsets, columns and values."""
    xp, pieces = array_module(z), bins.piece_row.size
    product, join = jit.kernels("pull", text, "pull", "pull_split")
    settled = hits = partial = jit.NULL
    if pieces:
        settled, hits = xp.zeros(bins.split, np.uint32), xp.empty(pieces, bool)
        partial = xp.empty(pieces, z.dtype)
    warps = pieces + bins.wide + -(-bins.narrow // 4) + -(-bins.single // 32)
    if warps:
        given = *arrays, bits_of(u), u._values, bits, invert
        counts = bins.rows, bins.split, pieces, bins.wide, bins.narrow, bins.single
        of_pieces = bins.piece_row, bins.piece_first, settled, hits, partial
        jit.launch(product, 32 * warps, *given, *counts, *of_pieces, z_bits, z)
    if bins.split:
        given = bins.rows, bins.split, bins.piece_first, hits, partial, z_bits, z
        jit.launch(join, 32 * bins.split, *given)


@jit.on_device
def push(A: Matrix, u: Vector, semiring: TypedSemiring, mask: Mask | None, flip: bool) -> Vector:
    """t[j] = sum over k of u[k] * A[k, j] (flip: A[k, j] * u[k]) for columns the mask allows.

    Launches: degrees and their running sum, one for few entries, the product, two fills, the count
    of entries, which is read back, and the list of few.
    """
    u = to_sparse(u)
    assert u._indices is not None
    if u.nvals == 0 or A.nvals == 0:
        return nothing_pushed(A, semiring)
    scatter = Scatter(A, u, semiring, mask, flip)
    arrays = A._indptr, A._indices, A._values
    scatter.add(arrays, u._indices, u._values, scatter.through(), A.nvals)
    return scatter.result()


def nothing_pushed(A: Matrix, semiring: TypedSemiring) -> Vector:
    """The product of a Matrix and a Vector of which one has no entry."""
    xp, ids = array_module(A._indptr), index_dtype(A.ncols)
    return Vector._of(A.ncols, xp.empty(0, semiring.dtype), indices=xp.empty(0, ids))


class Scatter:
    """A push while it is made: the products of entries of u with rows of A are added to one array.

    u is sparse and, as A, has entries.
    """

    def __init__(
        self, A: Matrix, u: Vector, semiring: TypedSemiring, mask: Mask | None, flip: bool
    ) -> None:
        assert u._indices is not None
        xp = array_module(A._indptr)
        self.A, self.u = A, u
        self.text = preamble.semiring(semiring, ISO=A.iso, FLIP=flip, MASKED=mask is not None)
        self.text += preamble.types(
            O=A._indptr.dtype, I=A.index_dtype, A=A.dtype, U=u.dtype, N=u._indices.dtype
        )
        self.kernel = jit.kernel("push", "push", self.text)
        self.mask = mask_words(mask)
        self.z_bits = xp.zeros(words(A.ncols), np.uint32)
        add, dtype = semiring.add, semiring.dtype
        self.z = xp.zeros(A.ncols, dtype) if add.any else xp.full(A.ncols, add.identity, dtype)

    def through(self) -> Array:
        """The running sum of the lengths of the rows of A at the entries of u."""
        u, xp = self.u, array_module(self.z)
        degrees, given = xp.empty(u.nvals, np.int64), (self.A._indptr, u._indices, u.nvals)
        if u.nvals <= FEW:
            through = jit.kernel("push", "push_through", self.text)
            jit.launch(through, jit.BLOCK, *given, degrees)
            return degrees
        jit.sweep(jit.kernel("push", "push_degrees", self.text), u.nvals, *given, degrees)
        return xp.cumsum(degrees)

    def add(
        self,
        arrays: tuple[Array, Array, Array],
        ids: Array,
        values: Array,
        through: Array,
        most: int,
    ) -> None:
        """Add the products of these entries of u with rows of a matrix of these offsets, columns
        and values. `through` is the running sum of the lengths of the rows, `most` its end or more.
        """
        # every warp takes at least 128 edges; how many there are is known on the device
        given = *arrays, ids, values, ids.size, through, *self.mask
        jit.resident(self.kernel, -(-most // 128) * 32, *given, self.z_bits, self.z)

    def result(self) -> Vector:
        """The sums; how many there are is read back."""
        return conform(Vector._of(self.A.ncols, self.z, bits=self.z_bits))
