"""What is chosen vertex by vertex: greedy colourings and sets, cores, labels."""

from __future__ import annotations

import numpy as np

from spgraph.backends.cpu.device.stacks import stacks
from spgraph.backends.cpu.runtime import jit, pool
from spgraph.backends.cpu.structure.sort_entries import sort_entries
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import index_dtype
from spgraph.containers.storage.sorting import order_of, order_of_words

# rows and entries from which a colour is worth dividing among threads that run already; the pieces
# for each of them, and the most vertices of one
SHARED, PARTS, PIECE = 4096, 8, 64
# the logarithm of the degree of hubs; vertices that a thread colours at a time, as in the kernel
HUB, PIECES = 6, 16
# the bits that a sort on all cores looks at, for which its keys take 4 bytes
KEY_BITS = 41
# sweeps that nobody waits for
MOST = 1 << 62


def color_greedily(A: Matrix, power: Vector, word: Vector) -> Vector:
    """For each vertex the least number from 0 that no neighbour before it has, by falling `power`,
    then rising `word`; A is a symmetric pattern without loops.
    """
    n = A.nrows
    order = _order(power._values.max(initial=0) - power._values, word._values)
    threads = pool.threads_for(n + A.nvals, pool.LONG_STEPS)
    color = np.empty(n, index_dtype(n))
    # for each colour the last vertex that has a neighbour of it; no vertex needs more colours
    most = int(np.diff(A._indptr).max(initial=0)) + 1
    taken = np.full((threads, most), -1, np.int64)
    hubs = int(np.count_nonzero(power._values >= HUB))
    waiting, ticket = np.empty((threads, PIECES * threads), color.dtype), np.zeros(1, np.int64)
    kernel = jit.module("color_greedily", "").color_greedily
    given = (A._indptr, A._indices, order, hubs, ticket, waiting, taken, color)
    pool.launch(kernel, threads, *given)
    return Vector._of(n, color)


def choose_greedily(A: Matrix, word: Vector) -> Vector:
    """For each vertex whether it is chosen, as one is if no neighbour before it is, by falling
    `word`; A is a symmetric pattern without loops.
    """
    order = _order(np.zeros(A.nrows, np.int8), word._values)
    near, chosen = np.zeros((2, A.nrows), bool)
    kernel = jit.module("color_greedily", "").choose_greedily
    pool.launch(kernel, 1, A._indptr, A._indices, order, near, chosen)
    return Vector._of(A.nrows, chosen)


def _order(groups: np.ndarray, words: np.ndarray) -> np.ndarray:
    """The vertices by rising group, then rising word; no two words are equal."""
    n, count = words.size, int(groups.max(initial=0)) + 1
    if pool.threads_for(8 * n) == 1:  # sort_entries would be slower
        by_word = order_of_words(words)
        return by_word.take(order_of(groups.take(by_word)))
    bits = KEY_BITS - (count - 1).bit_length()
    low = max(int(words.max(initial=0)).bit_length() - bits, 0)
    high = (words >> low).astype(np.int64, copy=False)
    ids = np.arange(n, dtype=index_dtype(n))
    _, high, order, repeats = sort_entries(groups, high, ids, count, 1 << bits)
    assert order is not None
    if repeats:  # their other bits decide
        group = groups.take(order)
        same = (high[1:] == high[:-1]) & (group[1:] == group[:-1])
        unsure = np.append(False, same) | np.append(same, False)
        some = order[unsure]
        order[unsure] = some[np.lexsort((words[some], groups[some]))]
    return order


def peel(A: Matrix) -> Vector:
    """For each vertex of a symmetric pattern without loops its degree when it is taken away, or
    that of one taken before it if that is greater, where always one of the least degree is.
    """
    n = A.nrows
    degree = np.diff(A._indptr).astype(index_dtype(A.ncols), copy=False)
    threads = pool.threads_for(n + A.nvals, pool.LONG_STEPS)
    kernel = jit.module("peel", jit.text_of("stacks")).peel
    left, least = np.empty_like(degree), np.empty(16 * threads, np.int64)
    pool.launch(kernel, threads, A._indptr, A._indices, degree, left, least, *stacks(n, n, threads))
    return Vector._of(n, degree)


def sweep_labels(A: Matrix, color: Vector, sweeps: int) -> tuple[Vector, bool]:
    """(labels, whether the last sweep left all as they were) of at most `sweeps` over the symmetric
    pattern A without loops, colour by colour: each vertex takes the label of most of its
    neighbours, of several its own or else the least.

    Beside A it needs a number a vertex for each thread.
    """
    n = A.nrows
    order, degrees = order_of(color._values), np.diff(A._indptr)
    ends = np.bincount(color._values).cumsum()
    threads = pool.threads_for(n + A.nvals, pool.LONG_STEPS)
    steps, shared = _colors_together(ends, degrees.take(order), threads)
    # the vertices of a colour may be few, of many edges
    pieces = np.clip(np.diff(steps) // (PARTS * threads), 1, PIECE)
    label = np.arange(n, dtype=index_dtype(n))
    longest = int(degrees.max(initial=0))
    counts = np.zeros((threads, n), index_dtype(2 * longest + 1))
    changes = np.zeros(4, np.int64)
    changes[3] = 1
    pool.launch(
        *(jit.module("sweep_labels", "").sweep_labels, threads, A._indptr, A._indices, order),
        *(steps, shared, pieces, np.zeros(shared.size, np.int64), min(sweeps, MOST), label),
        *(np.ones(n, bool), counts, changes),
    )
    return Vector._of(n, label), bool(changes[3] == 0)


def _colors_together(
    ends: np.ndarray, degrees: np.ndarray, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """(the bounds of steps, which of them are for all threads): those are large colours, those of
    one thread the colours between them. ends[c] is the end of colour c in the order that `degrees`
    have.
    """
    if threads == 1 or not ends.size:
        return np.array([0, degrees.size]), np.zeros(1, bool)
    work = np.diff(
        (degrees.cumsum(dtype=np.int64) + np.arange(degrees.size)).take(ends - 1), prepend=0
    )
    large = work >= SHARED
    # a step ends with a large colour, and before one
    last = large | np.append(large[1:], True)
    return np.append(0, ends[last]), large[last]
