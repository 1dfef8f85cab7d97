"""read_shards: a large text file read by several processes, each of which keeps its own rows."""

from __future__ import annotations

import itertools
import os
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple

import numpy as np

from spgraph import checks
from spgraph.containers.storage.arrays import Array, index_dtype, move
from spgraph.containers.storage.casting import converted_exactly
from spgraph.distributed.communicators import Communicator
from spgraph.distributed.containers.partition import Partition
from spgraph.distributed.containers.partitioners import partition_by_counts
from spgraph.distributed.io.ingest import (
    Piece,
    Pieces,
    Rows,
    build,
    keys_of,
    lower,
    mirrored,
    row_counts,
    together,
)
from spgraph.errors import DimensionMismatch, FormatError
from spgraph.io.coordinates import check_digits
from spgraph.io.formats import binsparse_files, dimacs, edge_list, matrix_market
from spgraph.io.request import Request
from spgraph.io.source import LONGEST_LINE, Source, is_pipe
from spgraph.io.table import Layout, read_block

STEP = 1 << 23  # a process parses so many bytes of text between two exchanges
SAMPLE, SAMPLES = 1 << 12, 64  # bytes, and how many of them of a file are compared
ENTRIES = 1 << 20  # a shard sends so many entries at once


class Spread(NamedTuple):
    """A graph in shards: `rows` of the local shards, on the CPU; `ids`, if `compact`, are the ids
    that the vertices have in the file.
    """

    partition: Partition
    rows: list[Rows]
    symmetric: bool | None
    ids: np.ndarray | None = None


def read_shards(
    request: Request,
    communicator: Communicator,
    how: str | Sequence[int] | Array | Partition = "edges",
) -> Spread | None:
    """The graph that `spgraph.read` makes of the same request, in shards; None for a file that is
    no list of entries (.npz, HDF5, or a dense array in Matrix Market), for a pipe, which cannot be
    read twice, and for a file without a suffix, such as /dev/stdin: these have to be read whole.

    The file is read twice: once to count the entries of each row, so that `how` ('edges', 'random',
    an array, a Partition) can divide the rows and no process holds more than its share, then to
    send each entry to its row; with `compact` once more before, to find the ids, which every
    process keeps. Every process parses its part of the text, which all of them must be able to
    open; a compressed file is decompressed by each of them.

    Every process calls it with the same arguments. Raises what `spgraph.read` raises, in the
    process where it happens; in the others CommunicationError. DimensionMismatch for a matrix that
    is not square, which has no vertices to divide.
    """
    (text,), _ = together(lambda: [Text(request, communicator)], communicator)
    communicator.tag_graph(text.checksum)
    layout = text.layout
    if layout is None:
        return None
    if request.compact:
        text.find_ids()
    both = bool(request.symmetric) and not layout.undirected
    # values of one direction are summed first, then the lesser of both directions counts
    twice = both and layout.duplicates == "plus" and bool(layout.form.values)
    pieces = text.pieces if twice or not (both or layout.undirected) else mirrored(text.pieces)
    size = text.check_size(mirrored=pieces is not text.pieces)
    counts = row_counts(pieces, size, communicator, text.check_rows)
    text.check_entries()
    partition = partition_by_counts(counts, communicator.num_shards, how)
    communicator.tag_graph(partition.checksum)
    rows = text.built(pieces, counts, partition, layout.duplicates)
    sums = layout.undirected and layout.duplicates == "plus" and bool(text.types)
    if sums and _entries_of(rows, communicator) < counts.sum():
        # sums depend on their order: they are made once, below the diagonal, then mirrored
        twice, rows = True, text.rebuilt(lower(text.pieces), partition, "plus")
    if twice:
        pieces = mirrored(_pieces_of(rows, partition, communicator))
        rows = text.rebuilt(pieces, partition, "min")
    if request.dtype is not None:
        rows = together(lambda: [text.typed(own) for own in rows], communicator)[0]
    return Spread(partition, rows, True if layout.undirected or both else None, text.ids)


