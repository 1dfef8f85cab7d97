"""Operations that move entries: transpose, extract, assign, diag, Kronecker products."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from spgraph import checks, operations
from spgraph.containers import Mask, Matrix, Vector
from spgraph.containers.arrays import Array, array_module, index_dtype, move
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.placement import Placement
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange.collectives import materialize, replicate, send_to_owners
from spgraph.distributed.exchange.coordinates import (
    lift,
    lift_matrix,
    lifted_mask,
    lower,
    lower_matrix,
    shard_mask,
)
from spgraph.semirings import Function

# --- entries on their way to the shards that own them ---------------------------------------------


def delivered(
    entries: list[tuple[Array, Array, Array]],
    shape: tuple[int, int],
    placement: Placement,
    *,
    iso: bool = False,
) -> DistributedMatrix:
    """The Matrix of (rows, columns, values) that every local shard gives, each position once; of an
    iso Matrix every shard gives the one value.
    """
    nrows, ncols = shape
    sent = [(rows, columns) if iso else (rows, columns, x) for rows, columns, x in entries]
    received = send_to_owners(sent, placement, nrows)

    def build(k: int, came: list[tuple[Array, ...]]) -> Matrix:
        n = placement.partition(nrows).sizes[placement.local[k]]
        xp = array_module(came[0][0])
        rows, columns, *values = (xp.concatenate(each) for each in zip(*came, strict=True))
        # by rows, and within them by columns: one key for both could be beyond 64 bits
        order = xp.argsort(columns, kind="stable")
        order = order[xp.argsort(rows[order], kind="stable")]
        indptr = xp.zeros(n + 1, index_dtype(int(rows.size)))
        xp.cumsum(xp.bincount(rows, minlength=n), out=indptr[1:])
        columns = columns[order].astype(index_dtype(max(shape)), copy=False)
        kept = entries[k][2].copy() if iso else values[0][order]
        return Matrix(n, ncols, indptr, columns, kept, iso=iso)

    return DistributedMatrix(nrows, ncols, placement.map(build, received), placement)


def delivered_vector(
    entries: list[tuple[Array, Array]], size: int, placement: Placement
) -> DistributedVector:
    """The Vector of (ids, values) that every local shard gives, each id once."""

    def build(k: int, came: list[tuple[Array, ...]]) -> Vector:
        n = placement.partition(size).sizes[placement.local[k]]
        xp = array_module(came[0][0])
        ids, values = (xp.concatenate(each) for each in zip(*came, strict=True))
        order = xp.argsort(ids)
        return Vector(n, values[order], indices=ids[order].astype(index_dtype(n)))._conform()

    return DistributedVector(
        size, placement.map(build, send_to_owners(entries, placement, size)), placement
    )


def coordinates(A: Any, k: int) -> tuple[Array, Array, Array]:
    """(rows, columns, values) of local shard k by the user's ids; an iso Matrix has one value."""
    shard = A.shards[k]
    rows = A.device.shard_ids(k, A.nrows)[shard.row_indices()]
    return rows, shard._indices, shard._values


# --- shape ----------------------------------------------------------------------------------------


def transpose(A: Any) -> DistributedMatrix:
    """The transpose of A: every entry goes to the shard that owns its column."""
    materialize(A)

    def own(k: int) -> tuple[Array, Array, Array]:
        rows, columns, values = coordinates(A, k)
        return columns, rows.astype(columns.dtype, copy=False), values

    return delivered(A.device.map(own), (A.ncols, A.nrows), A.device, iso=A.iso)


