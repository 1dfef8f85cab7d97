"""Brandes' dependencies on a GPU: source-parallel (each block takes a source), level-parallel (all
blocks work on one source after the other), or stepwise (launches for every step of a level).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from types import ModuleType

import numpy as np

from spgraph.backends.cuda.dependencies.dependencies_shard import (
    dependencies_shard,
    program,
    workspace_words,
)
from spgraph.backends.cuda.runtime import jit
from spgraph.backends.cuda.search.search import search
from spgraph.backends.cuda.structure.index_types import with_index_types
from spgraph.backends.loops import LevelSearch
from spgraph.backends.shards.dependencies import RANGE_WORDS, Plan, Workspace
from spgraph.backends.shards.graph import GraphRows
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import Array, array_module, index_dtype, move, unpack_bits
from spgraph.containers.storage.device_memory import address, places, sent

# threads of a block, where all work on one source, and where each takes a source of its own
THREADS, SOURCE_THREADS = 1024, 256
# as in kernels/dependencies*: 64-bit words of a Control, where overflow lies in it
CONTROL, OVERFLOW = 5, 4
# the entries from which the stepwise form pays
LARGE = 1 << 28
# edges that one block visits in the time that all blocks together need for a small source
SOURCE_EDGES = 20_000
# bytes that the source-parallel form may take
WORKSPACE = 4 << 30
# bytes that `sent` may copy
SENT = 64 << 10


@jit.on_device
def dependencies(A: Matrix, T: Matrix, sources: np.ndarray, level: Vector | None) -> Vector:
    """The sum over the sources of Brandes' dependency on every vertex, full and float64; T is A's
    transpose. A source's dependency on itself is left out.

    `level` None: of the shortest paths by number of edges. A `level` says that there is one source,
    that A is acyclic, that all of its edges count and lead to higher levels.

    Many sources in a small graph take one launch, in which each block works on sources of its own.
    Otherwise each source takes a search and one launch more; or, in a graph of LARGE entries with
    few levels, a read-back and two or three launches a level and direction, push or pull as the
    level's counts suggest. Where numbers of paths leave float64, sources are done again with
    exponents: that takes one read-back to find out, or two.
    """
    score = array_module(A._indptr).zeros(A.nrows)
    if level is None and source_parallel_pays(A, sources.size):
        rest = _source_parallel(A, T, sources, score, False)
        if rest.size:
            _source_parallel(A, T, rest, score, True)
        return Vector._of(A.nrows, score)
    if level is None and A.nvals >= LARGE:
        sources = _stepwise(A, T, sources, score)
    # the first source tells whether the others are likely to leave float64
    extended = False
    for some in (sources[:1], sources[1:]):
        found = _found(A, T, some, level)
        rest = _level_parallel(A, T, some, found, level is not None, score, extended)
        if rest.size:
            extended = True
            found = found if some.size == 1 else _found(A, T, rest, level)
            _level_parallel(A, T, rest, found, level is not None, score, True)
    return Vector._of(A.nrows, score)


@jit.on_device
def levels(A: Matrix, T: Matrix, sources: np.ndarray) -> Array:
    """The level of every vertex from each of the sources, a row for each; -1 where not reached.

    One launch for many sources in a small graph, else a search for each.
    """
    n = A.nrows
    found = array_module(A._indptr).empty((sources.size, n), index_dtype(n))
    if source_parallel_pays(A, sources.size):
        _source_parallel(A, T, sources, None, False, found)
        return found
    for row, source in zip(found, sources.tolist(), strict=True):
        level = _levels_from(A, T, source)
        row[:] = level._values
        if level._bits is not None:
            row[~unpack_bits(level._bits, n)] = -1
    return found


def source_parallel_pays(A: Matrix, sources: int) -> bool:
    """Whether blocks that work on sources of their own are faster than all blocks on each."""
    fits = A.nrows.bit_length() + A.nvals.bit_length() <= 64
    return fits and A.nrows + A.nvals <= SOURCE_EDGES * sources


def _source_parallel(
    A: Matrix,
    T: Matrix,
    sources: np.ndarray,
    score: Array | None,
    extended: bool,
    found: Array | None = None,
) -> np.ndarray:
    """Add to `score`: the sources whose numbers of paths leave float64, which add nothing. Or write
    levels to `found`, with no `score`.
    """
    if sources.size == 0:
        return sources
    xp, n, kind = array_module(A._indptr), A.nrows, index_dtype(A.nrows)
    text, count = program(*_types(A), extended), sources.size
    kernel = jit.kernel("dependencies_source_parallel", "source_parallel", text)
    few = count <= jit.multiprocessors(jit.current_device())
    threads = THREADS if few else SOURCE_THREADS
    number = 0 if score is None else 16 if extended else 8
    each = (n + 2) * (3 * kind.itemsize + 8 * RANGE_WORDS + 4 * number)
    blocks = min(count, jit.occupancy(kernel, threads), max(1, WORKSPACE // each))
    order = [blocks * size for size in _order_bytes(A)]
    rows = 2 * blocks * n * number
    _held, (level, *rest) = _workspace(xp, blocks * n * kind.itemsize, *order, rows, rows)
    # behind the sources a byte for each, whether its numbers of paths leave float64
    given = np.zeros(count + -(-count // 8), np.int64)
    given[:count] = sources
    state = sent(given, xp) if given.nbytes <= SENT else xp.asarray(given)
    at = address(state)
    problem = (n, *_edges(A, T), at, count, np.uint32(n.bit_length()))
    if found is not None:
        none = (jit.NULL,) * 4
        kernel((blocks,), (threads,), (*problem, found, *rest[:3], *none))
        return sources
    kernel((blocks,), (threads,), (*problem, level, *rest, at + 8 * count, score))
    overflow: np.ndarray = move(state[count:], "cpu").view(np.uint8)
    return sources[overflow[:count] > 0]


def _stepwise(A: Matrix, T: Matrix, sources: np.ndarray, score: Array) -> np.ndarray:
    """Add to `score`; the sources whose numbers of paths leave float64, and all sources from the
    first one on that has too many levels for this form.
    """
    xp, n = array_module(A._indptr), A.nrows
    held = xp.empty(workspace_words(n))
    place = address(held)
    workspace = Workspace(place, xp.full(1, place, np.int64), True, xp.zeros(1, np.int64))
    reports = xp.zeros(sources.size, np.uint8)
    shard, done = GraphRows(*_edges(A, T)), sources.size
    for j, source in enumerate(sources.tolist()):
        level = _levels_from(A, T, source)
        steps = dependencies_shard(
            shard, (0, n), 0, workspace, level, source, score, reports[j : j + 1]
        )
        plan = Plan.of([move(next(steps)[1], "cpu")], n, True)
        if isinstance(plan, int):
            done = j
            break
        with contextlib.suppress(StopIteration):  # a single shard needs no answer
            steps.send(plan)
            while True:
                next(steps)
    left = move(reports, "cpu") > 0
    left[done:] = True
    return sources[left]


def _found(A: Matrix, T: Matrix, sources: np.ndarray, level: Vector | None) -> Iterable[Vector]:
    """The levels from each source, made as they are asked for; of a single one they are kept."""
    if level is not None:
        return [_copied(level) for _ in sources]
    levels = (_levels_from(A, T, source) for source in sources.tolist())
    return list(levels) if sources.size == 1 else levels


def _level_parallel(
    A: Matrix,
    T: Matrix,
    sources: np.ndarray,
    levels: Iterable[Vector],
    acyclic: bool,
    score: Array,
    extended: bool,
) -> np.ndarray:
    """Add to `score`, from the levels of each source; the sources whose numbers of paths leave
    float64, which add nothing.
    """
    if sources.size == 0:
        return sources
    xp, n = array_module(A._indptr), A.nrows
    text = program(*_types(A), extended)
    kernel = jit.kernel("dependencies", "dependencies", text, cooperative=True)
    blocks = jit.occupancy(kernel, THREADS)
    ids, offsets, ranges = _order_bytes(A)
    # degrees of both directions; counts and sums; two rows of numbers of paths, and of shares
    sizes = ids, offsets, 0 if T is A else offsets, ranges, 8 * n, 16 * blocks
    rows = (32 if extended else 16) * n
    _held, work = _workspace(xp, *sizes, rows, rows)
    if T is A:
        work[2] = work[1]
    control = xp.zeros((sources.size, CONTROL + 1), np.int64)
    edges, own = _edges(A, T), address(control)
    for found in levels:
        visited = jit.NULL if found._bits is None else found._bits
        given = (n, *edges, np.int32(acyclic), visited, found._values)
        kernel((blocks,), (THREADS,), (*given, *work, own, own + 8 * CONTROL, score))
        own += 8 * (CONTROL + 1)
    state = move(control, "cpu")
    if (state[:, 0] >> 32).any():
        raise RuntimeError(
            "dependencies: a barrier between the kernel's blocks timed out; its result is void"
        )
    return sources[state[:, OVERFLOW] > 0]


def _levels_from(A: Matrix, T: Matrix, source: int) -> Vector:
    start = Vector.unit(source, True, size=A.nrows, dtype=bool, device=A.device)
    return search(A, T, start, LevelSearch(A.nrows))[0]


def _copied(level: Vector) -> Vector:
    """Levels of the kernel's type, which it may write to."""
    level = level.to_bitmap()
    values = level._values.astype(index_dtype(level.size), copy=True)
    return Vector._of(level.size, values, bits=level._bits, nvals=level.nvals)


def _edges(A: Matrix, T: Matrix) -> tuple[Array, ...]:
    """The arrays of A and T, of A's types."""
    T = with_index_types(T, A)
    return A._indptr, A._indices, T._indptr, T._indices


def _workspace(xp: ModuleType, *sizes: int) -> tuple[Array, list[int]]:
    """An array, and where in it parts of so many bytes begin."""
    *begins, end = places(*sizes)
    array = xp.empty(end, np.uint8)
    first = address(array)
    return array, [first + begin for begin in begins]


def _order_bytes(A: Matrix) -> tuple[int, int, int]:
    """Of the vertices by level, running sums of their degrees, and level ranges."""
    n = A.nrows
    sums = A._indptr.itemsize * (n + 1)
    return A._indices.itemsize * n, sums, 8 * RANGE_WORDS * (n + 2)


def _types(A: Matrix) -> tuple[str, str, str]:
    return A._indices.dtype.str, A._indptr.dtype.str, index_dtype(A.nrows).str
