"""Operations on a Matrix in host memory: products with vectors and components, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from spgraph.backends.cuda.contract.contract import Forest
from spgraph.backends.cuda.products.dense import fill_empty, sum_rows
from spgraph.backends.cuda.products.products import (
    Scatter,
    gather_rows,
    nothing_pushed,
    pulled,
)
from spgraph.backends.cuda.products.row_bins import row_bins as all_row_bins
from spgraph.backends.cuda.runtime import jit
from spgraph.backends.cuda.streamed.chunks import (
    LINE,
    chunks,
    count_read,
    division,
    in_place,
    needed,
    pays_in_place,
    row_bins,
)
from spgraph.backends.cuda.streamed.mapped_matrix import mapped
from spgraph.containers import Mask, Vector
from spgraph.containers.storage.arrays import Array, array_module, move, unpack_bits
from spgraph.containers.storage.host_matrix import HostMatrix, transposed_in_host_memory
from spgraph.errors import BackendMismatch
from spgraph.semirings import TypedSemiring


def pull(
    A: HostMatrix, u: Vector, semiring: TypedSemiring, mask: Mask | None, flip: bool
) -> Vector:
    """t[i] = sum over k of A[i, k] * u[k] (flip: u[k] * A[i, k]) for the rows the mask allows.

    Chunks without such rows are not read; how many entries the others have is read back.
    """
    with jit.device(A._indptr):
        u, bins = u.to_bitmap(), row_bins(A)

        def product(text: str, z: Array, bits: Array, invert: np.uint32, z_bits: Array) -> None:
            given, wanted = (u, text, z, bits, invert, z_bits), None
            if mask is not None:
                wanted, rows = needed(A, unpack_bits(bits ^ invert, A.nrows))
                if pays_in_place(A, wanted, rows):
                    gather_rows(all_row_bins(A), in_place(A), *given)
                    return
            for chunk in chunks(A, wanted):
                gather_rows(bins[chunk.number], chunk.arrays, *given)

        nonempty = sum(each.nonempty for each in bins)
        return pulled(A, u, semiring, mask, flip, nonempty, product)


def push(
    A: HostMatrix, u: Vector, semiring: TypedSemiring, mask: Mask | None, flip: bool
) -> Vector:
    """t[j] = sum over k of u[k] * A[k, j] (flip: A[k, j] * u[k]) for columns the mask allows.

    Chunks without a row at an entry of u are not read; how many entries the others need is read
    back.
    """
    with jit.device(A._indptr):
        u = u.to_sparse()
        assert u._indices is not None
        if u.nvals == 0 or A.nvals == 0:
            return nothing_pushed(A, semiring)
        xp, scatter = array_module(A._indptr), Scatter(A, u, semiring, mask, flip)
        through, rows = scatter.through(), xp.asarray(division(A).rows)
        # the first entry of u in each chunk, and how many edges lie before it
        firsts = xp.searchsorted(u._indices, rows.astype(u._indices.dtype))
        before = xp.where(firsts > 0, through[firsts - 1], 0)
        places, edges = move(xp.stack([firsts, before]), "cpu").tolist()
        wanted = np.diff(edges)
        if pays_in_place(A, wanted, u.nvals):
            scatter.add(in_place(A), u._indices, u._values, through, edges[-1])
            return scatter.result()
        for chunk in chunks(A, wanted):
            k = chunk.number
            part = slice(places[k], places[k + 1])
            sums = through[part] - edges[k]
            scatter.add(chunk.arrays, u._indices[part], u._values[part], sums, int(wanted[k]))
        return scatter.result()


def multiply_array(
    A: HostMatrix, X: Array, semiring: TypedSemiring, flip: bool, fill: np.generic
) -> Array:
    """The array of the sums over k of A[i, k] * X[k, c] (flip: X[k, c] * A[i, k]); where row i has
    no entry, `fill`.
    """
    with jit.device(A._indptr):
        bins, wide = row_bins(A), X.shape[1]
        z, text = array_module(X).empty((A.nrows, wide), semiring.dtype), None
        for chunk in chunks(A):
            given = X, -1, wide, semiring, flip, None, z
            text = sum_rows(A, bins[chunk.number], chunk.arrays, *given)
        if text is None:  # no entries
            z[...] = array_module(z).full(1, fill, z.dtype)  # CuPy writes a number -0.0 as 0.0
        elif sum(each.nonempty for each in bins) < A.nrows:
            fill_empty(A, text, fill, z)
        return z


def contract(A: HostMatrix, undirected: bool) -> Vector:
    """The smallest vertex of every vertex's weakly connected component.

    A sample of two edges a vertex is read in host memory. Of the others an undirected graph needs
    those outside of the giant component alone; how many these are is read back.
    """
    with jit.device(A._indptr):
        xp = array_module(A._indptr)
        forest = Forest(mapped(A))
        forest.sample()
        count_read(A, LINE * A._nonempty_count())
        inside, parts, wanted = forest.inside(undirected), division(A), None
        kind = A._indptr.dtype.type
        if undirected:
            wanted, rows = needed(A, forest.label != forest.giant)
            if pays_in_place(A, wanted, rows):
                forest.follow(A._indptr, in_place(A)[1], int(wanted.sum()), inside)
                wanted[:] = 0
        for chunk in chunks(A, wanted):
            first, last = parts.entries[chunk.number : chunk.number + 2].tolist()
            forest.control[0] = 0  # no pieces of long rows yet
            # the rows of other chunks are empty
            offsets = xp.clip(A._indptr, kind(first), kind(last))
            forest.follow(offsets, chunk.arrays[1], last - first, inside)
        forest.compress(vote=False)
        return Vector._of(A.nrows, forest.label)


def transpose(A: HostMatrix) -> HostMatrix:
    """The transpose, in host memory, by the CPU."""
    return transposed_in_host_memory(A)


def _refused(name: str) -> Callable[..., NoReturn]:
    """What stands for an operation that has no streamed form."""

    def refuse(*arguments: Any) -> NoReturn:
        device = next(A.device for A in arguments if isinstance(A, HostMatrix))
        raise BackendMismatch(
            f"{name}: expected Matrices in the memory of {device}, got one in host memory "
            "(storage='host'), which products with vectors and arrays alone can stream; "
            f"A.to({str(device)!r}) copies it to the GPU"
        )

    return refuse


apply_matrix, ewise_matrix = _refused("apply"), _refused("ewise")
select_matrix, write_matrix = _refused("select"), _refused("write")
extract_matrix, kronecker = _refused("extract"), _refused("kronecker")
multiply_rows = _refused("mxm")
