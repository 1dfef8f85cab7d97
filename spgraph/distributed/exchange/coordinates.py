"""Between the coordinates of a shard and those of the whole; what shards say to each other.

Ids are always the user's: only where a shard stores its own rows does it count them from 0, in the
order of their ids. A *lifted* container has the whole's shape and the shard's entries.
"""

from __future__ import annotations

import numpy as np

from spgraph.containers import Mask, Matrix, Vector
from spgraph.containers.arrays import (
    Array,
    array_module,
    index_dtype,
    pack_bits,
    unpack_bits,
    words,
)
from spgraph.distributed.containers.partition import Partition
from spgraph.distributed.containers.placement import Placement

# --- from a shard to the whole and back -----------------------------------------------------------


def lift(v: Vector, placement: Placement, k: int, size: int) -> Vector:
    """The entries of shard k, a sparse Vector of `size`."""
    v = v.to_sparse()
    assert v._indices is not None
    own = placement.partition(size).slice(placement.local[k])
    if placement.partition(size).ids is None:
        indices = v._indices.astype(index_dtype(size)) + index_dtype(size).type(own.start)
    else:
        indices = placement.shard_ids(k, size)[v._indices]
    return Vector(size, v._values, indices=indices)


def lift_matrix(A: Matrix, placement: Placement, k: int, nrows: int) -> Matrix:
    """The entries of shard k, a Matrix of `nrows`: its index arrays, under offsets for all rows."""
    if "lifted" not in A._derived:
        xp, partition = array_module(A._indices), placement.partition(nrows)
        own = partition.slice(placement.local[k])
        indptr = xp.zeros(nrows + 1, A._indptr.dtype)
        if partition.ids is None:
            indptr[own.start + 1 : own.stop + 1] = A._indptr[1:]
            indptr[own.stop + 1 :] = A.nvals
        else:
            indptr[1:][placement.shard_ids(k, nrows)] = A._indptr[1:] - A._indptr[:-1]
            indptr = xp.cumsum(indptr, dtype=indptr.dtype)
        A._derived["lifted"] = Matrix(nrows, A.ncols, indptr, A._indices, A._values, iso=A.iso)
    return A._derived["lifted"]


def lower(t: Vector, placement: Placement, k: int) -> Vector:
    """What shard k owns of a Vector of the whole size."""
    return owned_part(t, placement.partition(t.size), placement.local[k])._conform()


def lower_matrix(T: Matrix, placement: Placement, k: int) -> Matrix:
    """What shard k owns of a Matrix of the whole shape that has entries in no other row."""
    rows = placement.shard_ids(k, T.nrows)
    xp = array_module(T._indices)
    indptr = xp.zeros(rows.size + 1, T._indptr.dtype)
    indptr[1:] = T._indptr[1:][rows]
    return Matrix(rows.size, T.ncols, indptr, T._indices, T._values, iso=T.iso)


def shard_mask(mask: Mask | None, k: int) -> Mask | None:
    """The mask of shard k."""
    if mask is None:
        return None
    return Mask(mask.parent.shards[k], mask.structure, mask.complement)  # type: ignore[union-attr]


def lifted_mask(mask: Mask | None, placement: Placement, k: int) -> Mask | None:
    """The mask of shard k, over the whole: nothing is said of positions of other shards."""
    if mask is None:
        return None
    shard = mask.parent.shards[k]  # type: ignore[union-attr]
    raise_to = lift if isinstance(shard, Vector) else lift_matrix
    parent = raise_to(shard, placement, k, mask.parent.shape[0])
    return Mask(parent, mask.structure, mask.complement)


# --- parts of a Vector ----------------------------------------------------------------------------


def owned_part(t: Vector, partition: Partition, p: int) -> Vector:
    """What shard p owns of t, in the storage of t."""
    own = partition.slice(p)
    n = own.stop - own.start
    xp = array_module(t._values)
    if t._indices is not None:
        indices, values, bounds = _by_owner(t, partition)
        within = slice(bounds[p], bounds[p + 1])
        local = (indices[within] - own.start).astype(index_dtype(n))
        return Vector(n, values[within].copy(), indices=local)
    if partition.ids is None:
        values = t._values[own].copy()
        return Vector(n, values, bits=None if t._bits is None else bits_between(t._bits, own))
    ids = partition.shard_ids(p, t.device)
    if t._bits is None:
        return Vector(n, t._values[ids])
    present = (t._bits[ids >> 5] >> (ids & 31).astype(np.uint32)) & np.uint32(1) != 0
    return Vector(n, xp.where(present, t._values[ids], t.dtype.type(0)), bits=pack_bits(present))


def entries_by_owner(t: Vector, partition: Partition) -> list[tuple[Array, Array]]:
    """For each shard, the entries of t that it owns: (indices inside of the shard, values)."""
    t = t.to_sparse()
    indices, values, bounds = _by_owner(t, partition)
    found = []
    for p in range(partition.num_shards):
        within = slice(bounds[p], bounds[p + 1])
        found.append((indices[within] - int(partition.offsets[p]), values[within]))
    return found


def _by_owner(t: Vector, partition: Partition) -> tuple[Array, Array, list[int]]:
    """(internal ids ascending, values, where the ids of each shard begin) of a sparse Vector."""
    xp = array_module(t._values)
    indices, values = t._indices, t._values
    assert indices is not None
    if partition.ids is not None:
        indices = partition.to_internal(indices)
        order = xp.argsort(indices)
        indices, values = indices[order], values[order]
    offsets = xp.asarray(partition.offsets)
    return indices, values, xp.searchsorted(indices, offsets).tolist()


def bits_between(bits: Array, own: slice) -> Array:
    """The bits from own.start to own.stop, packed anew from bit 0."""
    n = own.stop - own.start
    first, shift = own.start >> 5, own.start & 31
    if shift:
        flags = unpack_bits(bits[first : words(own.stop)], shift + n)
        return pack_bits(flags[shift:])
    cut = bits[first : first + words(n)].copy()
    if n & 31:
        cut[-1:] &= np.uint32((1 << (n & 31)) - 1)
    return cut
