"""A mask as 32-bit words, the form in which kernels read it."""

from __future__ import annotations

import numpy as np

from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.containers import Mask, Vector
from spgraph.containers.storage.arrays import Array, array_module, words

NOT_INVERTED, INVERTED = np.uint32(0), np.uint32(0xFFFFFFFF)


def mask_words(mask: Mask | None) -> tuple[Array, np.uint32]:
    """(bits, invert): position i is allowed where bit i of bits ^ invert is set. No bits where
    there is no mask.

    The bits of a bitmap are not copied: a mask of its structure costs nothing.
    """
    if mask is None:
        return jit.NULL, NOT_INVERTED
    invert = INVERTED if mask.complement else NOT_INVERTED
    v = mask.parent
    assert isinstance(v, Vector)
    xp = array_module(v._values)
    if v._indices is None and mask.structure:
        return xp.full(words(v.size), 0xFFFFFFFF, np.uint32) if v._bits is None else v._bits, invert
    text = preamble.types(U=v.dtype, N=id_type(v)) + preamble.constants(STRUCTURE=mask.structure)
    if v._indices is None:
        bits, kernel = xp.empty(words(v.size), np.uint32), jit.kernel("masks", "mask_values", text)
        jit.sweep(kernel, v.size, bits_of(v), v._values, v.size, bits)
        return bits, invert
    bits = xp.zeros(words(v.size), np.uint32)
    if v._indices.size:
        kernel = jit.kernel("masks", "mask_sparse", text)
        jit.sweep(kernel, v.nvals, v._indices, v._values, v.nvals, bits)
    return bits, invert


def bits_of(v: Vector) -> Array:
    """The bits of a bitmap; none of another Vector."""
    return jit.NULL if v._bits is None else v._bits


def id_type(v: Vector) -> np.dtype:
    """The type of the ids of a sparse Vector; of another one that of a program that reads none."""
    return np.dtype(np.int32) if v._indices is None else v._indices.dtype
