"""The fused power iteration: all iterations in one launch on all cores."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import numpy as np

from spgraph.backends.cpu import jit, preamble
from spgraph.backends.cpu.products import pull
from spgraph.containers import Matrix, Vector
from spgraph.semirings import TypedSemiring

# as in kernels/power.py
NORMS = {None: 0, 1: 1, 2: 2, "max": 3}
CHUNK, SUMS = 32768, 3


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
    gathers x * scale in single precision. `tol` None runs all of `max_iter`.
    """
    n = x.size
    text = preamble.constants(ISO=_ignores_values(matrices[0], semiring))
    text += semiring.multiply.define_python("multiply")
    kernel = jit.module("power", text).power
    first, last = matrices[0], matrices[-1]
    given: list[Any] = []
    for M, scale in zip((first, last), (scales[0], scales[-1]), strict=True):
        given += [M.indptr, M.indices, M.values, *_spread(scale, 1.0)]
    kind = np.float32 if single else np.float64
    work = np.empty((2, n), kind), np.empty(n if len(matrices) == 2 else 0, kind)
    chunks = max(1, min(n, (last.nvals + n) // CHUNK))
    value, report = x.values.copy(), np.zeros(2)
    jit.launch(
        kernel,
        jit.threads_for((first.nvals + n) * max_iter),
        *(jit.new_sync(), np.zeros(1, np.int64), len(matrices), NORMS[norm], *given),
        *(value, np.empty(n if norm is not None else 0), *work, np.zeros((2, SUMS, chunks))),
        *(*map(float, constants), *_spread(restart, 0.0)),
        *(-1.0 if tol is None else float(tol), max_iter, report),
    )
    return Vector(n, value), report


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
) -> Generator[tuple[str, Any], Any, tuple[Vector, Any]]:
    """`power` of the vertices of one block, as a generator that asks for what it takes of others.

    It yields ("gather", the block's part of a vector) and is sent the whole one; ("totals", its
    part of the three sums over vertices: change, lost, norm) and is sent those of all; ("change",
    the totals) and is sent the first of them as a number. It returns what `power` does. `single`
    changes nothing here: what blocks exchange stays in double precision.
    """
    factor, keep, jump, leak = constants
    value = x.values.copy()
    scale = [1.0 if v is None else v.values for v in scales]
    again = restart.values if isinstance(restart, Vector) else restart
    none = np.broadcast_to(scale[0], value.shape) == 0

    def sums(change: float, of: np.ndarray, size: float = 0.0) -> np.ndarray:
        return np.array([change, of[none].sum(), size])

    report = None
    totals = yield "totals", sums(0.0, value)
    for iteration in range(1, max_iter + 1):
        y = value
        for M, by in zip(matrices, scale, strict=True):
            whole = yield "gather", y * by
            y = pull(M, Vector(M.ncols, whole), semiring, None, False).to_numpy(fill=0.0)
        z = factor * y + keep * value + (jump + leak * totals[1]) * again
        if norm is not None:
            sizes = z * z if norm == 2 else np.abs(z)
            part = sizes.max(initial=0.0) if norm == "max" else sizes.sum()
            totals = yield "totals", sums(0.0, z, part)
            size = math.sqrt(totals[2]) if norm == 2 else totals[2]
            z = z / (size if size > 0 else 1.0)
        change, value = float(np.abs(z - value).sum()), z
        totals = yield "totals", sums(change, value)
        if tol is not None:
            report = iteration, (yield "change", totals)
            if report[1] <= tol:
                break
    return Vector(x.size, value), report


def _spread(v: Vector | float | None, missing: float) -> tuple[int, np.ndarray]:
    """(mask, values): position i has values[i & mask]."""
    if isinstance(v, Vector):
        return -1, v.values
    return 0, np.full(1, missing if v is None else v)


def _ignores_values(M: Matrix, semiring: TypedSemiring) -> bool:
    """Whether one value stands for all entries, or none is looked at."""
    return M.iso or semiring.multiply.name == "second"