class Text:
    """A file of entries, whose parts are parsed by the processes in turn."""

    def __init__(self, request: Request, communicator: Communicator) -> None:
        self.request, self.name = request, request.name
        self.ids: np.ndarray | None = None  # of the vertices that have edges, if compact
        self.layout: Layout | None = None  # None: it is no list of entries
        self.types: tuple[str, ...] = ()
        self.communicator = communicator
        asked = request.suffix, request.symmetric, request.base, request.dtype, request.compact
        self.checksum = zlib.crc32(repr(asked).encode())
        self.entries = 0
        self.reals = False  # whether any value so far is no integer
        if request.suffix in ("", ".npz", *binsparse_files.SUFFIXES) or is_pipe(self.name):
            return
        self.version = _version(self.name)
        if not request.compression:  # which may differ where the text does not
            self.checksum = _sampled(self.name, self.checksum)
        with Source(self.name, request.compression) as source:
            layout = self._header(source)
            self.offset = source.offset
        if layout is None:
            return
        layout = layout.read_as(request.dtype)
        self.layout, self.types = layout, layout.form.values
        if layout.nrows != layout.ncols:
            raise DimensionMismatch(
                f"{self.name}: expected a square matrix to divide among shards, got "
                f"{layout.nrows} x {layout.ncols}"
            )
        request.check_direction(layout.undirected)

    def pieces(self, p: int) -> Iterator[Piece]:
        """The entries of this process's parts of the file, all as pieces of its first shard."""
        layout = self.layout
        if p != self.communicator.local[0] or layout is None:
            return
        self.entries = 0
        for rows, columns, *values in self._tables(layout):
            self.entries += rows.size
            rows, columns = rows - layout.form.low, columns - layout.form.low
            if self.ids is not None:
                rows, columns = self.ids.searchsorted(rows), self.ids.searchsorted(columns)
            found = values[0] if values else None
            if found is not None:
                check_digits(self.name, found, self.request.dtype)
                self.reals = self.reals or found.dtype == np.float64
                found = found.astype(self.types[0] if len(self.types) == 1 else found.dtype)
            yield Piece(keys_of(rows, columns), found)
            if layout.skew and found is not None:
                matrix_market.refuse_diagonal(self.name, rows, columns)
                yield Piece(keys_of(columns, rows), matrix_market.negative(self.name, found))

    def find_ids(self) -> None:
        """Read the file once to find the vertices that have edges."""
        layout, comm = self.layout, self.communicator
        assert layout is not None

        def mine() -> list[np.ndarray]:
            ids, parts, size = np.empty(0, np.int64), [], 0
            for rows, columns, *_ in self._tables(layout):
                parts += [rows, columns]
                size += 2 * rows.size
                if size > max(ids.size, ENTRIES):  # seldom, because it sorts all ids
                    ids, parts, size = np.unique(np.concatenate([ids, *parts])), [], 0
            return [np.unique(np.concatenate([ids, *parts])).astype(np.int64)]

        (ids,), _ = together(mine, comm)
        if comm.processes > 1:
            own = [ids] + [ids[:0]] * (len(comm.local) - 1)
            found = comm.all_gather(list(map(move, own, comm.devices)))[0]
            ids = np.unique(move(found, "cpu"))
        self.ids = ids - layout.form.low

    def check_size(self, *, mirrored: bool) -> int | None:
        """The number of rows, if it is known before they are counted; MemoryError where they are
        too many for the entries that the header declares.
        """
        assert self.layout is not None
        if self.ids is not None:
            return int(self.ids.size)
        size, count = self.layout.nrows, self.layout.count
        if size is not None and count is not None:
            self.check_rows(size, count * (1 + mirrored))
        return size

    def check_rows(self, rows: int, entries: int) -> None:
        """MemoryError where so many rows are too many for the entries; see `spgraph.read`."""
        each = 2 * index_dtype(rows).itemsize + 8 * bool(self.types)
        checks.row_pointers(
            self.name, rows, entries, entries * each, self.request.compact, square=True
        )

    def built(
        self, pieces: Pieces, counts: np.ndarray, partition: Partition, duplicates: str
    ) -> list[Rows]:
        """As `build`; errors name the file."""
        dtype = np.dtype(self.types[0]) if self.types else None
        how: dict[str, Any] = {"dtype": dtype, "duplicates": duplicates}
        try:
            return build(pieces, counts, partition, self.communicator, **how)
        except FormatError as error:
            if self.name in str(error):
                raise
            raise FormatError(f"{self.name}: {error}") from error

    def rebuilt(self, pieces: Pieces, partition: Partition, duplicates: str) -> list[Rows]:
        """As `built`, of pieces whose rows are counted here."""
        counts = row_counts(pieces, partition.size, self.communicator)
        return self.built(pieces, counts, partition, duplicates)

    def typed(self, rows: Rows) -> Rows:
        """The rows with values of the type `dtype`; a pattern stays one."""
        if rows.values is None or self.request.dtype is None:
            return rows
        try:
            return rows._replace(values=converted_exactly("dtype", rows.values, self.request.dtype))
        except ValueError as error:
            raise FormatError(f"{self.name}: {error}") from error

    def check_entries(self) -> None:
        """After the first pass: check the number of entries, and decide the type of the values."""
        if self.layout is None:
            return
        comm = self.communicator
        entries = int(comm.all_reduce_host(np.array([self.entries]), "sum")[0])
        declared = self.layout.count
        if declared is not None and entries != declared:
            raise FormatError(
                f"{self.name}: the header declares {declared} entries, the file has {entries}: "
                "fetch the file again, or correct the header"
            )
        if entries == 0 and self.request.suffix not in (".mtx", ".gr"):
            raise edge_list.no_edge(self.name)
        reals = bool(comm.all_reduce_host(np.array([int(self.reals)]), "max")[0])
        self.types = self.types[-1:] if reals else self.types[:1]

    def _header(self, source: Source) -> Layout | None:
        if self.request.suffix == ".mtx":
            layout, dense = matrix_market.layout_of(source)
            return None if dense else layout
        if self.request.suffix == ".gr":
            return dimacs.layout_of(source, 1 if self.request.base is None else self.request.base)
        return edge_list.layout_of(source, self.request.base or 0, self.request.compact)

    def _tables(self, layout: Layout) -> Iterator[list[np.ndarray]]:
        """The columns of each part of the file that this process parses. FormatError if the file is
        another than at the beginning: what was counted would not be what is stored.
        """
        for columns in self._parsed(layout):
            if _version(self.name) != self.version:
                raise FormatError(
                    f"{self.name}: expected a file that stays as it is while it is read, it has "
                    "changed; read it when nobody writes it any more"
                )
            yield columns

    def _parsed(self, layout: Layout) -> Iterator[list[np.ndarray]]:
        types, comm = self.types, self.communicator
        if self.request.compression:
            with Source(self.name, self.request.compression) as source:
                self._header(source)
                blocks = itertools.islice(source.blocks(), comm.rank, None, comm.processes)
                for line, block in blocks:
                    yield read_block(layout.form, self.name, line, block, types)
            return
        with open(self.name, "rb") as stream:
            size = os.path.getsize(self.name)
            for first in range(self.offset + comm.rank * STEP, size, comm.processes * STEP):
                start, block = _lines(stream, self.offset, first, first + STEP)
                try:
                    columns = read_block(layout.form, self.name, 0, block, types)
                except FormatError:  # parse again, to name the line in the message
                    line = 1 + _newlines(self.name, start)
                    columns = read_block(layout.form, self.name, line, block, types)
                yield columns