def kronecker(A: Any, B: Any, op: Function) -> DistributedMatrix:
    """Every shard multiplies its rows of A with the whole of B."""
    placement, shape = A.device, (A.nrows * B.nrows, A.ncols * B.ncols)
    materialize(A)

    def own(k: int, whole: Matrix) -> tuple[Array, Array, Array]:
        T = placement.backend(k).kronecker(A.shards[k], whole, op)
        rows = T.row_indices().astype(np.int64)
        first = placement.shard_ids(k, A.nrows).astype(np.int64)[rows // max(B.nrows, 1)]
        return first * B.nrows + rows % max(B.nrows, 1), T._indices, T._expanded_values()

    return delivered(placement.map(own, B.replicated()), shape, placement)


def diag(u: Any, k: int) -> DistributedMatrix | DistributedVector:
    """As `operations.diag`: the entries of a Vector on the k-th diagonal, or the other way."""
    placement = u.device
    if isinstance(u, DistributedVector):
        n = u.size + abs(k)

        def on_diagonal(shard: int, v: Vector) -> tuple[Array, Array, Array]:
            v = lift(v, placement, shard, u.size)
            assert v._indices is not None
            rows = v._indices.astype(np.int64) + max(-k, 0)
            return rows, rows + k, v._values

        return delivered(placement.map(on_diagonal, u.shards), (n, n), placement)
    size = max(0, min(u.nrows - max(-k, 0), u.ncols - max(k, 0)))
    materialize(u)

    def diagonal(shard: int) -> tuple[Array, Array]:
        rows, columns, values = coordinates(u, shard)
        at = columns.astype(np.int64) - rows == k
        return rows[at] - max(-k, 0), values[:1].repeat(int(at.sum())) if u.iso else values[at]

    return delivered_vector(placement.map(diagonal), size, placement)


# --- extract --------------------------------------------------------------------------------------


def extract(u: Any, indices: Any) -> DistributedVector:
    """t[k] = u[indices[k]] for an array of ids, which every process has, or a distributed Vector of
    them: every shard takes its own positions out of the whole of u.
    """
    placement, size = u.device, indices.size

    def own(k: int, whole: Vector) -> Vector:
        if isinstance(indices, Vector):
            ids = cast(Any, indices).shards[k].to_bitmap()._values
        else:
            ids = move(indices[move(placement.shard_ids(k, size), "cpu")], placement.devices[k])
        return placement.backend(k).extract(whole, ids)

    return DistributedVector(size, placement.map(own, replicate(u)), placement)


def extract_matrix(A: Any, rows: Any, columns: Any) -> DistributedMatrix:
    """T[k, l] = A[rows[k], columns[l]] for arrays of ids that every process has; None for all."""
    placement = A.device
    shape = (
        A.nrows if rows is None else int(rows.size),
        A.ncols if columns is None else int(columns.size),
    )

    def part(k: int, shard: Matrix) -> Matrix:
        to = None if columns is None else move(columns, placement.devices[k])
        local = None if rows is None else move(_inside(A, k, rows[given[k]]), placement.devices[k])
        return placement.backend(k).extract_matrix(shard, local, to)

    if rows is None:
        return DistributedMatrix(*shape, placement.map(part, A.shards), placement)
    owners = A.partition.owner(rows)
    given = [np.flatnonzero(owners == p) for p in placement.local]

    def entries(k: int, shard: Matrix) -> tuple[Array, Array, Array]:
        T = part(k, shard)
        at = move(given[k], placement.devices[k])[T.row_indices()]
        return at, T._indices, T._values

    return delivered(placement.map(entries, A.shards), shape, placement, iso=A.iso)


def _inside(A: Any, k: int, rows: np.ndarray) -> np.ndarray:
    """Where shard k keeps rows of its own."""
    partition, p = A.device.partition(A.nrows), A.device.local[k]
    return partition.to_internal(rows) - int(partition.offsets[p])


def extract_row(A: Any, i: int) -> DistributedVector:
    """Row i of A."""
    placement, owner = A.device, int(A.partition.owner(np.array([i]))[0])

    def own(k: int, shard: Matrix) -> tuple[Array, Array]:
        if placement.local[k] != owner:
            return shard._indices[:0], shard._values[:0]
        local = int(_inside(A, k, np.array([i]))[0])
        first, last = (int(offset) for offset in shard._indptr[local : local + 2])
        values = shard._values[:1].repeat(last - first) if A.iso else shard._values[first:last]
        return shard._indices[first:last], values

    return delivered_vector(placement.map(own, A.shards), A.ncols, placement)


def extract_column(A: Any, j: int) -> DistributedVector:
    """Column j of A."""
    shards = A.device.map(lambda k, shard: operations.extract(shard, None, j), A.shards)
    return DistributedVector(A.nrows, shards, A.device)


# --- assign ---------------------------------------------------------------------------------------


def assign(
    w: Any, value: Any, indices: Any, mask: Mask | None, accum: Any, replace: bool
) -> DistributedVector:
    """As `operations.assign` of a Vector. With indices, every shard writes them all to its own
    entries, and keeps what it owns.
    """
    placement = w.device

    def everywhere(k: int, shard: Vector) -> Vector:
        given = cast(Any, value).shards[k] if isinstance(value, Vector) else value
        return operations.assign(
            shard.dup(), given, mask=shard_mask(mask, k), accum=accum, replace=replace
        )

    if indices is None:
        return _changed(w, _alike(w, value, accum, everywhere, w.shards))
    if mask is None and not isinstance(value, Vector) and not isinstance(indices, Vector):
        return _assign_here(w, value, indices, accum)
    values = replicate(value) if isinstance(value, Vector) else [value] * len(w.shards)
    ids = replicate(indices) if isinstance(indices, Vector) else [indices] * len(w.shards)

    def at(k: int, shard: Vector, given: Any, where: Any) -> Vector:
        raised = lift(shard.dup(), placement, k, w.size)
        allowed = lifted_mask(mask, placement, k)
        operations.assign(raised, given, where, mask=allowed, accum=accum, replace=replace)
        return lower(raised, placement, k)

    return _changed(w, _alike(w, value, accum, at, w.shards, values, ids))


def _assign_here(w: Any, value: Any, indices: Any, accum: Any) -> DistributedVector:
    """A scalar at some positions: every shard writes those that it owns."""
    partition = w.partition
    inside = partition.to_internal(indices)

    def here(k: int, shard: Vector) -> Vector:
        own = partition.slice(w.device.local[k])
        at = inside[(inside >= own.start) & (inside < own.stop)] - own.start
        return operations.assign(shard.dup(), value, at, accum=accum) if at.size else shard

    return _changed(w, _alike(w, value, accum, here, w.shards))


def _alike(w: Any, value: Any, accum: Any, function: Any, *lists: Any) -> list[Any]:
    """As `map` of w's Placement; where the values' type and w's make an assignment look whether
    they fit, all processes raise what one shard does.
    """
    placement, dtype = w.device, getattr(value, "dtype", None)
    if dtype is None and not checks.is_container(value) and np.ndim(value) == 0:
        dtype = w.dtype
    result = dtype
    if dtype is not None and accum is not None:
        result = checks.binary("assign", "accum", accum).resolve(w.dtype, dtype).result
    if dtype == result == w.dtype:
        return placement.map(function, *lists)

    def own(k: int, *given: Any) -> Any:
        try:
            return function(k, *given)
        except OverflowError as error:
            return error

    found = placement.map(own, *lists)
    raised = [each for each in found if isinstance(each, OverflowError)]
    if placement.total([len(raised)]):
        elsewhere = f"assign: another process has values that do not fit in {w.dtype}"
        raise raised[0] if raised else OverflowError(elsewhere)
    return found


def assign_matrix(
    w: Any, value: Any, indices: Any, columns: Any, mask: Mask | None, accum: Any, replace: bool
) -> DistributedMatrix:
    """As `operations.assign` of a Matrix: every shard writes everything to its own rows, and keeps
    what it owns.
    """
    placement = w.device
    materialize(mask)
    values = [value] * len(w.shards)
    if isinstance(value, Vector):
        values = replicate(value)
    elif isinstance(value, Matrix):
        values = cast(Any, value).replicated()

    def own(k: int, shard: Matrix, given: Any) -> Matrix:
        raised = lift_matrix(shard, placement, k, w.nrows).dup()
        allowed = lifted_mask(mask, placement, k)
        operations.assign(
            raised, given, indices, columns, mask=allowed, accum=accum, replace=replace
        )
        return _own_rows(raised, placement, k)

    shards = _alike(w, value, accum, own, w.shards, values)
    w._become(DistributedMatrix(w.nrows, w.ncols, shards, placement))
    return w


def _own_rows(T: Matrix, placement: Placement, k: int) -> Matrix:
    """What shard k owns of a Matrix that has entries in other rows, too."""
    if T.nvals == 0:
        return lower_matrix(T, placement, k)
    return placement.backend(k).extract_matrix(T, placement.shard_ids(k, T.nrows), None)


def _changed(w: Any, shards: list[Vector]) -> DistributedVector:
    w._become(DistributedVector(w.size, shards, w.device))
    return w
