"""Matrix times matrix: row by row (Gustavson 1978), or as masked dot products."""

from __future__ import annotations

import numpy as np

from spgraph.backends.cuda.products.operands import (
    BYTE,
    is_pair,
    one_value,
    operand_types,
    operands,
    row_flops,
)
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.containers import Mask, Matrix
from spgraph.containers.storage.arrays import (
    INT32_MAX,
    Array,
    array_module,
    index_dtype,
    move,
    words,
)
from spgraph.semirings import TypedSemiring

INT64 = np.dtype(np.int64)

# Bins of rows that get a hash table, ascending: threads a row, slots of its table (0: as many as
# TABLE bytes hold), the most products. Rows beyond the last bin get dense accumulators.
BINS = ((32, 64, 1 << 11), (32, 256, 1 << 11), (128, 1024, 1 << 15), (256, 4096, 1 << 17))
LARGEST = (512, 0, 1 << 19)
TABLE = 1 << 16
# as in kernels/multiply_rows_dense.cuh: columns of a group. Bytes of a chunk of rows there: CACHED,
# or more where a chunk would otherwise have fewer than WORK products, up to LIMIT
GROUP, CACHED, LIMIT, WORK = 1024, 1 << 25, 1 << 30, 1 << 22
# masked dot products, as in kernels/multiply_dots.cu: columns kept as bits, slots of the hash table
# for others; the most entries that one warp reads, and the longest row it keeps; the entries that a
# task of a block reads
WINDOW, SLOTS, WARP_WORK, WARP_ROW, TASK_WORK = 1 << 17, 1 << 12, 1 << 13, 128, 1 << 18


@jit.on_device
def multiply_flops(A: Matrix, B: Matrix) -> int:
    """How many products A times B sums: for each entry of A the length of the row of B that its
    column names, added up. One launch, and one read back; the transpose that B may be a view of is
    not made for it.
    """
    if not B._has_arrays:
        return int(B.row_degrees()._values[A._indices].sum(dtype=np.int64))
    return int(row_flops(A, B).sum())


# --- row by row -----------------------------------------------------------------------------------


@jit.on_device
def multiply_rows(A: Matrix, B: Matrix, semiring: TypedSemiring, mask: Mask | None) -> Matrix:
    """The matrix of the sums over k of A[i, k] * B[k, j], for the (i, j) that the mask allows.

    Every product is made twice: first to count the entries of a row, then to sum them. Rows of up
    to some thousand entries are summed in hash tables in shared memory, others in dense
    accumulators in global memory, so many rows at a time that these take 32 MiB, or up to 1 GiB
    where the rows have few products; never fewer than one row. Sums are atomic and unordered: those
    of floats may differ in the last bits from run to run, all others do not. Launches: some 30, up
    to 10 more for each such chunk of rows; up to seven read-backs.
    """
    xp = array_module(A._indptr)
    flops = row_flops(A, B)
    bounds = xp.minimum(flops, B.ncols)
    if mask is not None and not mask.complement:
        M = mask.parent
        assert isinstance(M, Matrix)
        bounds = xp.minimum(bounds, (M._indptr[1:] - M._indptr[:-1]).astype(np.int64))
    counts = xp.zeros(A.nrows, np.int64)
    given = operands(A, B, mask)
    text = rows_preamble(A, B, None, mask, INT64, count=True)
    _make_rows(text, A, B, given, flops, bounds, (counts, jit.NULL, jit.NULL, jit.NULL), None)
    indptr = xp.zeros(A.nrows + 1, np.int64)
    xp.cumsum(counts, out=indptr[1:])
    nvals = int(indptr[-1])
    indptr = indptr.astype(np.int32 if nvals <= INT32_MAX else np.int64)
    indices = xp.empty(nvals, index_dtype(max(A.nrows, B.ncols)))
    constant = one_value(A, B, semiring)
    summed = semiring if constant is None else None
    z: Array = jit.NULL if summed is None else xp.empty(nvals, semiring.dtype)
    if nvals:
        text = rows_preamble(A, B, summed, mask, indptr.dtype, count=False)
        _make_rows(text, A, B, given, flops, counts, (counts, indptr, indices, z), summed)
    values, iso = (z, False) if constant is None else (constant, True)
    return Matrix._of(A.nrows, B.ncols, indptr, indices, values, iso=iso)


def rows_preamble(
    A: Matrix,
    B: Matrix,
    semiring: TypedSemiring | None,
    mask: Mask | None,
    offsets: np.dtype,
    count: bool,
) -> str:
    """The preamble of kernels/multiply_rows.cu; without a semiring no values are made."""
    text = operand_types(A, B, mask, semiring is not None)
    text += preamble.types(R=offsets, K=index_dtype(max(A.nrows, B.ncols)))
    text += preamble.constants(
        COUNT=count,
        VALUES=semiring is not None,
        MASKED=mask is not None,
        STRUCTURE=mask is None or mask.structure,
    )
    return text + (preamble.types(Z=BYTE) if semiring is None else preamble.semiring(semiring))


