"""Products over a semiring. A pull replicates the operand and computes the rows that each shard
owns; a push multiplies the entries that each shard owns and reduces the products to the owners.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from types import ModuleType
from typing import cast

import numpy as np

from spgraph.containers import Mask, Matrix, Vector
from spgraph.containers.storage.arrays import Array, device_of, move, on_device
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange.collectives import reduce_to_owners, replicate, tag_graph
from spgraph.distributed.exchange.coordinates import lift, materialize, on_shards, shard_mask
from spgraph.distributed.exchange.notes import note
from spgraph.errors import DimensionMismatch
from spgraph.operations.arrays import product_of_columns
from spgraph.semirings import TypedSemiring
from spgraph.steps import under


def pull(
    A: DistributedMatrix,
    u: DistributedVector,
    semiring: TypedSemiring,
    mask: Mask | None,
    flip: bool,
) -> DistributedVector:
    """A u: every shard multiplies its rows of A with the whole of u, which is all-gathered."""
    tag_graph(A, u, semiring)
    note(A.device, "mxv", mask, flip)

    def own(on: ModuleType, allowed: Mask | None, rows: Matrix, whole: Vector) -> Vector:
        return on.pull(rows, whole.to_bitmap(), semiring, allowed, flip)

    found = on_shards(semiring.multiply.positional, own, (A,), replicate(u), mask=mask)
    return DistributedVector(A.nrows, found, A.device)


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
    tag_graph(A, u, semiring)
    note(placement, "vxm", mask, flip)
    materialize(A, mask)

    def all_rows(k: int, shard: Vector) -> Vector:
        on = placement.backend(k)
        if not semiring.multiply.positional:
            return on.push(A.shards[k], shard, semiring, None, flip)
        return on.push(A.lifted(k), lift(shard, placement, k, u.size), semiring, None, flip)

    found = reduce_to_owners(placement.map(all_rows, u.shards), semiring.add, placement)
    if mask is not None:  # which a sender does not have for the columns of other shards
        found = placement.map(lambda k, t: under(t, cast(Mask, shard_mask(mask, k))), found)
    return DistributedVector(A.ncols, found, placement)


def prepare(A: DistributedMatrix) -> None:
    """Make now, in every shard, what speeds up products with dense vectors."""
    A.device.map(lambda k, shard: shard.prepare(), A.shards)


# --- matrix times matrix: every shard multiplies its rows with the whole of B ---------------------


def multiply_rows(
    A: DistributedMatrix, B: DistributedMatrix, semiring: TypedSemiring, mask: Mask | None
) -> DistributedMatrix:
    """The product row by row."""

    def own(on: ModuleType, allowed: Mask | None, rows: Matrix, whole: Matrix) -> Matrix:
        return on.multiply_rows(rows, whole, semiring, allowed)

    return _multiplied(own, A, B, semiring, mask, B.ncols)


def multiply_dots(
    A: DistributedMatrix, BT: DistributedMatrix, semiring: TypedSemiring, mask: Mask
) -> DistributedMatrix:
    """The product as dot products of rows of A and of `BT` at the positions of the mask."""

    def own(on: ModuleType, allowed: Mask | None, rows: Matrix, whole: Matrix) -> Matrix:
        if hasattr(on, "multiply_dots"):
            return on.multiply_dots(rows, whole, semiring, allowed)
        return on.multiply_rows(rows, whole._T, semiring, allowed)

    return _multiplied(own, A, BT, semiring, mask, BT.nrows)


def multiply_dense(
    A: DistributedMatrix, X: DistributedMatrix, semiring: TypedSemiring
) -> DistributedMatrix:
    """The product with an X that has every entry."""

    def own(on: ModuleType, _: None, rows: Matrix, whole: Matrix) -> Matrix:
        if hasattr(on, "multiply_dense"):
            return on.multiply_dense(rows, whole, semiring)
        return on.multiply_rows(rows, whole, semiring, None)

    return _multiplied(own, A, X, semiring, None, X.ncols)


def _multiplied(
    own: Callable[..., Matrix],
    A: DistributedMatrix,
    B: DistributedMatrix,
    semiring: TypedSemiring,
    mask: Mask | None,
    ncols: int,
) -> DistributedMatrix:
    """The product that own(backend, mask, rows of A, B) computes of the rows of each shard."""
    tag_graph(A, None, semiring)
    note(A.device, "mxm", B, mask)
    found = on_shards(semiring.multiply.positional, own, (A,), B.replicated(), mask=mask)
    return DistributedMatrix(A.nrows, ncols, found, A.device)


def multiply_array(
    A: DistributedMatrix, X: Array, semiring: TypedSemiring, flip: bool, fill: np.generic
) -> Array:
    """The product with an array that every process has, whole in every process and on X's device.

    Of X nothing is exchanged but its shape and type, between processes, and a hash of its numbers
    if they are on the CPU; the rows that each shard computes are all-gathered, once. Raises
    DimensionMismatch, in every process, where X has another shape or type in one of them, and
    CommunicationError where it has other numbers.
    """
    placement, columns = A.device, X.shape[1]
    partition = placement.partition(A.nrows)
    tag_graph(A, None, semiring)
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
        same = X if device_of(X) == "cpu" else X.shape
        note(placement, "a product with an array", same, flip, fill)

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
