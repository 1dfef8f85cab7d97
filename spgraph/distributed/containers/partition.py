"""Partition: which shard owns which vertex, and the internal ids of vertices, ordered by shard."""

from __future__ import annotations

import dataclasses
import functools
import zlib
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from spgraph.containers.storage.arrays import (
    Array,
    as_array,
    device_of,
    index_dtype,
    is_cuda,
    move,
    on_device,
)
from spgraph.containers.storage.device_memory import synchronize
from spgraph.containers.storage.numbers import is_integer
from spgraph.errors import DimensionMismatch, DomainMismatch

# where shards have ALIGN_FROM vertices or more, ranges of ids begin at multiples of WORD, so that
# no two shards share a word of a bitmap
WORD, ALIGN_FROM = 32, 1024


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Partition:
    """The vertices 0..size - 1, each in one of `num_shards` shards; immutable, equal by value.

    Vertices also have internal ids: shard p owns offsets[p]..offsets[p + 1] - 1, and within a shard
    they ascend as the user's ids do. `ids[internal id]` is the user's id; None where the two are
    equal, because every shard owns a range of the user's ids. The constructor trusts its arrays;
    use `even`, `by_edges`, `from_owner` or `partition`.

    >>> from spgraph.distributed.containers.partition import Partition
    >>> P = Partition.from_owner([1, 0, 1, 0, 0], 2)
    >>> P.sizes, P.ids.tolist(), P.to_internal([0, 1]).tolist()
    ((3, 2), [1, 3, 4, 0, 2], [3, 0])
    """

    offsets: np.ndarray  # int64, shards + 1 of them
    ids: np.ndarray | None = None

    def __post_init__(self) -> None:
        for array in (self.offsets, self.ids):
            if array is not None:
                array.setflags(write=False)

    # --- construction -----------------------------------------------------------------------------

    @classmethod
    def even(cls, size: int, shards: int) -> Partition:
        """Ranges of ids whose sizes differ by at most one."""
        shards = check_shards(shards)
        return cls(np.array([size * p // shards for p in range(shards + 1)], np.int64))

    @classmethod
    def by_edges(cls, indptr: Array, shards: int) -> Partition:
        """Ranges of ids with about equal numbers of entries; a row counts as one entry more, so
        that very many empty rows do not go to one shard.

        `indptr` are the row pointers of the Matrix, on any device; only a few of them are read.
        """
        shards = check_shards(shards)
        size = indptr.size - 1

        def weight(row: int) -> int:
            return int(indptr[row]) + row

        total, offsets = weight(size), [0]
        for p in range(1, shards):
            target = total * p // shards
            cut = bisect_left(range(size), target, key=weight)
            if cut and target - weight(cut - 1) < weight(cut) - target:
                cut -= 1
            if size >= ALIGN_FROM * shards:
                cut = (cut + WORD // 2) // WORD * WORD
            offsets.append(cut)
        return cls(np.array([*offsets, size], np.int64))

    @classmethod
    def from_owner(
        cls, owner: Sequence[int] | Array, shards: int, size: int | None = None
    ) -> Partition:
        """The partition that gives vertex v to shard owner[v].

        DimensionMismatch if `owner` is not one-dimensional, or not `size` long; DomainMismatch if
        it does not hold integers; ValueError if one lies outside of 0..shards - 1.
        """
        shards = check_shards(shards)
        owner = move(owner, "cpu") if is_cuda(owner) else np.asarray(as_array("owner", owner))
        if owner.ndim != 1 or size not in (None, owner.size):
            expected = "one shard number per vertex"
            expected += "" if size is None else f", an array of length {size}"
            raise DimensionMismatch(f"partition: expected {expected}, got shape {owner.shape}")
        if owner.dtype.kind not in "iu" and owner.size:
            raise DomainMismatch(
                f"partition: expected an array of integers, shard numbers from 0 to {shards - 1}, "
                f"got {owner.dtype}; convert it with .astype(int)"
            )
        if owner.size and not 0 <= owner.min() <= owner.max() < shards:
            wrong = int(np.flatnonzero((owner < 0) | (owner >= shards))[0])
            raise ValueError(
                f"partition: expected shard numbers from 0 to {shards - 1} for {shards} shards, "
                f"got {owner[wrong]} for vertex {wrong}"
            )
        owner = owner.astype(np.min_scalar_type(shards))  # up to 16 bits, a stable sort is linear
        offsets = np.zeros(shards + 1, np.int64)
        np.cumsum(np.bincount(owner, minlength=shards), out=offsets[1:])
        if (owner[1:] >= owner[:-1]).all():
            return cls(offsets)
        ids = np.argsort(owner, kind="stable").astype(index_dtype(owner.size))
        return cls(offsets, ids)

    # --- what it is -------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The number of vertices."""
        return int(self.offsets[-1])

    @property
    def num_shards(self) -> int:
        """The number of shards."""
        return self.offsets.size - 1

    @functools.cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of vertices in each shard."""
        return tuple(np.diff(self.offsets).tolist())

    @functools.cached_property
    def internal_ids(self) -> np.ndarray | None:
        """The inverse of `ids`: internal_ids[user's id] is the internal id."""
        if self.ids is None:
            return None
        internal_ids = np.empty_like(self.ids)
        internal_ids[self.ids] = np.arange(self.size, dtype=self.ids.dtype)
        internal_ids.setflags(write=False)
        return internal_ids

    @functools.cached_property
    def checksum(self) -> int:
        """A hash of who owns which vertex: the same in all processes that divide a graph alike."""
        found = zlib.crc32(self.offsets.tobytes())
        return found if self.ids is None else zlib.crc32(self.ids.tobytes(), found)

    def slice(self, p: int) -> slice:
        """The internal ids of shard p."""
        return slice(int(self.offsets[p]), int(self.offsets[p + 1]))

    def shard_ids(self, p: int, device: str) -> Array:
        """The user's ids of the vertices of shard p, ascending, on `device`."""
        if self.ids is not None:
            return self._table("ids", device)[self.slice(p)]
        own = self.slice(p)
        with on_device(device) as xp:
            return xp.arange(own.start, own.stop, dtype=index_dtype(self.size))

    def user_ids(self, device: str) -> Array:
        """The user's ids of all vertices in the order of internal ids, on `device`."""
        return self._table("ids", device)

    def in_user_order(self, array: Array) -> Array:
        """`array`, one element for each internal id, in the order of the user's ids."""
        if self.ids is None:
            return array
        return array[self._table("internal_ids", device_of(array))]

    # --- ids --------------------------------------------------------------------------------------

    def to_internal(self, ids: int | Sequence[int] | Array) -> Array:
        """The internal ids of the user's ids, on the device where those are."""
        array: Array = as_array("ids", ids)
        return array if self.ids is None else self._table("internal_ids", device_of(array))[array]

    def owner(self, ids: int | Sequence[int] | Array) -> Array:
        """The number of the shard that owns each of the internal ids, on their device."""
        array: Array = as_array("ids", ids)
        offsets = self._table("offsets", device_of(array))
        return offsets.searchsorted(array, side="right").astype(np.int32) - 1

    def _table(self, name: str, device: str) -> Array:
        """The attribute `name` on `device`; a copy on a GPU is kept for the next call."""
        if device == "cpu":
            return getattr(self, name)
        if (name, device) not in self._tables:
            table = move(getattr(self, name), device)
            synchronize(device)
            self._tables[name, device] = table
        return self._tables[name, device]

    @functools.cached_property
    def _tables(self) -> dict[tuple[str, str], Array]:
        return {}

    # --- equality, pickling, printing -------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Partition):
            return NotImplemented
        if not np.array_equal(self.offsets, other.offsets):
            return False
        if self.ids is None or other.ids is None:
            return self.ids is other.ids
        return np.array_equal(self.ids, other.ids)

    def __hash__(self) -> int:
        return hash(self.offsets.tobytes())

    def __reduce__(self) -> tuple[type, tuple[np.ndarray, np.ndarray | None]]:
        return Partition, (self.offsets, self.ids)

    def __repr__(self) -> str:
        kind = "ranges" if self.ids is None else "any vertices"
        return f"Partition of {self.size} vertices in {self.num_shards} shards ({kind})"


def check_shards(shards: object) -> int:
    """`shards` as an int; ValueError if it is not one, or less than 1."""
    if not is_integer(shards) or shards < 1:
        raise ValueError(f"shards: expected an integer >= 1, got {shards!r}")
    return int(shards)
