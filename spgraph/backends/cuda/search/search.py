"""The fused search: the whole level iteration in one cooperative launch."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from spgraph import direction as directions
from spgraph.backends.cuda.exchange.plan import check_counts, kernel_of
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.backends.cuda.runtime.start import state_and_start
from spgraph.backends.cuda.search.search_rows import leading, leading_text, nonempty, nonempty_text
from spgraph.backends.cuda.structure.index_types import with_index_types
from spgraph.backends.loops import LevelSearch
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import Array, array_module, index_dtype, move, words
from spgraph.containers.storage.device_memory import address, places
from spgraph.containers.storage.one_entry import entry_of
from spgraph.semirings import TypedSemiring
from spgraph.semirings.translate import cuda_function

# as in kernels/search.cu
THREADS, BATCH, MORE_PIECES = 1024, 128, 32
# of a level of more than PARTS_EDGES edges that pushes the least ids first; of doubling size
PARTS = 5
LONG_ROW = 8192  # in-edges of a row that one warp looks at before all take it
DIRECTIONS = {name: np.int32(number) for number, name in enumerate(directions.DIRECTIONS)}
UINT8, UINT32 = np.dtype(np.uint8), np.dtype(np.uint32)
# 64-bit words of its Control, and where the ones that the host reads lie
CONTROL, DEPTH, VISITED = 24, 21, 22


@jit.on_device
def search(
    A: Matrix, T: Matrix | None, start: Vector, asked: LevelSearch
) -> tuple[Vector, Vector | None, np.ndarray | None]:
    """(level, value, rows of the trace): the masked level iteration over A from the entries of
    `start`, to be pulled over T = A's transpose.

    One small copy or fill, and one launch; nothing is read back, unless a trace is asked for.
    """
    max_depth, semiring, first_hit, direction, trace = asked
    xp = array_module(A._indptr)
    if entry_of(start) is None:
        start = start.to_sparse()
    n, m, plan = A.nrows, A.nvals, _planned(A, T, semiring, first_hit, trace)
    ids, z = plan.ids, plan.values
    level, visited = xp.empty(n, plan.levels), xp.empty(plan.words, UINT32)
    value, bits = jit.NULL, jit.NULL
    if z is not None:
        value, bits = xp.empty(n, z), xp.empty(plan.words, UINT32)
    workspace = xp.empty(plan.bytes, UINT8)
    queues = address(workspace)
    given = (n, m, A._indptr, A._indices, A._values, *_pulled(A, T, semiring, first_hit))
    way = DIRECTIONS["push" if T is None else direction]

    def launch(rows: Array) -> Array:
        control, sources, values = state_and_start(start, CONTROL, ids, z)
        found = (sources, values, start.nvals, level, value, bits, visited)
        work = (queues + plan.at_bits, queues + plan.at_ids, queues, control)
        limits = (plan.count_bits, way, max_depth, rows)
        arguments = (*given, *found, *work, *limits)
        plan.kernel(plan.grid, (THREADS,), arguments, shared_mem=plan.shared)
        return control

    if trace:  # a first run counts the levels, the second records them
        rows = xp.zeros((int(launch(jit.NULL)[DEPTH]), 4), np.int64)
    control = launch(rows if trace else jit.NULL)
    num_visited = functools.partial(_num_visited, control, start.nvals)
    levels = Vector._of(n, level, bits=visited, nvals=num_visited)
    found = None if semiring is None else Vector._of(n, value, bits=bits, nvals=num_visited)
    return levels, found, move(rows, "cpu") if trace else None


def _pulled(
    A: Matrix, T: Matrix | None, semiring: TypedSemiring | None, first_hit: bool
) -> tuple[Array, Array, Array, Array, Array, int]:
    """What the kernel takes to pull over T: its arrays (those of A for None, not looked at), the
    leading neighbours where a first hit decides, the bits of the rows with entries, and how many.
    """
    if T is None:
        return A._indptr, A._indices, A._values, jit.NULL, jit.NULL, A.nrows
    T, kept = with_index_types(T, A), jit.NULL
    if "nonempty_count" not in T._derived:
        bits, count = nonempty(T._indptr)
        T._keep("nonempty", bits)
        T._derived["nonempty_count"] = int(count[0])
    if (first_hit or semiring is None) and not T._transient:  # a matrix of one call is not worth it
        name = "hubs" if semiring is None else "leading"
        if name not in T._derived:
            degrees = A._indptr if semiring is None else None
            T._keep(name, leading(T._indptr, T._indices, degrees))
        kept = T._derived[name]
    rows = kept, T._derived["nonempty"], T._derived["nonempty_count"]
    return T._indptr, T._indices, T._values, *rows


def _num_visited(control: Array, sources: int) -> int:
    """How many vertices the search has found; waits for it."""
    found = int(control[VISITED])
    if found < sources:
        raise RuntimeError(
            "search: a barrier between the kernel's blocks timed out; its result is void"
        )
    return found


class Plan(NamedTuple):
    """What the searches of a Matrix by one program have in common; it holds no arrays."""

    kernel: jit.Kernel
    grid: tuple[int]
    shared: int  # bytes of dynamic shared memory
    ids: np.dtype
    levels: np.dtype
    values: np.dtype | None
    count_bits: np.uint32
    words: int  # of a bitmap
    # of the workspace: queues of offsets, then queues of ids, then two bitmaps
    at_ids: int
    at_bits: int
    bytes: int


def _planned(
    A: Matrix, T: Matrix | None, semiring: TypedSemiring | None, first_hit: bool, trace: bool
) -> Plan:
    """The plan of such searches, kept with A; T is pulled over by the first of them."""
    kept = A._derived.setdefault("search", {})
    found: Plan | None = kept.get((semiring, first_hit, trace))
    if found is None:
        found = kept[semiring, first_hit, trace] = _new_plan(A, T, semiring, first_hit, trace)
    return found


def _new_plan(
    A: Matrix, T: Matrix | None, semiring: TypedSemiring | None, first_hit: bool, trace: bool
) -> Plan:
    """Where no product looks at a value of A, graphs of all types of values share one program; it
    is given their arrays all the same, as arrays of bytes of which it looks at none.
    """
    n, ids, offsets = A.nrows, A._indices.dtype, A._indptr.dtype
    check_counts("search", n, A.nvals)
    pattern = None if semiring is None else semiring.of_pattern
    iso, entries = A.iso, A.dtype
    if semiring is None or pattern is not None:
        semiring, iso, entries = pattern, True, UINT8
    levels, shared = index_dtype(n), work_bytes(ids, offsets)
    text = program(semiring, first_hit, iso, trace, ids, offsets, entries, levels)
    others = _other_programs(A, T, semiring is None, first_hit)
    if others:
        own = jit.Program("search", text, ("search",), cooperative=True)
        jit.together(A._indptr, own, *others)
    kernel = kernel_of("search", text, jit.current_device(), shared)
    grid = jit.occupancy(kernel, THREADS, shared)
    working = places(2 * n * offsets.itemsize, 2 * n * ids.itemsize, 8 * words(n))
    types = ids, levels, None if semiring is None else semiring.dtype
    sizes = words(n), *working[1:]
    return Plan(kernel, (grid,), shared, *types, np.uint32(n.bit_length()), *sizes)


def _other_programs(
    A: Matrix, T: Matrix | None, levels: bool, first_hit: bool
) -> list[jit.Program]:
    """What `_pulled` compiles for a T that no search has pulled over."""
    ids, offsets = A._indices.dtype, A._indptr.dtype
    found: list[jit.Program] = []
    if T is not None and "nonempty_count" not in T._derived:
        found.append(jit.Program("nonempty", nonempty_text(offsets), ("nonempty",)))
        if (first_hit or levels) and not T._transient:
            text, stem = leading_text(levels, ids, offsets), "leading_neighbours"
            found.append(jit.Program(stem, text, (stem,)))
    return found


@functools.cache
def work_bytes(ids: np.dtype, offsets: np.dtype) -> int:
    """The bytes of Work in kernels/search_state.cuh: two frontiers, or what warps have found."""
    found = THREADS // 32 * ((BATCH + 32) * ids.itemsize + 128)
    capacity = small_frontier(ids, offsets)
    frontier = small_bytes(ids, offsets, capacity, capacity + MORE_PIECES)
    # with parents, and what was found lately
    return max(2 * (frontier + 2 * capacity * ids.itemsize), found)


@functools.lru_cache(maxsize=1024)
def program(
    semiring: TypedSemiring | None, first_hit: bool, iso: bool, trace: bool, *kinds: np.dtype
) -> str:
    """The preamble of a search; `kinds` are the types I, O, A and L."""
    text = preamble.constants(VALUES=semiring is not None, FIRST=first_hit, ISO=iso, TRACE=trace)
    text += preamble.types(**dict(zip("IOAL", kinds, strict=True)))
    text += preamble.constants(SMALL=small_frontier(*kinds[:2]), LONG_ROW=LONG_ROW)
    text += decisions(semiring is not None, first_hit or semiring is None)
    text += preamble.constants(PARTS=PARTS, PARTS_EDGES=directions.PARTS_EDGES)
    if semiring is None:
        return text + preamble.types(Z=np.dtype(np.uint8))
    return text + preamble.semiring(semiring)


def decisions(values: bool, first_hit: bool) -> str:
    """What kernels/search_driver.cuh is given: the rule of push and pull, of a search that
    combines `values` or finds levels only, and in which the first hit decides (`first_hit`).
    """
    rule = directions.pull_pays if first_hit else directions.pull_pays_all
    step = directions.SEARCH_PUSH_STEP if values else directions.SEARCH_PUSH_STEP_HUBS
    arguments = f"mf, (left) / {step}, (open) / {step}, m" if first_hit else "mf, open"
    double = (np.dtype(np.float64),) * (4 if first_hit else 2)
    text = preamble.constants(CONVERT_EDGES=directions.CONVERT_EDGES, PUSH_STEP=int(step))
    text += cuda_function(rule, "pull_rule", double, np.dtype(bool))
    return text + f"#define PULL_PAYS(mf, left, open, m) pull_rule({arguments})\n"


def small_frontier(ids: np.dtype, offsets: np.dtype) -> int:
    """How many vertices a frontier in shared memory holds: two fit where a block has 99 kB."""
    return 2048 if ids.itemsize == offsets.itemsize == 4 else 1024


def small_bytes(ids: np.dtype, offsets: np.dtype, capacity: int, pieces: int) -> int:
    """The bytes of a frontier in shared memory, of so many vertices and pieces of heavy ones."""
    return capacity * (ids.itemsize + 2 * offsets.itemsize) + 4 * pieces
