"""The closure made of operations: the reference for tests, and what runs where a backend has no
fused form.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import array_module
from spgraph.containers.storage.selection import compress
from spgraph.errors import unsettled
from spgraph.semirings import TypedMonoid, TypedSemiring, binary, monoid
from spgraph.steps import backend

Scalar = Any  # a NumPy scalar of the semiring's type: NumPy's types of numbers share no order


def composed_closure(
    A: Matrix, start: Vector, semiring: TypedSemiring, delta: float | int | None
) -> Vector:
    """`closure` made of operations, with the arguments of a backend's: improved values before the
    limit of the bucket are pushed; when there are none, the limit moves by `delta`.
    """
    on, add = backend(A.device), semiring.add
    x = start.dup(semiring.dtype)
    waiting = x.dup()
    sign = 0 if delta is None or x.dtype == np.bool_ else {"min": 1, "max": -1}[add.name]
    limit: Scalar | None = None
    steps = 0
    while waiting.nvals:
        near, far = waiting, None
        if sign:
            assert delta is not None
            near, far = _split(waiting, limit, sign)
            if near.nvals == 0:
                ends = monoid.min if sign > 0 else monoid.max
                best = on.reduce(waiting, ends.resolve(x.dtype))
                limit = next_limit(best, delta, sign, x.dtype)
                steps = 0
                if limit == best:  # the last number of the type: nothing is left to order
                    sign = 0
                continue
        if steps > A.nrows:
            raise unsettled(semiring.name, A.nrows, x)
        found = on.push(A, near, semiring, None, False)
        x, better = x._by_shards(lambda old, new: _improved(old, new, add), found)
        waiting = (
            better
            if far is None
            else on.ewise(far, better, binary.second.resolve(x.dtype, x.dtype), True)
        )
        steps += 1
    return x


def next_limit(best: Scalar, delta: float | int, sign: int, dtype: np.dtype) -> Scalar:
    """The end of a bucket that begins at `best`: `delta` beyond it, or the next number of the type
    where `delta` is less than that; at least the least normal number beyond it, as on a GPU smaller
    ones may compare as zero.
    """
    if dtype.kind == "f":
        limits = np.finfo(dtype)
        with np.errstate(over="ignore"):
            limit = dtype.type(best + sign * dtype.type(min(max(delta, limits.tiny), limits.max)))
        return np.nextafter(best, dtype.type(sign * np.inf)) if limit == best else limit
    ends = np.iinfo(dtype)
    return dtype.type(min(max(int(best) + sign * max(int(delta), 1), ends.min), ends.max))


def _split(v: Vector, limit: Scalar | None, sign: int) -> tuple[Vector, Vector]:
    """(the entries of v that are better than the limit, or NaN; the others)."""
    if limit is None:
        return Vector.empty(v.size, v.dtype, device=v.device), v

    def own(shard: Vector, _: Vector) -> tuple[Vector, Vector]:
        shard = shard.to_sparse()
        at, values = shard._indices, shard._values
        assert at is not None
        far = values >= limit if sign > 0 else values <= limit
        near = ~far
        return (
            Vector._of(shard.size, values[near], indices=at[near]),
            Vector._of(shard.size, values[far], indices=at[far]),
        )

    return v._by_shards(own, v)


def _improved(x: Vector, found: Vector, add: TypedMonoid) -> tuple[Vector, Vector]:
    """(x + found, its entries that differ from x's)."""
    on = backend(x.device)
    both = on.ewise(x, found, add.function, True)
    # at the entries of what was found alone, so that few of them cost little
    at = found.to_sparse()._indices
    assert at is not None
    was, now = on.extract(x, at), on.extract(both, at)
    xp = array_module(now._values)
    now = now.to_bitmap()
    old, new = was.to_bitmap()._values, now._values
    kept = (new != old) & ((new == new) | (old == old))  # NaN is no other value than NaN
    if was.nvals < was.size:
        there = xp.zeros(was.size, bool)
        there[was.to_sparse()._indices] = True
        kept |= ~there
    return both, Vector._of(x.size, compress(kept, new), indices=compress(kept, at))
