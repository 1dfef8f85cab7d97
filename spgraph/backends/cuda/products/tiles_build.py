"""How a matrix is cut into tiles (tiles.py says what they are for).

Columns are numbered anew: those that some rows gather from shared memory first, in order of their
entries, then the others, by windows and in each the longest rows first, those without entries last.
Of a square matrix rows have the numbers of their columns.

Shared memory holds the sums of so many rows. The longest rows are the first batch, those that
follow the next one, each with the columns that are worth streaming for it, until the rows that are
left gather sooner from the L2 (`sectors`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import Array, array_module
from spgraph.containers.storage.device_memory import address

# as in kernels/tiles.cuh: warps of a block, single entries of a group, places of sums of a warp;
# and of its other rows; groups behind the last that kernels load and ignore
WARPS, SINGLES, PLACES, SLICE, SPARE = 32, 4, 1 << 10, 32, 128
# bytes of shared memory that kernels use beside sums and tiles; the part of the others that is for
# the sums of the first batch, whose rows have most of the entries, and of later ones
RESERVED, SUMS = 2048, (0.375, 0.5)
# rows with no more entries are not put into tiles
SHORT = 16
# a column is streamed if it has more than one entry for every so many blocks
WORTH = 11
# the most batches of rows; sectors that take as long as an entry of a batch that gathers from u
BATCHES, FAR = 8, 1.6
# a batch has at most so much of the sectors of another form, the first and later ones
FIRST, LATER = 0.75, 0.9
# columns of a range that far entries gather from: 4 MiB of single values; and the most
RANGE, MOST_SPAN = 1 << 20, 1 << 22
# rows are sorted by length in windows of so many, so that their sums are written close together
WINDOW = 1 << 19
# matrices of fewer entries, or of fewer columns, whose values fit the L1, get no tiles
ENTRIES, COLUMNS = 1 << 22, 1 << 15
# the most tiles and ranges, so that the cursors of two warps, of so many bytes each, fit 48 kB
MOST_TILES, MOST_RANGES, CURSOR, BUILDING = 1280, 256, 16, 48 << 10
# as in kernels/tiles_build.cu: threads of a block that orders packs, and of a section
SPREADERS, TEAM = 128, 8
# the most entries, so that their groups are counted in 32 bits
MOST_ENTRIES = 15 << 30
# entries that tell where those of many rows are
SAMPLES = 1 << 16
# the fewest entries of a piece of a row; a warp's share is at least so many of the longest pieces
PIECE, PIECES = 1024, 8


class Batch(NamedTuple):
    """Rows in tiles, as many as have sums in shared memory at a time."""

    words: Array  # the struct Tiles of kernels/tiles.cuh
    blocks: int
    number: int  # of tiles
    width: int  # columns of a tile
    slots: int  # rows of a warp
    rows: int
    streamed: int  # columns in tiles
    split: int  # rows that are dealt in pieces
    split_rows: Array
    split_first: Array  # the first piece of each, and their number
    pieces: int
    held: tuple[Array, ...]  # the arrays that `words` points to

    def shared(self, u: np.dtype, z: np.dtype) -> int:
        """Bytes of dynamic shared memory for values of u and sums of these types."""
        buffers = 1 if u.itemsize > 4 else 2
        return WARPS * (self.slots + 1) * z.itemsize + buffers * self.width * u.itemsize


class Rest(NamedTuple):
    """The rows that are in no tile, SLICE of them side by side."""

    number: int  # of rows
    slices: int
    first: Array  # the first step of each slice, and the number of all steps
    rows: Array  # of each slice; -1 for none
    entries: Array  # of each row in each step: where kernels/tiles.cu looks for the value of u
    values: Array


class Tiles(NamedTuple):
    """A matrix in tiles, and its other rows."""

    batches: tuple[Batch, ...]
    rest: Rest  # the rows that are not in tiles
    nonempty: int  # rows that have entries
    rank: Array  # the new numbers of rows and columns; or null, if rows keep theirs
    columns: Array  # in the order of their new numbers, at least those that are copied
    copied: int  # columns that a product copies: all that have entries, or those that are streamed
    places: int  # of the copy, which has zeros behind its last column

    @property
    def renumbered(self) -> bool:
        """Whether rows have new numbers, too."""
        return self.rank is not jit.NULL

    @property
    def rows(self) -> int:
        """Rows in tiles."""
        return sum(batch.rows for batch in self.batches)

    @property
    def nbytes(self) -> int:
        """Bytes of device memory."""
        held = [array for batch in self.batches for array in batch.held]
        return sum(array.nbytes for array in (*held, self.rank, self.columns, *self.rest[2:]))


def sectors(
    entries: int, fresh: float, blocks: int, columns: int, tiled: int, far: float
) -> tuple[float, float]:
    """The sectors that the plain form and the tiles read in a product; `fresh` is the share of
    entries whose column lies in another sector than that of the entry before.
    """
    plain = entries * (fresh + 1 / 8)
    short = (entries - tiled) * (1 + 1 / 8)
    return plain, tiled / 8 + blocks * columns / 8 + far + short


class Lengths(NamedTuple):
    """Rows and columns of a matrix, those of most entries first, and how many these are."""

    rows: Array
    entries: Array  # int64
    columns: Array
    column_entries: Array  # int64
    degrees: Array  # of all columns, as they are numbered


class Plan(NamedTuple):
    """What a batch will be: its first row in order of their entries, and as Batch."""

    start: int
    rows: int
    streamed: int
    split: int
    first: Array
    dealt: int  # pieces, and rows that are whole
    slots: int
    width: int
    number: int


def make(A: Matrix) -> Tiles | None:
    """The tiles of A; None where they would not pay."""
    m = A.nvals
    if m < ENTRIES or A.ncols < COLUMNS or A.nrows > np.iinfo(np.int32).max:
        return None
    if m > MOST_ENTRIES or A.ncols > MOST_RANGES * MOST_SPAN:
        return None
    lengths, plans, start = _lengths(A), list[Plan](), 0
    most = A.ncols  # columns that later batches may stream
    while len(plans) < BATCHES and (plan := _plan(A, lengths, start, most)):
        plans.append(plan)
        start, most = start + plan.rows, plan.streamed
    if not plans:
        return None
    xp, streamed = array_module(A._indptr), plans[0].streamed
    columns, rank, copied = lengths.columns[:streamed].copy(), jit.NULL, streamed
    if A.nrows == A.ncols:
        columns, copied = _numbers(lengths, streamed)
        rank = xp.argsort(columns).astype(np.int32)
    batches = tuple(_batch(A, lengths, plan, rank, copied) for plan in plans)
    places = max(copied, *(plan.number * plan.width for plan in plans))
    rest = _rest(A, lengths, start, columns, rank, places)
    nonempty = start + rest.number
    return Tiles(batches, rest, nonempty, rank, columns, copied, places)


def _lengths(A: Matrix) -> Lengths:
    xp = array_module(A._indptr)
    degrees = (A._indptr[1:] - A._indptr[:-1]).astype(np.int32)
    rows, entries = _by_length(degrees)
    if A.symmetric:
        return Lengths(rows, entries, rows, entries, degrees)
    if A.has_transpose:
        degrees = A._T._indptr[1:] - A._T._indptr[:-1]
    else:
        degrees = xp.bincount(A._indices, minlength=A.ncols)
    degrees = degrees.astype(np.int32)
    return Lengths(rows, entries, *_by_length(degrees), degrees)


def _by_length(lengths: Array) -> tuple[Array, Array]:
    """(the places of these int32 `lengths`, the longest first; the lengths in that order)."""
    order = array_module(lengths).argsort(-lengths, kind="stable").astype(np.int32)
    return order, lengths[order].astype(np.int64)


def _numbers(lengths: Lengths, streamed: int) -> tuple[Array, int]:
    """(all columns in order of their new numbers, how many have entries)."""
    xp, copied = array_module(lengths.columns), int((lengths.column_entries > 0).sum())
    columns = lengths.columns.copy()
    others = lengths.columns[streamed:copied]
    columns[streamed:copied] = others[xp.argsort(others // WINDOW, kind="stable")]
    return columns, copied


def _plan(A: Matrix, lengths: Lengths, start: int, most_columns: int) -> Plan | None:
    """The batch whose first row is number `start` of the longest, with at most so many columns in
    tiles; None where it would not pay.
    """
    xp, device_id, m = array_module(A._indptr), jit.current_device(), A.nvals
    blocks, memory = jit.multiprocessors(device_id), jit.shared_memory(device_id) - RESERVED
    warps, one = blocks * WARPS, np.float32().itemsize
    # rows: as many of the longest as have sums, in double, that fit their part of shared memory
    entries, share = lengths.entries[start:], max(PIECE, m // (warps * PIECES))
    through = xp.cumsum((entries + (share - 1)) // share)
    most = min(PLACES, int(memory * SUMS[start > 0]) // (8 * WARPS)) - 1
    rows = int(((entries > SHORT) & (through <= warps * most)).sum())
    if not rows:
        return None
    split, dealt = int((entries[:rows] > share).sum()), int(through[rows - 1])
    slots, tiled = -(-dealt // warps), int(entries[:rows].sum())
    # of the first batch all entries count, as if it had all rows
    least = blocks // WORTH * m // tiled if start else blocks // WORTH
    streamed = int((lengths.column_entries > least).sum())
    if not streamed:
        return None
    # tiles: two of single values, or one of double ones, in the memory that is left
    width = min(2**16, (memory - WARPS * (slots + 1) * 8) // (2 * one) // 16 * 16)
    number = min(MOST_TILES, -(-streamed // width))
    streamed = min(streamed, number * width, most_columns)
    if start:  # beside rows that are not in tiles
        far = FAR * tiled * _far(A, lengths, start, rows, streamed)
        other, cut = sectors(tiled, 1, blocks, number * width, tiled, far)
    else:
        far = tiled * (1 - int(lengths.column_entries[:streamed].sum()) / m)
        other, cut = sectors(m, _fresh(A), blocks, number * width, tiled, far)
    if cut > (LATER if start else FIRST) * other:
        return None
    first = xp.zeros(split + 1, np.int64)
    first[1:] = through[:split]
    return Plan(start, rows, streamed, split, first, dealt, slots, width, number)


def _fresh(A: Matrix) -> float:
    """The share of entries, of a sample, whose column lies in another sector than that of the entry
    before.
    """
    xp = array_module(A._indptr)
    places = xp.arange(SAMPLES) * (A.nvals - 1) // SAMPLES + 1
    return float((A._indices[places] >> 3 != A._indices[places - 1] >> 3).mean())


def _far(A: Matrix, lengths: Lengths, start: int, rows: int, streamed: int) -> float:
    """The share of the entries of `rows` rows, of a sample, that are in none of the columns that
    are streamed.
    """
    xp = array_module(A._indptr)
    entries = lengths.entries[start : start + rows]
    through = xp.cumsum(entries)
    picked = xp.arange(SAMPLES) * int(through[-1]) // SAMPLES
    at = xp.searchsorted(through, picked, side="right")
    first = A._indptr[lengths.rows[start + at]]
    columns = A._indices[first + picked - (through[at] - entries[at])]
    return float((lengths.degrees[columns] < lengths.column_entries[streamed - 1]).mean())


def _batch(A: Matrix, lengths: Lengths, plan: Plan, rank: Array, copied: int) -> Batch:
    """The batch of a `plan`: two passes over the entries, and one over the packs. `rank` are the
    new numbers of rows and columns, of which the first `copied` have entries; or null.
    """
    blocks, count = jit.multiprocessors(jit.current_device()), plan.number
    # far columns: in the order of their new numbers behind those that are streamed, or as they are
    renumbered = rank is not jit.NULL
    before = plan.streamed if renumbered else 0
    last = copied if renumbered else A.ncols
    ranges = min(MOST_RANGES, max(1, -(-(last - before) // RANGE)))
    span = max(1, -(-(last - before) // ranges))
    xp, tile = array_module(A._indptr), np.uint32(plan.width)
    at = rank.view(np.uint32) if renumbered else xp.arange(A.ncols, dtype=np.uint32)
    code = at + np.uint32(-before % 2**32)
    code //= np.uint32(span)
    code += np.uint32(count)
    code <<= np.uint32(16)
    ranks = xp.arange(plan.streamed, dtype=np.uint32)
    code[lengths.columns[: plan.streamed]] = ranks // tile << np.uint32(16) | ranks % tile
    order = lengths.rows[plan.start : plan.start + plan.rows]
    walk = code, rank, before, order, plan.first, plan.split, plan.dealt, blocks, plan.slots
    held = _fill(A, (*walk, count, ranges, span), blocks * WARPS, plan.slots, count, ranges)
    words = [blocks, count, plan.width, plan.slots, ranges, span, *map(address, held)]
    split_rows, pieces = order[: plan.split].copy(), int(plan.first[-1])
    if renumbered:
        split_rows = rank[split_rows]
    return Batch(
        *(xp.asarray(np.array(words, np.int64)), blocks, count, plan.width, plan.slots, plan.rows),
        *(plan.streamed, plan.split, split_rows, plan.first, pieces, held),
    )


def _fill(
    A: Matrix, walk: tuple[Array | int, ...], warps: int, slots: int, count: int, ranges: int
) -> tuple[Array, ...]:
    """The arrays that the struct Tiles points to, in its order.

    `walk` is what both kernels take behind A; each of the `warps` has `slots` rows and counts the
    groups of two sections of `count` tiles each, and of one of `ranges` ranges each.
    """
    xp, text = array_module(A._indptr), _build_text(A)
    each = CURSOR * (count + ranges)
    per_block = min(jit.BLOCK // 32, 1 << (BUILDING // each).bit_length() - 1)
    grid, block, shared = (warps // per_block,), (32 * per_block,), per_block * each
    counts = xp.empty(warps * (2 * count + ranges), np.uint32)
    count_groups, fill = jit.kernels("tiles_build", text, "tiles_count", "tiles_fill")
    count_groups(grid, block, (A._indptr, A._indices, *walk, counts), shared_mem=shared)
    ends = xp.zeros(counts.size + 1, np.int64)
    xp.cumsum(counts.astype(np.int64), out=ends[1:])
    groups, ends = int(ends[-1]), ends.astype(np.uint32)
    entries = xp.empty((groups + SPARE) * SINGLES, np.uint32)
    values = xp.empty(0 if A.iso else entries.size, A.dtype)
    entries[groups * SINGLES :] = values[groups * SINGLES :] = 0
    targets = xp.empty(warps * slots, np.int32)
    filled = A._indptr, A._indices, A._values, *walk, ends, entries, values, targets
    fill(grid, block, filled, shared_mem=shared)
    if A.iso:
        threads = TEAM * warps * count
        spread = jit.kernel("tiles_build", "tiles_spread", text)
        packs = warps, count, 2 * count + ranges, ends, entries
        spread((-(-threads // SPREADERS),), (SPREADERS,), packs)
    return entries, values, ends, targets


def _rest(
    A: Matrix, lengths: Lengths, start: int, columns: Array, rank: Array, places: int
) -> Rest:
    """The rows from number `start` of the longest on. `columns` are those that a product copies to
    the first of so many `places`, and `rank` as in `_batch`.
    """
    xp, renumbered = array_module(columns), rank is not jit.NULL
    count = int((lengths.entries > 0).sum()) - start
    slices = -(-count // SLICE)
    if not slices:
        kinds = np.uint32, np.int32, np.uint32, A.dtype
        return Rest(0, 0, *(xp.empty(0, kind) for kind in kinds))
    order, length = (array[start : start + count] for array in (lengths.rows, lengths.entries))
    number = rank[order] if renumbered else order
    # new numbers of a symmetric matrix follow the lengths of rows
    key = number if renumbered and A.symmetric else number // WINDOW
    sequence = xp.argsort(key, kind="stable")
    rows, steps = xp.full(slices * SLICE, -1, np.int32), xp.zeros(slices * SLICE, np.int64)
    rows[:count], steps[:count] = order[sequence], length[sequence]
    first = xp.zeros(slices + 1, np.int64)
    xp.cumsum(steps.reshape(-1, SLICE).max(axis=1), out=first[1:])
    size, first = SLICE * int(first[-1]), first.astype(np.uint32)
    entries, values = xp.empty(size, np.uint32), xp.empty(0 if A.iso else size, A.dtype)
    if renumbered:
        place = rank.view(np.uint32)
    else:
        place = xp.arange(A.ncols, dtype=np.uint32) + np.uint32(places)
        place[columns] = xp.arange(columns.size, dtype=np.uint32)
    fill = jit.kernel("tiles_build", "tiles_fill_rest", _build_text(A))
    matrix = (A._indptr, A._indices, A._values)
    jit.launch(fill, SLICE * slices, *matrix, place, slices, first, rows, entries, values)
    if renumbered:
        rows[:count] = number[sequence]
    return Rest(count, slices, first, rows, entries, values)


def _build_text(A: Matrix) -> str:
    """The preamble of tiles_build.cu."""
    kinds = {"O": A._indptr.dtype, "I": A._indices.dtype, "A": A.dtype}
    return preamble.constants(ISO=A.iso) + preamble.types(**kinds)
