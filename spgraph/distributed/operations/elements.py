"""Operations on single entries of Vectors and Matrices, and reductions: only sums are exchanged."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from spgraph.containers import Mask, Matrix, Vector
from spgraph.containers.annotations import Scalar
from spgraph.containers.storage.arrays import Array, on_device
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange.coordinates import materialize, on_shards, shard_mask
from spgraph.distributed.exchange.notes import note
from spgraph.operations.reductions import sum_of_equals
from spgraph.semirings import Function, TypedMonoid
from spgraph.steps import backend


def _by_shards(name: str, operands: int = 1) -> Callable[..., Any]:
    """The backends' function `name`, of so many containers and an operator, shard by shard."""

    def function(*arguments: Any) -> Any:
        containers, rest = arguments[:operands], arguments[operands:]
        op: Function = rest[0]
        note(containers[0].device, name, *containers, *rest)

        def own(on: ModuleType, _: None, *shards: Vector | Matrix) -> Any:
            return getattr(on, name)(*shards, *rest)

        found, first = on_shards(op.positional, own, containers), containers[0]
        return type(first)(*first.shape, found, first.device)

    return function


ewise, ewise_matrix = _by_shards("ewise", 2), _by_shards("ewise_matrix", 2)
apply, apply_matrix = _by_shards("apply"), _by_shards("apply_matrix")
select, select_matrix = _by_shards("select"), _by_shards("select_matrix")


def write(
    out: DistributedVector,
    t: DistributedVector,
    mask: Mask | None,
    accum: Function | None,
    replace: bool,
) -> None:
    """Accumulate t and write it to out under the mask, shard by shard."""
    placement = out.device
    note(placement, "the write of a result", out, t, mask, accum, replace)

    def own(k: int, into: Vector, shard: Vector) -> None:
        placement.backend(k).write(into, shard, shard_mask(mask, k), accum, replace)

    out._nvals = None
    placement.map(own, out.shards, t.shards)


def write_matrix(
    out: DistributedMatrix,
    t: DistributedMatrix,
    mask: Mask | None,
    accum: Function | None,
    replace: bool,
) -> None:
    """Accumulate t and write it to out under the mask; `out` changes when all shards are done."""
    placement = out.device
    note(placement, "the write of a result", out, t, mask, accum, replace)
    materialize(mask)

    def own(k: int, into: Matrix, shard: Matrix) -> Matrix:
        written = Matrix._of(
            into.nrows, into.ncols, into._indptr, into._indices, into._values, iso=into.iso
        )
        placement.backend(k).write_matrix(written, shard, shard_mask(mask, k), accum, replace)
        return written

    shards = placement.map(own, out.shards, t.shards)
    out._become(DistributedMatrix(out.nrows, out.ncols, shards, placement))


def reduce(u: DistributedVector | DistributedMatrix, monoid: TypedMonoid) -> Scalar:
    """The reduction of each shard, then of these results, in the order of the shards."""
    placement = u.device
    note(placement, "reduce", u, monoid)

    def own(k: int, shard: Vector | Matrix) -> tuple[Array, Array]:
        total = _sum(placement.backend(k), shard, monoid)
        with on_device(placement.devices[k]) as xp:
            return xp.full(1, total, monoid.dtype), xp.full(1, shard.nvals > 0)

    sums, comm = placement.map(own, u.shards), placement.communicator
    totals, filled = (
        comm.fetch(comm.all_gather(list(each)))[0] for each in zip(*sums, strict=True)
    )
    if not filled.any():
        return monoid.identity
    return _sum(backend("cpu"), Vector._of(int(filled.sum()), totals[filled]), monoid)


def _sum(on: ModuleType, shard: Vector | Matrix, monoid: TypedMonoid) -> Scalar:
    if isinstance(shard, Vector):
        return on.reduce(shard, monoid)
    if shard.iso and shard.nvals:
        return sum_of_equals(shard._values, shard.nvals, monoid)
    return on.reduce(Vector._of(shard.nvals, shard._values[: shard.nvals]), monoid)