def _version(path: str) -> tuple[int, int, int]:
    """What differs once somebody has written to a file, or put another in its place."""
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns


def _sampled(path: str, checksum: int) -> int:
    """The checksum, continued with the size of a file and parts of it: processes that read other
    versions of it, of which each would have its share of the entries, find out.
    """
    size = os.path.getsize(path)
    checksum = zlib.crc32(str(size).encode(), checksum)
    with open(path, "rb") as stream:
        for start in range(0, size, max(SAMPLE, size // SAMPLES)):
            stream.seek(start)
            checksum = zlib.crc32(stream.read(SAMPLE), checksum)
    return checksum


def _lines(stream: IO[bytes], offset: int, first: int, last: int) -> tuple[int, bytes]:
    """(begin, text) of the lines that begin at bytes first..last - 1, and not before `offset`."""
    stream.seek(max(first - 1, offset))
    start = first if first == offset else first - 1 + len(_line(stream))
    if start >= last:
        return start, b""
    text = stream.read(last - start)
    return start, text if text.endswith(b"\n") else text + _line(stream)


def _line(stream: IO[bytes]) -> bytes:
    """The rest of the line."""
    text = stream.readline(LONGEST_LINE + 1)
    if len(text) > LONGEST_LINE:
        raise FormatError(
            f"{stream.name}, near byte {stream.tell()}: expected lines of text, got one of more "
            f"than {LONGEST_LINE} bytes; is this another kind of file under a wrong name?"
        )
    return text


def _newlines(path: str, end: int) -> int:
    """The number of lines that end before byte `end`."""
    count = 0
    with open(path, "rb") as stream:
        while end > 0 and (text := stream.read(min(end, STEP))):
            count += text.count(b"\n")
            end -= len(text)
    return count


def _entries_of(rows: list[Rows], communicator: Communicator) -> int:
    """How many entries the rows of all shards have."""
    own = np.array([sum(row.indices.size for row in rows)])
    return int(communicator.all_reduce_host(own, "sum")[0])


def _pieces_of(rows: list[Rows], partition: Partition, communicator: Communicator) -> Pieces:
    """The entries of rows that shards have already, by the user's ids."""

    def some(p: int) -> Iterator[Piece]:
        indptr, indices, values = rows[p - communicator.local[0]]
        own = partition.slice(p)
        ids = np.arange(own.start, own.stop) if partition.ids is None else partition.ids[own]
        cuts = Partition.by_edges(indptr, 1 + indices.size // ENTRIES).offsets
        for r, s in itertools.pairwise(cuts):
            row = ids[r:s].repeat(np.diff(indptr[r : s + 1]))
            part = slice(indptr[r], indptr[s])
            yield Piece(keys_of(row, indices[part]), None if values is None else values[part])

    return some
