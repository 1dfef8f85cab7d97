"""Accumulate and masked write: the last step of every operation."""

from __future__ import annotations

import contextlib
import functools

import numpy as np

from spgraph.backends.cuda.entrywise.masks import NOT_INVERTED, bits_of, id_type, mask_words
from spgraph.backends.cuda.entrywise.storage import conform
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.containers import Mask, Vector
from spgraph.containers.hypersparse import are_hypersparse, write_renumbered
from spgraph.containers.mask import is_list, true_indices
from spgraph.containers.storage.arrays import all_bits, array_module, words
from spgraph.process import interrupts
from spgraph.semirings import Function


@jit.on_device
def write(out: Vector, t: Vector, mask: Mask | None, accum: Function | None, replace: bool) -> None:
    """With Z = out accum t (t where there is no accum): out<mask, replace> = Z, cast to out's type.

    t shares no array with out and may be taken over.
    """
    if mask is None and accum is None:
        values = t._values if t.dtype == out.dtype else t._values.astype(out.dtype)
        out._become(Vector._of(t.size, values, indices=t._indices, bits=t._bits, nvals=t._nvals))
        return
    if mask is not None and are_hypersparse(out.size, out, t, mask.parent):
        write_renumbered(write, out, t, mask, accum, replace)
        return
    few = out._indices is None and t._indices is not None and (mask is None or not replace)
    if few and (accum is not None or is_list(mask)):
        _write_few(out, t, mask, accum)
        return
    bits, invert = mask_words(mask)
    replace = replace and mask is not None
    if out._indices is not None and t._indices is not None:
        _merge(out, t, bits, invert, accum, replace)
    else:
        _write_all(out, t, bits, invert, accum, replace)


def _merge(
    out: Vector, t: Vector, bits: object, invert: np.uint32, accum: Function | None, replace: bool
) -> None:
    """Both sparse: new arrays."""
    assert out._indices is not None and t._indices is not None
    xp = array_module(out._values)
    text = _program(out, t, accum)
    stays, merge = jit.kernels("write", text, "write_stays", "write_sparse")
    both = out.nvals + t.nvals
    if both == 0:
        return
    flags = xp.empty(both, np.int64)
    lists = (out._indices, out.nvals, t._indices, t.nvals)
    jit.sweep(stays, both, *lists, bits, invert, replace, flags)
    through = xp.cumsum(flags)
    nvals = int(through[-1])
    indices, z = xp.empty(nvals, t._indices.dtype), xp.empty(nvals, out.dtype)
    if nvals:
        jit.sweep(
            merge,
            both,
            *(out._indices, out._values, out.nvals, t._indices, t._values, t.nvals),
            *(bits, invert, through, indices, z),
        )
    out._become(Vector._of(out.size, z, indices=indices)._conform())


def _write_few(out: Vector, t: Vector, mask: Mask | None, accum: Function | None) -> None:
    """A sparse t into out by position: in place, at the cost of t and of a mask that is a list. One
    launch; how many entries there are is read back.
    """
    assert t._indices is not None
    xp = array_module(out._values)
    # what is launched is compiled before anything is written
    few = jit.kernel("write", "write_few", _program(out, t, accum))
    by_list = is_list(mask)
    allowed = true_indices(mask) if mask is not None and by_list else t._indices[:0]
    bits, invert = (jit.NULL, NOT_INVERTED) if by_list else mask_words(mask)
    # without an accumulator, entries that the mask allows and t does not have are deleted
    cleared = allowed.size if accum is None else 0
    present = bits_of(out)
    if out._bits is None and cleared > 0:
        present = all_bits(xp, out.size)
    nvals, change = out.nvals, xp.zeros(1, np.int64)
    given = (t._indices, t._values, t.nvals, by_list, allowed, allowed.size, cleared, bits, invert)
    with interrupts.deferred():
        if cleared + t.nvals:
            jit.sweep(few, cleared + t.nvals, *given, present, out._values, change)
        if present is not jit.NULL:
            nvals += int(change[0])
        bits_now = None if nvals == out.size else present
        out._become(Vector._of(out.size, out._values, bits=bits_now, nvals=nvals))


def _write_all(
    out: Vector, t: Vector, bits: object, invert: np.uint32, accum: Function | None, replace: bool
) -> None:
    """By position; a sparse out gets new arrays, another is written in place."""
    w, t = out.to_bitmap(), t.to_bitmap()
    kernel = jit.kernel("write", "write", _program(w, t, accum))
    z_bits = array_module(out._values).empty(words(out.size), np.uint32)
    given = (bits_of(w), w._values, bits_of(t), t._values, bits, invert, replace)
    with interrupts.deferred():
        if out.size:
            jit.sweep(kernel, out.size, *given, out.size, z_bits)
        # the values are written: whatever fails from here on, their bits go with them
        out._become(Vector._of(out.size, w._values, bits=z_bits))
    with contextlib.suppress(MemoryError):  # it is written: only its storage may change from here
        out._become(conform(out))


def _program(w: Vector, t: Vector, accum: Function | None) -> str:
    """The preamble of kernels/write.cu."""
    return preamble.types(N=id_type(t)) + write_preamble(w.dtype, t.dtype, accum)


@functools.lru_cache(maxsize=1024)
def write_preamble(w: np.dtype, t: np.dtype, accum: Function | None) -> str:
    """The types W and T, `combine_entries(w, t)`, the accumulator's result in the type of w, and
    `cast`.
    """
    text = preamble.types(W=w, T=t) + preamble.constants(ACCUM=accum is not None)
    text += preamble.cast("cast", w) + ("" if accum is None else accum.define_cuda("op"))
    result = "cast(t)" if accum is None else "cast(op(w, t, 0, 0, 0, 0))"
    return text + f"__device__ __forceinline__ W combine_entries(W w, T t) {{ return {result}; }}\n"
