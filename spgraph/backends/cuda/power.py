"""The power iteration: on small graphs one cooperative launch for all of it, on large ones launches
for every step.

A cooperative grid has one block a multiprocessor, which is what a barrier is cheap for and too few
threads to gather with: on an H200 it takes 7.5 ps an entry of a Kronecker graph, plain launches
6.7, and with tiles (tiles.py) 2.1. Launches of their own cost 50 us of the host's time a step."""

from __future__ import annotations

import functools
from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np

from spgraph.backends.cuda import jit, preamble
from spgraph.backends.cuda.classes import row_classes
from spgraph.backends.cuda.products import gather
from spgraph.backends.cuda.tiles import Tiles, address, prepare
from spgraph.containers import Matrix, Vector
from spgraph.containers.arrays import array_module, index_dtype, move
from spgraph.semirings import TypedSemiring

# as in kernels/power_sums.cuh
NORMS = {None: 0, 1: 1, 2: 2, "max": 3}
SUMS = 3
# as in kernels/power.cu: threads of a block, areas of sums, 64-bit words of its GridBarrier
THREADS, AREAS, BARRIER = 1024, 3, 2
# the entries of all hops from which a step pays for launches of its own
LARGE = 1 << 23
# iterations that tiles are worth making for
MANY = 8
# blocks a multiprocessor, where every thread has vertices of its own
BLOCKS = 4


# what a block asks of the others, what it is told, what it finds
Steps = Generator[tuple[str, Any], Any, tuple[Vector, Any]]


class Settings(NamedTuple):
    """What all steps have in common."""

    semiring: TypedSemiring
    gathered: np.dtype  # of what hops gather
    constants: tuple[float, float, float, float]
    restart: Vector | float
    norm: int
    tol: float | None
    max_iter: int


@jit.on_device
def power(
    x: Vector,
    matrices: tuple[Matrix, ...],
    scales: tuple[Vector | None, ...],
    semiring: TypedSemiring,
    constants: tuple[float, float, float, float],
    restart: Vector | float,
    norm: Any,
    tol: float | None,
    max_iter: int,
    single: bool,
) -> tuple[Vector, Any]:
    """(the last iterate, (iterations, last change)) of x <- f(x) from x, a full Vector of float64.

    Each of the one or two `matrices` is pulled by rows: x becomes M (x * scale). Then, with
    `constants` = (factor, keep, jump, leak), the iterate is factor times that + keep x + (jump +
    leak times the sum of x where the first scale is zero) restart, divided by its norm. `single`
    gathers x * scale in single precision. `tol` None runs all of `max_iter`, and nothing is read
    back; the second result is then None. Sums are taken in an order that depends on the graph and
    the kind of device alone.

    Matrices of fewer than LARGE entries: one launch, a few fills, and one copy to the device for
    each matrix. An iterate of NaN says that the blocks of the kernel lost each other. Larger ones:
    in every step 1 to 5 launches a hop, 1 between hops that have a scale, 2 more, another 2 with a
    norm, and with a `tol` a change that is read back (15 us).
    """
    gathered = np.dtype(np.float32 if single else np.float64)
    settings = Settings(semiring, gathered, constants, restart, NORMS[norm], tol, max_iter)
    if sum(M.nvals for M in matrices) < LARGE:
        return _together(x, _alike(matrices), scales, settings)
    steps = _apart(x, matrices, scales, settings)
    answer: Any = None
    while True:
        try:
            question, array = steps.send(answer)
        except StopIteration as end:
            return end.value
        # one block is the whole
        answer = float(move(array, "cpu")[0]) if question == "change" else array


