"""Between the coordinates of a shard and those of the whole; what shards say to each other.

Ids are always the user's: only where a shard stores its own rows does it count them from 0, in the
order of their ids. A *lifted* container has the whole's shape and the shard's entries.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

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
from spgraph.semirings import TypedMonoid


def made(*given: Any) -> None:
    """Have the shards of views (and of masks of views) made: all shards exchange for that, so that
    no shard may be the first to ask, in the midst of its own work.
    """
    for container in given:
        parent: Any = container.parent if isinstance(container, Mask) else container
        if parent is not None:
            _ = parent.shards


def about(A: Any) -> None:
    """What shards tell each other from now on is about the Matrix A: processes that go on with
    another one notice.
    """
    say = A.device.communicator
    if say.processes > 1:
        say.about(A.fingerprint)


# --- from a shard to the whole and back -----------------------------------------------------------


def lift(v: Vector, placement: Placement, k: int, size: int) -> Vector:
    """The entries of shard k, a sparse Vector of `size`."""
    v = v.to_sparse()
    assert v._indices is not None
    own = placement.partition(size).slice(placement.local[k])
    if placement.partition(size).ids is None:
        indices = v._indices.astype(index_dtype(size)) + index_dtype(size).type(own.start)
    else:
        indices = placement.users(k, size)[v._indices]
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
            indptr[1:][placement.users(k, nrows)] = A._indptr[1:] - A._indptr[:-1]
            indptr = xp.cumsum(indptr, dtype=indptr.dtype)
        A._derived["lifted"] = Matrix(nrows, A.ncols, indptr, A._indices, A._values, iso=A.iso)
    return A._derived["lifted"]


def lower(t: Vector, placement: Placement, k: int) -> Vector:
    """What shard k owns of a Vector of the whole size."""
    return part(t, placement.partition(t.size), placement.local[k])._conform()


def lower_matrix(T: Matrix, placement: Placement, k: int) -> Matrix:
    """What shard k owns of a Matrix of the whole shape that has entries in no other row."""
    rows = placement.users(k, T.nrows)
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


def part(t: Vector, partition: Partition, p: int) -> Vector:
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
    ids = partition.users(p, t.device)
    if t._bits is None:
        return Vector(n, t._values[ids])
    present = (t._bits[ids >> 5] >> (ids & 31).astype(np.uint32)) & np.uint32(1) != 0
    return Vector(n, xp.where(present, t._values[ids], t.dtype.type(0)), bits=pack_bits(present))


def parts(t: Vector, partition: Partition) -> list[tuple[Array, Array]]:
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


# --- exchange -------------------------------------------------------------------------------------


def replicate(v: Any) -> list[Vector]:
    """The whole of a distributed Vector on the device of every local shard.

    Pairs of ids and values travel where entries are few, else values and one bit a position. Shards
    that share a device share the result, which is read only.
    """
    placement, size = v.device, v.size
    partition, say = placement.partition(size), placement.communicator
    sizes = partition.sizes
    nvals = v.nvals
    if nvals * 32 < size:
        sparse = placement.map(lambda k, shard: lift(shard, placement, k, size), v.shards)
        ids = say.all_gather([shard._indices for shard in sparse])
        values = say.all_gather([shard._values for shard in sparse])
        return placement.map(lambda k, i, x: _sorted(size, i, x, partition), ids, values)
    dense = placement.map(lambda k, shard: shard.to_bitmap(), v.shards)
    values = say.all_gather([shard._values for shard in dense], sizes=sizes)
    if partition.ids is not None:
        values = placement.map(lambda k, x: partition.by_id(x), values)
    if nvals == size:
        return [Vector(size, x) for x in values]
    packed = placement.map(lambda k, shard: _bits_of(shard), dense)
    bits = replicate_bits(packed, placement, size)
    return [Vector(size, x, bits=b, nvals=nvals) for x, b in zip(values, bits, strict=True)]


def replicate_bits(bits: Sequence[Array], placement: Placement, size: int) -> list[Array]:
    """The packed bits of all positions, from those of the shards, on every local shard's device."""
    partition, say = placement.partition(size), placement.communicator
    sizes = partition.sizes
    gathered = say.all_gather(list(bits), sizes=[words(n) for n in sizes])
    if partition.ids is None and not (partition.offsets[:-1] & 31).any():
        return gathered

    def joined(k: int, together: Array) -> Array:
        flags, at = [], 0
        for n in sizes:
            flags.append(unpack_bits(together[at : at + words(n)], n))
            at += words(n)
        return pack_bits(partition.by_id(array_module(together).concatenate(flags)))

    return placement.map(joined, gathered)


