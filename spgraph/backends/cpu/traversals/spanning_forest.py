"""Minimum spanning forests, on all cores."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import numpy as np

from spgraph.backends.cpu.entrywise.rows import (
    divided,
    index_type,
    keep,
    launch,
    pointer_of,
    row_sizes,
    running_sum,
)
from spgraph.backends.cpu.runtime import jit, memory, pool
from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import INT32_MAX

# the edges that are joined first, if there are more than twice as many: so many for each vertex
LIGHT = 2
# edges by which their greatest weight is chosen
SAMPLES = 1024
# as in the kernel's text
PIECE = 4096

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


def spanning_forest(A: Matrix) -> Matrix | None:
    """The entries of a square A of least total value that connect what A connects, of equal ones
    the first; A has no NaN. None for ids beyond 32 bits.
    """
    if A.nrows > INT32_MAX:
        return None
    rows, parts, kernels = (A._indptr, A._indices, A._values), parts_of(A._indptr), _kernels()
    # of the two equal entries of a symmetric matrix only the first can be chosen
    kept = kept_edges(rows, parts, keep(A), bool(A.symmetric))
    flags = A._indptr, kept, kept.view(np.uint64)
    sizes = row_sizes(A.nrows, A.nvals)
    launch(kernels.count_kept, parts, *flags, sizes)
    indptr = pointer_of(sizes)
    indices = np.empty(int(indptr[-1]), index_type(A))
    values = A._values.copy() if A.iso else np.empty(indices.size, A.dtype)
    given = (A._indices, A._values, A.iso, indices, values)
    launch(kernels.take_kept, parts, *flags, indptr, *given)
    return Matrix._of(A.nrows, A.ncols, indptr, indices, values, iso=A.iso)


def parts_of(indptr: np.ndarray) -> tuple[int, np.ndarray]:
    """(how many threads, the bounds of the chunks of rows that they take)."""
    return divided((indptr,), pool.LONG_STEPS)


def kept_edges(
    rows: Rows, parts: tuple[int, np.ndarray], keep: np.uint64, upper: bool
) -> np.ndarray:
    """1 for each edge of the minimum spanning forest, else 0; a multiple of eight bytes. Of equal
    weights the first edge is preferred; NaN is greater than all numbers. `keep` is 0 for one weight
    of all; `upper`: only entries above the diagonal are edges, of rows that ascend.

    Many edges: first the forest of the lightest ones, after which most of the others lie within one
    of its trees.
    """
    indptr, indices, values = rows
    n, m = indptr.size - 1, indices.size
    kept = memory.zeros(-(-m // 8) * 8, np.uint8)
    if m == 0:
        return kept
    root, live = np.arange(n, dtype=np.int32), np.empty(n, np.int32)
    best = np.full(n, -1, indptr.dtype)
    given = (*rows, keep, upper)
    wanted, edges = LIGHT * n, m // 2 if upper else m
    if 2 * wanted < edges:
        limit, row = _limit(rows, keep, wanted / edges)
        if limit == limit:
            _join(parts, (*given, True, limit, row, root), best, live, kept)
    _join(parts, (*given, False, values.dtype.type(0), np.uint64(0), root), best, live, kept)
    return kept


def _limit(rows: Rows, keep: np.uint64, share: float) -> tuple[np.generic, np.uint64]:
    """(a weight, a row): about this `share` of the edges weigh less, or as much in rows before."""
    indptr, indices, values = rows
    places = np.arange(0, indices.size, -(-indices.size // SAMPLES), dtype=np.uint64)
    weights = values[places & keep]
    at = weights.argsort(kind="stable")[int(share * weights.size)]
    return weights[at], np.uint64(np.searchsorted(indptr, places[at], side="right") - 1)


def _join(
    parts: tuple[int, np.ndarray],
    given: tuple[Any, ...],
    best: np.ndarray,
    live: np.ndarray,
    kept: np.ndarray,
) -> None:
    """Join trees by light edges or by all, as `given` says: arguments of both kernels."""
    threads, bounds = parts
    starts, state = np.zeros(bounds.size, np.int64), np.zeros(16, np.int64)
    pool.launch(_kernels().count_edges, threads, bounds, *given, starts, state)
    total = running_sum(starts).item(-1)
    if total == 0:
        return
    kinds = (np.int32, np.int32, best.dtype, given[2].dtype)
    lists = [memory.empty(total, kind) for kind in kinds]
    lengths = np.full(-(-total // PIECE), PIECE)
    lengths[-1] += total - PIECE * lengths.size
    state[:] = 0
    arrays = (*lists, lengths, best, live, kept, state)
    pool.launch(_kernels().join_trees, threads, bounds, starts, *given, *arrays)


@functools.cache
def _kernels() -> ModuleType:
    return jit.module("spanning_forest", jit.text_of("lower_bound"))
