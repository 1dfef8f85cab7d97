"""Products over a semiring. A pull replicates the operand and computes the rows that each shard
owns; a push multiplies the entries that each shard owns and reduces the products to the owners.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from types import ModuleType

import numpy as np

from spgraph.containers import Mask, Matrix, Vector
from spgraph.containers.storage.arrays import Array, device_of, move, on_device
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange.collectives import (
    materialize,
    reduce_to_owners,
    replicate,
    tag_graph,
)
from spgraph.distributed.exchange.coordinates import (
    lift,
    lifted_mask,
    lower,
    lower_matrix,
    shard_mask,
)
from spgraph.errors import DimensionMismatch
from spgraph.operations.arrays import product_of_columns
from spgraph.semirings import TypedSemiring


def pull(
    A: DistributedMatrix,
    u: DistributedVector,
    semiring: TypedSemiring,
    mask: Mask | None,
    flip: bool,
) -> DistributedVector:
    """A u: every shard multiplies its rows of A with the whole of u, which is all-gathered."""
    placement = A.device
    tag_graph(A)
    materialize(A, mask)

    def own(k: int, whole: Vector) -> Vector:
        on = placement.backend(k)
        whole = whole.to_bitmap()
        if not semiring.multiply.positional:
            return on.pull(A.shards[k], whole, semiring, shard_mask(mask, k), flip)
        allowed = lifted_mask(mask, placement, k)
        return lower(on.pull(A.lifted(k), whole, semiring, allowed, flip), placement, k)

    return DistributedVector(A.nrows, placement.map(own, replicate(u)), placement)


def push(
    A: DistributedMatrix,
    u: DistributedVector,
    semiring: TypedSemiring,
    mask: Mask | None,
    flip: bool,
) -> DistributedVector:
    """u A: every shard multiplies its entries of u with its rows of A; the results are reduced to
    the owners of the columns, which apply the mask.
    """
    placement = A.device
    tag_graph(A)
    materialize(A, mask)

    def all_rows(k: int, shard: Vector) -> Vector:
        on = placement.backend(k)
        if not semiring.multiply.positional:
            return on.push(A.shards[k], shard, semiring, None, flip)
        return on.push(A.lifted(k), lift(shard, placement, k, u.size), semiring, None, flip)

    found = reduce_to_owners(placement.map(all_rows, u.shards), semiring.add, placement)
    if mask is not None:
        # a sender has no mask for the columns of other shards
        found = placement.map(
            lambda k, t: _under(placement.backend(k), t, shard_mask(mask, k)), found
        )
    return DistributedVector(A.ncols, found, placement)


def _under(on: ModuleType, t: Vector, mask: Mask | None) -> Vector:
    """The entries of t that the mask allows."""
    allowed = Vector.empty(t.size, t.dtype, device=t.device)
    on.write(allowed, t, mask, None, True)
    return allowed


def prepare(A: DistributedMatrix) -> None:
    """Make now, in every shard, what speeds up products with dense vectors."""
    A.device.map(lambda k, shard: shard.prepare(), A.shards)


# --- matrix times matrix: every shard multiplies its rows with the whole of B ---------------------


def multiply_rows(
    A: DistributedMatrix, B: DistributedMatrix, semiring: TypedSemiring, mask: Mask | None
) -> DistributedMatrix:
    """The product row by row."""
    return _multiplied("multiply_rows", A, B, semiring, mask, B.ncols)


def multiply_dots(
    A: DistributedMatrix, BT: DistributedMatrix, semiring: TypedSemiring, mask: Mask
) -> DistributedMatrix:
    """The product as dot products of rows of A and of `BT` at the positions of the mask."""
    return _multiplied("multiply_dots", A, BT, semiring, mask, BT.nrows)


def multiply_dense(
    A: DistributedMatrix, X: DistributedMatrix, semiring: TypedSemiring
) -> DistributedMatrix:
    """The product with an X that has every entry."""
    placement = A.device
    tag_graph(A)
    materialize(A)

    def own(k: int, whole: Matrix) -> Matrix:
        multiply = _form(placement.backend(k), "multiply_dense")
        if not semiring.multiply.positional:
            return multiply(A.shards[k], whole, semiring)
        return lower_matrix(multiply(A.lifted(k), whole, semiring), placement, k)

    shards = placement.map(own, X.replicated())
    return DistributedMatrix(A.nrows, X.ncols, shards, placement)


def multiply_array(
    A: DistributedMatrix, X: Array, semiring: TypedSemiring, flip: bool, fill: np.generic
) -> Array:
    """The product with an array that every process has, whole in every process and on X's device.

    Of X nothing is exchanged but its shape and type, between processes; the rows that each shard
    computes are all-gathered, once. Raises DimensionMismatch, in every process, where X has another
    shape or type in one of them.
    """
    placement, columns = A.device, X.shape[1]
    partition = placement.partition(A.nrows)
    tag_graph(A)
    materialize(A)
    if placement.communicator.processes > 1:  # the all-gather trusts the sizes that it is given
        form = zlib.crc32(f"{X.shape} {X.dtype}".encode())
        extremes = np.array([form, -form], np.int64)
        most, least = placement.communicator.all_reduce_host(extremes, "max").tolist()
        if most != -least:
            raise DimensionMismatch(
                "product with an array: expected the same array in every process, got one of shape "
                f"{X.shape} and type {X.dtype} here and another one elsewhere; give all the same"
            )

    def own(k: int, shard: Matrix) -> Array:
        here = move(X, placement.devices[k])
        if not semiring.multiply.positional:
            return product_of_columns(shard, here, semiring, flip, fill).ravel()
        rows = product_of_columns(A.lifted(k), here, semiring, flip, fill)
        return rows[placement.shard_ids(k, A.nrows)].ravel()

    parts = placement.map(own, A.shards)
    sizes = [rows * columns for rows in partition.sizes]
    whole = placement.communicator.all_gather(parts, sizes=sizes)[0]
    placement.communicator.synchronize()
    with on_device(placement.devices[0]):
        product = partition.in_user_order(whole.reshape(A.nrows, columns))
    return move(product, device_of(X))


def multiply_flops(A: DistributedMatrix, B: DistributedMatrix) -> int:
    """How many products the product row by row takes."""
    placement = A.device
    degrees = replicate(B.row_degrees())

    def own(k: int, shard: Matrix, rows: Vector) -> int:
        return int(rows._values[shard._indices].sum(dtype=np.int64))

    return placement.total(placement.map(own, A.shards, degrees))


def _form(on: ModuleType, name: str) -> Callable[..., Matrix]:
    """The backend's function `name` for a product of matrices; if it has none, `multiply_rows` with
    the same arguments.
    """
    others: dict[str, Callable[..., Matrix]] = {
        "multiply_rows": on.multiply_rows,
        "multiply_dense": lambda A, X, semiring: on.multiply_rows(A, X, semiring, None),
        "multiply_dots": lambda A, BT, semiring, mask: on.multiply_rows(A, BT.T, semiring, mask),
    }
    return getattr(on, name, others[name])


def _multiplied(
    form: str,
    A: DistributedMatrix,
    B: DistributedMatrix,
    semiring: TypedSemiring,
    mask: Mask | None,
    ncols: int,
) -> DistributedMatrix:
    """The product that the backends' function `form` computes, of the rows of each shard."""
    placement = A.device
    tag_graph(A)
    materialize(A, mask)

    def own(k: int, whole: Matrix) -> Matrix:
        multiply = _form(placement.backend(k), form)
        if not semiring.multiply.positional:
            return multiply(A.shards[k], whole, semiring, shard_mask(mask, k))
        allowed = lifted_mask(mask, placement, k)
        return lower_matrix(multiply(A.lifted(k), whole, semiring, allowed), placement, k)

    return DistributedMatrix(A.nrows, ncols, placement.map(own, B.replicated()), placement)
