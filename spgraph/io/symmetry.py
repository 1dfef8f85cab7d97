"""Whether a matrix is what a file says of it: equal to its transpose, or not."""

from __future__ import annotations

import itertools
import os
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

STEP = 1 << 16  # entries, and rows, looked at at once: they stay in a core's cache

# of this process: nobody can make a file that cancels out
_ROW, _COLUMN, _VALUE = (np.uint64(secrets.randbits(64)) for _ in range(3))
_MULTIPLIERS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)


def confirmed(
    claim: bool | None, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray | None
) -> bool | None:
    """`claim`, that a square matrix equals its transpose or that it does not, or None where its
    entries say otherwise; `values` None: all are the same.

    It sums, modulo 2^64, h(i, j, value) - h(j, i, value) over the entries, which is 0 where each
    has its mirror image, and with a probability below 2^-50 otherwise. h is the product of random
    words of row, column and value; the words are made of the numbers and a salt by the finalizer of
    SplitMix64.

    Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
    """
    if claim is None:
        return None

    def part(rows: tuple[int, int]) -> int:
        return _sum(*rows, indptr, indices, values)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        total = sum(pool.map(part, _parts(indptr)))
    return claim if claim == (total % 2**64 == 0) else None


def _parts(indptr: np.ndarray) -> Iterator[tuple[int, int]]:
    """Ranges of rows with about STEP rows or entries each, a longer row by itself."""
    rows = indptr.size - 1
    entries = np.arange(0, int(indptr[-1]), STEP)
    cuts = np.unique([*np.searchsorted(indptr, entries), *range(0, rows, STEP), rows])
    return itertools.pairwise(cuts.tolist())


def _sum(
    first: int, last: int, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray | None
) -> int:
    offsets = indptr[first : last + 1]
    rows = np.flatnonzero(offsets[1:] > offsets[:-1])
    if not rows.size:
        return 0
    span = slice(int(offsets[0]), int(offsets[-1]))
    ids = indices[span].astype(np.uint64)
    there, back = _words(ids, _COLUMN), _words(ids, _ROW)
    if values is not None:
        weights = _words(_bits(values[span]), _VALUE)
        there *= weights
        back *= weights
    starts = offsets[rows] - offsets[0]
    rows = (rows + first).astype(np.uint64)
    total = _words(rows, _ROW) * np.add.reduceat(there, starts)
    total -= _words(rows, _COLUMN) * np.add.reduceat(back, starts)
    return int(total.sum())


def _words(numbers: np.ndarray, salt: np.uint64) -> np.ndarray:
    """A word for each number, as if drawn at random."""
    words = numbers + salt
    for shift, multiplier in zip(_SHIFTS, _MULTIPLIERS, strict=False):
        words ^= words >> shift
        words *= multiplier
    words ^= words >> _SHIFTS[2]
    return words


def _bits(values: np.ndarray) -> np.ndarray:
    """The values as words: equal values are equal words."""
    if values.dtype.kind == "f":
        return (values.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 equals 0.0
    return values.astype(np.uint64)
