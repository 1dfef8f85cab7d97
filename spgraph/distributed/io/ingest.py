"""Rows of a graph assembled where they belong, from entries that come in pieces.

No process ever holds all entries, nor its own twice. The pieces come two times: at first the
entries of each row are counted, so that every row gets its slots; then each entry goes to the shard
that owns its row and takes a slot. At last the rows are sorted and repeated entries combined.

An entry is a key, uint64: row << 32 | column, and perhaps a value.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse

from spgraph.containers import memory
from spgraph.containers.arrays import Array, array_module, index_dtype, is_cuda, move
from spgraph.distributed.communicators import Communicator
from spgraph.distributed.containers.partition import Partition
from spgraph.errors import CommunicationError
from spgraph.io.coordinates import combined

SORTED = 1 << 22  # entries sorted at once on a CPU ...
SORTED_CUDA = 1 << 24  # ... and on a GPU, where that takes half a GiB beside the shard
COUNTS = 1 << 20  # counts summed at once
UNASKED = 1 << 27  # rows that are counted without a question

LOW, HIGH = np.uint64(0xFFFFFFFF), np.uint64(32)


T = TypeVar("T")


class Rows(NamedTuple):
    """The CSR arrays of one shard's rows, columns by the user's ids; `values` None for a pattern.

    Row r of it is the vertex of internal id offsets[p] + r.
    """

    indptr: Array
    indices: Array
    values: Array | None


class Piece(NamedTuple):
    """Some entries, in any order."""

    keys: np.ndarray
    values: np.ndarray | None = None


Pieces = Callable[[int], Iterator[Piece]]  # of one shard: its share of the input, from the start


def keys_of(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The keys of entries at these positions."""
    keys = rows.astype(np.uint64)
    keys <<= HIGH
    keys |= columns.astype(np.uint64)
    return keys


def mirrored(pieces: Pieces) -> Pieces:
    """The pieces and, of entries off the diagonal, their mirror images."""

    def both(p: int) -> Iterator[Piece]:
        for keys, values in pieces(p):
            image = keys << HIGH | keys >> HIGH
            off = image != keys
            if not off.all():
                image = image[off]
                yield Piece(image, None if values is None else values[off])
            else:
                yield Piece(image, values)
            yield Piece(keys, values)

    return both


def lower(pieces: Pieces) -> Pieces:
    """The pieces, with each entry below the diagonal or on it."""

    def swapped(p: int) -> Iterator[Piece]:
        for keys, values in pieces(p):
            yield Piece(np.maximum(keys, keys << HIGH | keys >> HIGH), values)

    return swapped


