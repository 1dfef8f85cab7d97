"""Tiles: a second form of a large matrix with hubs, whose dense products gather from shared memory.

A gather of random floats is bound by the 32-byte sectors that the L2 hands out, one an entry: 170
to 190 G a second on an H200. In 181 M entries of a Kronecker graph of scale 21 the columns of over
33 entries, a quarter of all, hold 96 % of them. So rows are dealt to the warps of one block a
multiprocessor, and all blocks stream the values of u at those columns through shared memory, tile
by tile, against entries of 4 bytes sorted by tile (kernels/tiles.cuh says how). In sectors a
product costs

    entries / 8                     reading them, as any form does
    + blocks * columns / 8          streaming the columns of more than blocks / 4 entries
    + 1.25 * far entries            gathering the rest, at 8 bytes an entry
    + 1.125 * entries of other rows over the plain form, which they stay in

On an H200, 132 blocks, millions of sectors (first the plain form: 1.125 an entry), and for a
product over an iso pattern in float32 the time that they would take at 180 G a second and the time
it takes, in ms:

                    plain           tiles                           predicted  measured
    kron21            203 (1.21)    23 + 8 + 8 + 4    =  43           0.24       0.38
    rmat_n20_512      819 (4.0)     91 + 11 + 4 + 2   = 108           0.68       0.90
    rmat_n24_32      1150 (9.7)    119 + 51 + 45 + 81 = 296           1.65       2.80

The plain form's time stands behind its sectors. The prediction counts sectors alone: no copies
that warps wait for, no launches. With ids in the order of degrees kron21 takes 0.43.

A step of 256 entries is 149 instructions of a warp (185 with sums in double), which at two thirds
of an H200's rate is about as long. Shared memory holds the sums, too, and so bounds the rows that
tiles can take, the longest: 1.9 M of rmat_n24_32.

Tiles take the memory of the entries a second time, about 4 bytes for each one and its value, and
the time of a few plain products to make."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from spgraph.backends.cuda import jit, preamble
from spgraph.backends.cuda.classes import RowClasses, classify
from spgraph.containers import Matrix, Vector
from spgraph.containers.arrays import array_module
from spgraph.semirings import TypedSemiring

# as in kernels/tiles.cuh
WARPS, STEP, FAR_STEP = 32, 256, 64
# bytes of shared memory that kernels use beside sums and tiles
RESERVED = 2048
# rows of no more entries stay in the plain form
SHORT = 16
# what is worth a thought: fewer entries take no time, fewer columns lie in the nearest cache
ENTRIES, COLUMNS = 1 << 22, 1 << 15
# no more tiles than counters for eight warps have room in 48 kB
MOST_TILES = 1400
# entries of a piece of a row at least, and how many of the longest pieces make a warp's share
PIECE, PIECES = 1024, 8


class Tiles(NamedTuple):
    """A matrix in tiles; what is not in tiles are the rows of `rest`."""

    words: Any  # the struct Tiles of kernels/tiles.cuh
    blocks: int
    number: int  # of tiles
    width: int  # columns of a tile
    slots: int  # rows of a warp
    rows: int  # rows in tiles
    columns: Any  # those that are streamed
    code: Any  # of every column: its tile << 16 | its place there
    split: int  # rows that are dealt in pieces
    split_rows: Any  # these, and all others behind
    split_first: Any  # the first piece of each, and their number
    pieces: int
    rest: RowClasses  # the rows that are not in tiles
    held: tuple[Any, ...]  # the arrays that `words` points to

    @property
    def nbytes(self) -> int:
        """Bytes of device memory."""
        arrays = (*self.held, self.columns, self.code, self.rest.rows)
        return sum(array.nbytes for array in arrays)

    def shared(self, u: np.dtype, z: np.dtype) -> int:
        """Bytes of dynamic shared memory for values of u and sums of these types."""
        buffers = 1 if u.itemsize > 4 else 2
        return WARPS * (self.slots + 1) * z.itemsize + buffers * self.width * u.itemsize


def takes(semiring: TypedSemiring) -> bool:
    """Whether the products of a semiring are what tiles compute: positions are not known there, and
    a sum that may end early is better off in plain rows.
    """
    ends = semiring.add.any or (semiring.add.terminal is not None and semiring.dtype == np.bool_)
    return not ends and semiring.multiply.name not in ("firsti", "firstj", "secondi", "secondj")


@jit.on_device
def prepare(A: Matrix) -> Tiles | None:
    """The tiles of A, made when first asked for and kept with A; None where they would not pay, or
    where there is no memory for them. Some 40 launches and 5 values read back.
    """
    if "shared_tiles" not in A._derived:
        try:
            A._derived["shared_tiles"] = _make(A)
        except MemoryError:  # CuPy's is one: nothing but speed is lost
            A._derived["shared_tiles"] = None
    return A._derived["shared_tiles"]


@jit.on_device
def product(A: Matrix, tiles: Tiles, u: Vector, text: str, z: Any) -> None:
    """Write the sums of the rows in tiles to z; `text` is the preamble of pull. Two launches, one
    more where rows are split.
    """
    xp = array_module(z)
    gather, multiply, join = (
        jit.kernel("tiles", name, text) for name in ("tiles_hubs", "tiles", "tiles_split")
    )
    hubs = xp.empty(tiles.number * tiles.width, u.dtype)
    partial = xp.empty(tiles.pieces, z.dtype)
    jit.sweep(gather, tiles.columns.size, tiles.columns.size, tiles.columns, u.values, hubs)
    shared = tiles.shared(u.dtype, z.dtype)
    multiply.max_dynamic_shared_size_bytes = shared
    arguments = (tiles.words, hubs, u.values, A.values, partial, z)
    multiply((tiles.blocks,), (32 * WARPS,), arguments, shared_mem=shared)
    if tiles.split:
        jit.launch(
            join, 32 * tiles.split, tiles.split, tiles.split_rows, tiles.split_first, partial, z
        )


@functools.cache
def shared_memory(device_id: int) -> int:
    """The bytes of shared memory that a block may have on a device."""
    import cupy

    return int(cupy.cuda.Device(device_id).attributes["MaxSharedMemoryPerBlockOptin"])


def sectors(
    entries: int, fresh: float, blocks: int, columns: int, tiled: int, far: float
) -> tuple[float, float]:
    """How many sectors the plain form and the tiles read in a product; `fresh` is the share of
    entries whose column lies in another sector than the one before.
    """
    plain = entries * (fresh + 1 / 8)
    short = (entries - tiled) * (fresh + 1 / 8)
    return plain, tiled / 8 + blocks * columns / 8 + 1.25 * far + short


def _make(A: Matrix) -> Tiles | None:
    m = A.nvals
    if m < ENTRIES or A.ncols < COLUMNS or max(A.shape) > np.iinfo(np.int32).max:
        return None
    xp, device_id = array_module(A.indptr), jit.current_device()
    blocks, room = jit.multiprocessors(device_id), shared_memory(device_id) - RESERVED
    warps, one = blocks * WARPS, np.float32().itemsize
    degrees = (A.indptr[1:] - A.indptr[:-1]).astype(np.int32)
    order = xp.argsort(-degrees, kind="stable").astype(np.int32)
    ranked = degrees[order].astype(np.int64)
    columns, column_ranked = (order, ranked) if A.symmetric else _columns_by_degree(A)

    # rows: as many of the longest as have room for their sums in double, half of the memory
    share = max(PIECE, m // (warps * PIECES))
    through = xp.cumsum((ranked + (share - 1)) // share)
    most = min(2**14 // WARPS, room // 2 // (8 * WARPS)) - 1
    rows = int(((ranked > SHORT) & (through <= warps * most)).sum())
    streamed = int((column_ranked > blocks // 4).sum())
    if not rows or not streamed:
        return None
    split, dealt = int((ranked[:rows] > share).sum()), int(through[rows - 1])
    slots = -(-dealt // warps)
    # tiles: two of single values, or one of double ones, in what is left
    width = min(2**16, (room - WARPS * (slots + 1) * 8) // (2 * one) // 16 * 16)
    count = min(MOST_TILES, -(-streamed // width))
    streamed = min(streamed, count * width)
    tiled = int(ranked[:rows].sum())
    far = tiled * (1 - int(column_ranked[:streamed].sum()) / m)
    plain, cut = sectors(m, _fresh(A), blocks, count * width, tiled, far)
    if 4 * cut > 3 * plain:
        return None

    places = xp.arange(streamed, dtype=np.uint32)
    code = xp.full(A.ncols, count << 16, np.uint32)
    code[columns[:streamed]] = places // np.uint32(width) << np.uint32(16) | places % np.uint32(
        width
    )
    first = xp.zeros(split + 1, np.int64)
    first[1:] = through[:split]
    pieces = int(first[-1])
    kept = _fill(A, code, order, first, split, dealt, blocks, slots, count)
    words = [blocks, count, width, slots, *map(address, kept)]
    degrees[order[:rows]] = 0
    return Tiles(
        *(xp.asarray(np.array(words, np.int64)), blocks, count, width, slots, rows),
        *(columns[:streamed].copy(), code, split, order[:split].copy(), first, pieces),
        *(classify(degrees), kept),
    )


def _columns_by_degree(A: Matrix) -> tuple[Any, Any]:
    """(the columns, those of most entries first; how many entries each has)."""
    xp = array_module(A.indptr)
    if A.has_transpose:
        degrees = A.T.indptr[1:] - A.T.indptr[:-1]
    else:
        degrees = xp.bincount(A.indices, minlength=A.ncols)
    degrees = degrees.astype(np.int32)
    order = xp.argsort(-degrees, kind="stable").astype(np.int32)
    return order, degrees[order].astype(np.int64)


def _fresh(A: Matrix) -> float:
    """The share of entries, out of a sample, whose column lies in another sector than the one
    before.
    """
    xp = array_module(A.indptr)
    samples = 1 << 16
    places = xp.arange(samples) * (A.nvals - 1) // samples + 1
    return float((A.indices[places] >> 3 != A.indices[places - 1] >> 3).mean())


def _fill(
    A: Matrix,
    code: Any,
    order: Any,
    first: Any,
    split: int,
    dealt: int,
    blocks: int,
    slots: int,
    count: int,
) -> tuple[Any, ...]:
    """The arrays that the struct Tiles points to, in its order: two passes over the entries."""
    xp, warps = array_module(code), blocks * WARPS
    text = preamble.constants(ISO=A.iso)
    text += preamble.types(O=A.indptr.dtype, I=A.indices.dtype, A=A.dtype, R=order.dtype)
    walk = (code, order, first, split, dealt, blocks, slots, count)
    per_block = jit.BLOCK // 32
    grid, shared = (warps // per_block,), per_block * (count + 1) * 4
    counts = xp.empty((warps, count + 1), np.uint32)
    jit.kernel("tiles_build", "tiles_count", text)(
        grid, (jit.BLOCK,), (A.indptr, A.indices, *walk, counts), shared_mem=shared
    )
    ends, far_ends = xp.zeros(warps * count + 1, np.int64), xp.zeros(warps + 1, np.int64)
    xp.cumsum((counts[:, :count].ravel().astype(np.int64) + (STEP - 1)) // STEP, out=ends[1:])
    xp.cumsum((counts[:, count].astype(np.int64) + (FAR_STEP - 1)) // FAR_STEP, out=far_ends[1:])
    size, far_size = int(ends[-1]) * STEP, int(far_ends[-1]) * FAR_STEP
    ends, far_ends = ends.astype(np.uint32), far_ends.astype(np.uint32)
    # steps behind the last are loaded ahead, and not looked at
    size, far_size = size + STEP, far_size + 2 * FAR_STEP
    entries, far = xp.empty(size, np.uint32), xp.empty(far_size, np.uint64)
    values = xp.empty(0 if A.iso else size, A.dtype)
    far_values = xp.empty(0 if A.iso else far_size, A.dtype)
    targets = xp.empty(warps * slots, np.int32)
    jit.kernel("tiles_build", "tiles_fill", text)(
        grid,
        (jit.BLOCK,),
        (
            *(A.indptr, A.indices, A.values, *walk, ends, far_ends),
            *(entries, values, far, far_values, targets),
        ),
        shared_mem=shared,
    )
    return entries, values, ends, far, far_values, far_ends, targets


def address(array: Any) -> int:
    """Where an array lies, in the memory of its device."""
    facts = getattr(array, "__cuda_array_interface__", None) or array.__array_interface__
    return int(facts["data"][0])
