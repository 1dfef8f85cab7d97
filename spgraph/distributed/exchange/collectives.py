"""Collectives on Vectors: replicate (all-gather), reduce to owners (reduce-scatter), send to owners
(all-to-all).
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from spgraph.containers import Vector
from spgraph.containers.storage.arrays import (
    Array,
    array_module,
    index_dtype,
    pack_bits,
    unpack_bits,
    words,
)
from spgraph.distributed.containers.partition import Partition
from spgraph.distributed.containers.placement import Placement
from spgraph.distributed.exchange.coordinates import by_owner, lift, owned_part
from spgraph.distributed.exchange.notes import facts, note
from spgraph.semirings import TypedMonoid, TypedSemiring

if TYPE_CHECKING:
    from spgraph.distributed.containers.matrix import DistributedMatrix
    from spgraph.distributed.containers.vector import DistributedVector

TAGS = (1 << 63) - 1  # the largest tag


def tag_graph(
    A: DistributedMatrix,
    start: DistributedVector | None = None,
    semiring: TypedSemiring | None = None,
    *given: float | str | None,
) -> None:
    """Tag the calls of the communicator that follow with the fingerprint of A, where `start` was
    made, and what its entry is, if it has one, the semiring, and what else the user has `given`:
    processes that call with another Matrix, from another vertex, ... get CommunicationError.
    """
    comm = A.device.communicator
    if comm.processes > 1:
        others = zlib.crc32(repr((facts(start), facts(semiring), given)).encode())
        comm.tag_graph((A.fingerprint | others << 32) & TAGS)


def replicate(v: DistributedVector) -> list[Vector]:
    """The whole of v on the device of each local shard: an all-gather.

    What travels is a pair (id, value) for each entry where these are few, else a value and a bit
    for each position. Shards on one device share the result, which must not be written.
    """
    placement, size = v.device, v.size
    partition, comm = placement.partition(size), placement.communicator
    sizes = partition.sizes
    note(placement, "a gathering of a Vector", v)
    nvals = v.nvals
    if nvals * 32 < size:
        sparse = placement.map(lambda k, shard: lift(shard, placement, k, size), v.shards)
        ids = comm.all_gather([shard._indices for shard in sparse])
        values = comm.all_gather([shard._values for shard in sparse])
        return placement.map(lambda k, i, x: _sorted(size, i, x, partition), ids, values)
    dense = placement.map(lambda k, shard: shard.to_bitmap(), v.shards)
    values = comm.all_gather([shard._values for shard in dense], sizes=sizes)
    if partition.ids is not None:
        values = placement.map(lambda k, x: partition.in_user_order(x), values)
    if nvals == size:
        return [Vector._of(size, x) for x in values]
    packed = placement.map(lambda k, shard: _bits_of(shard), dense)
    bits = replicate_bits(packed, placement, size)
    return [Vector._of(size, x, bits=b, nvals=nvals) for x, b in zip(values, bits, strict=True)]


def replicate_bits(bits: Sequence[Array], placement: Placement, size: int) -> list[Array]:
    """The packed bits of all positions, on the device of each local shard; `bits` are those of the
    local shards.
    """
    partition, comm = placement.partition(size), placement.communicator
    sizes = partition.sizes
    gathered = comm.all_gather(list(bits), sizes=[words(n) for n in sizes])
    if partition.ids is None and not (partition.offsets[:-1] & 31).any():
        return gathered

    def joined(k: int, together: Array) -> Array:
        flags, at = [], 0
        for n in sizes:
            flags.append(unpack_bits(together[at : at + words(n)], n))
            at += words(n)
        return pack_bits(partition.in_user_order(array_module(together).concatenate(flags)))

    return placement.map(joined, gathered)


def reduce_to_owners(
    found: list[Vector], monoid: TypedMonoid, placement: Placement
) -> list[Vector]:
    """For each local shard, the positions that it owns of the reduction of `found`, which has a
    Vector of the whole size for each local shard: a reduce-scatter, in the order of the shards.

    What travels to the owners is a pair (id, value) for each entry, or a value and a bit for each
    position, whichever is fewer bytes.
    """
    size = found[0].size
    partition, comm = placement.partition(size), placement.communicator
    each = found[0].dtype.itemsize
    sizes = partition.sizes
    pairs = placement.total([t.nvals for t in found]) * (each + index_dtype(size).itemsize)
    if pairs < placement.num_shards * size * (each + 1 / 8):
        sparse = placement.map(lambda k, t: t.to_sparse(), found)
        entries = [(t._indices, t._values) for t in sparse]
        pieces = send_to_owners(entries, placement, size, ascending=True)
        received = placement.map(lambda k, row: _found(sizes[placement.local[k]], row), pieces)
    else:
        cut = placement.map(lambda k, t: _split(t.to_bitmap(), partition), found)
        values = comm.all_to_all([[piece._values for piece in row] for row in cut])
        packed = placement.map(lambda k, row: [_bits_of(piece) for piece in row], cut)
        bits = comm.all_to_all(packed)
        received = [
            [Vector._of(x.size, x, bits=b) for x, b in zip(*pair, strict=True)]
            for pair in zip(values, bits, strict=True)
        ]
    return placement.map(lambda k, row: _reduced(placement.backend(k), row, monoid), received)


def _split(t: Vector, partition: Partition) -> list[Vector]:
    """The part of t that each shard owns."""
    return [owned_part(t, partition, p) for p in range(partition.num_shards)]


def _reduced(on: ModuleType, row: list[Vector], monoid: TypedMonoid) -> Vector:
    """The reduction of Vectors on one device, by its backend."""
    total = row[0]
    for piece in row[1:]:
        total = piece if total.nvals == 0 else total
        if piece is not total and piece.nvals:
            total = on.ewise(total, piece, monoid.function, True)
    return total._conform()


def _found(size: int, row: list[tuple[Array, ...]]) -> list[Vector]:
    """The Vectors of the entries that came from each shard: at least one, but none without entries
    beside others, for a shard has entries for few others where there are many.
    """
    return [_sparse(size, *piece) for piece in row if piece[0].size] or [_sparse(size, *row[0])]


def _sparse(size: int, indices: Array, values: Array) -> Vector:
    return Vector._of(size, values, indices=indices.astype(index_dtype(size), copy=False))


def send_to_owners(
    entries: Sequence[tuple[Any, ...]], placement: Placement, size: int, ascending: bool = False
) -> list[list[tuple[Array, ...]]]:
    """Send arrays (ids, more, ...) of each local shard, in any order and with repeated ids, to the
    shards that own the ids: an all-to-all. For each local shard, the arrays (positions in the
    shard, more, ...) from each shard: in the sender's order, or by position where ids ascend.
    """
    partition, comm = placement.partition(size), placement.communicator
    firsts = partition.offsets[:-1].tolist()

    def split(k: int, entry: tuple[Array, ...]) -> list[list[Array]]:
        arrays, bounds = by_owner(entry, partition, ascending)
        cuts = [slice(a, b) for a, b in itertools.pairwise(bounds)]
        local = [arrays[0][c] for c in cuts]
        for p, ids in enumerate(local):
            if ids.size:
                local[p] = ids - firsts[p]
        return [local, *([array[c] for c in cuts] for array in arrays[1:])]

    to_send = placement.map(split, entries)
    received = [comm.all_to_all([row[a] for row in to_send]) for a in range(len(entries[0]))]
    return [list(zip(*(array[k] for array in received), strict=True)) for k in range(len(entries))]


def _sorted(size: int, ids: Array, values: Array, partition: Partition) -> Vector:
    """The sparse Vector of entries that are sorted within each shard, one shard after the other."""
    if partition.ids is not None:
        order = array_module(ids).argsort(ids)
        ids, values = ids[order], values[order]
    return Vector._of(size, values, indices=ids)


def _bits_of(v: Vector) -> Array:
    """The bits of v, a bitmap; all ones for a full Vector."""
    if v._bits is not None:
        return v._bits
    return pack_bits(array_module(v._values).ones(v.size, bool))
