"""The fused search: the whole level iteration in one launch on all cores."""

from __future__ import annotations

import functools
import inspect
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from spgraph import direction as directions
from spgraph.backends.cpu.runtime import jit, memory, pool, preamble
from spgraph.backends.loops import LevelSearch
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import index_dtype, words
from spgraph.semirings import TypedSemiring

DIRECTIONS = {name: number for number, name in enumerate(directions.DIRECTIONS)}
# texts that kernels consist of, beside the one of their name
PARTS = {
    "search": ("bits", "search_common", "search_push", "search_pull"),
    "search_marked": ("bits", "search_common", "rounds"),
    "search_thin": ("bits", "search_common"),
}
# as in kernels/search.py and search_common.py
STATE, COUNT, EDGES, DEPTH, OPEN_EDGES, VISITED, STAGE = 64, 0, 8, 48, 50, 52, 256
LEAVE, MORE, BEGUN, UNMARKED, NOT_THIN, SHARE_FROM = 54, 55, 56, 57, 58, 59
MARK, THIN = 2, 3
# as in kernels/search_marked.py and rounds.py
HERE, GONE, FINISHED, TEAM_LEAVE, PLANNED, OF_THREAD, WORDS_OF_THREAD = 48, 72, 63, 64, 65, 80, 16
# frontier edges below which one thread is faster than several with barriers: than a few threads,
# and of many divided by their number
ALONE, ALONE_OF_ALL = 65536, 1 << 18
# edges of a level by marks from which on it is worth waking other threads, and asking them
SHARED = 1024
# nanoseconds that they wait for the next such level before they leave
PATIENCE = 200_000
# levels by one thread after which the graph is taken to be long and narrow, as roads and ladders
# are, and vertices in them by which to judge it
LONG, SEEN = 32, 256
# edges that must be left then for one of two kernels, by marks or of thin levels
WORTH_LEAVING = 1 << 17
# marks are for graphs in which one vertex of so many finds another number of vertices than expected
# (search_push.py): on a path, in a ladder or a whole grid none of a hundred does, in a grid that
# lacks a tenth of its edges every fourth, on roads every second. They save parents more than
# levels: nobody looks up the level of a neighbour that is visited.
ODD_LEVELS, ODD_PARENTS = 5, 6
# vertices of a thin level, fewer than which levels have on average; and of two levels at most
THIN_LEVEL, FEW = 64, 160
# edges that must be left for a matrix's first such search to compile that kernel: it spares 3 to 15
# ns an edge, compiling takes a third of a second
WORTH_COMPILING = 1 << 27
# vertices of a queue that a thread takes at a time: neighbours in the queue have common neighbours
VERTICES = 1024
# the edges of a vertex with more edges than this are divided among all threads
HEAVY = 16384
# passed as values of A if products do not use them
NO_VALUES = np.zeros(1, np.uint8)
# the rows of a trace that nobody asked for
NO_ROWS = np.zeros((0, 4), np.int64)
UINT8, UINT32, INT64 = np.dtype(np.uint8), np.dtype(np.uint32), np.dtype(np.int64)


class Workspace(NamedTuple):
    """What the kernel uses beside its input and output; it clears what has to be."""

    bitmaps: np.ndarray
    queues: np.ndarray
    stages: np.ndarray
    state: np.ndarray


class Arguments(NamedTuple):
    """What kernels/search.py is given beside the rows of a trace, in its order."""

    # the graph, and its transpose, for pull
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    t_indptr: np.ndarray
    t_indices: np.ndarray
    t_values: np.ndarray
    nonempty: np.ndarray  # bits of the rows of the transpose with entries
    symmetric: bool
    findable: int  # how many of these rows there are
    # what is found, and from where
    level: np.ndarray
    value: np.ndarray
    visited: np.ndarray
    sources: np.ndarray
    source_values: np.ndarray
    # a Workspace
    bitmaps: np.ndarray
    queues: np.ndarray
    stages: np.ndarray
    state: np.ndarray
    direction: int
    max_depth: int


_unused: memory.Unused[Workspace] = []


