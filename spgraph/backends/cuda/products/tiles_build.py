"""How a matrix is cut into tiles; tiles.py says what they are for."""

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
# bytes of shared memory that kernels use beside sums and tiles
RESERVED = 2048
# rows with no more entries are not put into tiles
SHORT = 16
# a column is streamed if it has more than one entry for every so many blocks
WORTH = 8
# columns of a range that far entries gather from: 8 MiB of single values; and the most
RANGE, MOST_SPAN = 1 << 21, 1 << 22
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
# the fewest entries of a piece of a row; a warp's share is at least so many of the longest pieces
PIECE, PIECES = 1024, 8


class Rest(NamedTuple):
    """The rows that are in no tile, SLICE of them side by side."""

    slices: int
    first: Array  # the first step of each slice, and the number of all steps
    rows: Array  # of each slice; -1 for none
    entries: (
        Array  # of each row in each step: a place among the hubs, or their number plus a column
    )
    values: Array


class Tiles(NamedTuple):
    """A matrix in tiles, and its other rows."""

    words: Array  # the struct Tiles of kernels/tiles.cuh
    blocks: int
    number: int  # of tiles
    width: int  # columns of a tile
    slots: int  # rows of a warp
    rows: int  # rows in tiles
    nonempty: int  # rows that have entries
    columns: Array  # those that are streamed
    split: int  # rows that are dealt in pieces
    split_rows: Array  # these, and all others behind
    split_first: Array  # the first piece of each, and their number
    pieces: int
    rest: Rest  # the rows that are not in tiles
    held: tuple[Array, ...]  # the arrays that `words` points to

    @property
    def nbytes(self) -> int:
        """Bytes of device memory."""
        return sum(array.nbytes for array in (*self.held, self.columns, *self.rest[1:]))

    def shared(self, u: np.dtype, z: np.dtype) -> int:
        """Bytes of dynamic shared memory for values of u and sums of these types."""
        buffers = 1 if u.itemsize > 4 else 2
        return WARPS * (self.slots + 1) * z.itemsize + buffers * self.width * u.itemsize


def sectors(
    entries: int, fresh: float, blocks: int, columns: int, tiled: int, far: float
) -> tuple[float, float]:
    """The sectors that the plain form and the tiles read in a product; `fresh` is the share of
    entries whose column lies in another sector than that of the entry before.
    """
    plain = entries * (fresh + 1 / 8)
    short = (entries - tiled) * (1 + 1 / 8)
    return plain, tiled / 8 + blocks * columns / 8 + far + short


