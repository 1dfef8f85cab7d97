"""Brandes' dependencies on the CPU: source-parallel, or with the levels of one source shared."""

from __future__ import annotations

import functools
import inspect

import numpy as np

from spgraph import direction as directions
from spgraph.backends.cpu.runtime import jit, pool, preamble
from spgraph.backends.cpu.search.search import search
from spgraph.backends.loops import LevelSearch
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import index_dtype, unpack_bits
from spgraph.process.activity import step

# steps of a level below which one thread is faster than several with barriers, which have to wake
ALONE = 65536
# bytes of workspace for source-parallel threads
WORKSPACE = 1 << 32


def dependencies(A: Matrix, T: Matrix, sources: np.ndarray, level: Vector | None) -> Vector:
    """The sum over the sources of Brandes' dependency on every vertex, a full Vector of float64; T
    is A's transpose. The dependency of a source on itself is not counted.

    `level` None: shortest paths by number of edges. With a `level` there is one source, and A is
    acyclic: all of its edges count and lead to higher levels.

    With at least as many sources as threads every thread takes a source, and also where levels are
    too small to share, as on roads; otherwise the threads share the levels of one source after the
    other. If the number of paths is out of range of
    float64, the source is repeated with separate exponents.
    """
    score = np.zeros(A.nrows)
    threads = pool.threads_for((A.nvals + A.nrows) * sources.size)
    small = A.nvals < ALONE * directions.expected_levels(A.nrows, A.nvals)
    if level is None and (small or sources.size >= threads):
        threads = min(threads, sources.size)
        rest = _source_parallel(A, T, sources, threads, score, False)
        if rest.size:
            _source_parallel(A, T, rest, threads, score, True)
    else:
        _level_parallel(A, T, sources, level, threads, score)
    return Vector._of(A.nrows, score)


def levels(A: Matrix, T: Matrix, sources: np.ndarray) -> np.ndarray:
    """The level of every vertex from each source: a row per source, -1 where not reached."""
    n, kind = A.nrows, index_dtype(A.nrows)
    threads = min(pool.threads_for((A.nvals + n) * sources.size), max(sources.size, 1))
    found = np.empty((sources.size, n), kind)
    kernel = jit.module("dependencies_source_parallel", program(False, False)).levels
    pool.launch(
        kernel,
        threads,
        *(*_edges(A, T), T is A, sources, np.zeros(1, np.int64)),
        *(np.empty((threads, n), kind), np.empty((threads, n + 2, 3), np.int64), found),
        np.empty((2, 0)),
    )
    return found


def _source_parallel(
    A: Matrix, T: Matrix, sources: np.ndarray, threads: int, score: np.ndarray, extended: bool
) -> np.ndarray:
    """Add to `score`; returns the sources with too many paths for float64."""
    n, kind = A.nrows, index_dtype(A.nrows)
    threads = max(1, min(threads, WORKSPACE // (48 * n + 1)))
    reached = np.zeros(sources.size, np.int64)
    pool.launch(
        jit.module("dependencies_source_parallel", program(True, extended)).source_parallel,
        threads,
        *(*_edges(A, T), T is A, sources),
        *(np.empty((threads, n), kind), np.empty((threads, n), kind)),
        np.empty((threads, n + 2, 3), np.int64),
        *_numbers((threads, 2, n), extended),
        *(score, reached),
    )
    return sources[reached < 0]


def _level_parallel(
    A: Matrix,
    T: Matrix,
    sources: np.ndarray,
    level: Vector | None,
    threads: int,
    score: np.ndarray,
    extended: bool = False,
) -> None:
    """Add to `score`."""
    n = A.nrows
    for k, source in enumerate(sources.tolist()):
        step(k, sources.size)
        found = _levels_from(A, T, source) if level is None else level.to_bitmap()
        depth = found._values
        if found._bits is not None:
            depth = np.where(unpack_bits(found._bits, n), depth, -1)
        depth = depth.astype(index_dtype(n), copy=False)
        count = int(depth.max()) + 1
        while True:  # with too many paths again, and then all later sources, with exponents
            overflow = np.zeros(1, np.int8)
            text = preamble.constants(ALONE=ALONE) + program(True, extended)
            pool.launch(
                jit.module("dependencies", text).dependencies,
                threads,
                *(*_edges(A, T), depth, count, level is not None),
                *(np.zeros((threads, count, 3), np.int64), np.empty(n, depth.dtype)),
                *(np.empty((count + 1, 3), np.int64), np.zeros(2 * count, np.int64)),
                *_numbers((2, n), extended),
                *(score, overflow),
            )
            if not overflow[0]:
                break
            extended = True


def _levels_from(A: Matrix, T: Matrix, source: int) -> Vector:
    start = Vector.unit(source, True, size=A.nrows, dtype=bool)
    return search(A, T, start, LevelSearch(A.nrows))[0]


def _edges(A: Matrix, T: Matrix) -> tuple[np.ndarray, ...]:
    return A._indptr, A._indices, T._indptr, T._indices


def _numbers(shape: tuple[int, ...], extended: bool) -> tuple[np.ndarray, ...]:
    """Arrays of zeros for paths and shares, each with exponents if `extended`."""
    exponents = shape if extended else (*shape[:-1], 0)
    return tuple(
        made for _ in range(2) for made in (np.zeros(shape), np.zeros(exponents, np.int64))
    )


@functools.cache
def program(paths: bool, extended: bool) -> str:
    """The preamble: with `paths`, or levels only; numbers of any size, or float64."""
    constants = {"PATHS": paths, "EXTENDED": extended, "FIRST_HIT": directions.FIRST_HIT}
    rule = f"@njit(error_model='numpy')\n{inspect.getsource(directions.pull_pays)}\n"
    return preamble.constants(**constants) + rule + "\n" + jit.text_of("dependencies_steps")