def power_block(
    x: Vector,
    matrices: tuple[Matrix, ...],
    scales: tuple[Vector | None, ...],
    semiring: TypedSemiring,
    constants: tuple[float, float, float, float],
    restart: Vector | float,
    norm: Any,
    tol: float | None,
    max_iter: int,
    single: bool,
) -> Steps:
    """`power` of the vertices of one block, as a generator that asks for what it takes of others.

    It yields ("gather", the block's part of a vector) and is sent the whole one; ("totals", its
    part of the three sums over vertices: change, lost, norm) and is sent those of all; ("change",
    the totals) and is sent the first of them as a number. It returns what `power` does. Whoever
    drives it makes the block's device the current one.
    """
    gathered = np.dtype(np.float32 if single else np.float64)
    settings = Settings(semiring, gathered, constants, restart, NORMS[norm], tol, max_iter)
    return _apart(x, matrices, scales, settings)


@functools.cache
def program(
    semiring: TypedSemiring, iso: bool, gathered: str, types: tuple[str, str, str, str]
) -> str:
    """The preamble of the products, and of power.cu; `types` are those of O, I, A and R."""
    text = preamble.semiring(semiring, ISO=iso, FLIP=False, MASKED=False, FULL=True)
    names = {name: np.dtype(kind) for name, kind in zip("OIAR", types, strict=True)}
    return text + preamble.types(U=np.dtype(gathered), **names)


def _program(M: Matrix, settings: Settings) -> str:
    ring = settings.semiring
    types = (M.indptr.dtype.str, M.indices.dtype.str, M.dtype.str, index_dtype(M.nrows).str)
    return program(ring, M.iso or ring.multiply.name == "second", settings.gathered.str, types)


# --- launches apart, for every step ---------------------------------------------------------------


