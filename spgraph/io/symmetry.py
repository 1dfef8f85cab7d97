"""Verify what a file declares of a matrix: that it is symmetric, or that it is not."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from spgraph.process.processors import usable

STEP = 1 << 15  # entries, and rows, processed at once: they stay in a core's cache

# random salts of this process: nobody can construct a file whose terms cancel
_VERTEX, _VALUE = (np.uint64(secrets.randbits(64)) for _ in range(2))
_MULTIPLIERS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)


def confirmed(
    claim: bool | None, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray | None
) -> bool | None:
    """`claim` if the entries confirm it, None (unknown) if they contradict it. `claim` says whether
    a square matrix equals its transpose; `values` None: all values are equal.

    It sums h(i, j, value) - h(j, i, value) over the entries, modulo 2^64. The sum is 0 for a
    symmetric matrix, and for any other with a probability below 2^-40. h(i, j, value) is
    g w_i^2 w_j with pseudorandom words g of the value, w_i of the row and w_j of the column, so
    that the difference is g w_i w_j (w_i - w_j). The words are made from the numbers and a salt by
    the finalizer of SplitMix64.

    Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
    """
    if claim is None:
        return None

    def part(rows: tuple[int, int]) -> int:
        return _sum(*rows, indptr, indices, values)

    parts = list(_parts(indptr))
    if len(parts) < 4:
        total = sum(map(part, parts))
    else:
        with ThreadPoolExecutor(usable()) as pool:
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
    """A pseudorandom word for each number; overwrites `numbers`."""
    numbers += salt
    shifted = np.empty_like(numbers)
    for k, shift in enumerate(_SHIFTS):
        numbers ^= np.right_shift(numbers, shift, out=shifted)
        if k < 2:
            numbers *= _MULTIPLIERS[k]
    return numbers


def _bits(values: np.ndarray) -> np.ndarray:
    """A new array of 64-bit words, equal for equal values; 0.0 and -0.0 are two."""
    if values.dtype.kind == "f":
        return values.astype(np.float64).view(np.uint64)
    return values.astype(np.uint64)
