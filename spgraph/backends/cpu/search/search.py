"""The fused search: the whole level iteration in one launch on all cores."""

from __future__ import annotations

import functools
import inspect
from typing import NamedTuple

import numpy as np

from spgraph import direction as directions
from spgraph.backends.cpu.runtime import jit, pool, preamble
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import index_dtype, words
from spgraph.semirings import TypedSemiring

DIRECTIONS = {"auto": 0, "push": 1, "pull": 2}
# as in kernels/search.py
STATE, DEPTH, VISITED, STAGE = 64, 48, 52, 256
# frontier edges below which one thread is faster than several with barriers
ALONE = 65536
# vertices of a queue that a thread takes at a time: neighbours in the queue have common neighbours
VERTICES = 1024
# the edges of a vertex with more edges than this are divided among all threads
HEAVY = 16384
# passed as values of A if products do not use them
NO_VALUES = np.zeros(1, np.uint8)


class Graph(NamedTuple):
    """The input of a search: out-edges for push, in-edges (t_...) for pull."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    t_indptr: np.ndarray
    t_indices: np.ndarray
    t_values: np.ndarray
    nonempty: np.ndarray  # one bit per vertex: whether it has in-edges
    symmetric: bool


class Out(NamedTuple):
    """The output of a search; `visited` is a bitmap."""

    level: np.ndarray
    value: np.ndarray
    visited: np.ndarray


def search(
    A: Matrix,
    T: Matrix | None,
    start: Vector,
    semiring: TypedSemiring | None,
    first: bool,
    direction: str,
    max_depth: int,
    trace: bool,
) -> tuple[Vector, Vector | None, np.ndarray | None]:
    """(level, value, rows of the trace) of the masked level iteration over A from the entries of
    `start`; T is A's transpose, for pull (None: only push).

    `semiring` None computes levels only, and value is None. `first`: a vertex's first product is
    its value. If products do not use the values of A, one compiled kernel serves all their types.
    """
    start = start.to_sparse()
    assert start._indices is not None
    n, pulled = A.nrows, A if T is None else T
    iso, entries, back = A.iso, A._values, pulled._values
    pattern = None if semiring is None else semiring.of_pattern
    if semiring is None or pattern is not None:
        semiring, iso, entries, back = pattern, True, NO_VALUES, NO_VALUES
    kernel = jit.module("search", program(semiring, first, iso, trace)).search
    threads = pool.threads_for(A.nvals)
    values = start._values.astype(semiring.dtype if semiring else np.uint8, copy=False)
    out = Out(
        level=np.empty(n, index_dtype(n)),
        value=np.empty(n if semiring else 1, values.dtype),
        visited=np.zeros(words(n), np.uint32),
    )
    graph = Graph(
        *(A._indptr, A._indices, entries, pulled._indptr, pulled._indices, back),
        nonempty=np.full(words(n), 2**32 - 1, np.uint32) if T is None else T._nonempty_rows(),
        symmetric=pulled is A and T is not None,
    )
    findable = n if T is None else T._nonempty_count()
    state = np.zeros(STATE, np.int64)

    def launch(rows: np.ndarray) -> None:
        out.visited[:], state[:] = 0, 0
        work = (np.zeros((2, words(n)), np.uint32), np.empty((2, n), A._indices.dtype))
        stages = np.empty((threads, STAGE), A._indices.dtype)
        sources = (start._indices, values, findable)
        limits = (state, DIRECTIONS["push" if T is None else direction], max_depth, rows)
        pool.launch(kernel, threads, graph, out, *sources, *work, stages, *limits)

    rows = np.zeros((0, 4), np.int64)
    launch(rows)
    if trace:  # the first run counts the levels, the second records them
        rows = np.zeros((int(state[DEPTH]), 4), np.int64)
        launch(rows)
    num_visited = int(state[VISITED])
    visited = None if num_visited == n else out.visited
    levels = Vector._of(n, out.level, bits=visited, nvals=num_visited)
    found = None
    if semiring is not None:
        bits = None if visited is None else visited.copy()
        found = Vector._of(n, out.value, bits=bits, nvals=num_visited)
    return levels, found, rows if trace else None


@functools.lru_cache(maxsize=1024)
def program(semiring: TypedSemiring | None, first: bool, iso: bool, trace: bool) -> str:
    """The preamble of a search."""
    rules = (directions.pull_pays, directions.pull_pays_all)
    text = preamble.constants(
        VALUES=semiring is not None,
        FIRST=first,
        ISO=iso,
        TRACE=trace,
        ALONE=ALONE,
        VERTICES=VERTICES,
        HEAVY=HEAVY,
        FIRST_HIT=directions.CPU_FIRST_HIT,
        ALL_EDGES=directions.ALL_EDGES,
    )
    text += "".join(f"@njit(error_model='numpy')\n{inspect.getsource(rule)}\n" for rule in rules)
    text += "".join(map(jit.text_of, ("search_push", "search_pull")))
    if semiring is not None:
        return text + preamble.semiring(semiring)
    # levels only: the kernel names these, but never calls them
    return text + (
        "IDENTITY, TERMINAL, TERMINAL_VALUE = 0, 1, 0\n"
        "@njit\ndef multiply(x, y, ix, jx, iy, jy):\n    return x\n"
        "@njit\ndef add(x, y):\n    return x\n"
    )
