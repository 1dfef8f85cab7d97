"""search: the masked level iteration  q<!visited> = q (+.x) A."""

from __future__ import annotations

import functools
import time
from typing import NamedTuple

import numpy as np

from spgraph import checks
from spgraph import direction as directions
from spgraph.backends.loops import LevelSearch
from spgraph.containers import Matrix, MatrixLike, Vector
from spgraph.containers.annotations import Device, Direction, SemiringLike
from spgraph.containers.storage.arrays import array_module, index_dtype
from spgraph.containers.storage.numbers import flags, is_integer
from spgraph.errors import DomainMismatch
from spgraph.operations import ewise_mult, reduce
from spgraph.semirings import Semiring, TypedSemiring, any_pair, binary
from spgraph.semirings import monoid as monoids
from spgraph.steps import backend, check_stored, is_streamed

# edges that are pushed on the CPU in less time than a view of the transpose saves
TRANSPOSE_FROM = 4096


class Level(NamedTuple):
    """One level of a search: what it started from, what it looked at, how long it took."""

    depth: int
    direction: str
    frontier: int
    edges: int
    seconds: float


class Search(NamedTuple):
    """The result of `search`."""

    level: Vector
    value: Vector | None
    trace: list[Level] | None


def search(
    A: MatrixLike,
    start: Vector,
    semiring: SemiringLike,
    *,
    direction: Direction = "auto",
    max_depth: int | None = None,
    trace: bool = False,
) -> Search:
    """Breadth-first search over a semiring, from all entries of `start`: `Search(level, value,
    trace)`.

    The entries of `start` are level 0 and keep their values. The vertices of level d + 1 are those
    that an edge of A reaches from level d and that are in no earlier level. The value of each is
    the sum, by `semiring`, of value[u] * A[u, v] over *all* such edges. So any_pair gives levels,
    min_secondi the parent of least id, plus_first the number of shortest paths.

    `level` is a Vector of int32 (int64 beyond 2**31 vertices), `value` one of the semiring's type;
    vertices that are not reached have no entry. `value` is None for any_pair, whose values are all
    one. `max_depth` is the last level. `direction` is "push" (the frontier's edges are followed),
    "pull" (every unvisited vertex looks along its in-edges, over the transpose) or "auto", which
    decides anew in each level. `trace` asks for a list with a `Level` for each level, which costs a
    second run.

    Raises DimensionMismatch for an A that is not square or a `start` of another size,
    DomainMismatch for a semiring that does not fit the types, BackendMismatch for containers on
    different devices.

    Source: Beamer, Asanovic, Patterson, "Direction-optimizing breadth-first search" (2012).

    >>> import spgraph as sg
    >>> from spgraph.iterations import search
    >>> from spgraph.semirings import plus_first
    >>> A = sg.Matrix.from_coo([0, 0, 1, 2], [1, 2, 3, 3], nrows=4, ncols=4)
    >>> paths = search(A, sg.Vector.from_coo([0], [1], size=4), plus_first)
    >>> paths.level.to_numpy().tolist(), paths.value.to_numpy().tolist()
    ([0, 1, 1, 2], [1, 1, 1, 2])
    """
    flags("search", trace=trace)
    A, start = operands("search", A, "start", start)
    semiring = checks.semiring("search", semiring)
    return Search(*search_checked("search", A, start, semiring, direction, max_depth, trace))


def search_checked(
    name: str,
    A: Matrix,
    start: Vector,
    semiring: Semiring,
    direction: Direction = "auto",
    max_depth: int | None = None,
    trace: bool = False,
) -> tuple[Vector, Vector | None, list[Level] | None]:
    """What `search` gives, for the function `name`, which has checked A and `trace`, and made a
    `start` that fits.
    """
    checks.direction(name, direction)
    meaning = _meaning(semiring, start.dtype, A.dtype, A.index_dtype)
    if meaning.converts:
        check_stored(name, start, meaning.typed.dtype)
    depth = _max_depth(name, max_depth, A)
    trace = bool(trace)  # kernels' texts have it as a constant
    if start.nvals == 0:
        empty = Vector.empty(A.nrows, index_dtype(A.nrows), device=A.device)
        nothing = (
            Vector.empty(A.nrows, meaning.typed.dtype, device=A.device) if meaning.values else None
        )
        return empty, nothing, [] if trace else None
    device = A.device
    fused = getattr(backend(device), "search", composed_search)
    typed = meaning.typed if meaning.values else None
    asked = LevelSearch(depth, typed, meaning.first_hit, direction, trace)
    T = A._T if _pulls(A, device, direction, meaning.first_hit) else None
    found = fused(A, T, start, asked)
    if found is None:  # not of this Matrix, in host memory
        found = composed_search(A, A._T if direction == "pull" else None, start, asked)
    level, value, rows = found
    return level, value, None if rows is None else _levels(rows, level.nvals)


