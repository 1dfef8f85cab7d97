"""Matrix times matrix: by rows (Gustavson), by dot products under a mask, or with a dense operand.

In all three forms one thread sums the products of an entry in the order of k, so that results do
not depend on the number of threads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spgraph.backends.cpu.runtime import jit, memory, pool, preamble
from spgraph.containers import Mask, Matrix
from spgraph.containers.storage.arrays import INT32_MAX, index_dtype
from spgraph.semirings import TypedMonoid, TypedSemiring, python_literal

# Rows are made in a buffer of this many entries per thread and then appended to the result:
# counting the entries first would take another pass over all products. The least stays in a core's
# cache, the most is for results that would take many rounds.
LEAST_BUFFER, MOST_BUFFER, ROUNDS = 1 << 17, 1 << 20, 8
# entries up to which the result's arrays are as long as it could be, for the system maps no memory
# that is never touched
UNTOUCHED = 1 << 27
# bytes up to which a thread keeps a sum for every column
SUMS_BYTES = 1 << 21
# products a row, on average, from which such sums are as fast as a short list
FEW_PRODUCTS = 16
# the fixed cost of a row, in products
ROW_COST = 16
# entries of a mask whose sum is one partial sum of `reduce_dots`, where these are not too many
CHUNK, MOST_CHUNKS = 2048, 1024
# what kernels/multiply_dots.py names where it does not reduce
NOT_REDUCED = (
    "\nZERO = 0\n@njit\ndef cast(x):\n    return x\n@njit\ndef combine(x, y):\n    return x\n"
)
# columns of X summed at a time: a row of sums stays in the L1 cache
BLOCK = 1024
# of a row of a product: texts in kernels/
FORMS = ("dense", "short", "bitmap")
NO_PLACES = np.empty(0, np.int64)


class Product(NamedTuple):
    """What is known of a product before it is computed; `constant`: the value of all entries."""

    nrows: int
    ncols: int
    semiring: TypedSemiring
    constant: np.ndarray | None


def multiply_flops(A: Matrix, B: Matrix) -> int:
    """The number of products in A B, in O(entries of A); a lazy transpose B is not computed."""
    if not B._has_arrays:
        return int(B.row_degrees()._values[A._indices].sum(dtype=np.int64))
    return int(_row_flops(A, B).sum(dtype=np.int64))


def multiply_rows(A: Matrix, B: Matrix, semiring: TypedSemiring, mask: Mask | None) -> Matrix:
    """A B where the mask allows, row by row (Gustavson, Two Fast Algorithms for Sparse Matrices,
    1978), in time proportional to the products and the entries of the mask.

    Beside the result it needs on several threads a buffer of a few million entries, or of the
    longest row; and a thread about two bits for each column, or a value where there are few.
    """
    flops = _row_flops(A, B)
    bounds, work = flops, flops + ROW_COST
    m_indptr, m_indices = A._indptr, A._indices
    if mask is not None:
        m_indptr, m_indices = _chosen(mask)
        named = np.diff(m_indptr).astype(np.int64)
        work += named
        bounds = np.minimum(bounds, B.ncols - named if mask.complement else named)
    bounds = np.minimum(bounds, B.ncols)
    most = int(bounds.sum())
    constant = _one_value(A, B, semiring)
    result = Product(A.nrows, B.ncols, semiring, constant)
    z = _pair(most if most <= UNTOUCHED else 0, result)
    if most == 0:
        return _matrix(np.zeros(A.nrows + 1, np.int64), z[0], z[1], result)

    kind = 0 if mask is None else 2 if mask.complement else 1
    # sums of all columns have to stay in a core's cache, and filling them must not be the work, nor
    # looking through a bitmap of the columns for each row; and short lists would be faster where
    # rows have few products, or one row of B alone, as in a product with a diagonal matrix
    dense = kind == 0 and constant is None and B.ncols * semiring.dtype.itemsize <= SUMS_BYTES
    dense = dense and B.ncols <= most and A.nrows * B.ncols <= 1024 * most
    dense = dense and most > FEW_PRODUCTS * A.nrows and A.nvals > A.nrows
    kernel = jit.module("multiply_rows", _forms(semiring, kind, constant is None, dense))
    threads = pool.threads_for(int(work.sum()), pool.LONG_STEPS)
    sums = np.full((threads, B.ncols if dense else 0), semiring.add.identity, semiring.dtype)
    maps = (*_maps(threads, B.ncols, mask is not None), sums)
    counts = np.zeros(A.nrows + 1, np.int64)

    def rows(splits: np.ndarray, offsets: np.ndarray, z: tuple[np.ndarray, ...]) -> None:
        """Make the rows between each two splits from the offset in z on."""
        given = (*_operands(A, B), m_indptr, m_indices, flops, splits, offsets)
        pool.launch(kernel.multiply_rows, threads, *given, np.zeros(1, np.int64), *maps, counts, *z)

    if threads == 1 and z[0].size == most:  # straight into the result
        rows(np.array([0, A.nrows]), np.zeros(1, np.int64), z)
    else:
        z = _in_rounds(rows, _sums(bounds), _sums(work), counts, threads, z, result)
    return _matrix(_sums(counts[1:]), z[0], z[1], result)


@functools.lru_cache(maxsize=1024)
def _forms(semiring: TypedSemiring, mask: int, values: bool, dense: bool) -> str:
    """The preamble of `multiply_rows`: the product, and the forms of a row."""
    text = preamble.semiring(semiring, MASK=mask, VALUES=values, DENSE=dense)
    parts = ("lower_bound", *(f"multiply_rows_{form}" for form in FORMS))
    return text + "".join(map(jit.text_of, parts))


def _in_rounds(
    rows: Callable[[np.ndarray, np.ndarray, tuple[np.ndarray, ...]], None],
    bounds: np.ndarray,
    work: np.ndarray,
    counts: np.ndarray,
    threads: int,
    to: tuple[np.ndarray, np.ndarray],
    result: Product,
) -> tuple[np.ndarray, np.ndarray]:
    """(columns, values) of all rows, which `rows` makes in a buffer, as many in a round as that has
    room for; then they are appended to the arrays of `to`, or to longer ones.
    """
    room = min(max(threads * LEAST_BUFFER, int(bounds[-1]) // ROUNDS), threads * MOST_BUFFER)
    room = min(max(room, int(np.diff(bounds).max())), int(bounds[-1]))
    buffer = _pair(room, result)
    total = first = 0
    while first < counts.size - 1:
        last = int(np.searchsorted(bounds, bounds[first] + room, side="right")) - 1
        splits = _splits(work[first : last + 1], 16 * threads) + first
        offsets = bounds[splits[:-1]] - bounds[first]
        rows(splits, offsets, buffer)
        places = total + _sums(counts[first + 1 : last + 1])[splits - first]
        if places[-1] > to[0].size:
            # estimate the rest from the ratio of entries to bounds so far, plus a half
            size = min(places[-1] * 1.5 / bounds[last], 1.0) * (bounds[-1] - bounds[last])
            grown = _pair(places[-1] + int(size), result)
            grown[0][:total], grown[1][:total] = to[0][:total], to[1][:total]
            to = grown
        for array in to:
            memory.touched(array[total : places[-1]])
        given = (offsets, np.diff(places), places, np.zeros(1, np.int64), *buffer, *to)
        pool.launch(jit.module("join", "").join, threads, *given)
        total, first = int(places[-1]), last
    return to


def multiply_dots(A: Matrix, BT: Matrix, semiring: TypedSemiring, mask: Mask) -> Matrix:
    """A times the transpose of BT under a mask that is not complemented: a dot product of two rows
    for each of its entries.
    """
    m_indptr, m_indices = _chosen(mask)
    constant = _one_value(A, BT, semiring)
    result = Product(A.nrows, BT.nrows, semiring, constant)
    size = m_indices.size
    work = A.nvals + size * (1 + BT.nvals // max(1, BT.nrows))
    threads = pool.threads_for(work, pool.LONG_STEPS)
    chunks = 1 if threads == 1 else max(1, min(64 * threads, size // 64))
    splits = size * np.arange(chunks + 1) // chunks
    rows = np.searchsorted(m_indptr, splits[:-1].astype(m_indptr.dtype), side="right") - 1
    ticket, lengths = np.zeros(2, np.int64), np.zeros(chunks, np.int64)
    counts = np.zeros(A.nrows + 1, np.int64)
    columns, z = _pair(size, result)
    if size and A.nvals and BT.nvals:
        kernel = jit.module("multiply_dots", _not_reduced(semiring, constant is None))
        bits = np.zeros((threads, (A.ncols + 63) // 64), np.uint64)
        laid = np.empty((threads, 1 if A.iso or constant is not None else A.ncols), A.dtype)
        pool.launch(
            kernel.multiply_dots,
            threads,
            *_operands(A, BT),
            *(m_indptr, m_indices, splits, rows, ticket[:1], bits, laid),
            *(counts, lengths, columns, z),
        )
    total = int(lengths.sum())
    if total < size:
        to_columns, to_z = _pair(total, result)
        places = _sums(lengths)
        given = (splits, lengths, places, ticket[1:], columns, z, to_columns, to_z)
        pool.launch(jit.module("join", "").join, threads, *given)
        columns, z = to_columns, to_z
    return _matrix(_sums(counts[1:]), columns, z, result)


def reduce_dots(
    A: Matrix, BT: Matrix, semiring: TypedSemiring, mask: Mask, monoid: TypedMonoid
) -> np.generic:
    """The sum over `monoid` of the entries that `multiply_dots` gives, none of which is stored.

    Beside the operands it needs a bit for each column, and a value where A has values, a thread.
    """
    m_indptr, m_indices = _chosen(mask)
    size = m_indices.size
    if not (size and A.nvals and BT.nvals):
        return monoid.identity
    work = A.nvals + size * (1 + BT.nvals // max(1, BT.nrows))
    threads = pool.threads_for(work, pool.LONG_STEPS)
    # partial sums of chunks that do not depend on the number of threads, added in their order
    chunks = min(-(-size // CHUNK), MOST_CHUNKS)
    splits = size * np.arange(chunks + 1) // chunks
    rows = np.searchsorted(m_indptr, splits[:-1].astype(m_indptr.dtype), side="right") - 1
    bits = np.zeros((threads, (A.ncols + 63) // 64), np.uint64)
    laid = np.empty((threads, 1 if A.iso else A.ncols), A.dtype)
    sums, none = np.empty(chunks, monoid.dtype), np.empty(0, np.int64)
    pool.launch(
        jit.module("multiply_dots", _reduced(semiring, monoid)).multiply_dots,
        threads,
        *_operands(A, BT),
        *(m_indptr, m_indices, splits, rows, np.zeros(1, np.int64), bits, laid),
        *(none, none, m_indices, sums),
    )
    return sums[0]


@functools.lru_cache(maxsize=1024)
def _not_reduced(semiring: TypedSemiring, values: bool) -> str:
    """The preamble of `multiply_dots`."""
    text = preamble.semiring(semiring, VALUES=values, REDUCE=False) + NOT_REDUCED
    return text + jit.text_of("lower_bound")


@functools.lru_cache(maxsize=1024)
def _reduced(semiring: TypedSemiring, monoid: TypedMonoid) -> str:
    """The preamble of `reduce_dots`."""
    text = preamble.semiring(semiring, VALUES=True, REDUCE=True)
    text += "\n" + monoid.define_python("combine") + preamble.cast("cast", monoid.dtype)
    text = f"{text}ZERO = {python_literal(monoid.identity)}\n"
    return text + jit.text_of("lower_bound")


def multiply_dense(A: Matrix, X: Matrix, semiring: TypedSemiring) -> Matrix:
    """A X for a full X; a row of the result is full if that of A has an entry, else empty."""
    width = X.ncols
    full = A._indptr[1:] > A._indptr[:-1]
    constant = _one_value(A, X, semiring)
    indptr = _sums(full * np.int64(width))
    rows = np.count_nonzero(full)
    indices = np.tile(np.arange(width, dtype=index_dtype(max(A.nrows, width))), rows)
    z = memory.empty(0 if constant is not None else indices.size, semiring.dtype)
    if z.size:
        x = np.repeat(X._values, width) if X.iso else X._values
        _sum_rows(A, x, 0 if X.iso else width, width, semiring, False, indptr, z)
    return _matrix(indptr, indices, z, Product(A.nrows, width, semiring, constant))


def multiply_array(
    A: Matrix, X: np.ndarray, semiring: TypedSemiring, flip: bool, fill: np.generic
) -> np.ndarray:
    """The array of the sums over k of A[i, k] * X[k, c] (flip: X[k, c] * A[i, k]); where row i has
    no entry, `fill`.
    """
    width = X.shape[1]
    z = memory.empty(A.nrows * width, semiring.dtype)
    _sum_rows(A, X.ravel(), width, width, semiring, flip, None, z, fill)
    return z.reshape(A.nrows, width)


def _sum_rows(
    A: Matrix,
    x: np.ndarray,
    stride: int,
    width: int,
    semiring: TypedSemiring,
    flip: bool,
    places: np.ndarray | None,
    z: np.ndarray,
    fill: np.generic | None = None,
) -> None:
    """Write the sums of each row to z: from places[i] on those of row i, if that has entries.
    Without `places` z has all rows, of which those without entries get `fill`.
    """
    text = preamble.semiring(semiring, FLIP=flip, PLACED=places is not None)
    kernel = jit.module("multiply_dense", text + preamble.accumulate(semiring.add)).multiply_dense
    # filling a row costs about as much as an entry
    work = A._indptr + np.arange(A.nrows + 1, dtype=np.int64)
    threads = pool.threads_for(int(work[-1]) * width)
    block = min(BLOCK, width)
    chunks = max(1 if threads == 1 else 16 * threads, int(work[-1]) * block // pool.PIECE)
    pool.launch(
        kernel,
        threads,
        *(A._indptr, A._indices, A._values, _keep(A), x, np.uint64(stride)),
        *(
            NO_PLACES if places is None else places,
            np.full(1, 0 if fill is None else fill, z.dtype),
        ),
        *(_splits(work, chunks), width, block, np.zeros(1, np.int64), z),
    )


# --- what the forms share -------------------------------------------------------------------------


def _operands(A: Matrix, B: Matrix) -> tuple[np.ndarray | np.uint64, ...]:
    """The arrays of both for kernels; the value of entry p is values[p & keep]."""
    return A._indptr, A._indices, A._values, _keep(A), B._indptr, B._indices, B._values, _keep(B)


def _keep(A: Matrix) -> np.uint64:
    """The mask `keep`: 0 for an iso matrix, whose only value is values[0], else all ones."""
    return np.uint64(0 if A.iso else 2**64 - 1)


def _maps(threads: int, ncols: int, masked: bool) -> tuple[np.ndarray, ...]:
    """The work arrays of each thread: a bitmap of the columns, one of the nonzero words of that and
    one of the nonzero words of this; a bitmap of the columns in the mask; for each word of the
    first bitmap the number of columns before it.
    """
    sizes = [ncols]
    for _ in range(3):
        sizes.append((sizes[-1] + 63) // 64)
    bits, middle, top = (np.zeros((threads, size), np.uint64) for size in sizes[1:])
    met = np.zeros((threads, sizes[1] if masked else 0), np.uint64)
    return bits, middle, top, met, np.empty_like(bits, np.uint32 if ncols <= INT32_MAX else None)


def _row_flops(A: Matrix, B: Matrix) -> np.ndarray:
    """The number of products in each row of A B."""
    flops = np.zeros(A.nrows, np.int64)
    threads = pool.threads_for(A.nvals)
    given = (_splits(A._indptr, threads), A._indptr, A._indices, B._indptr, flops)
    pool.launch(jit.module("row_flops", "").row_flops, threads, *given)
    return flops


def _sums(counts: np.ndarray) -> np.ndarray:
    """The prefix sums of `counts`, from 0 to the sum of all."""
    sums = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts, out=sums[1:])
    return sums


def _splits(sums: np.ndarray, parts: int) -> np.ndarray:
    """The bounds of `parts` ranges of rows with about equal shares of sums[-1] - sums[0]; `sums`
    are prefix sums over the rows.
    """
    if parts == 1:
        return np.array([0, sums.size - 1])
    shares = np.linspace(sums[0], sums[-1], parts + 1).astype(sums.dtype)
    splits = np.searchsorted(sums, shares).astype(np.int64)
    splits[0], splits[-1] = 0, sums.size - 1
    return splits


def _chosen(mask: Mask) -> tuple[np.ndarray, np.ndarray]:
    """(indptr, indices) of the entries that a mask selects, apart from a complement."""
    M = mask.parent
    assert isinstance(M, Matrix)
    if mask.structure or (M.iso and bool(M._values[0])):
        return M._indptr, M._indices
    true = M._expanded_values() != 0
    before = _sums(true)
    return before[M._indptr].astype(M._indptr.dtype, copy=False), M._indices[true]


def _one_value(A: Matrix, B: Matrix, semiring: TypedSemiring) -> np.ndarray | None:
    """The value of all entries of A B, where they have one; else None."""
    if not semiring.gives_one_value(A.iso, B.iso):
        return None
    # an operand without entries may have no value, but then the product has no entries
    x, y = (M._values[:1] if M._values.size else np.zeros(1, M.dtype) for M in (A, B))
    z = np.empty(1, semiring.dtype)
    pool.launch(jit.module("one_value", preamble.semiring(semiring)).one_value, 1, x, y, z)
    return z


def _pair(size: int, result: Product) -> tuple[np.ndarray, np.ndarray]:
    """Arrays for the columns and values of `size` entries; no values if they are constant."""
    columns = np.empty(size, index_dtype(max(result.nrows, result.ncols)))
    return columns, np.empty(size if result.constant is None else 0, result.semiring.dtype)


def _matrix(indptr: np.ndarray, columns: np.ndarray, z: np.ndarray, result: Product) -> Matrix:
    """The result, in arrays of the size of its entries."""
    nvals = int(indptr[-1])
    for array in (columns, z):
        if array.size > nvals:
            array.resize(nvals, refcheck=False)  # frees the rest without a copy
    indptr = indptr.astype(index_dtype(nvals), copy=False)
    iso = result.constant is not None
    values = result.constant if iso else z
    return Matrix._of(result.nrows, result.ncols, indptr, columns, values, iso=iso)
