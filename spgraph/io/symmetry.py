"""Whether a matrix is what a file says of it: equal to its transpose, or not."""

from __future__ import annotations

import itertools
import os
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

STEP = 1 << 15  # entries, and rows, looked at at once: they stay in a core's cache

# of this process: nobody can make a file that cancels out
_VERTEX, _VALUE = (np.uint64(secrets.randbits(64)) for _ in range(2))
_MULTIPLIERS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)


def confirmed(
    claim: bool | None, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray | None
) -> bool | None:
    """`claim`, that a square matrix equals its transpose or that it does not, or None where its
    entries say otherwise; `values` None: all are the same.

    It sums, modulo 2^64, h(i, j, value) - h(j, i, value) over the entries, which is 0 where each
    has its mirror image, and with a probability below 2^-40 otherwise. h(i, j, value) is g w_i^2
    w_j, random words of the value, the row and the column, so that the difference is
    g w_i w_j (w_i - w_j). The words are made of the numbers and a salt by the finalizer of
    SplitMix64.

    Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
    """
    if claim is None:
        return None

    def part(rows: tuple[int, int]) -> int:
        return _sum(*rows, indptr, indices, values)

    parts = list(_parts(indptr))
    if len(parts) < 4:
        total = sum(map(part, parts))
    else:
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            total = sum(pool.map(part, parts))
    return claim if claim == (total % 2**64 == 0) else None


def _parts(indptr: np.ndarray) -> Iterator[tuple[int, int]]:
    """Ranges of rows with about STEP rows or entries each, a longer row by itself."""
    rows = indptr.size - 1
    entries = np.searchsorted(indptr, np.arange(0, int(indptr[-1]), STEP))
    cuts = np.unique(np.concatenate([entries, np.arange(0, rows, STEP), [rows]]))
    return itertools.pairwise(cuts.tolist())


def _sum(
    first: int, last: int, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray | None
) -> int:
    offsets = indptr[first : last + 1]
    span = slice(int(offsets[0]), int(offsets[-1]))
    there = _words(indices[span].astype(np.uint64), _VERTEX)
    here = _words(np.arange(first, last, dtype=np.uint64), _VERTEX)
    here = here.repeat(offsets[1:] - offsets[:-1])
    terms = here - there
    terms *= here
    terms *= there
    if values is not None:
        terms *= _words(_bits(values[span]), _VALUE)
    return int(terms.sum())


def _words(numbers: np.ndarray, salt: np.uint64) -> np.ndarray:
    """A word for each number, as if drawn at random; `numbers` is used up."""
    numbers += salt
    shifted = np.empty_like(numbers)
    for k, shift in enumerate(_SHIFTS):
        numbers ^= np.right_shift(numbers, shift, out=shifted)
        if k < 2:
            numbers *= _MULTIPLIERS[k]
    return numbers


def _bits(values: np.ndarray) -> np.ndarray:
    """The values as words, a new array: equal values are equal words."""
    if values.dtype.kind == "f":
        return (values.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 equals 0.0
    return values.astype(np.uint64)