def search(
    A: Matrix, T: Matrix | None, start: Vector, asked: LevelSearch
) -> tuple[Vector, Vector | None, np.ndarray | None]:
    """(level, value, rows of the trace) of the masked level iteration over A from the entries of
    `start`; T is A's transpose, for pull (None: only push).

    Without a semiring value is None. If products do not use the values of A, one kernel serves all
    their types.
    """
    max_depth, semiring, first_hit, direction, trace = asked
    start = start.to_sparse()
    n, ids = A.nrows, A._indices.dtype
    pattern = None if semiring is None else semiring.of_pattern
    plain = semiring is None or pattern is not None  # whether products do not use A's values
    graph = _graph(A, T, plain)
    meant = (pattern if plain else semiring, first_hit, plain or A.iso, trace)
    threads = pool.threads_for(A._indices.size)
    values, kind = start._values, UINT8 if semiring is None else semiring.dtype
    if values.dtype is not kind:
        values = values.astype(kind, copy=False)
    level, visited = np.empty(n, index_dtype(n)), np.empty(words(n), UINT32)
    value = np.empty(1 if semiring is None else n, kind)
    fits = (n, threads, ids)
    work = memory.take(_unused, fits) or _workspace(*fits)
    state, rows = work.state, NO_ROWS
    way = DIRECTIONS["push" if T is None else direction]
    into = level, value, visited
    given = Arguments._make((*graph, *into, start._indices, values, *work, way, max_depth))
    kept = A._derived["search"]
    _run(meant, threads, given, rows, kept)
    if trace:  # the first run counts the levels, the second records them
        rows = np.zeros((int(state[DEPTH]), 4), np.int64)
        _run(meant, threads, given, rows, kept)
    num_visited = int(state[VISITED])
    memory.keep(_unused, fits, work, n)
    bits = None if num_visited == n else visited
    levels, found = Vector._of(n, level, bits=bits, nvals=num_visited), None
    if semiring is not None:
        bits = None if bits is None else bits.copy()
        found = Vector._of(n, value, bits=bits, nvals=num_visited)
    return levels, found, rows if trace else None


