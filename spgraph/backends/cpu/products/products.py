"""Matrix times vector: by rows that gather (pull), or by entries that scatter (push)."""

from __future__ import annotations

import functools
from types import ModuleType

import numpy as np

from spgraph.backends.cpu.entrywise.masked_write import write
from spgraph.backends.cpu.entrywise.masks import NO_BITS, mask_words
from spgraph.backends.cpu.runtime import jit, memory, pool, preamble
from spgraph.containers import Mask, Matrix, Vector
from spgraph.containers.hypersparse import RATIO, are_hypersparse
from spgraph.containers.storage.arrays import index_dtype, words
from spgraph.semirings import TypedSemiring

# push uses a hash table if the products are fewer than 1 / FEW of the positions of the result
FEW = 16
UINT32, INT64 = np.dtype(np.uint32), np.dtype(np.int64)


def pull(A: Matrix, u: Vector, semiring: TypedSemiring, mask: Mask | None, flip: bool) -> Vector:
    """t[i] = sum over k of A[i, k] * u[k] (flip: u[k] * A[i, k]) for the i that the mask allows."""
    u, n = u.to_bitmap(), A.nrows
    bits = u._bits
    kernel = _pulling(semiring, A.iso, flip, mask is not None, bits is None).pull
    z_bits, z = memory.zeros(words(n), UINT32), memory.zeros(n, semiring.dtype)
    edges, chunks = A.nvals, 1
    threads = pool.threads_for(edges)
    if threads > 1 or edges >= 2 * pool.PIECE:
        chunks = max(16 * threads if threads > 1 else 1, edges // pool.PIECE)
        chunks = min(chunks, max(1, z_bits.size))
    given = (A._indptr, A._indices, A._values, NO_BITS if bits is None else bits, u._values)
    ticket = np.zeros(2, INT64)
    pool.launch(kernel, threads, *given, *mask_words(mask), chunks, ticket, z_bits, z)
    nvals = int(ticket[1])
    return Vector._of(n, z, bits=None if nvals == n else z_bits, nvals=nvals)._conform()


@functools.lru_cache(maxsize=1024)
def _pulling(
    semiring: TypedSemiring, iso: bool, flip: bool, masked: bool, full: bool
) -> ModuleType:
    """The kernel of `pull`."""
    text = preamble.semiring(semiring, ISO=iso, FLIP=flip, MASKED=masked, FULL=full)
    return jit.module("pull", text)


def prepare(A: Matrix) -> None:
    """Nothing: on the CPU `pull` needs no preparation of the matrix."""


def push(A: Matrix, u: Vector, semiring: TypedSemiring, mask: Mask | None, flip: bool) -> Vector:
    """t[j] = sum over k of u[k] * A[k, j] (flip: A[k, j] * u[k]) for the j that the mask allows."""
    u = u.to_sparse()
    assert u._indices is not None
    edges = int((A._indptr[1:][u._indices] - A._indptr[u._indices]).sum(dtype=np.int64))
    if mask is not None and edges * RATIO < A.ncols and are_hypersparse(A.ncols, mask.parent):
        t, allowed = push(A, u, semiring, None, flip), Vector.empty(A.ncols, semiring.dtype)
        write(allowed, t, mask, None, True)
        return allowed
    text = preamble.semiring(semiring, ISO=A.iso, FLIP=flip, MASKED=mask is not None)
    kernels = jit.module("push", text)
    given = (A._indptr, A._indices, A._values, u._indices, u._values, *mask_words(mask))
    if edges * FEW < A.ncols and edges < 2**30:
        table = np.full(1 << max(4, (2 * edges).bit_length()), -1, np.int32)
        keys, z = np.empty(edges, index_dtype(A.ncols)), np.empty(edges, semiring.dtype)
        counts = np.zeros(1, np.int64)
        pool.launch(kernels.push_few, 1, *given, table, keys, z, counts)
        ascending = np.sort(keys[: counts[0]])
        values = np.empty(ascending.size, semiring.dtype)
        # one kernel for all semirings
        pool.launch(jit.module("push", "").push_few_values, 1, table, keys, z, ascending, values)
        return Vector._of(A.ncols, values, indices=ascending)._conform()
    z_bits, z = memory.zeros(words(A.ncols), np.uint32), memory.zeros(A.ncols, semiring.dtype)
    threads = pool.threads_for(edges)
    pool.launch(kernels.push, threads, *given, _splits(A, u._indices, threads), z_bits, z)
    return Vector._of(A.ncols, z, bits=z_bits)._conform()


def _splits(A: Matrix, ids: np.ndarray, threads: int) -> np.ndarray:
    """Column bounds, multiples of 32, that divide the entries of rows `ids` about evenly."""
    splits = np.zeros(threads + 1, np.int64)
    splits[-1] = A.ncols
    if threads > 1:
        # estimated from the middle entry of up to 1024 rows, weighted by their lengths
        rows = ids[:: max(1, ids.size // 1024)]
        starts, stops = A._indptr[rows].astype(np.int64), A._indptr[1:][rows].astype(np.int64)
        rows_with = stops > starts
        samples = np.linspace(starts[rows_with], stops[rows_with] - 1, 8).astype(np.int64).ravel()
        weights = np.tile((stops - starts)[rows_with], 8)
        columns = A._indices[samples]
        order = np.argsort(columns)
        share = np.cumsum(weights[order])
        if share.size:
            at = np.searchsorted(share, share[-1] * np.arange(1, threads) // threads)
            splits[1:-1] = columns[order][at] // 32 * 32
    return splits
