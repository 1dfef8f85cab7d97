"""The closure, the least fixed point, in one cooperative launch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from spgraph.backends.cuda.exchange.plan import check_counts, kernel_of, places_of
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.backends.cuda.runtime.start import state_and_start
from spgraph.backends.cuda.structure.index_types import with_index_types
from spgraph.backends.shards.graph import GraphRows
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import Array, array_module, words
from spgraph.containers.storage.device_memory import address
from spgraph.containers.storage.one_entry import entry_of
from spgraph.errors import unsettled
from spgraph.semirings import TypedSemiring

# threads of a block; vertices of a warp's own queue, as in kernels/closure_state.cuh
THREADS, RING = 1024, 64
# 64-bit words of its Control, and the places of those that the host reads
CONTROL, UNSETTLED, REACHED = 16, 2, 3
# edges from which on a transpose is worth making for the pull of a push-pull threshold
TRANSPOSE_FROM = 1 << 22
UINT8, UINT32 = np.dtype(np.uint8), np.dtype(np.uint32)


@jit.on_device
def closure(
    A: Matrix,
    start: Vector,
    semiring: TypedSemiring,
    delta: float | int | None,
    reach: float | int | None = None,
) -> Vector:
    """x = start + x A, least fixed point, of bitmap storage; vertices not reached have no entry.

    `semiring.add` is idempotent and products are monotone in their first operand. `delta` is the
    width of the buckets in which an ordered monoid (min or max over numbers) relaxes its vertices;
    with None there are no buckets. `reach` (None: delta) is how far beyond a bucket of many edges
    products are pushed; the vertices beyond pull. One small copy or fill, one launch, one
    read-back. Raises ConvergenceError where a bucket is not settled within as many rounds as A
    has rows.
    """
    plan = planned(A, semiring, delta is not None, closure_preamble)
    run = launch(A, start, plan, widths_of(delta, reach, semiring.dtype), jit.NULL)
    return settled(run, run.x, semiring.name)[0]


class Plan(NamedTuple):
    """What the closures of a Matrix by one program have in common; it holds no arrays."""

    text: str
    kernel: jit.Kernel
    grid: tuple[int]
    shared: int  # bytes of dynamic shared memory
    values: np.dtype
    words: int  # of a bitmap
    places: dict[str, int]  # of the other working arrays in a workspace, and its end


def planned(
    A: Matrix,
    semiring: TypedSemiring,
    ordered: bool,
    preamble_of: Callable[[Matrix, TypedSemiring, bool], str],
    following: Callable[[str], jit.Program] | None = None,
) -> Plan:
    """The plan of closures by the program whose preamble `preamble_of` writes, kept with A.
    `following` makes, of that preamble, the program that runs next: both compile side by side.
    """
    kept = A._derived.setdefault("closure", {})
    found: Plan | None = kept.get((semiring, ordered))
    if found is None:
        n, ids, offsets = A.nrows, A._indices.dtype, A._indptr.dtype
        check_counts("closure", n, A.nvals)
        text = preamble_of(A, semiring, ordered)
        shared = block_bytes(semiring.dtype, ids, offsets)
        if following is not None:
            own = jit.Program("closure", text, ("closure",), cooperative=True)
            jit.together(A._indptr, own, following(text))
        kernel = kernel_of("closure", text, jit.current_device(), shared)
        grid = (jit.occupancy(kernel, THREADS, shared),)
        arrays = working_arrays(n, n, ids, offsets)
        sizes = {name: count * kind.itemsize for name, (count, kind) in arrays.items()}
        del sizes["bits"]  # part of the result
        places = places_of(sizes)
        found = Plan(text, kernel, grid, shared, semiring.dtype, words(n), places)
        kept[semiring, ordered] = found
    return found


class Launched(NamedTuple):
    """What a closure has been given, on the device: nothing has waited for it."""

    control: Array
    x: Array
    bits: Array
    source: Array | int


def launch(
    A: Matrix, start: Vector, plan: Plan, widths: tuple[np.generic, np.generic], ties: Array
) -> Launched:
    """Launch the kernel of `plan`."""
    xp, n = array_module(A._indptr), A.nrows
    if entry_of(start) is None:
        start = start.to_sparse()
    control, *found = state_and_start(start, CONTROL, A._indices.dtype, plan.values)
    x, bits = xp.empty(n, plan.values), xp.empty(plan.words, UINT32)
    workspace = xp.empty(plan.places["end"], UINT8)
    first = address(workspace)
    working = {name: first + at for name, at in plan.places.items() if name != "end"}
    t_indptr, t_indices, t_values = _in_edges(A)
    rows = GraphRows(A._indptr, A._indices, t_indptr, t_indices, None, A._values, t_values)
    given = kernel_arrays(rows, A.nvals, n, A.iso, {"bits": bits} | working)
    arguments = (n, *given.values(), x, *found, start.nvals, control, *widths, ties)
    plan.kernel(plan.grid, (THREADS,), arguments, shared_mem=plan.shared)
    return Launched(control, x, bits, found[0])


def settled(run: Launched, values: Array, name: str) -> tuple[Vector, list[int]]:
    """(The result with these values, the words of Control), when the kernel has ended. Raises
    ConvergenceError, with the semiring's name, where a bucket has not settled.
    """
    state: list[int] = run.control.tolist()
    if state[0] >> 32:
        raise RuntimeError(
            "closure: a barrier between the kernel's blocks timed out; its result is void"
        )
    result = Vector._of(values.size, values, bits=run.bits, nvals=state[REACHED])
    if state[UNSETTLED]:
        raise unsettled(name, result.size, result)
    return result, state


def _in_edges(A: Matrix) -> tuple[Array, Array, Array]:
    """The arrays of A's transpose, for the pull of a threshold; nulls where not worth making."""
    if not A.has_transpose and (A._transient or A.nvals < TRANSPOSE_FROM):
        return jit.NULL, jit.NULL, jit.NULL
    T = with_index_types(A._T, A)
    return T._indptr, T._indices, T._values


