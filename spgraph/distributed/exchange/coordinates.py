"""Conversions between the coordinates of a shard and those of the whole.

Ids are the user's. Only the rows that a shard stores are numbered from 0, in the order of their
ids. A *lifted* container has the shape of the whole and only the entries of the shard; to *lower*
it is the inverse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from spgraph.containers import Mask, Matrix, Vector
from spgraph.containers.storage.arrays import (
    Array,
    array_module,
    index_dtype,
    on_device,
    pack_bits,
    unpack_bits,
    words,
)
from spgraph.distributed.containers.partition import Partition
from spgraph.distributed.containers.placement import Placement

if TYPE_CHECKING:
    from spgraph.distributed.containers.matrix import DistributedMatrix
    from spgraph.distributed.containers.vector import DistributedVector

C = TypeVar("C", Vector, Matrix)

# --- from a shard to the whole and back -----------------------------------------------------------


def lift(shard: C, placement: Placement, k: int, size: int) -> C:
    """Local shard k, lifted: a sparse Vector of `size`, or a Matrix of `size` rows, which shares
    its index and value arrays.
    """
    if isinstance(shard, Matrix):
        return _lift_matrix(shard, placement, k, size)
    v = shard.to_sparse()
    assert v._indices is not None
    own = placement.partition(size).slice(placement.local[k])
    if placement.partition(size).ids is None:
        indices = v._indices.astype(index_dtype(size)) + index_dtype(size).type(own.start)
    else:
        indices = placement.shard_ids(k, size)[v._indices]
    return Vector._of(size, v._values, indices=indices)


def _lift_matrix(A: Matrix, placement: Placement, k: int, nrows: int) -> Matrix:
    if "lifted" not in A._derived:
        partition = placement.partition(nrows)
        own = partition.slice(placement.local[k])
        with on_device(A.device) as xp:
            indptr = xp.zeros(nrows + 1, A._indptr.dtype)
            if partition.ids is None:
                indptr[own.start + 1 : own.stop + 1] = A._indptr[1:]
                indptr[own.stop + 1 :] = A.nvals
            else:
                indptr[1:][placement.shard_ids(k, nrows)] = A._indptr[1:] - A._indptr[:-1]
                indptr = xp.cumsum(indptr, dtype=indptr.dtype)
        arrays = indptr, A._indices, A._values
        A._keep("lifted", Matrix._of(nrows, A.ncols, *arrays, iso=A.iso))
    return A._derived["lifted"]


def lower(whole: C, placement: Placement, k: int) -> C:
    """What local shard k owns of a container of the whole's size; of a Matrix, which has no entries
    in other rows.
    """
    if isinstance(whole, Vector):
        return owned_part(whole, placement.partition(whole.size), placement.local[k])._conform()
    rows = placement.shard_ids(k, whole.nrows)
    indptr = array_module(rows).zeros(rows.size + 1, whole._indptr.dtype)
    indptr[1:] = whole._indptr[1:][rows]
    arrays = indptr, whole._indices, whole._values
    return Matrix._of(rows.size, whole.ncols, *arrays, iso=whole.iso)


def shard_mask(mask: Mask | None, k: int) -> Mask | None:
    """The part of the mask at the positions of local shard k."""
    if mask is None:
        return None
    parent = cast("DistributedVector | DistributedMatrix", mask.parent)
    return Mask(parent.shards[k], mask.structure, mask.complement)


def lifted_mask(mask: Mask | None, placement: Placement, k: int) -> Mask | None:
    """The mask of local shard k, lifted; at positions of other shards it has no meaning."""
    own = shard_mask(mask, k)
    if mask is None or own is None:
        return None
    parent: Any = own.parent
    lifted = lift(parent, placement, k, mask.parent.shape[0])
    return Mask(lifted, mask.structure, mask.complement)


def materialize(*containers: Matrix | Mask | None) -> None:
    """Make the shards of transposed views, and of masks of them, now. That takes an exchange of all
    shards, which must not begin inside of a function that runs for a single shard.
    """
    for container in containers:
        parent = container.parent if isinstance(container, Mask) else container
        if parent is not None:
            _ = cast("DistributedMatrix", parent).shards


def on_shards(
    positional: bool,
    compute: Callable[..., C],
    operands: Sequence[DistributedVector | DistributedMatrix],
    *lists: Sequence[Any],
    mask: Mask | None = None,
) -> list[C]:
    """compute(backend, mask, shard of each operand, item of each list) of each local shard. If it
    is `positional`, so that it has to see positions of the whole, mask and shards are lifted, and
    the results are lowered.
    """
    placement, size = operands[0].device, operands[0].shape[0]
    shards = list(zip(*(operand.shards for operand in operands), strict=True))
    materialize(mask)

    def own(k: int, own_shards: Sequence[Any], *given: Any) -> C:
        on = placement.backend(k)
        if not positional:
            return compute(on, shard_mask(mask, k), *own_shards, *given)
        lifted = (lift(shard, placement, k, size) for shard in own_shards)
        return lower(compute(on, lifted_mask(mask, placement, k), *lifted, *given), placement, k)

    return placement.map(own, shards, *lists)


# --- parts of a Vector ----------------------------------------------------------------------------


def owned_part(t: Vector, partition: Partition, p: int) -> Vector:
    """The entries of t that shard p owns, in the storage of t."""
    own = partition.slice(p)
    n = own.stop - own.start
    xp = array_module(t._values)
    if t._indices is not None:
        (indices, values), bounds = by_owner((t._indices, t._values), partition, True)
        within = slice(bounds[p], bounds[p + 1])
        local = (indices[within] - own.start).astype(index_dtype(n))
        return Vector._of(n, values[within].copy(), indices=local)
    if partition.ids is None:
        values = t._values[own].copy()
        return Vector._of(n, values, bits=None if t._bits is None else bits_between(t._bits, own))
    ids = partition.shard_ids(p, t.device)
    if t._bits is None:
        return Vector._of(n, t._values[ids])
    present = (t._bits[ids >> 5] >> (ids & 31).astype(np.uint32)) & np.uint32(1) != 0
    return Vector._of(
        n, xp.where(present, t._values[ids], t.dtype.type(0)), bits=pack_bits(present)
    )


def by_owner(
    entry: Sequence[Array], partition: Partition, ascending: bool
) -> tuple[list[Array], list[int]]:
    """(arrays, where each shard begins in them and the last ends): `entry` are the user's ids and
    more arrays, ordered by the ids' owners here, with internal ids. `ascending`: so ids are, and
    internal ids become.
    """
    xp, ids = array_module(entry[0]), partition.to_internal(entry[0])
    if not ascending:
        owner = partition.owner(ids)
        order = xp.argsort(owner, kind="stable")
        bounds = xp.searchsorted(owner[order], xp.arange(partition.num_shards + 1)).tolist()
        return [array[order] for array in (ids, *entry[1:])], bounds
    arrays = [ids, *entry[1:]]
    if partition.ids is not None:
        order = xp.argsort(ids)
        arrays = [array[order] for array in arrays]
    return arrays, xp.searchsorted(arrays[0], xp.asarray(partition.offsets)).tolist()


def bits_between(bits: Array, own: slice) -> Array:
    """The bits own.start..own.stop - 1, packed again from bit 0."""
    n = own.stop - own.start
    first, shift = own.start >> 5, own.start & 31
    if shift:
        flags = unpack_bits(bits[first : words(own.stop)], shift + n)
        return pack_bits(flags[shift:])
    cut = bits[first : first + words(n)].copy()
    if n & 31:
        cut[-1:] &= np.uint32((1 << (n & 31)) - 1)
    return cut
