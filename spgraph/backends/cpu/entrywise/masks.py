"""Masks as bitmaps of 32-bit words, as kernels read them."""

from __future__ import annotations

import numpy as np

from spgraph.containers import Mask, Vector
from spgraph.containers.mask import true_indices
from spgraph.containers.storage.arrays import pack_bits, words

NOT_INVERTED, INVERTED = np.uint32(0), np.uint32(0xFFFFFFFF)
NO_BITS = np.empty(0, np.uint32)
NO_MASK = NO_BITS, NOT_INVERTED


def mask_words(mask: Mask | None) -> tuple[np.ndarray, np.uint32]:
    """(bits, invert): position i is allowed if bit i of bits ^ invert is set; no bits: no mask.

    The structural mask of a bitmap is not copied.
    """
    if mask is None:
        return NO_MASK
    invert = INVERTED if mask.complement else NOT_INVERTED
    v = mask.parent
    assert isinstance(v, Vector)
    if v._indices is not None:
        return bits_at(true_indices(mask), v.size), invert
    if mask.structure:
        return np.full(words(v.size), 0xFFFFFFFF, np.uint32) if v._bits is None else v._bits, invert
    true = pack_bits(v._values != 0)
    return true if v._bits is None else true & v._bits, invert


def bits_of(v: Vector) -> np.ndarray:
    """The bits of a bitmap; none of another Vector."""
    return NO_BITS if v._bits is None else v._bits


def bits_at(indices: np.ndarray, size: int) -> np.ndarray:
    """Words with the bits of the sorted, unique `indices` set, in O(indices + size / 32)."""
    bits = np.zeros(words(size), np.uint32)
    if indices.size:
        word = indices >> 5
        starts = np.flatnonzero(np.concatenate(([True], word[1:] != word[:-1])))
        bits[word[starts]] = np.bitwise_or.reduceat(
            np.uint32(1) << (indices & 31).astype(np.uint32), starts
        )
    return bits
