"""Indices that are given more than once: refused, or their values folded."""

from __future__ import annotations

import numpy as np

from spgraph.containers import Vector
from spgraph.containers.storage.arrays import Array, array_module, unpack_bits
from spgraph.containers.storage.casting import storing
from spgraph.containers.storage.selection import is_first
from spgraph.semirings import BinaryOp, Function
from spgraph.steps import backend, fitted


def refuse_repeats(argument: str, ids: Array | None) -> None:
    if ids is not None and has_repeats(array_module(ids).sort(ids)):
        raise ValueError(
            f"assign: {argument}: an index is given more than once; "
            "give accum= to combine the values"
        )


def has_repeats(ids: Array) -> bool:
    """Whether sorted ids hold one twice."""
    return bool((ids[1:] == ids[:-1]).any())


def widened(
    w: Vector, values: Array, accum: BinaryOp, function: Function | None
) -> tuple[Vector, Array, Function]:
    """(w, values, function) in types that hold what comes of folding the values into w's entries by
    `accum`: what is written is checked then, not at each step.
    """
    assert function is not None
    kinds = values.dtype, function.result
    if all(storing(kind, w.dtype) == "always" for kind in kinds):
        return w, values, function
    wide = np.result_type(w.dtype, *kinds)
    if wide.kind == "f":  # no type of integers holds both int64 and uint64
        held = fitted("assign", Vector._of(values.size, values), w.dtype)
        return w, held._values, accum.resolve(w.dtype, w.dtype)
    return w.astype(wide), values, accum.resolve(wide, values.dtype)


def folded(ids: Array, w: Vector, values: Array, accum: Function) -> tuple[Array, Array]:
    """The ids, each once, with w's entry there and then the id's values folded from the left."""
    xp = array_module(ids)
    starts = xp.flatnonzero(is_first(ids))
    unique = ids[starts]
    there = backend(w.device).extract(w, unique).to_bitmap()
    flags = xp.ones(unique.size, bool)
    if there._bits is not None:
        flags = unpack_bits(there._bits, unique.size)
    fold = backend(w.device).reduce_segments
    return unique, fold(values, starts, accum, w.dtype, (flags, there._values))
