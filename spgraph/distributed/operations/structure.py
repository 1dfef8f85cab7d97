"""Operations that move entries to other shards: transpose, block_array, kronecker, diag, extract,
assign.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from spgraph import checks, operations
from spgraph.containers import Mask, Matrix, Vector
from spgraph.containers.annotations import BinaryLike, Scalar
from spgraph.containers.storage.arrays import Array, array_module, index_dtype, move
from spgraph.distributed.containers.matrix import DistributedMatrix
from spgraph.distributed.containers.placement import Placement
from spgraph.distributed.containers.vector import DistributedVector
from spgraph.distributed.exchange.collectives import replicate, send_to_owners
from spgraph.distributed.exchange.coordinates import (
    lift,
    lifted_mask,
    lower,
    materialize,
    shard_mask,
)
from spgraph.distributed.exchange.notes import note
from spgraph.semirings import Function

C = TypeVar("C", DistributedVector, DistributedMatrix)

# --- entries sent to the shards that own them -----------------------------------------------------


def redistributed(
    entries: list[tuple[Array, Array, Array]],
    shape: tuple[int, int],
    placement: Placement,
    *,
    iso: bool = False,
) -> DistributedMatrix:
    """The Matrix of the entries (rows, columns, values) of all shards, each position once, sent to
    the owners of the rows. `entries` are those of the local shards; of an iso Matrix all have the
    same one value.
    """
    nrows, ncols = shape
    sent = [(rows, columns) if iso else (rows, columns, x) for rows, columns, x in entries]
    received = send_to_owners(sent, placement, nrows)

    def build(k: int, pieces: list[tuple[Array, ...]]) -> Matrix:
        n = placement.partition(nrows).sizes[placement.local[k]]
        xp = array_module(pieces[0][0])
        rows, columns, *values = (xp.concatenate(each) for each in zip(*pieces, strict=True))
        # sorted by columns, then by rows: one key of both could take more than 64 bits
        order = xp.argsort(columns, kind="stable")
        order = order[xp.argsort(rows[order], kind="stable")]
        indptr = xp.zeros(n + 1, index_dtype(int(rows.size)))
        xp.cumsum(xp.bincount(rows, minlength=n), out=indptr[1:])
        columns = columns[order].astype(index_dtype(max(shape)), copy=False)
        kept = entries[k][2].copy() if iso else values[0][order]
        return Matrix._of(n, ncols, indptr, columns, kept, iso=iso)

    return DistributedMatrix(nrows, ncols, placement.map(build, received), placement)


def redistributed_vector(
    entries: list[tuple[Array, Array]], size: int, placement: Placement
) -> DistributedVector:
    """The Vector of the entries (ids, values) of all shards, each id once, sent to their owners."""

    def build(k: int, pieces: list[tuple[Array, ...]]) -> Vector:
        n = placement.partition(size).sizes[placement.local[k]]
        xp = array_module(pieces[0][0])
        ids, values = (xp.concatenate(each) for each in zip(*pieces, strict=True))
        order = xp.argsort(ids)
        return Vector._of(n, values[order], indices=ids[order].astype(index_dtype(n)))._conform()

    received = send_to_owners(entries, placement, size)
    return DistributedVector(size, placement.map(build, received), placement)


def coordinates(A: DistributedMatrix, k: int) -> tuple[Array, Array, Array]:
    """(rows, columns, values) of local shard k, user's ids; of an iso Matrix only the one value."""
    shard = A.shards[k]
    rows = A.device.shard_ids(k, A.nrows)[shard.row_indices()]
    return rows, shard._indices, shard._values


# --- shape ----------------------------------------------------------------------------------------


def transpose(A: DistributedMatrix) -> DistributedMatrix:
    """The transpose of A: every entry is sent to the shard that owns its column."""
    note(A.device, "transpose", A)
    materialize(A)

    def own(k: int) -> tuple[Array, Array, Array]:
        rows, columns, values = coordinates(A, k)
        return columns, rows.astype(columns.dtype, copy=False), values

    return redistributed(A.device.map(own), (A.ncols, A.nrows), A.device, iso=A.iso)


