"""The fused power iteration: all iterations in one launch on all cores."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import numpy as np

from spgraph.backends.cpu.entrywise.rows import shares
from spgraph.backends.cpu.products.products import pull
from spgraph.backends.cpu.runtime import jit, pool, preamble
from spgraph.backends.loops import NORMS, PowerIteration
from spgraph.containers import Matrix, Vector

# rows and entries of a chunk; SUMS and LINE as in kernels/power.py
CHUNK, SUMS, LINE = 8192, 3, 8
# fewer than one row of so many is of another length than the row before in an even matrix; fewer
# than one is of another length than the usual one, which is one of USUAL
UNEVEN, USUAL = 8, (2, 4)


def power(x: Vector | float, iteration: PowerIteration) -> tuple[Vector, np.ndarray]:
    """(the last iterate, (iterations, last change)) of an `iteration` from x, a full Vector of
    float64 or what all vertices begin with.
    """
    matrices, scales, restart = iteration.matrices, iteration.scales, iteration.restart
    semiring, norm, tol = iteration.semiring, iteration.norm, iteration.tol
    n, max_iter = matrices[0].nrows, iteration.max_iter
    second = semiring.multiply.name == "second"
    iso = second or all(M.iso for M in matrices)
    first, last = matrices[0], matrices[-1]
    starts, even, usual = _chunks(first)
    starts2, even2, usual2 = _chunks(last)
    even = second and even and even2
    usual = usual if even and usual == usual2 else 0
    spread = isinstance(restart, Vector)
    text = preamble.constants(ISO=iso, SECOND=second, EVEN=even, USUAL=usual, SPREAD=spread)
    text += semiring.multiply.define_python("multiply")
    kernel = jit.module("power", text).power
    given: list[np.ndarray | np.uint64] = []
    for M, scale in zip((first, last), (scales[0], scales[-1]), strict=True):
        # of two matrices one may have one value, the other many
        values = np.repeat(M._values, M.nvals) if M.iso and not iso else M._values
        given += [M._indptr, M._indices, values, *_spread(scale)]
    kind = iteration.gathered
    work = np.empty((2, n + 1), kind), np.empty(n + 1 if len(matrices) == 2 else 1, kind)
    for gathered in work:
        gathered[..., -1] = 0.0
    value = x._values.copy() if isinstance(x, Vector) else np.full(n, x)
    report = np.zeros(2)
    threads = pool.threads_for((first.nvals + n) * max_iter)
    pool.launch(
        kernel,
        threads,
        *(np.zeros(2 * threads * LINE, np.int64), len(matrices), NORMS[norm], *given),
        *(starts, starts2, value, np.empty(n if norm is not None else 0), *work),
        np.zeros((2, SUMS, starts2.size - 1)),
        *iteration.constants,
        restart._values if isinstance(restart, Vector) else np.full(1, restart),
        *(-1.0 if tol is None else float(tol), max_iter, report),
    )
    return Vector._of(n, value), report


def power_shard(
    x: Vector, iteration: PowerIteration
) -> Generator[tuple[str, Any], Any, tuple[Vector, tuple[int, float] | None]]:
    """`power` of the vertices of one shard, as a generator that requests data of other shards.

    It yields ("share", (its part of a vector, its part of the three sums over vertices: change,
    dangling mass, norm)) and is sent (the whole vector, the sums of all shards in their order),
    None for what is None; ("change", the sums of all shards) and is sent the first of them, added
    up. It returns what `power` does. `iteration.single` changes nothing here: what shards exchange
    stays in double precision.
    """
    matrices, scales, restart = iteration.matrices, iteration.scales, iteration.restart
    semiring, norm, tol = iteration.semiring, iteration.norm, iteration.tol
    factor, keep, teleport, dangling = iteration.constants
    value = x._values.copy()
    scale = [1.0 if v is None else v._values for v in scales]
    again = restart._values if isinstance(restart, Vector) else restart
    none = np.broadcast_to(scale[0], value.shape) == 0

    def sums(change: float, of: np.ndarray, size: float = 0.0) -> np.ndarray:
        return np.array([change, of[none].sum(), size])

    report = None
    whole, totals = yield "share", (value * scale[0], sums(0.0, value))
    for count in range(1, iteration.max_iter + 1):
        y = value
        for k, M in enumerate(matrices):
            if k:
                whole, _ = yield "share", (y * scale[k], None)
            y = pull(M, Vector._of(M.ncols, whole), semiring, None, False).to_numpy(fill=0.0)
        mass = totals[1::SUMS].sum()
        z = factor * y + keep * value + (teleport + dangling * mass) * again
        if norm is not None:
            sizes = z * z if norm == 2 else np.abs(z)
            part = sizes.max(initial=0.0) if norm == "max" else sizes.sum()
            _, totals = yield "share", (None, sums(0.0, z, part))
            size = totals[2::SUMS].max() if norm == "max" else totals[2::SUMS].sum()
            size = math.sqrt(size) if norm == 2 else size
            z = z / (size if size > 0 else 1.0)
        change, value = float(np.abs(z - value).sum()), z
        given = None if count == iteration.max_iter else value * scale[0]
        whole, totals = yield "share", (given, sums(change, value))
        if tol is not None:
            report = count, (yield "change", totals)
            if report[1] <= tol:
                break
    return Vector._of(x.size, value), report


def inverse_degrees(A: Matrix) -> Vector:
    """1 / how many entries each row of A has, 0 where it has none: a full Vector of float64, to be
    read only. A has arrays of its own. It is kept with A, 8 bytes a row.
    """
    scale = A._derived.get("inverse_degrees")
    if scale is None:
        sizes = np.diff(A._indptr)
        scale = np.true_divide(sizes > 0, np.maximum(sizes, 1))
        A._keep("inverse_degrees", scale)
    return Vector._of(A.nrows, scale)


def _chunks(M: Matrix) -> tuple[np.ndarray, bool, int]:
    """(the first rows of the chunks of M, and the number of its rows; `_evenness`): kept with M."""
    found: tuple[np.ndarray, bool, int] | None = M._derived.get("chunks")
    if found is None:
        chunks = max(1, min(M.nrows, (M.nvals + M.nrows) // CHUNK))
        found = shares(chunks, (M._indptr,)).view(np.uint64), *_evenness(M)
        M._keep("chunks", found)
    return found


def _evenness(M: Matrix) -> tuple[bool, int]:
    """(whether most rows of M are as long as the row before, as in grids, so that a processor can
    tell where a row ends; the length of nearly all rows if that is one of USUAL, else 0).
    """
    sizes = np.diff(M._indptr)
    even = UNEVEN * int(np.count_nonzero(sizes[1:] != sizes[:-1])) < M.nrows
    if even:
        for usual in USUAL:
            if UNEVEN * int(np.count_nonzero(sizes != usual)) < M.nrows:
                return even, usual
    return even, 0


def _spread(v: Vector | None) -> tuple[np.uint64, np.ndarray]:
    """(mask, values): position i has values[i & mask]; all have 1 without v."""
    if v is None:
        return np.uint64(0), np.ones(1)
    return np.uint64(2**64 - 1), v._values
