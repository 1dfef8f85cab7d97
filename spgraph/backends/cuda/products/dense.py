"""A sparse matrix times a dense one: a Matrix that has all of its entries, or an array."""

from __future__ import annotations

import numpy as np

from spgraph.backends.cuda.entrywise.edge_parallel import keep
from spgraph.backends.cuda.products.operands import one_value
from spgraph.backends.cuda.products.row_bins import RowBins, row_bins
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import INT32_MAX, Array, array_module, index_dtype
from spgraph.containers.storage.device_memory import address
from spgraph.semirings import TypedSemiring


@jit.on_device
def multiply_dense(A: Matrix, X: Matrix, semiring: TypedSemiring) -> Matrix:
    """The matrix of the sums over k of A[i, k] * X[k, c], where X has all of its entries: empty
    rows of A give empty rows, the others full ones.

    Sums are in a fixed order, whatever the number of columns. Launches: the product, one more where
    a row of A has over 1024 entries, and six of CuPy's; nothing is read back, except for the
    row bins of A when they are first asked for.
    """
    xp = array_module(A._indptr)
    wide = X.ncols
    bins = row_bins(A)
    full = xp.cumsum(A._indptr[1:] > A._indptr[:-1], dtype=np.int64) * wide
    nvals = bins.nonempty * wide
    indptr = xp.zeros(A.nrows + 1, np.int32 if nvals <= INT32_MAX else np.int64)
    indptr[1:] = full
    columns = xp.arange(wide, dtype=index_dtype(max(A.nrows, wide)))
    indices = xp.tile(columns, bins.nonempty)
    constant = one_value(A, X, semiring)
    if constant is not None:
        return Matrix._of(A.nrows, wide, indptr, indices, constant, iso=True)
    z = xp.empty(nvals, semiring.dtype)
    sum_rows(A, bins, arrays_of(A), X._values, keep(X), wide, semiring, False, indptr, z)
    return Matrix._of(A.nrows, wide, indptr, indices, z)


@jit.on_device
def multiply_array(
    A: Matrix, X: Array, semiring: TypedSemiring, flip: bool, fill: np.generic
) -> Array:
    """The array of the sums over k of A[i, k] * X[k, c] (flip: X[k, c] * A[i, k]); where row i has
    no entry, `fill`.

    Sums are in a fixed order, whatever the number of columns. Launches: the product, one more where
    a row of A has over 1024 entries, a fill and one more where one has none; nothing is read back,
    except for the row bins of A when they are first asked for.
    """
    xp, wide = array_module(X), X.shape[1]
    z = xp.empty((A.nrows, wide), semiring.dtype)
    bins = row_bins(A)
    text = sum_rows(A, bins, arrays_of(A), X, -1, wide, semiring, flip, None, z)
    if bins.nonempty < A.nrows:
        fill_empty(A, text, fill, z)
    return z


def fill_empty(A: Matrix, text: str, fill: np.generic, z: Array) -> None:
    """Write `fill` to the rows of z where A has no entry; `text` is the preamble of `sum_rows`."""
    value = array_module(z).full(1, fill, z.dtype)
    kernel = jit.kernel("multiply_dense", "multiply_dense_fill", text)
    jit.launch(kernel, A.nrows, A._indptr, A.nrows, z.shape[1], value, z)


def arrays_of(A: Matrix) -> tuple[Array, Array, Array]:
    """A's offsets, columns and values."""
    return A._indptr, A._indices, A._values


def sum_rows(
    A: Matrix,
    bins: RowBins,
    arrays: tuple[Array, Array, Array],
    x: Array,
    x_keep: int,
    wide: int,
    semiring: TypedSemiring,
    flip: bool,
    places: Array | None,
    z: Array,
) -> str:
    """Write the sums of each row in `bins` to z, which has all rows, or from places[i] on that of
    row i; the preamble of the program that does. x[k * wide + c & x_keep] are the values, `arrays`
    the offsets, columns and values of a matrix of A's types.
    """
    xp = array_module(z)
    shape = dense_shape(wide, x.dtype.itemsize, address(x) if x_keep == -1 else 1)
    lanes, each, _ = shape
    tiles = -(-wide // (lanes * each))
    offsets = bins.rows.dtype if places is None else places.dtype
    text = dense_preamble(A, x.dtype, semiring, bins.rows.dtype, offsets, shape, flip)
    text += preamble.constants(PLACED=places is not None)
    pieces, others = bins.piece_row.size, bins.nonempty - bins.split
    partial = xp.empty(pieces * wide, semiring.dtype)
    places = jit.NULL if places is None else places
    if bins.nonempty and wide:
        jit.launch(
            jit.kernel("multiply_dense", "multiply_dense", text),
            lanes * tiles * (pieces + others),
            *(*arrays, keep(A), x, x_keep, wide, tiles),
            *(bins.rows, bins.split, pieces, others, bins.piece_row, bins.piece_first),
            *(places, partial, z),
        )
    if bins.split and wide:
        lists = (bins.rows, bins.split, wide, bins.piece_first, places, partial, z)
        gather = jit.kernel("multiply_dense", "multiply_dense_split", text)
        jit.launch(gather, bins.split * wide, *lists)
    return text


def dense_shape(wide: int, size: int, address: int) -> tuple[int, int, int]:
    """(lanes of a row, columns of a lane, columns of a load) for rows of `wide` values of `size`
    bytes: loads of 16 bytes where all rows are aligned to that, of one value else.
    """
    vector = 16 // size
    if wide == 0 or wide % vector or address % 16:
        vector = 1
    loads = max(1, -(-wide // vector))
    lanes = min(32, 1 << (loads - 1).bit_length())
    most = 4 if vector == 1 else 2
    return lanes, vector * min(most, 1 << (-(-loads // lanes) - 1).bit_length()), vector


def dense_preamble(
    A: Matrix,
    values: np.dtype,
    semiring: TypedSemiring,
    rows: np.dtype,
    offsets: np.dtype,
    shape: tuple[int, int, int],
    flip: bool,
) -> str:
    """The preamble of kernels/multiply_dense.cu, but for PLACED."""
    lanes, each, vector = shape
    return (
        preamble.types(O=A._indptr.dtype, I=A.index_dtype, A=A.dtype, U=values)
        + preamble.types(R=offsets, S=rows)
        + preamble.semiring(semiring)
        + preamble.constants(WIDTH=lanes, EACH=each, VECTOR=vector, FLIP=flip)
    )
