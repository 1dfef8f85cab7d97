"""Accumulate and masked write of vectors: the last step of every operation."""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType

import numpy as np

from spgraph.backends.cpu.entrywise.masks import mask_words, true_indices
from spgraph.backends.cpu.runtime import jit, pool, preamble
from spgraph.containers import Mask, Vector
from spgraph.containers.storage.arrays import words
from spgraph.semirings import Function

NO_BITS = np.empty(0, np.uint32)


def write(out: Vector, t: Vector, mask: Mask | None, accum: Function | None, replace: bool) -> None:
    """out<mask, replace> = Z, cast to out's type, where Z = out accum t, or t without accum.

    t shares no array with out; its arrays may be reused.
    """
    if mask is None and accum is None:
        with np.errstate(over="ignore"):  # beyond the range of float32 values become infinite
            values = t._values.astype(out.dtype, copy=False)
        out._become(Vector._of(t.size, values, indices=t._indices, bits=t._bits, nvals=t.nvals))
        return
    kernels = jit.module("write", _preamble(out.dtype, t.dtype, accum))
    bits, invert = mask_words(mask)
    replace = replace and mask is not None
    if out._indices is not None and t._indices is not None:
        longest, counts = out.nvals + t.nvals, np.zeros(1, np.int64)
        indices, z = np.empty(longest, t._indices.dtype), np.empty(longest, out.dtype)
        given = (out._indices, out._values, t._indices, t._values, bits, invert, replace)
        pool.launch(kernels.write_sparse, 1, *given, indices, z, counts)
        nvals = int(counts[0])
        out._become(
            Vector._of(out.size, z[:nvals].copy(), indices=indices[:nvals].copy())._conform()
        )
        return
    few = mask is not None and not mask.complement and mask.parent._indices is not None
    few = t._indices is not None and not replace and (few or accum is not None)
    if out._indices is None and few:
        _write_few(kernels, out, t, mask, accum is not None)
        return
    # by position: a sparse out in new arrays, others in place. The kernel is never interrupted, so
    # that `out` is always consistent
    if out._indices is None:
        _forget_count(out, True)
    w, t = out.to_bitmap(), t.to_bitmap()
    if w._bits is None:
        w = Vector._of(w.size, w._values, bits=_all_bits(w.size))
    t_bits = NO_BITS if t._bits is None else t._bits
    threads = pool.threads_for(out.size)
    given = (w._bits, w._values, t_bits, t._values, bits, invert, replace)
    pool.launch(kernels.write, threads, *given)
    out._become(Vector._of(out.size, w._values, bits=w._bits))
    # last: out is correct already, should this run out of memory
    out._become(out._conform())


def _write_few(
    kernels: ModuleType, out: Vector, t: Vector, mask: Mask | None, accumulate: bool
) -> None:
    """Write a sparse t into a bitmap or full `out`, in O(entries of t and of the mask)."""
    assert t._indices is not None
    # without an accumulator, entries that the mask allows and t does not have are deleted
    cleared = t._indices[:0] if accumulate or mask is None else true_indices(mask)
    nvals, change = out.nvals, np.zeros(1, np.int64)
    given = (cleared, t._indices, t._values, *mask_words(mask))
    _forget_count(out, cleared.size > 0)
    present = NO_BITS if out._bits is None else out._bits
    pool.launch(kernels.write_few, 1, *given, present, out._values, change)
    nvals += int(change[0])
    bits = None if nvals == out.size else present
    out._become(Vector._of(out.size, out._values, bits=bits, nvals=nvals))


def _forget_count(out: Vector, bits: bool) -> None:
    """Mark the number of entries as unknown; a full `out` gets a bitmap if `bits`."""
    if out._bits is not None:
        out._nvals = None
    elif bits:
        out._become(Vector._of(out.size, out._values, bits=_all_bits(out.size)))


@lru_cache(maxsize=1024)
def _preamble(w: np.dtype, t: np.dtype, accum: Function | None) -> str:
    """The preamble: `cast` to the type of w, `combine(w, t)`, the accumulator cast to it, ACCUM."""
    define = preamble.cast("cast", w)
    if accum is None:
        return (
            define
            + "ACCUM = False\n@njit(error_model='numpy')\ndef combine(w, t):\n    return cast(t)\n"
        )
    call = "@njit(error_model='numpy')\ndef combine(w, t):\n    return cast(op(w, t, 0, 0, 0, 0))\n"
    return f"{accum.define_python('op')}\n{define}ACCUM = True\n{call}"


def _all_bits(size: int) -> np.ndarray:
    """Words with the first `size` bits set."""
    bits = np.full(words(size), 0xFFFFFFFF, np.uint32)
    if size % 32:
        bits[-1] = (1 << size % 32) - 1
    return bits