def kronecker(A: DistributedMatrix, B: DistributedMatrix, op: Function) -> DistributedMatrix:
    """The Kronecker product: every shard multiplies its rows of A with the whole of B."""
    placement, shape = A.device, (A.nrows * B.nrows, A.ncols * B.ncols)
    note(placement, "kronecker", A, B, op)
    materialize(A)

    def own(k: int, whole: Matrix) -> tuple[Array, Array, Array]:
        T = placement.backend(k).kronecker(A.shards[k], whole, op)
        rows = T.row_indices().astype(np.int64)
        first = placement.shard_ids(k, A.nrows).astype(np.int64)[rows // max(B.nrows, 1)]
        return first * B.nrows + rows % max(B.nrows, 1), T._indices, T._expanded_values()

    return redistributed(placement.map(own, B.replicated()), shape, placement)


def block_array(
    grid: dict[tuple[int, int], DistributedMatrix],
    tops: list[int],
    lefts: list[int],
    dtype: np.dtype,
) -> DistributedMatrix:
    """As `operations.block_array`: every entry is sent to the shard that owns its new row."""
    placement = next(iter(grid.values())).device
    materialize(*grid.values())

    def own(k: int) -> tuple[Array, Array, Array]:
        parts = []
        for (r, c), A in grid.items():
            rows, columns, _ = coordinates(A, k)
            values = A.shards[k]._expanded_values().astype(dtype, copy=False)
            parts.append((rows.astype(np.int64) + tops[r], columns + np.int64(lefts[c]), values))
        xp = array_module(parts[0][2])
        rows, columns, values = (xp.concatenate(each) for each in zip(*parts, strict=True))
        return rows, columns, values

    return redistributed(placement.map(own), (tops[-1], lefts[-1]), placement)


def diag(u: DistributedVector | DistributedMatrix, k: int) -> DistributedMatrix | DistributedVector:
    """As `operations.diag`: the entries of a Vector on the k-th diagonal, or the other way."""
    placement = u.device
    note(placement, "diag", u, k)
    if isinstance(u, DistributedVector):
        n = u.size + abs(k)

        def on_diagonal(shard: int, v: Vector) -> tuple[Array, Array, Array]:
            v = lift(v, placement, shard, u.size)
            assert v._indices is not None
            rows = v._indices.astype(np.int64) + max(-k, 0)
            return rows, rows + k, v._values

        return redistributed(placement.map(on_diagonal, u.shards), (n, n), placement)
    size = max(0, min(u.nrows - max(-k, 0), u.ncols - max(k, 0)))
    materialize(u)

    def diagonal(shard: int) -> tuple[Array, Array]:
        rows, columns, values = coordinates(u, shard)
        at = columns.astype(np.int64) - rows == k
        return rows[at] - max(-k, 0), values[:1].repeat(int(at.sum())) if u.iso else values[at]

    return redistributed_vector(placement.map(diagonal), size, placement)


# --- extract --------------------------------------------------------------------------------------


def extract(u: DistributedVector, indices: np.ndarray | DistributedVector) -> DistributedVector:
    """t[k] = u[indices[k]]. `indices` are an array, the same in every process, or a distributed
    Vector; every shard computes the positions k that it owns from the whole of u.
    """
    placement, size = u.device, indices.size
    note(placement, "extract", u, indices)

    def own(k: int, whole: Vector) -> Vector:
        if isinstance(indices, DistributedVector):
            ids = indices.shards[k].to_bitmap()._values
        else:
            ids = move(indices[move(placement.shard_ids(k, size), "cpu")], placement.devices[k])
        return placement.backend(k).extract(whole, ids)

    return DistributedVector(size, placement.map(own, replicate(u)), placement)


def extract_matrix(
    A: DistributedMatrix, rows: np.ndarray | None, columns: np.ndarray | None
) -> DistributedMatrix:
    """T[k, l] = A[rows[k], columns[l]] for arrays that are the same in every process; None: all."""
    placement = A.device
    note(placement, "extract", A, rows, columns)
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

    return redistributed(placement.map(entries, A.shards), shape, placement, iso=A.iso)


def _inside(A: DistributedMatrix, k: int, rows: np.ndarray) -> np.ndarray:
    """The numbers in local shard k of rows that it owns."""
    partition, p = A.device.partition(A.nrows), A.device.local[k]
    return partition.to_internal(rows) - int(partition.offsets[p])


def extract_row(A: DistributedMatrix, i: int) -> DistributedVector:
    """Row i of A."""
    placement, owner = A.device, int(A.partition.owner(np.array([i]))[0])
    note(placement, "extract", A, "row", int(i))

    def own(k: int, shard: Matrix) -> tuple[Array, Array]:
        if placement.local[k] != owner:
            return shard._indices[:0], shard._values[:0]
        local = int(_inside(A, k, np.array([i]))[0])
        first, last = (int(offset) for offset in shard._indptr[local : local + 2])
        values = shard._values[:1].repeat(last - first) if A.iso else shard._values[first:last]
        return shard._indices[first:last], values

    return redistributed_vector(placement.map(own, A.shards), A.ncols, placement)


def extract_column(A: DistributedMatrix, j: int) -> DistributedVector:
    """Column j of A."""
    note(A.device, "extract", A, "column", int(j))
    shards = A.device.map(lambda k, shard: operations.extract(shard, None, j), A.shards)
    return DistributedVector(A.nrows, shards, A.device)


# --- assign ---------------------------------------------------------------------------------------


def assign(
    w: DistributedVector,
    value: DistributedVector | Scalar,
    indices: np.ndarray | DistributedVector | None,
    mask: Mask | None,
    accum: BinaryLike | None,
    replace: bool,
) -> DistributedVector:
    """As `operations.assign` of a Vector. With indices, every shard assigns all of them to its
    entries, lifted, and keeps the positions that it owns.
    """
    placement = w.device
    note(placement, "assign", w, value, indices, mask, replace, _resolved(w, value, accum))
    if (
        mask is None
        and isinstance(indices, np.ndarray)
        and not isinstance(value, DistributedVector)
    ):
        return _assign_scalar(w, value, indices, accum)

    def everywhere(k: int, shard: Vector) -> Vector:
        given = value.shards[k] if isinstance(value, DistributedVector) else value
        return operations.assign(
            shard.dup(), given, mask=shard_mask(mask, k), accum=accum, replace=replace
        )

    def at(k: int, shard: Vector, given: Vector | Scalar, where: Vector | np.ndarray) -> Vector:
        lifted = lift(shard.dup(), placement, k, w.size)
        allowed = lifted_mask(mask, placement, k)
        operations.assign(lifted, given, where, mask=allowed, accum=accum, replace=replace)
        return lower(lifted, placement, k)

    if indices is None:
        return _assigned(w, value, accum, everywhere)
    return _assigned(w, value, accum, at, _on_all(value, placement), _on_all(indices, placement))


def _on_all(value: Any, placement: Placement) -> Sequence[Any]:
    """`value` for each local shard: the whole of a container, on the device of the shard."""
    if isinstance(value, DistributedVector):
        return replicate(value)
    if isinstance(value, DistributedMatrix):
        return value.replicated()
    return [value] * len(placement.devices)


def _assign_scalar(
    w: DistributedVector,
    value: Scalar,
    indices: np.ndarray,
    accum: BinaryLike | None,
) -> DistributedVector:
    """A scalar at some positions: every shard writes those that it owns."""
    partition = w.partition
    inside = partition.to_internal(indices)

    def here(k: int, shard: Vector) -> Vector:
        own = partition.slice(w.device.local[k])
        at = inside[(inside >= own.start) & (inside < own.stop)] - own.start
        return operations.assign(shard.dup(), value, at, accum=accum) if at.size else shard

    return _assigned(w, value, accum, here)


def _assigned(
    w: C,
    value: Vector | Matrix | Scalar,
    accum: BinaryLike | None,
    function: Callable[..., Any],
    *lists: Sequence[Any],
) -> C:
    """w, with the shards that `function` makes of its shards, as in `Placement.map`. Where a value
    may not fit in w's type, which only its shard finds out, all processes raise OverflowError
    together, and w stays as it is.
    """
    placement, dtype = w.device, _type_of(value, w)
    combining = _resolved(w, value, accum)
    result = dtype if combining is None else combining.result
    fits = dtype == result == w.dtype

    def own(k: int, *given: Any) -> Any:
        try:
            return function(k, *given)
        except OverflowError as error:
            return error

    found = placement.map(function if fits else own, w.shards, *lists)
    raised = [each for each in found if isinstance(each, OverflowError)]
    if not fits and placement.total([len(raised)]):
        elsewhere = f"assign: another process has values that do not fit in {w.dtype}"
        raise raised[0] if raised else OverflowError(elsewhere)
    w._become(type(w)(*w.shape, found, placement))
    return w


def _resolved(w: C, value: Any, accum: BinaryLike | None) -> Function | None:
    """The accumulator over the types of w and of `value`."""
    dtype = _type_of(value, w)
    if accum is None or dtype is None:
        return None
    return checks.binary("assign", "accum", accum).resolve(w.dtype, dtype)


def _type_of(value: Any, w: C) -> np.dtype | None:
    """The type of a container or number, w's where it is a number of Python's."""
    dtype = getattr(value, "dtype", None)
    if dtype is None and not checks.is_container(value) and np.ndim(value) == 0:
        return w.dtype
    return dtype


def assign_matrix(
    w: DistributedMatrix,
    value: DistributedMatrix | DistributedVector | Scalar,
    indices: np.ndarray | int | None,
    columns: np.ndarray | int | None,
    mask: Mask | None,
    accum: BinaryLike | None,
    replace: bool,
) -> DistributedMatrix:
    """As `operations.assign` of a Matrix: every shard assigns everything to its rows, lifted, and
    keeps the rows that it owns.
    """
    placement, function = w.device, _resolved(w, value, accum)
    note(placement, "assign", w, value, indices, columns, mask, replace, function)
    materialize(mask)

    def own(k: int, shard: Matrix, given: Vector | Matrix | Scalar) -> Matrix:
        lifted = lift(shard, placement, k, w.nrows).dup()
        allowed = lifted_mask(mask, placement, k)
        operations.assign(
            lifted, given, indices, columns, mask=allowed, accum=accum, replace=replace
        )
        if lifted.nvals == 0:
            return lower(lifted, placement, k)
        rows = placement.shard_ids(k, w.nrows)  # the others may have entries, too
        return placement.backend(k).extract_matrix(lifted, rows, None)

    return _assigned(w, value, accum, own, _on_all(value, placement))