def make(A: Matrix) -> Tiles | None:
    """The tiles of A; None where they would not pay."""
    m = A.nvals
    if m < ENTRIES or A.ncols < COLUMNS or A.nrows > np.iinfo(np.int32).max:
        return None
    if m > MOST_ENTRIES or A.ncols > MOST_RANGES * MOST_SPAN:
        return None
    xp, device_id = array_module(A._indptr), jit.current_device()
    blocks, memory = jit.multiprocessors(device_id), jit.shared_memory(device_id) - RESERVED
    warps, one = blocks * WARPS, np.float32().itemsize
    degrees = (A._indptr[1:] - A._indptr[:-1]).astype(np.int32)
    order = xp.argsort(-degrees, kind="stable").astype(np.int32)
    ranked = degrees[order].astype(np.int64)
    columns, column_ranked = (order, ranked) if A.symmetric else _columns_by_degree(A)

    # rows: as many of the longest as have sums, in double, that fit half of the shared memory
    share = max(PIECE, m // (warps * PIECES))
    through = xp.cumsum((ranked + (share - 1)) // share)
    most = min(PLACES, memory // 2 // (8 * WARPS)) - 1
    rows = int(((ranked > SHORT) & (through <= warps * most)).sum())
    streamed = int((column_ranked > blocks // WORTH).sum())
    if not rows or not streamed:
        return None
    split, dealt = int((ranked[:rows] > share).sum()), int(through[rows - 1])
    slots = -(-dealt // warps)
    # tiles: two of single values, or one of double ones, in the memory that is left
    width = min(2**16, (memory - WARPS * (slots + 1) * 8) // (2 * one) // 16 * 16)
    count = min(MOST_TILES, -(-streamed // width))
    streamed = min(streamed, count * width)
    tiled = int(ranked[:rows].sum())
    far = tiled * (1 - int(column_ranked[:streamed].sum()) / m)
    plain, cut = sectors(m, _fresh(A), blocks, count * width, tiled, far)
    if 4 * cut > 3 * plain:
        return None

    ranges = min(MOST_RANGES, -(-A.ncols // RANGE))
    span = -(-A.ncols // ranges)
    code = xp.arange(A.ncols, dtype=np.uint32) // np.uint32(span)
    code += np.uint32(count)
    code <<= np.uint32(16)
    ranks, tile = xp.arange(streamed, dtype=np.uint32), np.uint32(width)
    code[columns[:streamed]] = ranks // tile << np.uint32(16) | ranks % tile
    first = xp.zeros(split + 1, np.int64)
    first[1:] = through[:split]
    pieces = int(first[-1])
    walk = (code, order, first, split, dealt, blocks, slots, count, ranges, span)
    kept = _fill(A, walk, warps, slots, count, ranges)
    words = [blocks, count, width, slots, ranges, span, *map(address, kept)]
    nonempty = int((degrees > 0).sum())
    rest = _rest(A, code, order[rows:nonempty], ranked[rows:nonempty], count, width)
    return Tiles(
        *(xp.asarray(np.array(words, np.int64)), blocks, count, width, slots, rows, nonempty),
        *(columns[:streamed].copy(), split, order[:split].copy(), first, pieces, rest, kept),
    )


def _columns_by_degree(A: Matrix) -> tuple[Array, Array]:
    """(the columns, those of most entries first; how many entries each has)."""
    xp = array_module(A._indptr)
    if A.has_transpose:
        degrees = A._T._indptr[1:] - A._T._indptr[:-1]
    else:
        degrees = xp.bincount(A._indices, minlength=A.ncols)
    degrees = degrees.astype(np.int32)
    order = xp.argsort(-degrees, kind="stable").astype(np.int32)
    return order, degrees[order].astype(np.int64)


def _fresh(A: Matrix) -> float:
    """The share of entries, of a sample, whose column lies in another sector than that of the entry
    before.
    """
    xp = array_module(A._indptr)
    samples = 1 << 16
    places = xp.arange(samples) * (A.nvals - 1) // samples + 1
    return float((A._indices[places] >> 3 != A._indices[places - 1] >> 3).mean())


def _fill(
    A: Matrix, walk: tuple[Array | int, ...], warps: int, slots: int, count: int, ranges: int
) -> tuple[Array, ...]:
    """The arrays that the struct Tiles points to, in its order: two passes over the entries, and
    one over the packs.

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


def _rest(A: Matrix, code: Array, order: Array, lengths: Array, count: int, width: int) -> Rest:
    """The rows of `order`, of these `lengths`, the longest first."""
    xp, slices = array_module(code), -(-order.size // SLICE)
    if not slices:
        return Rest(0, *(xp.empty(0, kind) for kind in (np.uint32, np.int32, np.uint32, A.dtype)))
    by_window = xp.argsort(order // WINDOW, kind="stable")
    rows, steps = xp.full(slices * SLICE, -1, np.int32), xp.zeros(slices * SLICE, np.int64)
    rows[: order.size], steps[: order.size] = order[by_window], lengths[by_window]
    first = xp.zeros(slices + 1, np.int64)
    xp.cumsum(steps.reshape(-1, SLICE).max(axis=1), out=first[1:])
    size, first = SLICE * int(first[-1]), first.astype(np.uint32)
    entries, values = xp.empty(size, np.uint32), xp.empty(0 if A.iso else size, A.dtype)
    rest = Rest(slices, first, rows, entries, values)
    fill = jit.kernel("tiles_build", "tiles_fill_rest", _build_text(A))
    matrix = (A._indptr, A._indices, A._values)
    jit.launch(fill, SLICE * slices, *matrix, code, count, width, *rest)
    return rest


def _build_text(A: Matrix) -> str:
    """The preamble of tiles_build.cu."""
    kinds = {"O": A._indptr.dtype, "I": A._indices.dtype, "A": A.dtype, "R": np.dtype(np.int32)}
    return preamble.constants(ISO=A.iso) + preamble.types(**kinds)
