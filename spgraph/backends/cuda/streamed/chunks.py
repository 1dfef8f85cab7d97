"""The entries of a Matrix in host memory, chunk by chunk where kernels can read them.

A chunk is a run of whole rows of at most CHUNK bytes, or one longer row. While kernels work on one
chunk the next is copied, by a stream of its own, into the other of two buffers. Kernels get the
offsets of the whole Matrix, and for columns and values the addresses at which those of entry 0
would be: so they see the whole Matrix, of which only the rows of this chunk may be touched, and
need not know of chunks. Where a call needs little of the chunks that it touches nothing is copied:
kernels read it in host memory, over the bus, as Min et al. do for whole graphs.

Source: Min, Mailthody, Qureshi, Xiong, Ebrahimi, Hwu, "EMOGI: efficient memory-access for
out-of-memory graph-traversal in GPUs" (2020).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from spgraph.backends.cuda.products.row_bins import RowBins, bin_rows
from spgraph.backends.cuda.runtime import jit
from spgraph.containers.storage.arrays import Array, array_module, index_dtype, move
from spgraph.containers.storage.device_memory import address
from spgraph.containers.storage.host_matrix import HostMatrix

# bytes of a chunk: at 50 GB a second 1.3 ms, in which the host launches the kernels of another
CHUNK = 1 << 26
# copies begin at addresses that differ from those of the source by a multiple of this
ALIGN = 256
# bytes of the bus that the least load in host memory takes; and how many times longer loads may
# take than copies of as many bytes
LINE, SLOWER = 32, 3


class Division(NamedTuple):
    """How the rows of a Matrix are divided."""

    rows: np.ndarray  # the first row of each chunk, and the number of rows
    entries: np.ndarray  # the first entry of each chunk, and the number of entries


class Chunk(NamedTuple):
    """What kernels may read now."""

    number: int
    arrays: tuple[Array, np.intp, Array]  # offsets, and the addresses of columns and values


def divide(indptr: np.ndarray, most: int) -> Division:
    """The chunks of the rows of these offsets: at most `most` entries each, or one row."""
    rows, last = [0], indptr.size - 1
    end = int(indptr[-1])
    while rows[-1] < last:
        # in the type of the offsets, of which NumPy would make a copy otherwise
        stop = indptr.dtype.type(min(int(indptr[rows[-1]]) + most, end))
        rows.append(max(int(indptr.searchsorted(stop, side="right")) - 1, rows[-1] + 1))
    return Division(np.array(rows, np.int64), indptr[rows].astype(np.int64))


def division(A: HostMatrix) -> Division:
    """The chunks of A; kept."""
    if "chunks" not in A._derived:
        A._derived["chunks"] = divide(A._host._indptr, max(CHUNK // bytes_of_entry(A), 1))
    return A._derived["chunks"]


def bytes_of_entry(A: HostMatrix) -> int:
    """Bytes that an entry of A has in host memory."""
    return A.index_dtype.itemsize + (0 if A.iso else A.dtype.itemsize)


def needed(A: HostMatrix, rows: Array) -> tuple[np.ndarray, int]:
    """(how many entries each chunk has in the rows whose flag is set, how many of these rows have
    entries); read back.
    """
    xp, parts = array_module(rows), division(A)
    through = xp.zeros(A.nrows + 2, np.int64)
    lengths = xp.where(rows, A._indptr[1:] - A._indptr[:-1], 0)
    xp.cumsum(lengths, dtype=np.int64, out=through[1:-1])
    through[-1] = xp.count_nonzero(lengths)
    *ends, count = move(through[xp.asarray(np.append(parts.rows, A.nrows + 1))], "cpu").tolist()
    return np.diff(ends), count


def pays_in_place(A: HostMatrix, entries: np.ndarray, rows: int) -> bool:
    """Whether kernels had better read so many entries of each chunk, of so many rows in all, in
    host memory than wait for copies of the chunks that have some of them. If so, they are counted
    as read.
    """
    width, arrays = bytes_of_entry(A), 1 if A.iso else 2
    read = int(entries.sum()) * width + rows * arrays * LINE
    copied = int(np.diff(division(A).entries)[entries > 0].sum()) * width
    if SLOWER * read >= copied:
        return False
    count_read(A, read)
    return True


def row_bins(A: HostMatrix) -> list[RowBins]:
    """The rows of each chunk, binned by their lengths; kept."""
    if "chunk_bins" not in A._derived:
        parts, kind = division(A), index_dtype(A.nrows)
        bins = []
        for first, last in zip(parts.rows[:-1].tolist(), parts.rows[1:].tolist(), strict=True):
            found = bin_rows(A._indptr[first : last + 1])
            bins.append(found._replace(rows=found.rows.astype(kind) + kind.type(first)))
        A._keep("chunk_bins", bins)
    return A._derived["chunk_bins"]


def chunks(A: HostMatrix, wanted: np.ndarray | None = None) -> Iterator[Chunk]:
    """Each chunk of A, to be read by what is launched on the current stream before the next is
    asked for. `wanted` says how many entries of each chunk will be read; those of which none are
    left out. None: all of all.
    """
    counts = np.diff(division(A).entries)
    chosen = counts > 0 if wanted is None else wanted > 0
    count_read(A, int(counts[chosen].sum()) * bytes_of_entry(A))
    numbers = np.flatnonzero(chosen).tolist()
    buffers = Buffers(A, int(counts[chosen].max(initial=0)), len(numbers))
    try:
        for number, arrays in zip(numbers, buffers.filled(numbers), strict=True):
            yield Chunk(number, arrays)
    finally:
        buffers.close()


def count_read(A: HostMatrix, nbytes: int) -> None:
    """Add to what was read of A over the bus."""
    A._derived["bytes_streamed"] = A.bytes_streamed + nbytes


def in_place(A: HostMatrix) -> tuple[Array, np.intp, Array]:
    """The arrays of A for kernels that read them in host memory."""
    host = A._host
    values = value_of_iso(A) if A.iso else np.intp(address(host._values))
    return A._indptr, np.intp(address(host._indices)), values


def value_of_iso(A: HostMatrix) -> Array:
    """The value of all entries, on the GPU; kept."""
    if "value" not in A._derived:
        A._keep("value", array_module(A._indptr).asarray(A._host._values))
    return A._derived["value"]


class Buffers:
    """Two buffers for chunks of up to `entries` entries of A, of which one is filled while the
    other is read; one where a single chunk is copied.
    """

    def __init__(self, A: HostMatrix, entries: int, copies: int) -> None:
        self.A, self.division = A, division(A)
        self.sources = [A._host._indices] + ([] if A.iso else [A._host._values])
        xp, count = array_module(A._indptr), min(copies, 2)
        self.memory = [
            [xp.empty(entries * source.itemsize + ALIGN, np.uint8) for source in self.sources]
            for _ in range(count)
        ]
        self.pipe = Pipe(count) if count else None

    def filled(self, numbers: Sequence[int]) -> Iterator[tuple[Array, np.intp, Array]]:
        """The arrays of each of these chunks, when it is in a buffer."""
        pipe = self.pipe
        if pipe is None:
            return
        places = [self.send(0, numbers[0])]
        for turn in range(len(numbers)):
            if turn + 1 < len(numbers):
                places.append(self.send(turn + 1, numbers[turn + 1]))
            pipe.arrive(turn % 2)
            indices, values = places[turn]
            yield self.A._indptr, indices, values
            pipe.free(turn % 2)

    def send(self, turn: int, number: int) -> tuple[np.intp, Array]:
        """Begin to copy a chunk; where entry 0 of columns and of values would be."""
        first, last = self.division.entries[number : number + 2].tolist()
        pieces, zeros = [], []
        for buffer, source in zip(self.memory[turn % 2], self.sources, strict=True):
            begin = first * source.itemsize
            # as the source lies, so that what is aligned there is aligned here
            place = address(buffer) + (address(source) + begin - address(buffer)) % ALIGN
            pieces.append((place, address(source) + begin, (last - first) * source.itemsize))
            zeros.append(np.intp(place - begin))
        assert self.pipe is not None
        self.pipe.send(turn % 2, pieces)
        return zeros[0], value_of_iso(self.A) if self.A.iso else zeros[1]

    def close(self) -> None:
        """Nothing is copied any more when work launched from now on begins."""
        if self.pipe is not None:
            self.pipe.close()


class Pipe:
    """Copies into numbered buffers beside the current stream, and the events that keep the two in
    order: a buffer is written when what was launched before `free` is done, and read by what is
    launched after `arrive`. The host waits for neither.
    """

    def __init__(self, count: int) -> None:
        import cupy

        self.work = cupy.cuda.get_current_stream()
        self.copies = _copies(jit.current_device())
        self.came = [cupy.cuda.Event(disable_timing=True) for _ in range(count)]
        self.freed = [cupy.cuda.Event(disable_timing=True) for _ in range(count)]
        for event in self.freed:  # the memory may be in use by earlier work
            event.record(self.work)

    def send(self, buffer: int, pieces: list[tuple[int, int, int]]) -> None:
        """Copy each (target, source, bytes)."""
        from cupy.cuda import runtime

        self.copies.wait_event(self.freed[buffer])
        for target, source, nbytes in pieces:
            kind = runtime.memcpyHostToDevice
            runtime.memcpyAsync(target, source, nbytes, kind, self.copies.ptr)
        self.came[buffer].record(self.copies)

    def arrive(self, buffer: int) -> None:
        """Let the current stream wait for the last copy into a buffer."""
        self.work.wait_event(self.came[buffer])

    def free(self, buffer: int) -> None:
        """What is launched from now on reads the buffer no more."""
        self.freed[buffer].record(self.work)

    def close(self) -> None:
        """Let the current stream wait for all copies, also those that nobody has asked for."""
        for event in self.came:
            self.work.wait_event(event)


@functools.cache
def _copies(device_id: int) -> Any:
    """The stream of copies to a device; it does not wait for the legacy default stream."""
    import cupy

    with cupy.cuda.Device(device_id):
        return cupy.cuda.Stream(non_blocking=True)
