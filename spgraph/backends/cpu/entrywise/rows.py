"""Helpers of matrix operations: row-parallel launches, and the arrays of a CSR result."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

import numpy as np

from spgraph.backends.cpu.entrywise import vectors
from spgraph.backends.cpu.runtime import memory, pool
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import index_dtype
from spgraph.semirings import Function

# chunks of rows per thread, taken dynamically: equal numbers of entries may differ in work
CHUNKS = 8
# bounds up to which searches one by one take less time than NumPy's for all of them
FEW = 16

# masks of positions
FIRST, EVERY = np.uint64(0), np.uint64(2**64 - 1)


def run(
    kernel: Callable[..., object], pointers: tuple[np.ndarray, ...], *arguments: object
) -> None:
    """Launch kernel(thread, threads, sync, bounds, ticket, *arguments): chunk c is the rows from
    bounds[c] to bounds[c + 1]. Chunks have about equal numbers of rows and entries, where
    `pointers` are the indptr arrays that count the entries.
    """
    launch(kernel, divided(pointers), *arguments)


def launch(
    kernel: Callable[..., object], parts: tuple[int, np.ndarray], *arguments: object
) -> None:
    """`run` over what `divided` gave, which kernels of the same rows have in common."""
    threads, bounds = parts
    pool.launch(kernel, threads, bounds, np.zeros(1, np.int64), *arguments)


def divided(
    pointers: tuple[np.ndarray, ...], share: int = pool.SHORT_STEPS
) -> tuple[int, np.ndarray]:
    """(how many threads, each with no less than its `share`, the bounds of the chunks that they
    take).
    """
    work = work_of(pointers)
    threads = pool.threads_for(work, share)
    chunks = max(1 if threads == 1 else CHUNKS * threads, work // pool.PIECE)
    return threads, shares(chunks, pointers)


def work_of(pointers: tuple[np.ndarray, ...]) -> int:
    """The number of rows plus entries, by the indptr arrays `pointers`."""
    work = pointers[0].size - 1
    for pointer in pointers:
        work += pointer.item(-1)
    return work


def shares(count: int, pointers: tuple[np.ndarray, ...]) -> np.ndarray:
    """The bounds of `count` ranges of rows with about the same numbers of rows and entries."""
    rows = pointers[0].size - 1
    if count == 1:
        return np.array([0, rows], np.int64)
    total = work_of(pointers)
    wanted = [total * c // count for c in range(1, count)]

    def before(row: int) -> int:
        return row + sum(int(pointer[row]) for pointer in pointers)

    if count <= FEW:
        inner = [bisect_left(range(rows), work, key=before) for work in wanted]
        return np.array([0, *inner, rows], np.int64)
    low, high = np.zeros(count - 1, np.int64), np.full(count - 1, rows)
    while (low < high).any():  # the same searches, side by side
        middle = (low + high) // 2
        less = sum((pointer[middle] for pointer in pointers), middle) < wanted
        low, high = np.where(less, middle + 1, low), np.where(less, high, middle)
    return np.concatenate(([0], low, [rows]))


def row_sizes(rows: int, bound: int) -> np.ndarray:
    """An array of zeros for the size of row i at i + 1, of a type that can hold `bound`."""
    return np.zeros(rows + 1, index_dtype(bound))


def pointer_of(sizes: np.ndarray) -> np.ndarray:
    """The indptr of rows with these sizes (that of row i at i + 1); overwrites `sizes`."""
    return as_pointer(running_sum(sizes))


def running_sum(sizes: np.ndarray) -> np.ndarray:
    """The sums up to each, in place; np.cumsum takes 1 us longer to call."""
    return np.add.accumulate(sizes, out=sizes)


def as_pointer(indptr: np.ndarray) -> np.ndarray:
    """`indptr` in the smallest index type that holds it."""
    return indptr.astype(index_dtype(int(indptr[-1])), copy=False)


def index_type(A: Matrix) -> np.dtype:
    """The type of the column ids of a result of A's shape."""
    return index_dtype(max(A.nrows, A.ncols))


def keep(A: Matrix) -> np.uint64:
    """A mask for kernels: the value of entry p is values[p & keep], also of an iso matrix."""
    return FIRST if A.iso else EVERY


def csr(A: Matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.uint64]:
    """The arrays of A in the order in which kernels take them."""
    return A._indptr, A._indices, A._values, keep(A)


def iso_value(A: Matrix, B: Matrix, op: Function) -> np.ndarray:
    """op of the values of two iso matrices, as an array of length 1."""
    return vectors.ewise(Vector._of(1, A._values), Vector._of(1, B._values), op, False)._values


def copied(array: np.ndarray, dtype: np.dtype | None = None) -> np.ndarray:
    """A new array of the same elements, copied by all threads."""
    target = memory.empty(array.size, array.dtype if dtype is None else dtype)
    pool.call_parts(_copy_part, pool.threads_for(array.size // 4), array, target)
    return target


def _copy_part(part: int, parts: int, source: np.ndarray, target: np.ndarray) -> None:
    share = slice(source.size * part // parts, source.size * (part + 1) // parts)
    target[share] = source[share]


def like(A: Matrix, values: np.ndarray, iso: bool, symmetric: bool | None) -> Matrix:
    """A Matrix with the entries of A and other values."""
    indptr, indices = as_pointer(A._indptr), copied(A._indices, index_type(A))
    indptr = indptr.copy() if indptr is A._indptr else indptr
    return Matrix._of(A.nrows, A.ncols, indptr, indices, values, iso=iso, symmetric=symmetric)
