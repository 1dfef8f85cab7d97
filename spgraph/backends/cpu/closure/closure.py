"""The fused closure: the least fixed point of x = x (+) x (+.x) A in one launch on all cores; the
edges that carry its values, and one such edge (the parent) for each vertex.
"""

from __future__ import annotations

import functools

import numpy as np

from spgraph.backends.cpu.runtime import jit, pool, preamble
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import count_bits, pack_bits
from spgraph.errors import unsettled
from spgraph.semirings import TypedSemiring

# as in kernels/closure.py
STATE, NO_SPACE, DONE, NOT_CONVERGED = 64, 32, 40, 2
# entries of a block; a thread takes one block at a time
BLOCK = 64
# edges of a round below which one thread is faster than several with barriers
ALONE = 4096
# the edges of a vertex with more edges than this are divided among all threads
HEAVY = 16384
# number of buckets for ordered values: more than an edge spans in most graphs, and few enough for
# their last blocks to stay in the L1 cache
BUCKETS = 1024
# capacity of the buckets, in entries per vertex: vertices that change buckets leave old entries
CAPACITY = 2
NO_BITS = np.empty(0, np.uint32)


def closure(A: Matrix, start: Vector, semiring: TypedSemiring, delta: float | None) -> Vector:
    """The least fixed point of x = start (+) x (+.x) A; vertices not reached have no entry.

    `delta` is the width of a bucket of values, for the monoids min and max; None: values have no
    order, and there is one bucket. Raises ConvergenceError, with the last iterate, if vertices of
    one bucket still improve each other after A.nrows rounds.
    """
    start = start.to_sparse()
    n = A.nrows
    sign = 0 if delta is None else 1 if semiring.add.name == "min" else -1
    kernel = jit.module("closure", program(semiring, sign, A.iso)).closure
    threads = pool.threads_for(A.nvals)
    value = np.full(n, semiring.add.identity, semiring.dtype)
    marks = np.zeros((n + 7) // 8, np.uint64)
    queued, visited = marks.view(np.uint8), np.zeros(n, np.uint8)
    value[start._indices] = start._values
    queued[start._indices] = 1
    buckets = BUCKETS if sign else 1
    # blocks per thread; the last block of each bucket may be partly filled
    blocks = CAPACITY * n // (BLOCK * threads) + buckets + 1
    heads = np.full(threads * buckets, -1, np.int32)
    fills = np.full(threads * buckets, BLOCK, np.int32)
    links, work, sizes = np.empty((3, threads * blocks), np.int32)
    entries = np.empty(threads * blocks * BLOCK, A._indices.dtype)
    free = np.empty((threads, 4), np.int64)
    free[:, 0] = -1
    free[:, 1] = free[:, 3] = blocks * np.arange(threads)
    free[:, 2] = free[:, 1] + blocks
    heavies = np.empty(A.nvals // HEAVY + 1, A._indices.dtype)
    state = np.zeros(STATE, np.int64)
    state[NO_SPACE] = 1  # makes the kernel fill the buckets first
    arrays = (A._indptr, A._indices, A._values, value, queued, marks, visited, heads, fills, links)
    scale = sign / delta if delta else 0.0
    more = (entries, free, work, sizes, heavies, np.zeros(1), scale, state)
    pool.launch(kernel, threads, *arrays, *more)
    if state[DONE] == NOT_CONVERGED:
        visited |= queued[:n]
    bits = pack_bits(visited.view(bool))
    nvals = count_bits(bits)
    result = Vector._of(n, value, bits=None if nvals == n else bits, nvals=nvals)
    if state[DONE] == NOT_CONVERGED:
        raise unsettled(semiring.name, n, result)
    return result


def dag_edges(A: Matrix, x: Vector, semiring: TypedSemiring) -> Matrix:
    """The pattern of the entries (i, j) of A with x[i] * A[i, j] == x[j]: the edges that carry
    the values of a closure.
    """
    x = x.to_bitmap()
    kernel = jit.module("closure", program(semiring, 0, A.iso)).dag_edges
    threads = pool.threads_for(A.nvals)
    parts = _parts(A, threads)
    indptr = np.zeros(A.nrows + 1, A._indptr.dtype)
    indices = np.empty(A.nvals, A._indices.dtype)
    counts = np.zeros(threads, np.int64)
    bits = NO_BITS if x._bits is None else x._bits
    arrays = (A._indptr, A._indices, A._values, x._values, bits, parts, indptr, indices, counts)
    pool.launch(kernel, threads, *arrays)
    found = []
    for t in range(threads):
        indptr[parts[t] + 1 : parts[t + 1] + 1] += counts[:t].sum(dtype=indptr.dtype)
        first = int(A._indptr[parts[t]])
        found.append(indices[first : first + int(counts[t])])
    return Matrix._of(A.nrows, A.ncols, indptr, np.concatenate(found), np.ones(1, bool), iso=True)


def parents(A: Matrix, T: Matrix | None, x: Vector, semiring: TypedSemiring) -> Vector:
    """For every vertex v the least other vertex u with x[u] * A[u, v] == x[v], of the type of
    A.indices; no entry if there is none.

    `T` is A's transpose, if it exists and products keep the order of their first operands: then
    each row is read up to the first match. Otherwise (None) every entry of A is read.
    """
    x = x.to_bitmap()
    kernel = jit.module("parents", parents_program(semiring, T is not None, A.iso)).parents
    threads = pool.threads_for(A.nvals)
    walked = A if T is None else T
    parent = np.full(A.nrows, -1, A._indices.dtype)
    arrays = (walked._indptr, walked._indices, walked._values, x._values)
    bits = NO_BITS if x._bits is None else x._bits
    pool.launch(kernel, threads, *arrays, bits, _parts(walked, threads), parent)
    found = pack_bits(parent >= 0)
    nvals = count_bits(found)
    return Vector._of(A.nrows, parent, bits=None if nvals == A.nrows else found, nvals=nvals)


def _parts(A: Matrix, threads: int) -> np.ndarray:
    """The first row of each thread, for equal shares of the entries, and at the end A.nrows."""
    cuts = np.linspace(0, A.nvals, threads + 1).astype(A._indptr.dtype)
    parts = np.searchsorted(A._indptr, cuts, side="left")
    parts[0], parts[-1] = 0, A.nrows
    return parts


@functools.lru_cache(maxsize=1024)
def parents_program(semiring: TypedSemiring, has_transpose: bool, iso: bool) -> str:
    """The preamble of kernels/parents.py."""
    return preamble.semiring(semiring, IN=has_transpose, ISO=iso)


@functools.lru_cache(maxsize=1024)
def program(semiring: TypedSemiring, sign: int, iso: bool) -> str:
    """The preamble of a closure; `sign` 1: smaller values come first, -1: greater, 0: no order."""
    sizes = {"BUCKETS": BUCKETS if sign else 1, "BLOCK": BLOCK, "ALONE": ALONE, "HEAVY": HEAVY}
    return preamble.constants(SIGN=sign, ISO=iso, **sizes) + preamble.semiring(semiring)
