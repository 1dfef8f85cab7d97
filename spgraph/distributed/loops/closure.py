"""Closures over shards: on one GPU, on several, or made of operations; and their parents."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import array_module
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange.collectives import (
    materialize,
    reduce_to_owners,
    replicate,
    tag_graph,
)
from spgraph.distributed.exchange.coordinates import lower_matrix
from spgraph.distributed.loops import closure_rounds, peers
from spgraph.distributed.loops.single_device import single_device_of
from spgraph.distributed.operations.elements import ewise, reduce, select
from spgraph.distributed.operations.products import push
from spgraph.errors import ConvergenceError, unsettled
from spgraph.iterations.fixed_point import composed_dag_edges, composed_parents
from spgraph.semirings import TypedMonoid, TypedSemiring, binary, indexunary, monoid

Scalar = Any  # a NumPy scalar of the semiring's type: NumPy's types of numbers share no order


def closure(
    A: DistributedMatrix,
    start: DistributedVector,
    semiring: TypedSemiring,
    delta: float | int | None,
) -> DistributedVector:
    """As `closure` of a backend: the least fixed point of x = start + x A over the semiring.

    It runs on one GPU alone where that is faster, else on several: in one launch where they write
    into each other's memory, or in rounds with an exchange after each. Where the backend
    has no kernels for that (on CPUs) it is made of products: improved values before the limit of
    the bucket are pushed; when there are none, the limit moves by `delta`.
    """
    tag_graph(A)
    if one := single_device_of(A):
        try:
            return one.scatter(
                A.device.backend(0).closure(one.whole, one.gather(start), semiring, delta)
            )
        except ConvergenceError as error:
            error.result = one.scatter(cast(Vector, error.result))
            raise
    rounds = A.device.peers is None
    able = A.device.has("ClosureShard" if rounds else "closure_peers")
    if able and not semiring.multiply.positional:
        return (closure_rounds if rounds else peers).closure(A, start, semiring, delta)
    add = semiring.add
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
                best = reduce(waiting, ends.resolve(x.dtype))
                limit = next_limit(best, delta, sign, x.dtype)
                steps = 0
                if limit == best:  # the last number of the type: nothing is left to order
                    sign = 0
                continue
        if steps > A.nrows:
            raise unsettled(semiring.name, A.nrows, x)
        found = push(A, near, semiring, None, False)
        x, better = _improved(x, found, add)
        waiting = (
            better
            if far is None
            else ewise(far, better, binary.second.resolve(x.dtype, x.dtype), True)
        )
        steps += 1
    return x


def next_limit(best: Scalar, delta: float | int, sign: int, dtype: np.dtype) -> Scalar:
    """The end of a bucket that begins at `best`: `delta` beyond it, or the next number of the type
    where `delta` is less than that.
    """
    if dtype.kind == "f":
        limit = dtype.type(best + sign * dtype.type(min(delta, float(np.finfo(dtype).max))))
        return np.nextafter(best, dtype.type(sign * np.inf)) if limit == best else limit
    ends = np.iinfo(dtype)
    return dtype.type(min(max(int(best) + sign * max(int(delta), 1), ends.min), ends.max))


def _split(
    v: DistributedVector, limit: Scalar | None, sign: int
) -> tuple[DistributedVector, DistributedVector]:
    """(the entries of v that are better than the limit, the others)."""
    if limit is None:
        return v.device.empty(v.size, v.dtype), v
    ops = (indexunary.valuelt, indexunary.valuege)
    if sign < 0:
        ops = (indexunary.valuegt, indexunary.valuele)
    near, far = (select(v, op.resolve(v.dtype, limit.dtype), limit) for op in ops)
    return near, far


def _improved(
    x: DistributedVector, found: DistributedVector, add: TypedMonoid
) -> tuple[DistributedVector, DistributedVector]:
    """(x + found, its entries that differ from x's)."""
    placement = x.device

    def own(k: int, old: Vector, new: Vector) -> tuple[Vector, Vector]:
        on = placement.backend(k)
        both = on.ewise(old, new, add.function, True)
        # at the entries of what was found alone, so that few of them cost little
        at = new.to_sparse()._indices
        assert at is not None
        was, now = on.extract(old, at), on.extract(both, at)
        xp = array_module(now._values)
        now = now.to_bitmap()
        kept = now._values != was.to_bitmap()._values
        if was.nvals < was.size:
            there = xp.zeros(was.size, bool)
            there[was.to_sparse()._indices] = True
            kept |= ~there
        return both, Vector._of(old.size, now._values[kept], indices=at[kept])

    pairs = placement.map(own, x.shards, found.shards)
    return (
        DistributedVector(x.size, [both for both, _ in pairs], placement),
        DistributedVector(x.size, [better for _, better in pairs], placement),
    )


def dag_edges(
    A: DistributedMatrix, x: DistributedVector, semiring: TypedSemiring
) -> DistributedMatrix:
    """As `dag_edges` of a backend: each shard selects from its rows, with the whole of x gathered;
    or the single device does, if the closure ran there.
    """
    if one := single_device_of(A):
        return one.scatter_matrix(A.device.backend(0).dag_edges(one.whole, one.gather(x), semiring))
    placement = A.device
    tag_graph(A)
    materialize(A)

    def own(k: int, whole: Vector) -> Matrix:
        find = getattr(placement.backend(k), "dag_edges", composed_dag_edges)
        return lower_matrix(find(A.lifted(k), whole, semiring), placement, k)

    return DistributedMatrix(A.nrows, A.ncols, placement.map(own, replicate(x)), placement)


def parents(
    A: DistributedMatrix,
    T: DistributedMatrix | None,
    x: DistributedVector,
    semiring: TypedSemiring,
) -> DistributedVector:
    """As `parents` of a backend: each shard finds the least parents among its rows, and the owner
    of a vertex takes the least of all shards; or the single device does, if the closure ran there.
    """
    if one := single_device_of(A):
        whole = one.whole
        transposed = None if T is None else whole.T
        return one.scatter(A.device.backend(0).parents(whole, transposed, one.gather(x), semiring))
    placement = A.device
    tag_graph(A)
    materialize(A)

    def own(k: int, whole: Vector) -> Vector:
        find = getattr(placement.backend(k), "parents", composed_parents)
        return find(A.lifted(k), None, whole, semiring)

    least = monoid.min.resolve(A.index_dtype)
    found = reduce_to_owners(placement.map(own, replicate(x)), least, placement)
    return DistributedVector(A.nrows, found, placement)
