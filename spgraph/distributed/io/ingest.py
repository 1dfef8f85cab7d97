"""CSR rows of each shard built from entries that arrive in pieces, in any order.

No process ever holds all entries, nor its own entries twice. There are two passes over the pieces:
the first counts the entries of each row, which gives every row its slots; the second sends each
entry to the shard that owns its row, where it is stored in a slot. Then rows are sorted, and
repeated entries combined.

An entry is a key, uint64: row << 32 | column, and perhaps a value.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import scipy.sparse

from spgraph.containers import memory
from spgraph.containers.storage.arrays import Array, array_module, index_dtype, is_cuda, move
from spgraph.containers.storage.selection import compress, is_first
from spgraph.distributed.communicators import Communicator
from spgraph.distributed.containers.partition import Partition
from spgraph.errors import CommunicationError
from spgraph.io.coordinates import combined
from spgraph.operations.reductions import reduce_segments

SORTED = 1 << 22  # so many entries are sorted at once on a CPU ...
SORTED_CUDA = 1 << 24  # ... and on a GPU, which takes half a GiB beside the shard
COUNTS = 1 << 20  # so many counts are reduced in one call
UNCHECKED = 1 << 27  # up to so many rows are counted without calling `check`

LOW, HIGH = np.uint64(0xFFFFFFFF), np.uint64(32)


T = TypeVar("T")


class Rows(NamedTuple):
    """The CSR arrays of the rows of one shard p, with the user's ids as columns; `values` is None
    for a pattern. Row r is the vertex of internal id offsets[p] + r.
    """

    indptr: Array
    indices: Array
    values: Array | None


class Piece(NamedTuple):
    """Some entries, in any order."""

    keys: np.ndarray
    values: np.ndarray | None = None


Pieces = Callable[[int], Iterator[Piece]]  # of a shard's share of the input


def keys_of(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The keys of entries at these positions."""
    keys = rows.astype(np.uint64)
    keys <<= HIGH
    keys |= columns.astype(np.uint64)
    return keys