def composed_search(
    A: Matrix,
    T: Matrix | None,
    start: Vector,
    asked: LevelSearch,
) -> tuple[Vector, Vector | None, np.ndarray | None]:
    """`search` made of operations, with the arguments of a backend's: the reference for tests, and
    what runs where a backend has no fused form.
    """
    semiring, trace = asked.semiring, asked.trace
    typed = any_pair.resolve(start.dtype, A.dtype) if semiring is None else semiring
    on, n, device = backend(A.device), A.nrows, A.device
    level = Vector.empty(n, index_dtype(n), device=device)
    value = None if semiring is None else Vector.empty(n, typed.dtype, device=device)
    degrees = A.row_degrees() if trace else None
    q, depth, rows = start, 0, []
    while q.nvals:
        began = time.perf_counter()
        on.write(level, constant(q, depth, level.dtype), q.S, None, False)
        if value is not None:
            on.write(value, q, q.S, None, False)
        if depth == asked.max_depth:
            break
        way = "push" if T is None else asked.direction
        if way == "auto":
            way = directions.choose(q.nvals, n, A.nvals, n, n - level.nvals, asked.first_hit)
        frontier, unvisited = q, ~level.S
        # q<!visited> = q (+.x) A
        q = (
            on.push(A, q, typed, unvisited, False)
            if way == "push"
            else on.pull(T, q, typed, unvisited, True)
        )
        if degrees is not None and q.nvals:
            spent = int(1e9 * (time.perf_counter() - began))
            number = directions.DIRECTIONS.index(way)
            rows.append((number, frontier.nvals, _out_edges(frontier, degrees), spent))
        depth += 1
    return level, value, np.array(rows, np.int64).reshape(-1, 4) if trace else None


def constant(q: Vector, value: float, dtype: np.dtype) -> Vector:
    """`value` at the entries of q."""
    return q._with_values(lambda x: array_module(x).full(x.size, value, dtype))


def _out_edges(q: Vector, degrees: Vector) -> int:
    """How many edges leave the vertices that have an entry in q; `degrees` are those of all."""
    return int(reduce(ewise_mult(q, degrees, binary.second), dtype=np.int64))


def operands(name: str, A: MatrixLike, argument: str, x: Vector) -> tuple[Matrix, Vector]:
    """A as a square Matrix, and x, checked to be a Vector of its size on its device."""
    A, x = checks.square(name, A), checks.vector(name, argument, x)
    if x.size != A.nrows:
        checks.same_size(name, f"{argument}.size", x.size, "A.nrows", A.nrows)
    if A.device is not x.device:  # the same string, most of the time
        checks.same_device(name, **{"A": A, argument: x})
    return A, x


@functools.lru_cache(maxsize=1024)
def typed_for_rounds(
    name: str, semiring: Semiring, start: np.dtype, entries: np.dtype, index: np.dtype
) -> TypedSemiring:
    """The semiring over values of its own: each round's are the operands of the next. Kept, for
    comparing operators costs more than all other checks of a call.
    """
    first = checks.typed(name, semiring, start, entries, index)
    again: TypedSemiring = checks.typed(name, semiring, first.dtype, entries, index)
    if again.dtype != first.dtype:
        raise DomainMismatch(
            f"{name}: semiring: {semiring!r} makes {first.dtype} of {start} and {again.dtype} of "
            f"{first.dtype}; start from values of type {again.dtype}"
        )
    return again


class _Meaning(NamedTuple):
    """What a semiring means for a search over given types."""

    typed: TypedSemiring
    values: bool  # whether there is anything to know beside the levels
    first_hit: bool  # whether the first product of a row of in-edges is the sum
    converts: bool  # whether values of the start become ones of another type


@functools.lru_cache(maxsize=1024)
def _meaning(semiring: Semiring, start: np.dtype, entries: np.dtype, index: np.dtype) -> _Meaning:
    typed = typed_for_rounds("search", semiring, start, entries, index)
    # any of them, or the least of ascending ids
    ids = (binary.secondi, binary.firstj)
    least_id = semiring.monoid == monoids.min and semiring.multiply in ids
    takes_any = semiring.monoid == monoids.any
    values = not (takes_any and semiring.multiply == binary.pair)
    # operands of truths are not converted
    converts = values and start != typed.dtype and typed.dtype.kind != "b"
    return _Meaning(typed, values, takes_any or least_id, converts)


def _pulls(A: Matrix, device: Device, direction: str, first_hit: bool) -> bool:
    """Whether the search may pull over A's transpose.

    Making a transpose does not pay for a Matrix that lives for this call alone, for few edges on
    the CPU, or for a Matrix in host memory. There even a transpose that exists pays only if the
    first hit of a vertex decides: else a pull reads more than a push, which reads each edge once
    at most.
    """
    if direction != "auto":
        return direction == "pull"
    if A.has_transpose:
        return first_hit or not is_streamed(A)
    if device == "cpu" and A.nvals < TRANSPOSE_FROM:
        return False
    return not A._transient and not is_streamed(A)


def _max_depth(name: str, max_depth: int | None, A: Matrix) -> int:
    if max_depth is None:
        return A.nrows
    if not is_integer(max_depth) or max_depth < 0:
        raise ValueError(f"{name}: max_depth: expected an integer >= 0 or None, got {max_depth!r}")
    return min(int(max_depth), A.nrows)


def _levels(rows: np.ndarray, visited: int) -> list[Level]:
    """The rows of a trace as Levels. A search that has found all vertices ends without looking at
    the edges of the last level, which has no row: it is added here, with 0 edges.
    """
    levels = [
        Level(depth, directions.DIRECTIONS[number], frontier, edges, nanoseconds * 1e-9)
        for depth, (number, frontier, edges, nanoseconds) in enumerate(rows.tolist())
    ]
    last = visited - sum(level.frontier for level in levels)
    if last:
        levels.append(Level(len(levels), levels[-1].direction if levels else "push", last, 0, 0.0))
    return levels