def _make_rows(
    text: str,
    A: Matrix,
    B: Matrix,
    given: tuple[Array | int, ...],
    flops: Array,
    bounds: Array,
    result: tuple[Array, ...],
    semiring: TypedSemiring | None,
) -> None:
    """Run the program `text` over all rows, bin by bin: a row of at most bounds[i] entries gets a
    hash table of twice as many slots, or a dense accumulator. `result`: counts, and where the
    entries go.
    """
    xp = array_module(A._indptr)
    slot = index_dtype(max(A.nrows, B.ncols)).itemsize
    slot += 0 if semiring is None else semiring.dtype.itemsize
    largest = 1 << (TABLE // slot).bit_length() - 1
    bins = (*BINS, (LARGEST[0], largest, LARGEST[2]))
    level = xp.searchsorted(xp.asarray([0, *(slots // 2 for _, slots, _ in bins)]), bounds)
    products = xp.searchsorted(xp.asarray([most for _, _, most in bins]), flops) + 1
    level = xp.where(bounds > 0, xp.maximum(level, products), 0).astype(np.int8)
    rows = xp.argsort(level, kind="stable").astype(np.int64, copy=False)
    steps = xp.arange(len(bins) + 1, dtype=np.int8)
    ends = move(xp.searchsorted(level[rows], steps, side="right"), "cpu").tolist()
    # the largest rows first: the tail of the last launch is then short
    for k in range(len(bins), 0, -1):
        threads, slots, _ = bins[k - 1]
        own = rows[ends[k - 1] : ends[k]]
        if own.size == 0:
            continue
        name, each = "multiply_rows", 1
        if threads == 32:
            name, each = "multiply_rows_warp", jit.BLOCK // 32
        kernel = jit.kernel("multiply_rows", name, text)
        shared = each * (slots * slot + 12 * threads)
        jit.allow(kernel, shared)
        table = (own, own.size, np.uint32(slots), bounds)
        grid = (-(-own.size // each),)
        kernel(grid, (threads * each,), (*given, *table, *result), shared_mem=shared)
    wide = rows[ends[-1] :]
    if wide.size:
        _make_dense(text, A, B, given, wide, flops[wide], result, semiring)


def _make_dense(
    text: str,
    A: Matrix,
    B: Matrix,
    given: tuple[Array | int, ...],
    rows: Array,
    flops: Array,
    result: tuple[Array, ...],
    semiring: TypedSemiring | None,
) -> None:
    """The same for `rows` in dense accumulators, a chunk of rows at a time."""
    xp = array_module(rows)
    counts, *places = result
    names = "multiply_list", "multiply_scatter", "multiply_tally", "multiply_gather"
    listing, scatter, tally, gather = jit.kernels("multiply_rows", text, *names)
    lengths = move((A._indptr[1:] - A._indptr[:-1])[rows], "cpu")
    flops = move(flops, "cpu")
    stride = -(-B.ncols // GROUP) * GROUP
    size = stride // 8 + (0 if semiring is None else stride * semiring.dtype.itemsize)
    slots = max(CACHED // size, min(LIMIT // size, int(WORK // flops.mean())), 1)
    slots = min(slots, rows.size)
    bits = xp.zeros(slots * words(stride), np.uint32)
    sums = jit.NULL
    if semiring is not None:
        nothing = 0 if semiring.add.any else semiring.add.identity
        sums = xp.full(slots * stride, nothing, semiring.dtype)
    resident = jit.occupancy(scatter) * jit.BLOCK
    # the entries of A before each row; counted from the first row of its chunk
    before = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    turn = np.arange(rows.size)
    firsts = xp.asarray(before[:-1] - before[turn - turn % slots])
    for start in range(0, rows.size, slots):
        of = slice(start, start + slots)
        own, entries = rows[of], int(before[start : start + slots + 1][-1] - before[start])
        slot_of, products = xp.empty(entries, np.int32), xp.empty(entries, np.int64)
        lists = (own, firsts[of], own.size, entries, slot_of, products)
        jit.sweep(listing, entries, A._indptr, A._indices, B._indptr, *lists)
        through = xp.cumsum(products)
        # a warp takes at least 128 products
        threads = min(resident, -(-int(flops[of].sum()) // 128) * 32)
        rest = (own, firsts[of], entries, slot_of, through, stride, bits, sums)
        jit.launch(scatter, threads, *given, *rest)
        groups = own.size * stride // GROUP
        found = jit.NULL if places[0] is jit.NULL else xp.empty(groups, np.int64)
        jit.sweep(tally, 32 * groups, own, groups, stride, bits, found, counts)
        if found is not jit.NULL:
            found = xp.cumsum(found)
            jit.sweep(gather, 32 * groups, own, groups, stride, found, bits, sums, *places)


# --- masked dot products --------------------------------------------------------------------------


@jit.on_device
def multiply_dots(A: Matrix, BT: Matrix, semiring: TypedSemiring, mask: Mask) -> Matrix:
    """The matrix of the sums over k of A[i, k] * BT[j, k], for the (i, j) that the mask, which is
    no complement, selects and where at least one k is in both rows.

    The cost is the sum of the lengths of the rows of BT that the mask's entries name. Row i of A is
    stored in shared memory, as bits and in a hash table, so that a column is found in one step;
    cheapest for columns below 2^17. To count triangles as the sum of L @ L.T under L's structure, L
    being the lower triangle, number the vertices by descending degree: no row of L is then longer
    than the square root of twice its entries, and its columns are the small ids. Sums of floats are
    in a fixed order. Launches: some 40, most of them CuPy's; five read-backs.
    """
    xp = array_module(A._indptr)
    M = mask.parent
    assert isinstance(M, Matrix)
    hits = xp.zeros(M.nvals, bool)
    constant = one_value(A, BT, semiring)
    z: Array = xp.empty(M.nvals, semiring.dtype) if constant is None else jit.NULL
    if M.nvals and A.nvals and BT.nvals:
        _make_dots(A, BT, semiring if constant is None else None, mask, hits, z)
    kept = xp.flatnonzero(hits)
    indptr = xp.searchsorted(kept, M._indptr).astype(
        np.int32 if kept.size <= INT32_MAX else np.int64
    )
    indices = M._indices[kept].astype(index_dtype(max(M.shape)), copy=False)
    values, iso = (z[kept], False) if constant is None else (constant, True)
    return Matrix._of(M.nrows, M.ncols, indptr, indices, values, iso=iso)


def dots_preamble(A: Matrix, BT: Matrix, semiring: TypedSemiring | None, mask: Mask) -> str:
    """The preamble of kernels/multiply_dots.cu; without a semiring no values are made."""
    pair = semiring is None or is_pair(semiring.multiply)
    return (
        operand_types(A, BT, mask, semiring is not None)
        + preamble.types(K=index_dtype(max(A.nrows, BT.nrows, A.ncols)))
        + preamble.constants(VALUES=semiring is not None, PAIR=pair, STRUCTURE=mask.structure)
        + preamble.constants(WINDOW=WINDOW, SLOTS=SLOTS)
        + (preamble.types(Z=BYTE) if semiring is None else preamble.semiring(semiring))
    )


def _make_dots(
    A: Matrix, BT: Matrix, semiring: TypedSemiring | None, mask: Mask, hits: Array, z: Array
) -> None:
    xp = array_module(A._indptr)
    text = dots_preamble(A, BT, semiring, mask)
    M = mask.parent
    assert isinstance(M, Matrix)
    given = operands(A, BT, mask)[:-1]
    work, length = row_flops(M, BT), A._indptr[1:] - A._indptr[:-1]
    live = (work > 0) & (length > 0)
    short = (length <= WARP_ROW) & (work <= WARP_WORK)
    light = short | (length > 16 * work)
    few = xp.flatnonzero(live & light)
    if few.size:
        kernel = jit.kernel("multiply_dots", "multiply_dots_warp", text)
        jit.launch(kernel, 32 * few.size, *given, few, few.size, work, hits, z)
    rows = xp.flatnonzero(live & ~light)
    if not rows.size:
        return
    entries = (M._indptr[1:] - M._indptr[:-1])[rows]
    pieces = xp.minimum(-(-work[rows] // TASK_WORK), entries)
    piece_first = xp.zeros(rows.size + 1, np.int64)
    xp.cumsum(pieces, out=piece_first[1:])
    tasks = int(piece_first[-1])
    piece_row = xp.searchsorted(piece_first[1:], xp.arange(tasks), side="right").astype(np.int32)
    kernel = jit.kernel("multiply_dots", "multiply_dots", text)
    key = index_dtype(max(A.nrows, BT.nrows, A.ncols)).itemsize
    bits = 4 * (WINDOW // 32 + 2)
    pair = semiring is None or is_pair(semiring.multiply)
    shared = bits + key * SLOTS + (0 if pair else bits + 4 * SLOTS)
    jit.allow(kernel, shared)
    blocks = min(jit.occupancy(kernel, jit.BLOCK, shared), tasks)
    lists = (rows, piece_row, piece_first, tasks, work, xp.zeros(1, np.int64), hits, z)
    kernel((blocks,), (jit.BLOCK,), (*given, *lists), shared_mem=shared)