def mirrored(pieces: Pieces) -> Pieces:
    """The pieces, and of each entry off the diagonal also its mirror image."""

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
    """The pieces, with entries above the diagonal mirrored to below it."""

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
    """The number of entries in each row, repeated ones included: int64, the same in every process.

    `size` is the number of rows; None: the largest id of a row or column + 1. Then
    check(rows, entries) is called, and may raise, before more than UNCHECKED rows are counted.
    """
    counts = np.zeros(size or 0, np.int64)
    top = entries = 0
    for some in rounds(pieces, communicator):
        for keys, _ in some:
            entries += keys.size
            rows = (keys >> HIGH).astype(np.int64)
            if size is None and keys.size:
                top = max(top, 1 + int(rows.max()), 1 + int((keys & LOW).max()))
                if top > UNCHECKED:
                    continue  # this pass only finds the size; another one counts
                if top > counts.size:  # by at least a quarter: few copies in all
                    counts.resize(max(top, counts.size + counts.size // 4), refcheck=False)
            np.add.at(counts, rows, 1)
    if size is None:
        size = int(communicator.all_reduce_host(np.array([top]), "max")[0])
        if size > UNCHECKED:
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
    dtype: np.dtype | None = None,
    duplicates: str = "min",
) -> list[Rows]:
    """The rows of each local shard, on the CPU; `counts` are the `row_counts` of the same pieces.

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
        routed = _routed(some, partition, communicator)
        for slot, p, parts in zip(slots, communicator.local, routed, strict=True):
            for part in parts:
                slot.place(part, int(partition.offsets[p]))

    def finish() -> list[Rows]:
        done = []
        while slots:  # one after the other, to free each as soon as possible
            done.append(slots.pop(0).rows(duplicates))
        return done

    return together(finish, communicator)[0]


def rounds(pieces: Pieces, communicator: Communicator) -> Iterator[list[Piece]]:
    """In each round the next piece of each local shard that has one. The rounds end when no shard
    of any process has a piece left, so that all processes make equally many. An error in one
    process is raised in all, as by `together`.
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
    """(make(), whether any process has made a list that is not empty).

    If make() raises in one process, that process raises the error, the others CommunicationError.
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
            "another process could not read or make its share of the graph; see its error"
        )
    return made, bool(state[1])


def _routed(
    pieces: Sequence[Piece], partition: Partition, communicator: Communicator
) -> list[list[Piece]]:
    """For each local shard the entries of its rows from every shard, with internal ids of rows,
    sorted.
    """
    bounds = partition.offsets.astype(np.uint64) << HIGH
    to_send: list[list[list[Array]]] = []  # of each shard: keys, and perhaps values, for each shard
    for (keys, values), device in zip(pieces, communicator.devices, strict=True):
        if partition.internal_ids is not None:
            rows = partition.internal_ids[(keys >> HIGH).astype(np.int64)]
            keys = rows.astype(np.uint64) << HIGH | keys & LOW
        if values is None:
            arrays = [np.sort(keys)]
        else:
            order = keys.argsort(kind="stable")
            arrays = [keys[order], values[order]]
        cuts = [0, *np.searchsorted(arrays[0], bounds[1:-1]).tolist(), keys.size]
        parts = [slice(a, b) for a, b in itertools.pairwise(cuts)]
        to_send.append([[move(array[part], device) for part in parts] for array in arrays])
    of_each = zip(*to_send, strict=True)
    received = [communicator.all_to_all(list(arrays)) for arrays in of_each]
    return [
        [Piece(*(move(array, "cpu") for array in came)) for came in zip(*arrays, strict=True)]
        for arrays in zip(*received, strict=True)
    ]


class Slots:
    """The rows of one shard while entries arrive; row r has counts[r] slots."""

    def __init__(self, counts: np.ndarray, kind: np.dtype, dtype: np.dtype | None) -> None:
        # offsets[r + 1] is the next free slot of row r, in the end the end of the row
        self.offsets = starts_of(counts)
        total = int(counts.sum())
        each = kind.itemsize + (0 if dtype is None else np.dtype(dtype).itemsize)
        memory.require(total * each, f"a shard of {total:,} entries")
        self.indices = np.empty(total, kind)
        self.values = None if dtype is None else np.empty(total, dtype)

    def place(self, piece: Piece, first: int) -> None:
        """Store sorted entries in slots; `first` is the internal id of row 0."""
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
        """The rows, sorted, with repeated entries combined. The arrays of `self` are given up."""
        arrays = self.offsets, self.indices, self.values
        del self.offsets, self.indices, self.values
        return compact(*arrays, duplicates)


def starts_of(counts: Array) -> Array:
    """(0, begin of row 0, begin of row 1, ...) of rows with these lengths: offsets of `Slots`."""
    xp = array_module(counts)
    offsets = xp.zeros(counts.size + 1, np.int64)
    if counts.size:
        xp.cumsum(counts[:-1], out=offsets[2:])
    return offsets


def compact(offsets: Array, indices: Array, values: Array | None, duplicates: str = "min") -> Rows:
    """The rows, each sorted and with repeated entries combined: in place, some rows at a time."""
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
        del part, kept, combined  # `_shrunk` cannot resize arrays that have views
    offsets[-1] = end
    indptr = offsets.astype(index_dtype(end), copy=False)
    return Rows(indptr, _shrunk(indices, end), None if values is None else _shrunk(values, end))


def _merged(
    starts: np.ndarray, indices: np.ndarray, values: np.ndarray | None, duplicates: str
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """(columns, values, where each row begins) of some rows, sorted, repeated entries combined."""
    data = np.empty(indices.size, bool) if values is None else values
    S = scipy.sparse.csr_array((starts.size - 1, int(indices.max(initial=0)) + 1), dtype=data.dtype)
    S.data, S.indices, S.indptr = data, indices, starts.astype(indices.dtype)
    S.has_sorted_indices = False
    S.sort_indices()
    fresh = is_first(indices)
    first = starts[:-1]
    fresh[first[first < indices.size]] = True  # equal ids in different rows
    if fresh.all():
        return indices, values, first
    begins = np.flatnonzero(fresh)
    if values is not None:
        values = combined(values, begins, duplicates)
    return indices[begins], values, np.searchsorted(begins, first)


def _merged_cuda(
    starts: Array, indices: Array, values: Array | None, duplicates: str
) -> tuple[Array, Array | None, Array]:
    """As `_merged`, by a radix sort of the keys row << 32 | column."""
    xp = array_module(indices)
    marks = xp.zeros(indices.size + 1, np.int32)  # rows that begin at each entry
    xp.add.at(marks, starts[1:-1], 1)
    keys = marks[:-1].cumsum(dtype=np.int64)
    del marks
    keys <<= 32
    keys |= indices
    if values is None:
        keys.sort()
    else:
        order = keys.argsort()
        keys, values = keys[order], values[order]
        del order
    fresh = is_first(keys)
    if values is not None:
        values = reduce_segments(values, xp.flatnonzero(fresh), duplicates)
    keys = compress(fresh, keys)
    first = xp.searchsorted(keys, xp.arange(starts.size - 1, dtype=np.int64) << 32)
    return (keys & 0xFFFFFFFF).astype(indices.dtype), values, first


def _shrunk(array: Array, size: int) -> Array:
    """The first `size` elements; on a GPU a copy only if more than an eighth is left out."""
    if not is_cuda(array):
        array.resize(size, refcheck=False)
        return array
    return array[:size] if 8 * (array.size - size) <= array.size else array[:size].copy()
