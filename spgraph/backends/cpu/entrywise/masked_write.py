"""Accumulate and masked write of vectors: the last step of every operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from spgraph.backends.cpu.entrywise import vectors
from spgraph.backends.cpu.entrywise.masks import NO_MASK, bits_of, mask_words
from spgraph.backends.cpu.runtime import jit, pool, preamble
from spgraph.containers import Mask, Matrix, Vector
from spgraph.containers.hypersparse import are_hypersparse, write_renumbered
from spgraph.containers.mask import is_list, true_indices
from spgraph.containers.storage.arrays import all_bits
from spgraph.semirings import Function

C = TypeVar("C", Vector, Matrix)


def write(out: Vector, t: Vector, mask: Mask | None, accum: Function | None, replace: bool) -> None:
    """out<mask, replace> = Z, cast to out's type, where Z = out accum t, or t without accum.

    t shares no array with out; its arrays may be reused.
    """
    if mask is not None and are_hypersparse(out.size, out, t, mask.parent):
        write_renumbered(write, out, t, mask, accum, replace)
        return
    few = out._indices is None and t._indices is not None and (mask is None or not replace)
    if few and (accum is not None or is_list(mask)):
        _write_few(out, t, mask, accum)
        return
    bits, invert = mask_words(mask)

    def allowed(v: Vector, mask: Mask) -> Vector:
        assert v._indices is not None
        return vectors.flagged(v, vectors.present(bits, v._indices) != mask.complement)

    kept: Vector | None = out
    merges = out._indices is not None and t._indices is not None
    if merges:
        kept, t = kept_and_taken(out, t, mask, accum, replace, allowed)
    if kept is None or (mask is None and accum is None):
        with np.errstate(over="ignore"):  # beyond the range of float32 values become infinite
            values = t._values.astype(out.dtype, copy=False)
        out._become(Vector._of(t.size, values, indices=t._indices, bits=t._bits, nvals=t.nvals))
        return
    text = vectors.accum_preamble(out.dtype, accum)
    if merges:
        out._become(vectors.merged(kept, t, text, True, out.dtype))
        return
    kernels = jit.module("write", text + preamble.constants(ACCUM=accum is not None))
    # by position: a sparse out in new arrays, others in place. The kernel is never interrupted, so
    # that `out` is always consistent
    if out._indices is None:
        _forget_count(out, True)
    w, t = out.to_bitmap(), t.to_bitmap()
    if w._bits is None:
        w = Vector._of(w.size, w._values, bits=all_bits(np, w.size))
    threads = pool.threads_for(out.size)
    given = (w._bits, w._values, bits_of(t), t._values, bits, invert)
    pool.launch(kernels.write, threads, *given, replace and mask is not None)
    out._become(Vector._of(out.size, w._values, bits=w._bits))
    # last: out is correct already, should this run out of memory
    out._become(out._conform())


def kept_and_taken(
    out: C,
    t: C,
    mask: Mask | None,
    accum: Function | None,
    replace: bool,
    allowed: Callable[[C, Mask], C],
) -> tuple[C | None, C]:
    """(the entries of `out` that a write keeps, None if it keeps none; those of t that it takes):
    their union is the result. `allowed` gives the entries that a mask allows.
    """
    kept = None if accum is None else out
    if mask is not None:
        t = allowed(t, mask)
        if accum is None:
            kept = None if replace else allowed(out, ~mask)
        elif replace:
            kept = allowed(out, mask)
    return kept, t


def _write_few(out: Vector, t: Vector, mask: Mask | None, accum: Function | None) -> None:
    """Write a sparse t into a bitmap or full `out`, in O(entries of t and of a mask that is a
    list).
    """
    assert t._indices is not None
    by_list = is_list(mask)
    allowed = true_indices(mask) if mask is not None and by_list else t._indices[:0]
    # without an accumulator, entries that the mask allows and t does not have are deleted
    cleared = allowed[: allowed.size if accum is None else 0]
    bits, invert = NO_MASK if by_list else mask_words(mask)
    text = vectors.accum_preamble(out.dtype, accum) + preamble.constants(ACCUM=accum is not None)
    nvals, change = out.nvals, np.zeros(1, np.int64)
    _forget_count(out, cleared.size > 0)
    present = bits_of(out)
    given = (cleared, t._indices, t._values, by_list, allowed, bits, invert, present, out._values)
    pool.launch(jit.module("write", text).write_few, 1, *given, change)
    nvals += int(change[0])
    bits_left = None if nvals == out.size else present
    out._become(Vector._of(out.size, out._values, bits=bits_left, nvals=nvals))


def _forget_count(out: Vector, bits: bool) -> None:
    """Mark the number of entries as unknown; a full `out` gets a bitmap if `bits`."""
    if out._bits is not None:
        out._nvals = None
    elif bits:
        out._become(Vector._of(out.size, out._values, bits=all_bits(np, out.size)))