def _run(
    meant: tuple[Any, ...],
    threads: int,
    given: Arguments,
    rows: np.ndarray,
    kept: dict[Any, Any],
) -> None:
    """One thread, and all of them from the first level on that is worth sharing."""
    state, used = given.state, 1
    kernel = _kernels("search", *meant).search
    state[BEGUN] = state[UNMARKED] = state[NOT_THIN] = 0
    state[SHARE_FROM] = min(ALONE, ALONE_OF_ALL // threads)
    while True:
        state[LEAVE], state[MORE] = used < threads, 0
        pool.launch(kernel, used, *given, rows)
        if not state[MORE]:
            return
        used = threads
        if state[MORE] in (MARK, THIN):
            stem = "search_marked" if state[MORE] == MARK else "search_thin"
            state[LEAVE], used = threads > 1, 1
            given.bitmaps[:2].fill(0)  # as whoever goes on with the search expects them
            other = getattr(_kernels(stem, *meant), stem)
            if not other.overloads and "long" not in kept and state[OPEN_EDGES] < WORTH_COMPILING:
                kept["long"], state[UNMARKED], state[NOT_THIN] = True, 1, 1
            elif state[MORE] == MARK:
                _run_marked(other, threads, given, rows, meant[-1])
            else:
                _run_thin(other, given)


def _run_marked(kernel: Any, threads: int, given: Arguments, rows: np.ndarray, trace: bool) -> None:
    """Levels of a long search. It is a kernel of its own, because most searches need not wait for
    its compilation: one that is the first of its matrix does without.
    """
    visited, queues, state = given.visited, given.queues, given.state
    # numbers of a trace are exact
    several = threads > 1 and not trace and max(state[COUNT], state[EDGES]) < ALONE
    threads = threads if several else 1
    marks = np.empty(32 * visited.size, UINT8)
    each = queues[:, None]
    if several:  # each edge of a level, of which there are fewer, finds one vertex at most
        each = np.empty((2, threads, ALONE + 1), queues.dtype)
    team = np.zeros(OF_THREAD + threads * WORDS_OF_THREAD, INT64)
    team[TEAM_LEAVE] = several
    read = (given.indptr, given.indices, given.symmetric)
    written = (given.level, given.value, visited, queues, each, marks, state, team)
    arguments = (*read, *written, given.direction, given.max_depth, rows)
    pool.launch(kernel, 1, *arguments)
    while team[PLANNED]:
        team[HERE] = team[GONE] = team[FINISHED] = 0
        pool.launch(kernel, threads, *arguments)


def _run_thin(kernel: Any, given: Arguments) -> None:
    """Levels of a few vertices each, by one thread."""
    read = (given.indptr, given.indices, given.values)
    written = (given.level, given.value, given.visited, given.queues, given.state)
    pool.launch(kernel, 1, *read, *written, given.max_depth)


def _workspace(n: int, threads: int, kind: np.dtype) -> Workspace:
    """What a search needs beside its results."""
    # of two the kernel knows which is which; the others are those of the threads of a push
    bitmaps, queues = np.empty((2 + threads, words(n)), UINT32), np.empty((2, n), kind)
    return Workspace(bitmaps, queues, np.empty((threads, STAGE), kind), np.empty(STATE, INT64))


def _graph(A: Matrix, T: Matrix | None, plain: bool) -> tuple[Any, ...]:
    """What a search reads, as the kernel's arguments; kept."""
    kept = A._derived.get("search")
    if kept is None:
        kept = A._derived["search"] = {}
    found = kept.get((plain, T is None))
    if found is None:
        found = kept[plain, T is None] = _new_graph(A, T, plain)
    return found


def _new_graph(A: Matrix, T: Matrix | None, plain: bool) -> tuple[Any, ...]:
    pulled = A if T is None else T
    if plain:
        entries = back = NO_VALUES
    else:
        entries, back = A._values, pulled._values
    if T is None:
        nonempty, findable = np.full(words(A.nrows), 2**32 - 1, np.uint32), A.nrows
    else:
        nonempty, findable = T._nonempty_rows(), T._nonempty_count()
    arrays = (A._indptr, A._indices, entries, pulled._indptr, pulled._indices, back)
    return *arrays, nonempty, pulled is A and T is not None, findable


def _is_least_id(semiring: TypedSemiring | None) -> bool:
    """Whether a vertex's value is the least of the ids of its parents."""
    return semiring is not None and semiring.name == "min_secondi"


@functools.lru_cache(maxsize=1024)
def _kernels(
    stem: str, semiring: TypedSemiring | None, first_hit: bool, iso: bool, trace: bool
) -> ModuleType:
    """The kernels of `stem`.py for such a search."""
    return jit.module(stem, program(stem, semiring, first_hit, iso, trace))


def program(
    stem: str, semiring: TypedSemiring | None, first_hit: bool, iso: bool, trace: bool
) -> str:
    """The preamble of a kernel of a search."""
    rules = (directions.pull_pays, directions.pull_pays_all)
    text = preamble.constants(
        VALUES=semiring is not None,
        FIRST=first_hit,
        LEAST_ID=_is_least_id(semiring),
        ISO=iso,
        TRACE=trace,
        ALONE=ALONE,
        SHARED=SHARED,
        PATIENCE=PATIENCE,
        LONG=LONG,
        SEEN=SEEN,
        WORTH_LEAVING=WORTH_LEAVING,
        THIN_LEVEL=THIN_LEVEL,
        FEW=FEW,
        ODD=ODD_LEVELS if semiring is None else ODD_PARENTS,
        VERTICES=VERTICES,
        HEAVY=HEAVY,
        FIRST_HIT=directions.CPU_FIRST_HIT,
        ALL_EDGES=directions.ALL_EDGES,
    )
    text += "".join(f"@njit(error_model='numpy')\n{inspect.getsource(rule)}\n" for rule in rules)
    text += "".join(map(jit.text_of, PARTS[stem]))
    if semiring is not None:
        return text + preamble.semiring(semiring)
    # levels only: the kernel names these, but never calls them
    return text + (
        "IDENTITY, TERMINAL, TERMINAL_VALUE = 0, 1, 0\n"
        "@njit\ndef multiply(x, y, ix, jx, iy, jy):\n    return x\n"
        "@njit\ndef add(x, y):\n    return x\n"
    )
