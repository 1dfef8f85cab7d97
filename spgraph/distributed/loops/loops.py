"""The loops in rounds: every shard goes as far as it can alone, then the shards exchange."""

from __future__ import annotations

import time
from typing import Any, cast

import numpy as np

from spgraph import direction as directions
from spgraph.containers import Matrix, Vector
from spgraph.containers.arrays import array_module, index_dtype
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange import peers
from spgraph.distributed.exchange.exchange import about, combine, lower_matrix, made, replicate
from spgraph.distributed.loops import closure_rounds, rounds
from spgraph.distributed.loops.closure_rounds import beyond
from spgraph.distributed.loops.home import home_of
from spgraph.distributed.operations.elements import ewise, reduce, select, write
from spgraph.distributed.operations.products import pull, push
from spgraph.errors import ConvergenceError
from spgraph.semirings import TypedSemiring, any_pair, binary, indexunary, monoid

# --- search ---------------------------------------------------------------------------------------


def search(
    A: Any,
    T: Any,
    start: Any,
    semiring: TypedSemiring | None,
    first: bool,
    direction: str,
    max_depth: int,
    trace: bool,
) -> tuple[Vector, Vector | None, Any]:
    """The masked level iteration: on one GPU where that is faster, else on several in the peer form
    where it can run, or in rounds of kernels of its own; else a level is a product under the mask
    of what is open.
    """
    about(A)
    if home := home_of(A):
        whole = home.whole
        transposed = None if T is None else whole.T
        rest = (semiring, first, direction, max_depth, trace)
        found = A.device.plain(0).search(whole, transposed, home.take(start), *rest)
        give = home.give
        return give(found[0]), None if found[1] is None else give(found[1]), found[2]
    if peers.finds(semiring) and A.device.devices[0] != "cpu":
        form = rounds if A.device.peers is None else peers
        return form.search(A, T, start, semiring, direction, max_depth, trace)
    typed = any_pair.resolve(start.dtype, A.dtype) if semiring is None else semiring
    placement, n = A.device, A.nrows
    level = placement.empty(n, index_dtype(n))
    value = None if semiring is None else placement.empty(n, typed.dtype)
    degrees = A.row_degrees() if trace else None
    q, depth, rows = start, 0, []
    while q.nvals:
        began = time.perf_counter()
        write(level, _constant(q, depth, level.dtype), q.S, None, False)
        if value is not None:
            write(value, q, q.S, None, False)
        if depth == max_depth:
            break
        way = direction
        if way == "auto":
            open_ = n - level.nvals
            way = directions.choose(q.nvals, n, A.nvals, n, open_, first)
        way = "push" if T is None else way
        frontier, edges = q.nvals, 0 if degrees is None else _edges(q, degrees)
        seen = ~level.S
        q = push(A, q, typed, seen, False) if way == "push" else pull(T, q, typed, seen, True)
        if q.nvals:
            spent = int(1e9 * (time.perf_counter() - began))
            rows.append((1 if way == "push" else 2, frontier, edges, spent))
        depth += 1
    return level, value, np.array(rows, np.int64).reshape(-1, 4) if trace else None


def _constant(q: Any, value: Any, dtype: np.dtype) -> DistributedVector:
    return q._with_values(lambda x: array_module(x).full(x.size, value, dtype))


def _edges(q: Any, degrees: Any) -> int:
    """The out-edges of the entries of q."""

    def own(k: int, shard: Vector, counts: Vector) -> int:
        return int(counts._values[shard.to_sparse()._indices].sum(dtype=np.int64))

    return q.device.total(q.device.map(own, q.shards, degrees.shards))


# --- closure --------------------------------------------------------------------------------------


