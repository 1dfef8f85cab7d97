"""Tiles: a second form of a large matrix with hubs, whose dense products gather from shared memory.

A gather of random floats is bound by the 32-byte sectors that the L2 hands out, one an entry: 170
to 190 G a second on an H200, and 36 G where the vector is larger than the L2. In 181 M entries of
a Kronecker graph of scale 21 the columns of over 33 entries, a quarter of all, hold 96 % of them.
So rows are distributed over the warps of one block a multiprocessor, and all blocks load the values
of u at the columns with the most entries (hubs) into shared memory, tile by tile, for entries that
are sorted by tile, of 4 bytes or, where a row has many in a tile and no values, of 2.3
(kernels/tiles.cuh says how). In sectors a product costs

    entries / 8                     reading them, as any form does, if all are of 4 bytes
    + blocks * columns / 8          streaming the columns of more than blocks / 8 entries
    + far entries                   gathering the rest, range by range, so that the L2 has them
    + 1.125 * entries of other rows, which gather from a compact copy of the streamed columns

On an H200, 132 blocks, millions of sectors, and for a product over an iso pattern, float32 summed
in double, the time that they would take at 180 G a second if all entries were of 4 bytes, and what
an iteration of PageRank takes, in ms; a half has half of the rows and all columns:

                    plain           tiles                           predicted  iteration
    kron21            204 (1.18)    24 + 11 + 4 + 5    =  44          0.24       0.29
    rmat_n24_32      1152 (9.8)    133 + 52 + 33 + 83  = 301          1.67       2.04
        a half        578 (4.8)     75 + 41 + 25 + 19  = 160          0.89
    kron25_16        1178 (13.4)   139 + 67 + 53 + 144 = 403          2.24
        a half        590 (6.7)     79 + 50 + 42 + 35  = 206          1.14

The plain form's time stands behind its sectors. The prediction counts sectors alone: not the time
that warps wait for copies, nor launches, nor the step between products. Measured with entries of 4
bytes: 1.0 ps an entry of a tile, 0.9 of it for memory and the rest for instructions (180 of a warp
for a step of 256 entries); 1.7 to 1.9 us a tile of 57 kB for the copies alone; 10 ps an entry that
gathers from u, instead of the 5.5 of its sectors, since sums in shared memory use the same path; 26
ps a row of the others.

Without the order by ranges an entry that gathers from u takes 28 ps where u has 67 or 134 MB; with
it 11 to 14, as where all of u lies in the L2. Ranges of 4 to 16 MB are equally good. Where barriers
in shared memory count the bytes of a copy (compute capability 9.0) warps need no block barrier at
every tile, which takes 7 to 10 % off the tiles. Copies shared by two blocks were not faster, nor
copies in pieces from different places at a time; further rows in tiles of their own; loads two
steps ahead; nor sums of several rows loaded at a time. Of 1.35 ms of tiles of rmat_n24_32 the
copies alone take 0.30, the first 50 of 220 tiles 0.51, the others 0.20, far entries 0.33.

The other rows take 0.54 ms there. What binds them is how often the L2 looks up a tag, 87 % of what
it can: 54 M gathers that the L1 misses, 3 of 4, 8 M stores, 2 M lines of entries. Yet fewer gathers
from the L2 were no faster: 4 to 57 thousand hubs in shared memory, entries ordered so that no warp
divides, slices in turn or to warps as they come, took 0.60 to 0.87 ms; hints that the L1 keep hubs
0.56 to 0.71; both kernels at the same time made an iteration 2.38 ms long, and of kron26_32 21
instead of 12.

Nor was propagation blocking faster, whose launches take no random places of memory (Beamer,
Asanovic, Patterson, "Reducing PageRank communication via propagation blocking", 2017): values were
sent to bins of 28,800 in 0.22 ms and summed there in 0.39, of kron26_32 in 3.2 and 2.9 instead of
6.3; copies of all columns took 0.04 and 0.13 more. Sums waited for a bin to arrive, at half the
speed of memory, and each wrote 32 bytes of it.

Shared memory holds the sums, too, which bounds the number of rows in tiles: the 1.9 M longest.

Tiles take 4 bytes an entry of memory, and its value, in addition to the matrix, or 2.4 to 2.7 bytes
an entry of a Kronecker graph without values; and the time of a few plain products to build.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import Array, array_module
from spgraph.containers.storage.device_memory import address
from spgraph.semirings import TypedSemiring

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


def takes(semiring: TypedSemiring) -> bool:
    """Whether tiles compute the products of a semiring: not where it looks at positions, which
    tiles do not keep, nor where a sum may end early, which plain rows make use of.
    """
    ends = semiring.add.any or (semiring.add.terminal is not None and semiring.dtype == np.bool_)
    return not ends and not semiring.multiply.positional


@jit.on_device
def prepare(A: Matrix) -> Tiles | None:
    """The tiles of A, made when first asked for and kept with A; None where they would not pay, or
    where there is no memory for them. Some 60 launches and 11 values read back.
    """
    if "shared_tiles" not in A._derived:
        try:
            A._keep("shared_tiles", _make(A))
        except MemoryError:  # CuPy's is one: products are slower without tiles, but right
            A._derived["shared_tiles"] = None
    return A._derived["shared_tiles"]


@jit.on_device
def product(A: Matrix, tiles: Tiles, u: Vector, text: str, z: Array) -> None:
    """Write the sums of all rows that have entries to z; `text` is the preamble of pull. Three
    launches, one more where rows are split.
    """
    xp, rest = array_module(z), tiles.rest
    names = "tiles_hubs", "tiles", "tiles_split", "tiles_rest"
    gather, multiply, join, short = jit.kernels("tiles", text, *names)
    streamed = tiles.number * tiles.width
    hubs = xp.empty(streamed, u.dtype)
    partial = xp.empty(tiles.pieces, z.dtype)
    jit.sweep(gather, streamed, streamed, tiles.columns.size, tiles.columns, u._values, hubs)
    shared = tiles.shared(u.dtype, z.dtype)
    jit.allow(multiply, shared)
    arguments = (tiles.words, hubs, u._values, A._values, partial, z)
    multiply((tiles.blocks,), (32 * WARPS,), arguments, shared_mem=shared)
    if tiles.split:
        jit.launch(
            join, 32 * tiles.split, tiles.split, tiles.split_rows, tiles.split_first, partial, z
        )
    if rest.slices:
        jit.launch(
            short, 32 * rest.slices, *rest, np.uint32(streamed), hubs, u._values, A._values, z
        )


def sectors(
    entries: int, fresh: float, blocks: int, columns: int, tiled: int, far: float
) -> tuple[float, float]:
    """The sectors that the plain form and the tiles read in a product; `fresh` is the share of
    entries whose column lies in another sector than that of the entry before.
    """
    plain = entries * (fresh + 1 / 8)
    short = (entries - tiled) * (1 + 1 / 8)
    return plain, tiled / 8 + blocks * columns / 8 + far + short


def _make(A: Matrix) -> Tiles | None:
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