def row_counts(
    pieces: Pieces,
    size: int | None,
    communicator: Communicator,
    check: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """How many entries each row has, repeated ones included: int64, the same in every process.

    `size` is the number of rows; None: as many as the largest id, of a row or a column, says. Then
    check(rows, entries) is asked before counts are made for more than UNASKED rows.
    """
    counts = np.zeros(size or 0, np.int64)
    top = entries = 0
    for some in rounds(pieces, communicator):
        for keys, _ in some:
            entries += keys.size
            rows = (keys >> HIGH).astype(np.int64)
            if size is None and keys.size:
                top = max(top, 1 + int(rows.max()), 1 + int((keys & LOW).max()))
                if top > UNASKED:
                    continue  # only what there is, this time
                if top > counts.size:  # by at least a quarter, so that growing stays cheap
                    counts.resize(max(top, counts.size + counts.size // 4), refcheck=False)
            np.add.at(counts, rows, 1)
    if size is None:
        size = int(communicator.all_reduce_host(np.array([top]), "max")[0])
        if size > UNASKED:
            entries = int(communicator.all_reduce_host(np.array([entries]), "sum")[0])
            if check is not None:
                check(size, entries)
            return row_counts(pieces, size, communicator)
        counts.resize(size, refcheck=False)
    for first in range(0, size, COUNTS):
        part = slice(first, first + COUNTS)
        counts[part] = communicator.all_reduce_host(counts[part], "sum")
    return counts


def build(
    pieces: Pieces,
    counts: np.ndarray,
    partition: Partition,
    communicator: Communicator,
    *,
    dtype: Any = None,
    duplicates: str = "min",
) -> list[Rows]:
    """The rows of each local shard, on the CPU, of the same pieces that `counts` were counted of.

    `dtype` is the type of the values, None for a pattern; values at one position are combined by
    `duplicates`, 'min' or 'plus'.
    """
    kind = index_dtype(partition.size)

    def begin() -> list[Slots]:
        made = []
        for p in communicator.local:
            rows = partition.slice(p)
            own = counts[rows] if partition.ids is None else counts[partition.ids[rows]]
            made.append(Slots(own, kind, dtype))
        return made

    slots = together(begin, communicator)[0]
    none = Piece(np.empty(0, np.uint64), None if dtype is None else np.empty(0, dtype))
    for some in rounds(pieces, communicator):
        some += [none] * (len(slots) - len(some))
        routed = _routed(some, partition, communicator, dtype)
        for slot, p, parts in zip(slots, communicator.local, routed, strict=True):
            for part in parts:
                slot.place(part, int(partition.offsets[p]))

    def finish() -> list[Rows]:
        done = []
        while slots:  # one after the other, each freed as soon as it is compact
            done.append(slots.pop(0).rows(duplicates))
        return done

    return together(finish, communicator)[0]


def rounds(pieces: Pieces, communicator: Communicator) -> Iterator[list[Piece]]:
    """The next piece of each local shard that has one, until no shard of any process has.

    Every process goes through equally many rounds; an error in one of them ends all, as `together`
    says.
    """
    streams = [pieces(p) for p in communicator.local]

    def following() -> list[Piece]:
        return [piece for stream in streams if (piece := next(stream, None)) is not None]

    while True:
        some, any_left = together(following, communicator)
        if not any_left:
            return
        yield some


def together(make: Callable[[], list[T]], communicator: Communicator) -> tuple[list[T], bool]:
    """What `make` makes here, and whether it made anything anywhere.

    An error in one process ends all: it raises its own, the others CommunicationError.
    """
    made: list[T] = []
    error = None
    try:
        made = make()
    except Exception as raised:
        error = raised
    state = communicator.all_reduce_host(np.array([error is not None, bool(made)], np.int64), "max")
    if error is not None:
        raise error
    if state[0]:
        raise CommunicationError(
            "another process could not read or make its share of the graph; it says why"
        )
    return made, bool(state[1])


def _routed(
    pieces: Sequence[Piece], partition: Partition, communicator: Communicator, dtype: Any
) -> list[list[Piece]]:
    """For each local shard the entries of its rows, from every shard, by internal rows, sorted."""
    bounds = partition.offsets.astype(np.uint64) << HIGH
    parts: list[tuple[list[Array], list[Array]]] = []
    for (keys, values), device in zip(pieces, communicator.devices, strict=True):
        if partition.ids is not None:
            assert partition.internal_ids is not None
            keys = (
                partition.internal_ids[(keys >> HIGH).astype(np.int64)].astype(np.uint64) << HIGH
                | keys & LOW
            )
        if values is None:
            keys = np.sort(keys)
        else:
            order = keys.argsort(kind="stable")
            keys, values = keys[order], values[order]
        cuts = np.searchsorted(keys, bounds[1:-1]).tolist()
        slices = [slice(a, b) for a, b in itertools.pairwise([0, *cuts, keys.size])]
        parts.append(
            (
                [move(keys[part], device) for part in slices],
                [] if values is None else [move(values[part], device) for part in slices],
            )
        )
    keys_in = communicator.all_to_all([keys for keys, _ in parts])
    if dtype is None:
        return [[Piece(move(keys, "cpu")) for keys in row] for row in keys_in]
    values_in = communicator.all_to_all([values for _, values in parts])
    return [
        [Piece(move(k, "cpu"), move(v, "cpu")) for k, v in zip(keys, values, strict=True)]
        for keys, values in zip(keys_in, values_in, strict=True)
    ]


class Slots:
    """The rows of one shard while they fill up: as many slots as `counts` says."""

    def __init__(self, counts: np.ndarray, kind: np.dtype, dtype: Any) -> None:
        # offsets[r + 1] is the next free slot of row r: in the end, where it ends
        self.offsets = starts_of(counts)
        total = int(counts.sum())
        each = kind.itemsize + (0 if dtype is None else np.dtype(dtype).itemsize)
        memory.require(total * each, f"a shard of {total:,} entries")
        self.indices = np.empty(total, kind)
        self.values = None if dtype is None else np.empty(total, dtype)

    def place(self, piece: Piece, first: int) -> None:
        """Puts sorted entries into slots; `first` is the internal id of row 0."""
        keys, values = piece
        if not keys.size:
            return
        rows = (keys >> HIGH).astype(np.int64) - first
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        lengths = np.diff(starts, append=rows.size)
        free = rows[starts] + 1
        slot = np.repeat(self.offsets[free] - starts, lengths) + np.arange(rows.size)
        self.offsets[free] += lengths
        self.indices[slot] = keys & LOW
        if self.values is not None:
            self.values[slot] = values

    def rows(self, duplicates: str) -> Rows:
        """The rows, sorted and without repeated entries; `self` is used up."""
        arrays = self.offsets, self.indices, self.values
        del self.offsets, self.indices, self.values
        return compact(*arrays, duplicates)


def starts_of(counts: Array) -> Array:
    """Offsets that begin with two zeros: where rows of these lengths begin, shifted by one."""
    xp = array_module(counts)
    offsets = xp.zeros(counts.size + 1, np.int64)
    if counts.size:
        xp.cumsum(counts[:-1], out=offsets[2:])
    return offsets


def compact(offsets: Array, indices: Array, values: Array | None, duplicates: str = "min") -> Rows:
    """The rows, each sorted and repeated entries combined: in place, some rows at a time."""
    limit = SORTED_CUDA if is_cuda(indices) else SORTED
    pieces = 1 + (indices.size + offsets.size) // limit
    cuts = Partition.by_edges(offsets, pieces).offsets
    bounds = [int(offsets[cut]) for cut in cuts]
    end = 0
    for (r, s), (lo, hi) in zip(itertools.pairwise(cuts), itertools.pairwise(bounds), strict=True):
        if r == s:
            continue
        starts = offsets[r : s + 1] - lo
        part = None if values is None else values[lo:hi]
        merged = _merged_cuda if is_cuda(indices) else _merged
        kept, combined, starts = merged(starts, indices[lo:hi], part, duplicates)
        indices[end : end + kept.size] = kept
        if values is not None:
            values[end : end + kept.size] = combined
        offsets[r:s] = starts + end
        end += kept.size
        del part, kept, combined  # or `_shrunk` finds views
    offsets[-1] = end
    indptr = offsets.astype(index_dtype(end), copy=False)
    return Rows(indptr, _shrunk(indices, end), None if values is None else _shrunk(values, end))


def _merged(
    starts: np.ndarray, indices: np.ndarray, values: np.ndarray | None, duplicates: str
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """What is left of some rows: columns, values, and where each row begins among them."""
    data = np.empty(indices.size, bool) if values is None else values
    S = scipy.sparse.csr_array((starts.size - 1, int(indices.max(initial=0)) + 1), dtype=data.dtype)
    S.data, S.indices, S.indptr = data, indices, starts.astype(indices.dtype)
    S.has_sorted_indices = False
    S.sort_indices()
    fresh = np.ones(indices.size, bool)
    np.not_equal(indices[1:], indices[:-1], out=fresh[1:])
    first = starts[:-1]
    fresh[first[first < indices.size]] = True  # equal ids in different rows
    if fresh.all():
        return indices, values, first
    begins = np.flatnonzero(fresh)
    if values is not None:
        values = combined(values, begins, duplicates)
    return indices[begins], values, np.searchsorted(begins, first)


def _merged_cuda(
    starts: Array, indices: Array, values: None, duplicates: str
) -> tuple[Array, None, Array]:
    """The same of a pattern: a radix sort of row << 32 | column is what a GPU does best."""
    xp = array_module(indices)
    marks = xp.zeros(indices.size + 1, np.int32)  # rows that begin at each entry
    xp.add.at(marks, starts[1:-1], 1)
    keys = marks[:-1].cumsum(dtype=np.int64)
    del marks
    keys <<= 32
    keys |= indices
    keys.sort()
    fresh = xp.ones(keys.size, bool)
    xp.not_equal(keys[1:], keys[:-1], out=fresh[1:])
    keys = keys[fresh]
    first = xp.searchsorted(keys, xp.arange(starts.size - 1, dtype=np.int64) << 32)
    return (keys & 0xFFFFFFFF).astype(indices.dtype), None, first


def _shrunk(array: Array, size: int) -> Array:
    """The first `size` elements; a copy of them only where the rest is worth its bytes."""
    if not is_cuda(array):
        array.resize(size, refcheck=False)
        return array
    return array[:size] if 8 * (array.size - size) <= array.size else array[:size].copy()