@functools.lru_cache(maxsize=1024)
def working_arrays(
    n: int, own: int, ids: np.dtype, offsets: np.dtype
) -> dict[str, tuple[int, np.dtype]]:
    """The length and the type of each array that a closure works in, of the last fields of struct
    Arrays in kernels/closure_state.cuh.
    """
    word = np.dtype(np.uint32)
    return {
        "bits": (words(n), word),
        "claims": (2 * words(n), word),
        "queues": (2 * own, ids),
        "offsets": (2 * own, offsets),
    }


def kernel_arrays(
    rows: GraphRows, edges: int, own: int, iso: bool, working: Mapping[str, Any]
) -> dict[str, Any]:
    """The fields of struct Arrays: of the rows of A and its transpose (or nulls), `edges` those of
    the whole graph, `working` as `working_arrays` says.
    """
    return {
        "m": edges,
        "count_bits": own.bit_length(),
        "every": 0 if iso else -1,
        "indptr": rows.indptr,
        "indices": rows.indices,
        "values": rows.values,
        "t_indptr": rows.t_indptr,
        "t_indices": rows.t_indices,
        "t_values": rows.t_values,
        **working,
    }


@functools.lru_cache(maxsize=1024)
def widths_of(
    delta: float | int | None, reach: float | int | None, dtype: np.dtype
) -> tuple[np.generic, np.generic]:
    """`delta` and `reach`, which is `delta` where it is None, as values of the type."""
    return width_of(delta, dtype), width_of(delta if reach is None else reach, dtype)


def width_of(delta: float | int | None, dtype: np.dtype) -> np.generic:
    """`delta` as a positive value of the type; a float is at least the least normal number, since
    CuPy compiles with -ftz=true, under which smaller ones of float32 compare as zero.
    """
    if delta is None or dtype.kind == "b":
        return dtype.type(0)
    if dtype.kind == "f":
        kind = np.finfo(dtype)
        return dtype.type(min(max(delta, float(kind.tiny)), float(kind.max)))
    return dtype.type(min(max(int(delta), 1), np.iinfo(dtype).max))


def batch_of(ids: np.dtype, offsets: np.dtype) -> int:
    """How many vertices or products a warp buffers: what fits a block of 99 kB shared memory."""
    return 64 if ids.itemsize == offsets.itemsize == 4 else 32


def block_bytes(values: np.dtype, ids: np.dtype, offsets: np.dtype) -> int:
    """The bytes of shared memory of a block: a WarpWork of kernels/closure_state.cuh for each warp,
    whose arrays leave no gaps.
    """
    z, i, o = values.itemsize, ids.itemsize, offsets.itemsize
    batch = batch_of(ids, offsets)
    buffers = max((batch + 128) * (max(z, i) + o), RING * (z + 2 * o + i))
    return THREADS // 32 * (buffers + (batch + 32) * i + 128)


def closure_preamble(A: Matrix, semiring: TypedSemiring, ordered: bool) -> str:
    """The preamble of kernels/closure.cu; `ordered` asks for buckets, where the monoid has them."""
    types = types_of(A._indptr, A._indices, A._values)
    return program(semiring, types, ordered, THREADS)


def types_of(indptr: Array, indices: Array, values: Array) -> tuple[tuple[str, str], ...]:
    """The types of a matrix by their names in kernels."""
    return ("I", indices.dtype.str), ("O", indptr.dtype.str), ("A", values.dtype.str)


@functools.lru_cache(maxsize=1024)
def program(
    semiring: TypedSemiring,
    types: tuple[tuple[str, str], ...],
    ordered: bool,
    threads: int,
    shards: int = 0,
    parents: bool = False,
) -> str:
    """The preamble of a closure on one GPU, or, for a number of `shards`, on peers or in rounds.
    With `parents` values are what kernels/closure_parents.cuh says, and widths those of distances.
    """
    kinds = {name: np.dtype(kind) for name, kind in types}
    has_order = preamble.kind_of(semiring.add) in preamble.ORDER.values()
    constants = preamble.constants(
        ORDERED=ordered and has_order,
        POSITIONAL=semiring.multiply.positional and not parents,
        PARENTS=parents,
        THREADS=threads,
        BATCH=batch_of(kinds["I"], kinds["O"]),
    )
    constants += preamble.constants(PEERS=shards) if shards else ""
    kinds["Width"] = np.dtype(np.float32) if parents else semiring.dtype
    return preamble.semiring(semiring) + preamble.types(**kinds) + constants
