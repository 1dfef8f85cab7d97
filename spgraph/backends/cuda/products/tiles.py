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
    where there is no memory for them. Some 60 launches and 11 values read back.
    """
    if "shared_tiles" not in A._derived:
        try:
            A._keep("shared_tiles", make(A))
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
