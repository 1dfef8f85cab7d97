"""Operations entry by entry, on Vectors and Matrices; reductions. Nothing travels but sums."""

from __future__ import annotations

from typing import Any

from spgraph.containers import Mask, Matrix, Vector
from spgraph.containers.arrays import on_device
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange.exchange import (
    block_mask,
    lift,
    lift_matrix,
    lower,
    lower_matrix,
    made,
)
from spgraph.operations.reductions import sum_of_equals
from spgraph.semirings import Function, TypedMonoid
from spgraph.steps import backend


def ewise(
    u: Any, v: Any, op: Function, union: bool, alpha: Any = None, beta: Any = None
) -> DistributedVector:
    """op of the entries of u and v, block by block; as `ewise` of a backend."""
    return _vectors(op, u.size, lambda on, *pair: on.ewise(*pair, op, union, alpha, beta), u, v)


def apply(u: Any, op: Function, kind: str, scalar: Any) -> DistributedVector:
    """op of every entry."""
    return _vectors(op, u.size, lambda on, block: on.apply(block, op, kind, scalar), u)


def select(u: Any, op: Function, thunk: Any) -> DistributedVector:
    """The entries for which op is true."""
    return _vectors(op, u.size, lambda on, block: on.select(block, op, thunk), u)


def write(out: Any, t: Any, mask: Mask | None, accum: Function | None, replace: bool) -> None:
    """Accumulate and write under the mask, each block for itself."""
    placement = out.device

    def own(k: int, into: Vector, block: Vector) -> None:
        placement.plain(k).write(into, block, block_mask(mask, k), accum, replace)

    out._nvals = None
    placement.map(own, out.blocks, t.blocks)


def ewise_matrix(
    A: Any, B: Any, op: Function, union: bool, alpha: Any = None, beta: Any = None
) -> DistributedMatrix:
    """op of the entries of A and B, block by block."""
    return _matrices(op, lambda on, *pair: on.ewise_matrix(*pair, op, union, alpha, beta), A, B)


def apply_matrix(A: Any, op: Function, kind: str, scalar: Any) -> DistributedMatrix:
    """op of every entry."""
    return _matrices(op, lambda on, block: on.apply_matrix(block, op, kind, scalar), A)


def select_matrix(A: Any, op: Function, thunk: Any) -> DistributedMatrix:
    """The entries for which op is true."""
    return _matrices(op, lambda on, block: on.select_matrix(block, op, thunk), A)


def write_matrix(
    out: Any, t: Any, mask: Mask | None, accum: Function | None, replace: bool
) -> None:
    """Accumulate and write under the mask; `out` changes when all blocks are done."""
    placement = out.device
    made(mask)

    def own(k: int, into: Matrix, block: Matrix) -> Matrix:
        made = Matrix(
            into.nrows, into.ncols, into._indptr, into._indices, into._values, iso=into.iso
        )
        placement.plain(k).write_matrix(made, block, block_mask(mask, k), accum, replace)
        return made

    out.become(_made(out, placement.map(own, out.blocks, t.blocks)))


def reduce(u: Any, monoid: TypedMonoid) -> Any:
    """The sums of the blocks of a Vector or Matrix, summed in their order."""
    placement = u.device

    def own(k: int, block: Any) -> tuple[Any, Any]:
        total = _sum(placement.plain(k), block, monoid)
        with on_device(placement.devices[k]) as xp:
            return xp.full(1, total, monoid.dtype), xp.full(1, block.nvals > 0)

    sums, say = placement.map(own, u.blocks), placement.communicator
    totals, filled = (say.fetch(say.all_gather(list(each)))[0] for each in zip(*sums, strict=True))
    if not filled.any():
        return monoid.identity
    return _sum(backend("cpu"), Vector(int(filled.sum()), totals[filled]), monoid)


def _sum(on: Any, block: Any, monoid: TypedMonoid) -> Any:
    if isinstance(block, Vector):
        return on.reduce(block, monoid)
    if block.iso and block.nvals:
        return sum_of_equals(block._values, block.nvals, monoid)
    return on.reduce(Vector(block.nvals, block._values[: block.nvals]), monoid)


def _vectors(op: Function, size: int, on_block: Any, *operands: Any) -> DistributedVector:
    """`on_block` of the blocks; an operator that looks at positions sees those of the whole."""
    placement = operands[0].device

    def own(k: int, *blocks: Vector) -> Vector:
        on = placement.plain(k)
        if not op.positional:
            return on_block(on, *blocks)
        raised = (lift(block, placement, k, size) for block in blocks)
        return lower(on_block(on, *raised), placement, k)

    blocks = placement.map(own, *(operand.blocks for operand in operands))
    return DistributedVector(size, blocks, placement)


def _matrices(op: Function, on_block: Any, *operands: Any) -> DistributedMatrix:
    placement, nrows = operands[0].device, operands[0].nrows

    def own(k: int, *blocks: Matrix) -> Matrix:
        on = placement.plain(k)
        if not op.positional:
            return on_block(on, *blocks)
        raised = (lift_matrix(block, placement, k, nrows) for block in blocks)
        return lower_matrix(on_block(on, *raised), placement, k)

    blocks = placement.map(own, *(operand.blocks for operand in operands))
    return _made(operands[0], blocks)


def _made(like: Any, blocks: list[Matrix]) -> DistributedMatrix:
    return DistributedMatrix(like.nrows, like.ncols, blocks, like.device)
