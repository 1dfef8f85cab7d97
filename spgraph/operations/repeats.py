"""Indices that are given more than once: refused, or their values folded."""

from __future__ import annotations

from spgraph.containers import Vector
from spgraph.containers.arrays import Array, array_module, unpack_bits
from spgraph.semirings import Function
from spgraph.steps import backend


def refuse_repeats(argument: str, ids: Array | None) -> None:
    if ids is not None and has_repeats(array_module(ids).sort(ids)):
        raise ValueError(
            f"assign: {argument}: an index is given more than once; "
            "give accum= to combine the values"
        )


def has_repeats(ids: Array) -> bool:
    """Whether sorted ids hold one twice."""
    return bool((ids[1:] == ids[:-1]).any())


def folded(w: Vector, ids: Array, values: Array, accum: Function) -> tuple[Array, Array]:
    """The ids, each once, with w's entry there and then the id's values folded from the left."""
    xp = array_module(ids)
    fresh = xp.ones(ids.size, bool)
    xp.not_equal(ids[1:], ids[:-1], out=fresh[1:])
    starts = xp.flatnonzero(fresh)
    unique = ids[starts]
    there = backend(w.device).extract(w, unique).to_bitmap()
    flags = xp.ones(unique.size, bool)
    if there._bits is not None:
        flags = unpack_bits(there._bits, unique.size)
    fold = backend(w.device).reduce_segments
    return unique, fold(values, starts, accum, w.dtype, (flags, there._values))