def combine(found: list[Vector], monoid: TypedMonoid, placement: Placement) -> list[Vector]:
    """From a Vector of the whole size of each local shard: for each local shard its own part of
    the sum of all of them, in the order of shards.

    Pairs of ids and values go to their owners, or whole parts with one bit a position, whichever
    takes fewer bytes.
    """
    size = found[0].size
    partition, say = placement.partition(size), placement.communicator
    each = found[0].dtype.itemsize
    pairs = placement.total([t.nvals for t in found]) * (each + index_dtype(size).itemsize)
    dense = placement.num_shards * size * (each + 1 / 8)
    if pairs < dense:
        split = placement.map(lambda k, t: parts(t, partition), found)
        ids = say.all_to_all([[i for i, _ in row] for row in split])
        values = say.all_to_all([[x for _, x in row] for row in split])

        def pieces(k: int, came: list[Array], with_values: list[Array]) -> list[Vector]:
            n = partition.sizes[placement.local[k]]
            return [
                Vector(n, x, indices=i.astype(index_dtype(n), copy=False))
                for i, x in zip(came, with_values, strict=True)
            ]

        received = placement.map(pieces, ids, values)
    else:
        cut = placement.map(lambda k, t: _cut(t.to_bitmap(), partition), found)
        values = say.all_to_all([[piece._values for piece in row] for row in cut])
        packed = placement.map(lambda k, row: [_bits_of(piece) for piece in row], cut)
        bits = say.all_to_all(packed)
        received = [
            [Vector(x.size, x, bits=b) for x, b in zip(*pair, strict=True)]
            for pair in zip(values, bits, strict=True)
        ]
    return placement.map(lambda k, row: _sum(placement.plain(k), row, monoid), received)


def _cut(t: Vector, partition: Partition) -> list[Vector]:
    return [part(t, partition, p) for p in range(partition.num_shards)]


def _sum(on: Any, row: list[Vector], monoid: TypedMonoid) -> Vector:
    total = row[0]
    for piece in row[1:]:
        total = piece if total.nvals == 0 else total
        if piece is not total and piece.nvals:
            total = on.ewise(total, piece, monoid.function, True)
    return total._conform()


def route(
    entries: list[tuple[Array, ...]], placement: Placement, size: int
) -> list[list[tuple[Array, ...]]]:
    """Ids (any order, repeats too) with what goes along with each, sent to the shards that own the
    ids: for each local shard, from each shard, (indices inside of the shard, ...) in the sender's
    order.
    """
    partition, say = placement.partition(size), placement.communicator
    firsts = partition.offsets[:-1].tolist()

    def split(k: int, entry: tuple[Array, ...]) -> list[list[Array]]:
        xp = array_module(entry[0])
        inside = partition.to_internal(entry[0])
        owner = partition.owner(inside)
        order = xp.argsort(owner, kind="stable")
        bounds = xp.searchsorted(owner[order], xp.arange(partition.num_shards + 1)).tolist()
        cuts = [slice(a, b) for a, b in itertools.pairwise(bounds)]
        arrays = [array[order] for array in (inside, *entry[1:])]
        local = [arrays[0][c] - first for c, first in zip(cuts, firsts, strict=True)]
        return [local, *([array[c] for c in cuts] for array in arrays[1:])]

    to_send = placement.map(split, entries)
    received = [say.all_to_all([row[a] for row in to_send]) for a in range(len(entries[0]))]
    return [list(zip(*(array[k] for array in received), strict=True)) for k in range(len(entries))]


def _sorted(size: int, ids: Array, values: Array, partition: Partition) -> Vector:
    """The sparse Vector of entries that stand shard by shard."""
    if partition.ids is not None:
        order = array_module(ids).argsort(ids)
        ids, values = ids[order], values[order]
    return Vector(size, values, indices=ids)


def _bits_of(v: Vector) -> Array:
    """The bits of a bitmap, or all of them for a full Vector."""
    if v._bits is not None:
        return v._bits
    return pack_bits(array_module(v._values).ones(v.size, bool))
