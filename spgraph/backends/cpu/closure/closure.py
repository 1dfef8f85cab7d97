"""The fused closure: the least fixed point of x = x (+) x (+.x) A in one launch on all cores; the
edges that carry its values, and one such edge (the parent) for each vertex.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import NamedTuple

import numpy as np

from spgraph.backends.cpu.runtime import jit, memory, pool, preamble
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import pack_bits, words
from spgraph.errors import unsettled
from spgraph.semirings import TypedSemiring, min_plus

# as in kernels/closure.py
STATE, NO_SPACE, HERE, DONE, FINISHED, LEAVE, PLANNED, GONE = 80, 24, 48, 56, 63, 64, 65, 72
NOT_CONVERGED, NOT_FILLED = 2, 2
# entries of a block; a thread takes one block at a time
BLOCK = 64
# edges of a round from which on it is worth waking other threads, and asking those that are awake
ALONE, SHARED = 2048, 1024
# nanoseconds that a thread waits for the next round before it leaves; blocks that one relaxes in
# about the time of a launch, which brings back those that have left
PATIENCE, LAUNCH = 200_000, 16
# the edges of a vertex with more edges than this are divided among all threads
HEAVY = 2048
# number of buckets for ordered values: more than an edge spans in most graphs, and few enough for
# their last blocks to stay in the L1 cache
BUCKETS = 1024
# capacity of the buckets, in entries per vertex: vertices that change buckets leave old entries
CAPACITY = 2
NO_BITS = np.empty(0, np.uint32)
NO_PARENTS = np.empty(0, np.int32)
INT64 = np.dtype(np.int64)


def closure(
    A: Matrix,
    start: Vector,
    semiring: TypedSemiring,
    delta: float | None,
    reach: float | None = None,
) -> Vector:
    """The least fixed point of x = start (+) x (+.x) A; vertices not reached have no entry.

    `delta` is the width of a bucket of values, for the monoids min and max; None: values have no
    order, and there is one bucket. `reach` is of GPUs: here nothing is pulled. Raises
    ConvergenceError, with the last iterate, if vertices of one bucket still improve each other
    after A.nrows rounds.
    """
    return _closure(A, start.to_sparse(), semiring, delta, NO_PARENTS)


def closure_parents(
    A: Matrix, start: Vector, semiring: TypedSemiring, delta: float | None
) -> tuple[Vector, Vector]:
    """(the closure, for each vertex the least one that carries its value to it); those of the start
    whose values nothing improves carry their own. Every edge has to make values worse.
    """
    start = start.to_sparse()
    parent = np.empty(A.nrows, A._indices.dtype)
    value = _closure(A, start, semiring, delta, parent)
    bits = None if value._bits is None else value._bits.copy()
    return value, Vector._of(value.size, parent, bits=bits, nvals=value.nvals)


def _closure(
    A: Matrix, start: Vector, semiring: TypedSemiring, delta: float | None, parent: np.ndarray
) -> Vector:
    """The closure; `parent` is filled if it has elements: those of the start are their own."""
    n, edges, kind = A.nrows, A._indices.size, A._indices.dtype
    sign = 0 if delta is None else 1 if semiring.add.name == "min" else -1
    kernel = jit.module("closure", program(semiring, sign, A.iso, parent.size > 0)).closure
    threads = pool.threads_for(edges, pool.LONG_STEPS)
    value = np.empty(n, semiring.dtype)
    value.fill(semiring.add.identity)
    visited = np.zeros(32 * words(n), bool)
    assert start._indices is not None
    at = start._indices.astype(INT64)  # by other indices NumPy would set one value in 1 us
    value[at], visited[at] = start._values, True
    if parent.size:
        parent.fill(-1)
        parent[at] = at
    queued = np.packbits(visited, None, "little")
    sizes = (n, threads, BUCKETS if sign else 1, edges // HEAVY + 1, kind, semiring.dtype)
    room = _workspace(*sizes)
    state = room.state
    state.fill(0)
    state[NO_SPACE] = NOT_FILLED
    arrays = (A._indptr, A._indices, A._values, value, parent, visited, queued)
    scale = sign / delta if delta else 0.0
    # no way back along an edge is better than to have stayed
    leads_back = (parent.size > 0 or _is_min_plus(semiring)) and _has_many_ends(A)
    given = (*arrays, *room[:-1], leads_back, scale, state)
    state[LEAVE] = threads > 1
    pool.launch(kernel, 1, *given)
    while state[PLANNED]:
        state[HERE] = state[GONE] = state[FINISHED] = 0
        pool.launch(kernel, threads, *given)
    memory.keep(_unused, sizes, room, n)
    result = _vector(value, visited)
    if state[DONE] == NOT_CONVERGED:
        raise unsettled(semiring.name, n, result)
    return result


@functools.lru_cache(maxsize=1024)
def _is_min_plus(semiring: TypedSemiring) -> bool:
    """Whether products are sums; of their entries it is known that none is negative."""
    x, y, index, *_ = semiring.multiply.arguments
    return semiring == min_plus.resolve(x, y, index=index)


def _has_many_ends(A: Matrix) -> bool:
    """Whether A is known to be symmetric, and most of its rows that have entries have one; kept.
    Where fewer have, to look for them takes longer than to follow their edges.
    """
    if not A.symmetric:
        return False
    found: bool | None = A._derived.get("many_ends")
    if found is None:
        ends = np.count_nonzero(np.diff(A._indptr) == 1)
        found = A._derived["many_ends"] = bool(2 * ends > A._nonempty_count())
    return found


class Workspace(NamedTuple):
    """The buckets, as kernels/closure.py describes them, and what threads share."""

    heads: np.ndarray
    fills: np.ndarray
    links: np.ndarray
    entries: np.ndarray
    keys: np.ndarray
    free: np.ndarray
    work: np.ndarray
    sizes: np.ndarray
    heavies: np.ndarray
    origins: np.ndarray
    state: np.ndarray


_unused: memory.Unused[Workspace] = []


def _workspace(
    n: int, threads: int, buckets: int, heavy: int, kind: np.dtype, values: np.dtype
) -> Workspace:
    """What a closure needs beside its result; for a small graph that of an earlier one."""
    room = memory.take(_unused, (n, threads, buckets, heavy, kind, values))
    if room is not None:
        return room
    # blocks per thread; the last block of each bucket may be partly filled
    blocks = CAPACITY * n // (BLOCK * threads) + buckets + 1
    heads, fills = np.empty((2, threads * buckets), np.int32)  # which the kernel fills
    lists = np.empty((3, threads * blocks), np.int32)
    entries, keys = (np.empty(threads * blocks * BLOCK, each) for each in (kind, values))
    free = np.empty((threads, 8), np.int64)  # a cache line each
    free[:, 1] = free[:, 3] = blocks * np.arange(threads)
    free[:, 2] = free[:, 1] + blocks
    shared = np.empty(heavy, kind), np.zeros(1), np.empty(STATE + 8 * threads, np.int64)
    return Workspace(heads, fills, lists[0], entries, keys, free, lists[1], lists[2], *shared)


def _vector(values: np.ndarray, present: np.ndarray) -> Vector:
    """The Vector of the values where `present`, which may be longer, is true."""
    n, nvals = values.size, int(np.count_nonzero(present))
    bits = None if nvals == n else pack_bits(present)
    return Vector._of(n, values, bits=bits, nvals=nvals)


def dag_edges(A: Matrix, x: Vector, semiring: TypedSemiring) -> Matrix:
    """The pattern of the entries (i, j) of A with x[i] * A[i, j] == x[j]: the edges that carry
    the values of a closure.
    """
    x = x.to_bitmap()
    kernel = jit.module("dag_edges", dag_program(semiring, A.iso)).dag_edges
    threads = pool.threads_for(A.nvals, pool.LONG_STEPS)
    parts = _parts(A, threads)
    indptr = np.zeros(A.nrows + 1, A._indptr.dtype)
    indices = np.empty(A.nvals, A._indices.dtype)
    counts = np.zeros(threads, np.int64)
    bits = NO_BITS if x._bits is None else x._bits
    arrays = (A._indptr, A._indices, A._values, x._values, bits, parts, indptr, indices, counts)
    pool.launch(kernel, threads, *arrays)
    found = [indices[: counts[0]]]
    for t in range(1, threads):
        indptr[parts[t] + 1 : parts[t + 1] + 1] += counts[:t].sum(dtype=indptr.dtype)
        first = int(A._indptr[parts[t]])
        found.append(indices[first : first + int(counts[t])])
    kept = found[0].copy() if threads == 1 else np.concatenate(found)
    return Matrix._of(A.nrows, A.ncols, indptr, kept, np.ones(1, bool), iso=True)


def parents(A: Matrix, T: Matrix | None, x: Vector, semiring: TypedSemiring) -> Vector:
    """For every vertex v the least other vertex u with x[u] * A[u, v] == x[v], of the type of
    A.indices; no entry if there is none.

    `T` is A's transpose, if it exists and products keep the order of their first operands: then
    each row is read up to the first match. Otherwise (None) every entry of A is read.
    """
    parent = np.empty(A.nrows, A._indices.dtype)
    parent.fill(-1)
    _find_parents(A, T, x.to_bitmap(), semiring, parent, False)
    return _vector(parent, parent >= 0)


def path_parents(
    A: Matrix, T: Matrix | None, x: Vector, semiring: TypedSemiring, source: int
) -> Vector | None:
    """The parents of a search from `source` over the shortest-path DAG of x, `source` itself there;
    None where a vertex has several to choose from and A has edges enough for several threads to
    search. `T` is as for `parents`.
    """
    x = x.to_bitmap()
    parent = np.empty(A.nrows, A._indices.dtype)
    parent.fill(-1)
    parent[source] = source
    if _find_parents(A, T, x, semiring, parent, True):
        return path_tree(A, x, semiring, source)
    bits = None if x._bits is None else x._bits.copy()
    return Vector._of(x.size, parent, bits=bits, nvals=x.nvals)


def path_tree(A: Matrix, x: Vector, semiring: TypedSemiring, source: int) -> Vector | None:
    """The parents of a search from `source` over the `dag_edges` of x, which are not made, `source`
    itself there; None for edges enough for several threads to make and search them.
    """
    if pool.threads_for(A.nvals, pool.LONG_STEPS) > 1:
        return None
    x, parent = x.to_bitmap(), np.empty(A.nrows, A._indices.dtype)
    kernel = _parents_kernels(semiring, False, True, A.iso).path_tree
    bits, count = NO_BITS if x._bits is None else x._bits, np.zeros(1, INT64)
    level, queue = np.empty((2, parent.size), parent.dtype)
    arrays = (A._indptr, A._indices, A._values, x._values, bits)
    pool.launch(kernel, 1, *arrays, source, parent, level, queue, count)
    nvals = int(count[0])
    if nvals != x.nvals:  # x is not what a closure from `source` brings
        return _vector(parent, parent >= 0)
    return Vector._of(x.size, parent, bits=None if bits is NO_BITS else bits.copy(), nvals=nvals)


def _find_parents(
    A: Matrix, T: Matrix | None, x: Vector, semiring: TypedSemiring, parent: np.ndarray, sole: bool
) -> bool:
    """Fill `parent` from the edges that carry x, of bitmap storage; True where a vertex has several
    and has to have a `sole` one.
    """
    kernel = _parents_kernels(semiring, T is not None, sole, A.iso).parents
    threads = pool.threads_for(A.nvals, pool.LONG_STEPS)
    walked = A if T is None else T
    bits, several = NO_BITS if x._bits is None else x._bits, np.zeros(1, np.int64)
    arrays = (walked._indptr, walked._indices, walked._values, x._values)
    pool.launch(kernel, threads, *arrays, bits, _parts(walked, threads), parent, several)
    return bool(several[0])


def _parts(A: Matrix, threads: int) -> np.ndarray:
    """The first row of each thread, for equal shares of the entries, and at the end A.nrows."""
    parts = np.zeros(threads + 1, INT64)
    if threads > 1:
        cuts = np.linspace(0, A.nvals, threads + 1).astype(A._indptr.dtype)
        parts[1:] = np.searchsorted(A._indptr, cuts[1:], side="left")
    parts[-1] = A.nrows
    return parts


@functools.lru_cache(maxsize=1024)
def _parents_kernels(
    semiring: TypedSemiring, has_transpose: bool, sole: bool, iso: bool
) -> ModuleType:
    """The kernels of kernels/parents.py."""
    text = preamble.semiring(semiring, IN=has_transpose, SOLE=sole, ISO=iso)
    return jit.module("parents", text + _carried())


@functools.lru_cache(maxsize=1024)
def dag_program(semiring: TypedSemiring, iso: bool) -> str:
    """The preamble of kernels/dag_edges.py."""
    return preamble.semiring(semiring, ISO=iso) + _carried()


def _carried() -> str:
    """What kernels/dag_edges.py and parents.py share."""
    return jit.text_of("bits") + jit.text_of("carried")


@functools.lru_cache(maxsize=1024)
def program(semiring: TypedSemiring, sign: int, iso: bool, finds_parents: bool) -> str:
    """The preamble of a closure; `sign` 1: smaller values come first, -1: greater, 0: no order."""
    total = semiring.add.name in ("min", "max")
    rules = {"SIGN": sign, "TOTAL": total, "ISO": iso, "PARENTS": finds_parents}
    sizes = {"BUCKETS": BUCKETS if sign else 1, "BLOCK": BLOCK, "HEAVY": HEAVY}
    helpers = {"ALONE": ALONE, "SHARED": SHARED, "PATIENCE": PATIENCE, "LAUNCH": LAUNCH}
    text = preamble.constants(**rules, **sizes, **helpers)
    text += preamble.semiring(semiring)
    return text + jit.text_of("rounds") + jit.text_of("closure_buckets")
