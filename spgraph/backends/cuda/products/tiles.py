"""Tiles: a second form of a large matrix with hubs, whose dense products gather from shared memory.

A gather of random floats is bound by the 32-byte sectors that the L2 hands out, one an entry: 170
to 190 G a second on an H200, and 36 G where the vector is larger than the L2. In 181 M entries of
a Kronecker graph of scale 21 the columns of over 33 entries, a quarter of all, hold 96 % of them.
So rows are distributed over the warps of one block a multiprocessor, and all blocks load the values
of u at the columns with the most entries (hubs) into shared memory, tile by tile, for entries that
are sorted by tile, of 4 bytes or, where a row has many in a tile and no values, of 2.3
(kernels/tiles.cuh says how). In sectors a product costs

    entries / 8                     reading them, as any form does, if all are of 4 bytes
    + blocks * columns / 8          streaming the columns of more than blocks / 11 entries
    + far entries                   gathering the rest, range by range, so that the L2 has them
    + 1.125 * entries of other rows, which gather from a compact copy of the columns

Shared memory holds the sums, too, which bounds the rows: the 1.4 M longest are the first batch. Of
what follows, batches of 1.9 M rows have few entries in all but the most popular columns, and stream
these alone. Of rows of 16 entries and fewer each gathers its own.

On an H200, 132 blocks, millions of sectors with one batch of 1.9 M rows, the time that they would
take at 180 G a second, and the ms that an iteration of PageRank takes, float32 summed in double:
with one batch and vertices as they are, with new numbers for the whole iteration (below), and in
batches:

                    plain           one batch                predicted  one   renumbered  batches
    kron21            204 (1.18)    24 + 11 + 4 + 5    =  44   0.24     0.28     0.25      0.25
    rmat_n24_32      1152 (9.8)    133 + 52 + 33 + 83  = 301   1.67     2.00     1.73      1.65
    kron26_32                                                           12.2     10.2      8.06

8.06 is of halves of shared memory for sums, 1.65 of three eighths in the first batch (1.68 of a
half, 1.75 of five eighths): wide tiles are worth more than rows. The plain form's time stands
behind its sectors. The prediction counts sectors alone: not the time that warps wait for copies,
nor launches, nor the step between products. Measured with entries of 4 bytes: 1.0 ps an entry of a
tile, 0.9 of it for memory and the rest for instructions (180 of a warp for a step of 256 entries);
1.7 to 1.9 us a tile of 57 kB for the copies alone; 10 ps an entry that gathers from u, instead of
the 5.5 of its sectors, since sums in shared memory use the same path.

Without the order by ranges an entry that gathers from u takes 28 ps where u has 67 or 134 MB; with
it 11 to 14, as where all of u lies in the L2. Ranges of 4 and 8 MB are equally good (8.10 and 8.14
ms of kron26_32), of 16 not (8.83). Where barriers in shared memory count the bytes of a copy
(compute capability 9.0) warps need no block barrier at every tile, which takes 7 to 10 % off the
tiles. Copies shared by two blocks were not faster, nor copies in pieces from different places at a
time; nor loads two steps ahead; nor sums of several rows loaded at a time; nor more rows in later
batches, with narrower tiles.

What binds the other rows is how often the L2 looks up a tag: of 54 M gathers of rmat_n24_32 in one
batch that the L1 missed, 3 of 4, 8 M stores, 2 M lines of entries, 87 % of what it can. Fewer
gathers from the L2 were no faster: 4 to 57 thousand hubs in shared memory, entries ordered so that
no warp divides, slices in turn or to warps as they come, took 0.60 to 0.87 ms instead of 0.54;
hints that the L1 keep hubs 0.56 to 0.71, loads eight at a time as long as four; both kernels at the
same time made an iteration 2.38 ms long, and of kron26_32 21 instead of 12. Nor was propagation
blocking faster, whose launches take no random places of memory (Beamer, Asanovic, Patterson,
"Reducing PageRank communication via propagation blocking", 2017): 0.61, and of kron26_32 6.1
instead of 6.3.

What helped: rows and columns have new numbers (tiles_build.py), in whose order the sums of these
rows lie side by side, columns without entries are not in between, and the streamed columns are the
first. A power iteration of one square matrix takes place in these numbers as a whole
(`renumbered_product`); other products copy u to their order first, and write sums through them. So
0.54 ms became 0.43, 6.35 ms of kron26_32 5.74, and the tiles took 1.23 and 4.25 instead of 1.32 and
4.91. Batches left 0.21 and 0.89 of 0.43 and 5.74, and themselves take 0.17 and 2.73.

Tiles take 4 bytes an entry of memory, and its value, in addition to the matrix, or 2.4 to 2.7 bytes
an entry of a Kronecker graph without values, and 8 a column; and the time of a few plain products
to build.
"""