def _apart(
    x: Vector, matrices: tuple[Matrix, ...], scales: tuple[Vector | None, ...], settings: Settings
) -> Steps:
    xp, n, norm = array_module(x.values), x.size, np.int32(settings.norm)
    text = preamble.types(U=settings.gathered)
    give, step, divide, total = (
        jit.kernel("power_apart", f"power_{name}", text)
        for name in ("give", "step", "divide", "total")
    )
    most = BLOCKS * jit.multiprocessors(jit.current_device())
    blocks = max(1, min(-(-n // jit.BLOCK), most))
    threads = blocks * jit.BLOCK
    sums, totals = xp.empty(SUMS * blocks), xp.zeros(SUMS)
    value = x.values.copy()
    # rows without entries stay zero
    products = [xp.zeros(n) for _ in matrices]
    z = xp.empty(n) if norm else jit.NULL
    spread = [_spread(1.0 if scale is None else scale, xp) for scale in scales]
    # what each hop gathers, where that is not the iterate or the product before as it is
    sources = [value, *products[:-1]]
    double = settings.gathered == value.dtype
    given = [
        jit.NULL if scale is None and double else xp.empty(n, settings.gathered) for scale in scales
    ]
    gathered = [source if u is jit.NULL else u for source, u in zip(sources, given, strict=True)]
    cut = [_tiles(M, settings.max_iter) for M in matrices]
    texts = [_program(M, settings) for M in matrices]
    factors = tuple(map(np.float64, settings.constants))
    restarts = _spread(settings.restart, xp)

    def joined() -> Any:
        total((1,), (32 * SUMS,), (blocks, sums, norm, totals))
        return totals

    jit.launch(give, threads, n, value, *spread[0], given[0], sums)
    sums_of_all = yield "totals", joined()
    report: tuple[int, float] | None = None
    for iteration in range(1, settings.max_iter + 1):
        for k, M in enumerate(matrices):
            if k and given[k] is not jit.NULL:
                jit.launch(give, threads, n, sources[k], *spread[k], given[k], jit.NULL)
            whole = yield "gather", gathered[k]
            gather(M, cut[k], Vector(M.ncols, whole), texts[k], products[k])
        jit.launch(
            step,
            threads,
            *(n, products[-1], *factors, *restarts, *spread[0], norm),
            *(sums_of_all, value, z, given[0], sums),
        )
        sums_of_all = yield "totals", joined()
        if norm:
            jit.launch(divide, threads, n, z, *spread[0], norm, sums_of_all, value, given[0], sums)
            sums_of_all = yield "totals", joined()
        if settings.tol is not None:
            report = iteration, (yield "change", sums_of_all)
            if report[1] <= settings.tol:
                break
    return Vector(n, value), report


def _tiles(M: Matrix, max_iter: int) -> Tiles | None:
    return prepare(M) if max_iter >= MANY else M._derived.get("shared_tiles")


# --- one cooperative launch -----------------------------------------------------------------------


def _together(
    x: Vector, matrices: tuple[Matrix, ...], scales: tuple[Vector | None, ...], settings: Settings
) -> tuple[Vector, Any]:
    xp, n, tol = array_module(x.values), x.size, settings.tol
    kernel = jit.kernel("power", "power", _program(matrices[0], settings), cooperative=True)
    grid = jit.multiprocessors(jit.current_device())
    held: list[Any] = []
    words: list[int] = []
    for k, (M, scale) in enumerate(zip(matrices, scales, strict=True)):
        words += _hop(M, scale, settings.gathered, 2 if k == 0 else 1, held)
    value, report = x.values.copy(), xp.zeros(2)
    z = xp.empty(n) if settings.norm else jit.NULL
    sums, meeting = xp.empty(AREAS * SUMS * grid), xp.zeros(BARRIER, np.int64)
    hops = xp.asarray(np.array(words, np.int64))
    arguments = (
        *(hops, np.int32(len(matrices)), np.int32(settings.norm), n, value, z),
        *map(np.float64, settings.constants),
        *_spread(settings.restart, xp),
        *(np.float64(-1.0 if tol is None else tol), settings.max_iter, sums, meeting, report),
    )
    kernel((grid,), (THREADS,), arguments)
    return Vector(n, value), None if tol is None else move(report, "cpu")


def _alike(matrices: tuple[Matrix, ...]) -> tuple[Matrix, ...]:
    """The same matrices, their index arrays of the same types: a kernel knows one of each."""
    offsets = np.result_type(*(M.indptr.dtype for M in matrices))
    ids = np.result_type(*(M.indices.dtype for M in matrices))
    return tuple(
        M
        if (M.indptr.dtype, M.indices.dtype) == (offsets, ids)
        else Matrix(
            *(M.nrows, M.ncols, M.indptr.astype(offsets), M.indices.astype(ids), M.values),
            iso=M.iso,
        )
        for M in matrices
    )


def _hop(M: Matrix, scale: Vector | None, gathered: np.dtype, buffers: int, held: list) -> list:
    """The words of the struct Hop; the arrays that it points to are put into `held`, too."""
    xp = array_module(M.indptr)

    def at(array: Any) -> int:
        held.append(array)
        return address(array) if array.size else 0

    classes, empty = row_classes(M), _empty_rows(M)
    pieces = int(classes.piece_row.size)
    mask, scales = _spread(1.0 if scale is None else scale, xp)
    words = [at(M.indptr), at(M.indices), at(M.values), at(classes.rows)]
    words += [classes.split, pieces, classes.wide, classes.narrow, classes.single]
    words += [at(classes.piece_row), at(classes.piece_first)]
    words += [at(xp.empty(pieces, bool)), at(xp.empty(pieces)), at(empty), int(empty.size)]
    return [*words, mask, at(scales), at(xp.empty(buffers * M.nrows, gathered))]


def _empty_rows(M: Matrix) -> Any:
    """The rows without entries, found once and kept with M."""
    if "empty_rows" not in M._derived:
        xp = array_module(M.indptr)
        empty = xp.flatnonzero(M.indptr[1:] == M.indptr[:-1])
        M._derived["empty_rows"] = empty.astype(index_dtype(M.nrows))
    return M._derived["empty_rows"]


def _spread(v: Vector | float, xp: Any) -> tuple[int, Any]:
    """(mask, values): vertex i has values[i & mask]."""
    return (-1, v.values) if isinstance(v, Vector) else (0, xp.full(1, v, np.float64))