def closure(A: Any, start: Any, semiring: TypedSemiring, delta: Any) -> DistributedVector:
    """The least fixed point: on one GPU where that is faster, else on several in the peer form
    where it can run, or in rounds of kernels of its own; else what got better and lies below the
    limit is pushed, and the limit rises by `delta` when nothing does.
    """
    about(A)
    if home := home_of(A):
        try:
            return home.give(
                A.device.plain(0).closure(home.whole, home.take(start), semiring, delta)
            )
        except ConvergenceError as error:
            error.result = home.give(cast(Vector, error.result))
            raise
    if A.device.devices[0] != "cpu" and not semiring.multiply.positional:
        form = closure_rounds if A.device.peers is None else peers
        return form.closure(A, start, semiring, delta)
    add = semiring.add
    x = start.dup(semiring.dtype)
    waiting = x.dup()
    sign = 0 if delta is None or x.dtype == np.bool_ else {"min": 1, "max": -1}[add.name]
    limit: Any = None
    steps = 0
    while waiting.nvals:
        near, far = waiting, None
        if sign:
            near, far = _split(waiting, limit, sign)
            if near.nvals == 0:
                ends = monoid.min if sign > 0 else monoid.max
                best = reduce(waiting, ends.resolve(x.dtype))
                limit = beyond(best, delta, sign, x.dtype)
                steps = 0
                if limit == best:  # the last number of the type: nothing is left to order
                    sign = 0
                continue
        if steps > A.nrows:
            raise ConvergenceError(
                f"closure: values still improve after {A.nrows} rounds, as many as there are "
                f"vertices: {semiring.name} has a cycle here that makes its own values better",
                x,
            )
        found = push(A, near, semiring, None, False)
        x, better = _improved(x, found, add)
        waiting = (
            better
            if far is None
            else ewise(far, better, binary.second.resolve(x.dtype, x.dtype), True)
        )
        steps += 1
    return x


def _split(v: Any, limit: Any, sign: int) -> tuple[Any, Any]:
    """(the entries before the limit, those that are not)."""
    if limit is None:
        return v.device.empty(v.size, v.dtype), v
    ops = (indexunary.valuelt, indexunary.valuege)
    if sign < 0:
        ops = (indexunary.valuegt, indexunary.valuele)
    near, far = (select(v, op.resolve(v.dtype, limit.dtype), limit) for op in ops)
    return near, far


def _improved(x: Any, found: Any, add: Any) -> tuple[DistributedVector, DistributedVector]:
    """(x + found, its entries that differ from x's)."""
    placement = x.device

    def own(k: int, old: Vector, new: Vector) -> tuple[Vector, Vector]:
        on = placement.plain(k)
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
        return both, Vector(old.size, now._values[kept], indices=at[kept])

    pairs = placement.map(own, x.shards, found.shards)
    return (
        DistributedVector(x.size, [both for both, _ in pairs], placement),
        DistributedVector(x.size, [better for _, better in pairs], placement),
    )


def dag_edges(A: Any, x: Any, semiring: TypedSemiring) -> DistributedMatrix:
    """Every shard looks at its rows, beside the whole of x; or all are looked at where the closure
    was.
    """
    if home := home_of(A):
        return home.give_matrix(A.device.plain(0).dag_edges(home.whole, home.take(x), semiring))
    placement = A.device
    about(A)
    made(A)

    def own(k: int, whole: Vector) -> Matrix:
        return lower_matrix(
            placement.plain(k).dag_edges(A.lifted(k), whole, semiring), placement, k
        )

    return DistributedMatrix(A.nrows, A.ncols, placement.map(own, replicate(x)), placement)


def parents(A: Any, T: Any, x: Any, semiring: TypedSemiring) -> DistributedVector:
    """The least that each shard finds among its rows, and the least of these; at home where the
    closure was.
    """
    if home := home_of(A):
        whole = home.whole
        transposed = None if T is None else whole.T
        return home.give(A.device.plain(0).parents(whole, transposed, home.take(x), semiring))
    placement = A.device
    about(A)
    made(A)

    def own(k: int, whole: Vector) -> Vector:
        return placement.plain(k).parents(A.lifted(k), None, whole, semiring)

    least = monoid.min.resolve(A.index_dtype)
    found = combine(placement.map(own, replicate(x)), least, placement)
    return DistributedVector(A.nrows, found, placement)