from __future__ import annotations

import numpy as np

from spgraph.backends.cuda.products.tiles_build import WARPS, Tiles, make
from spgraph.backends.cuda.runtime import jit
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import Array, array_module
from spgraph.semirings import TypedSemiring


def takes(semiring: TypedSemiring) -> bool:
    """Whether tiles compute the products of a semiring: not where it looks at positions, which
    tiles do not keep, nor where a sum may end early, which plain rows make use of.
    """
    ends = semiring.add.any or (semiring.add.terminal is not None and semiring.dtype == np.bool_)
    return not ends and not semiring.multiply.positional


@jit.on_device
def prepare(A: Matrix) -> Tiles | None:
    """The tiles of A, made when first asked for and kept with A; None where they would not pay, or
    where there is no memory for them. Some 60 launches and 11 values read back, 30 and 6 more for
    every further batch of rows.
    """
    if "shared_tiles" not in A._derived:
        try:
            A._keep("shared_tiles", make(A))
        except MemoryError:  # CuPy's is one: products are slower without tiles, but right
            A._derived["shared_tiles"] = None
    return A._derived["shared_tiles"]


@jit.on_device
def product(A: Matrix, tiles: Tiles, u: Vector, text: str, z: Array) -> None:
    """Write the sums of all rows that have entries to z; `text` is the preamble of pull. Two
    launches, one for each batch of rows in tiles, and one more where rows are split.
    """
    copy = array_module(z).empty(tiles.places, u.dtype)
    gather = jit.kernel("tiles", "tiles_hubs", text)
    jit.sweep(gather, tiles.places, tiles.places, tiles.copied, tiles.columns, u._values, copy)
    ids = tiles.columns if tiles.renumbered else jit.NULL
    _sum(A, tiles, copy, copy if tiles.renumbered else u._values, text, z, ids)


@jit.on_device
def renumbered_product(A: Matrix, tiles: Tiles, u: Array, text: str, z: Array) -> None:
    """`product` where rows are renumbered, of values in the order of the new numbers, with room for
    all places, to sums in this order.
    """
    assert tiles.renumbered and u.size >= tiles.places
    _sum(A, tiles, u, u, text, z, jit.NULL)


def _sum(A: Matrix, tiles: Tiles, copy: Array, u: Array, text: str, z: Array, ids: Array) -> None:
    """Write the sum of row number i to z[i], or to z[ids[i]] if there are ids, from values in the
    order of the places, and those of far columns.
    """
    xp, rest = array_module(z), tiles.rest
    multiply, join, short = jit.kernels("tiles", text, "tiles", "tiles_split", "tiles_rest")
    for batch in tiles.batches:
        partial, shared = xp.empty(batch.pieces, z.dtype), batch.shared(u.dtype, z.dtype)
        jit.allow(multiply, shared)
        far = u[batch.streamed :] if tiles.renumbered else u
        arguments = (batch.words, copy, far, A._values, partial, ids, z)
        multiply((batch.blocks,), (32 * WARPS,), arguments, shared_mem=shared)
        if batch.split:
            of_pieces = batch.split, batch.split_rows, batch.split_first, partial
            jit.launch(join, 32 * batch.split, *of_pieces, ids, z)
    if rest.slices:
        given = np.uint32(tiles.places), copy, u, A._values, ids, z
        jit.launch(short, 32 * rest.slices, *rest[1:], *given)
