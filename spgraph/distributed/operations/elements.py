"""Operations on single entries of Vectors and Matrices, and reductions: only sums are exchanged."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from spgraph.containers import Mask, Matrix, Vector
from spgraph.containers.annotations import Scalar
from spgraph.containers.storage.arrays import Array, on_device
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange.collectives import materialize
from spgraph.distributed.exchange.coordinates import (
    lift,
    lift_matrix,
    lower,
    lower_matrix,
    shard_mask,
)
from spgraph.operations.reductions import sum_of_equals
from spgraph.semirings import Function, TypedMonoid
from spgraph.steps import backend


def ewise(
    u: DistributedVector,
    v: DistributedVector,
    op: Function,
    union: bool,
    alpha: Scalar | None = None,
    beta: Scalar | None = None,
) -> DistributedVector:
    """op of the entries of u and v at each position, shard by shard; see `ewise` of a backend."""
    return _vectors(op, u.size, lambda on, *pair: on.ewise(*pair, op, union, alpha, beta), u, v)


def apply(
    u: DistributedVector, op: Function, kind: str, scalar: Scalar | None
) -> DistributedVector:
    """op of every entry."""
    return _vectors(op, u.size, lambda on, shard: on.apply(shard, op, kind, scalar), u)


def select(u: DistributedVector, op: Function, thunk: Scalar | None) -> DistributedVector:
    """The entries for which op is true."""
    return _vectors(op, u.size, lambda on, shard: on.select(shard, op, thunk), u)


def write(
    out: DistributedVector,
    t: DistributedVector,
    mask: Mask | None,
    accum: Function | None,
    replace: bool,
) -> None:
    """Accumulate t and write it to out under the mask, shard by shard."""
    placement = out.device

    def own(k: int, into: Vector, shard: Vector) -> None:
        placement.backend(k).write(into, shard, shard_mask(mask, k), accum, replace)

    out._nvals = None
    placement.map(own, out.shards, t.shards)


def ewise_matrix(
    A: DistributedMatrix,
    B: DistributedMatrix,
    op: Function,
    union: bool,
    alpha: Scalar | None = None,
    beta: Scalar | None = None,
) -> DistributedMatrix:
    """op of the entries of A and B, shard by shard."""
    return _matrices(op, lambda on, *pair: on.ewise_matrix(*pair, op, union, alpha, beta), A, B)


def apply_matrix(
    A: DistributedMatrix, op: Function, kind: str, scalar: Scalar | None
) -> DistributedMatrix:
    """op of every entry."""
    return _matrices(op, lambda on, shard: on.apply_matrix(shard, op, kind, scalar), A)


def select_matrix(A: DistributedMatrix, op: Function, thunk: Scalar | None) -> DistributedMatrix:
    """The entries for which op is true."""
    return _matrices(op, lambda on, shard: on.select_matrix(shard, op, thunk), A)


def write_matrix(
    out: DistributedMatrix,
    t: DistributedMatrix,
    mask: Mask | None,
    accum: Function | None,
    replace: bool,
) -> None:
    """Accumulate t and write it to out under the mask; `out` changes when all shards are done."""
    placement = out.device
    materialize(mask)

    def own(k: int, into: Matrix, shard: Matrix) -> Matrix:
        written = Matrix._of(
            into.nrows, into.ncols, into._indptr, into._indices, into._values, iso=into.iso
        )
        placement.backend(k).write_matrix(written, shard, shard_mask(mask, k), accum, replace)
        return written

    out._become(_made(out, placement.map(own, out.shards, t.shards)))


def reduce(u: DistributedVector | DistributedMatrix, monoid: TypedMonoid) -> Scalar:
    """The reduction of each shard, then of these results, in the order of the shards."""
    placement = u.device

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


def _vectors(
    op: Function, size: int, on_shard: Callable[..., Vector], *operands: DistributedVector
) -> DistributedVector:
    """The Vector of on_shard(backend, shard of each operand) of all shards. For an operator that
    takes positions the shards are lifted, so that they are positions of the whole.
    """
    placement = operands[0].device

    def own(k: int, *shards: Vector) -> Vector:
        on = placement.backend(k)
        if not op.positional:
            return on_shard(on, *shards)
        raised = (lift(shard, placement, k, size) for shard in shards)
        return lower(on_shard(on, *raised), placement, k)

    shards = placement.map(own, *(operand.shards for operand in operands))
    return DistributedVector(size, shards, placement)


def _matrices(
    op: Function, on_shard: Callable[..., Matrix], *operands: DistributedMatrix
) -> DistributedMatrix:
    """As `_vectors`, of Matrices."""
    placement, nrows = operands[0].device, operands[0].nrows

    def own(k: int, *shards: Matrix) -> Matrix:
        on = placement.backend(k)
        if not op.positional:
            return on_shard(on, *shards)
        raised = (lift_matrix(shard, placement, k, nrows) for shard in shards)
        return lower_matrix(on_shard(on, *raised), placement, k)

    shards = placement.map(own, *(operand.shards for operand in operands))
    return _made(operands[0], shards)


def _made(like: DistributedMatrix, shards: list[Matrix]) -> DistributedMatrix:
    return DistributedMatrix(like.nrows, like.ncols, shards, like.device)
