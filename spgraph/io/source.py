"""The bytes of a file, decompressed, by lines; and a file that appears whole or not at all."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import secrets
import zlib
from collections.abc import Iterator
from typing import IO, Any, Literal

from spgraph.errors import FormatError

COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")

BLOCK = 1 << 24  # bytes parsed at once: enough for every core, little beside the graph
LONGEST_LINE = 1 << 20


def open_compressed(path: str, compression: str, mode: Literal["rb", "wb"]) -> IO[bytes]:
    """The file at `path` as a binary stream through `compression`, a suffix or ''.

    .gz, .bz2 and .xz are Python's own. .zst is PyArrow's, which is installed anyway (it parses the
    numbers): Python has a Zstandard of its own only from 3.14 on.
    """
    stream: Any
    if compression == ".gz":
        stream = gzip.GzipFile(path, mode, compresslevel=6)
    elif compression == ".bz2":
        stream = bz2.BZ2File(path, mode)
    elif compression == ".xz":
        stream = lzma.LZMAFile(path, mode)  # noqa: SIM115
    elif compression == ".zst":
        import pyarrow  # late: a tenth of a second that `import spgraph` need not pay

        opener = pyarrow.input_stream if mode == "rb" else pyarrow.output_stream
        stream = opener(path, compression="zstd")
    else:
        stream = open(path, mode)  # noqa: SIM115, the caller closes it
    return stream


class Source:
    """A file being read: single lines for its header, then blocks of whole lines for its body.

    `line` counts the lines handed out so far. A broken compressed stream raises FormatError
    wherever it is met.
    """

    def __init__(self, path: str, compression: str = "") -> None:
        self.path = path
        self.line = 0
        self._compression = compression
        self._stream = open_compressed(path, compression, "rb")
        self._at = self._before = self._taken = 0
        try:  # a byte order mark says nothing
            self._buffer = self._read(BLOCK).removeprefix(b"\xef\xbb\xbf")
        except BaseException:
            self._stream.close()
            raise

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    @property
    def offset(self) -> int:
        """How many bytes of the decompressed file have been handed out."""
        return self._taken - len(self._buffer) + self._at

    def readline(self) -> bytes | None:
        """The next line without its end; None after the last."""
        while (end := self._buffer.find(b"\n", self._at)) < 0:
            if not self._more():
                end = len(self._buffer)
                break
        if self._at == end == len(self._buffer):
            return None
        text = self._buffer[self._at : end]
        self._before, self._at = self._at, min(end + 1, len(self._buffer))
        self.line += 1
        return text.removesuffix(b"\r")

    def push_back(self) -> None:
        """Undoes the last call, a `readline` that returned a line."""
        self._at = self._before
        self.line -= 1

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """What is left, as (number of the first line, whole lines)."""
        while True:
            end = self._buffer.rfind(b"\n", self._at) + 1
            if end <= self._at:
                if self._more():
                    continue
                end = len(self._buffer)
                if end == self._at:
                    return
            block = self._buffer[self._at : end]
            self._at = end
            first = self.line + 1
            self.line += block.count(b"\n")
            yield first, block

    def read_all(self) -> bytes:
        """All bytes that are left, for formats that have no lines."""
        return self._buffer[self._at :] + self._read(-1)

    def _more(self) -> bool:
        if len(self._buffer) - self._at > LONGEST_LINE:
            raise FormatError(
                f"{self.path}, line {self.line + 1}: expected lines of text, got one of more than "
                f"{LONGEST_LINE} bytes; is this another kind of file under a wrong name?"
            )
        chunk = self._read(BLOCK)
        self._buffer = self._buffer[self._at :] + chunk
        self._at = 0
        return bool(chunk)

    def _read(self, size: int) -> bytes:
        try:
            found = self._stream.read(size)
            self._taken += len(found)
            return found
        except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # the disk's fault, not the file's
            raise FormatError(
                f"{self.path}, after line {self.line}: the {self._compression} stream is cut off "
                f"or corrupt ({error}); fetch or compress the file again"
            ) from error


@contextlib.contextmanager
def replacing(path: str, compression: str = "") -> Iterator[IO[bytes]]:
    """A stream whose content becomes the file `path` if the block ends well, and vanishes if not.

    The bytes go to a file of a random name in the same folder, which then replaces `path` in one
    step: a reader, or a crash, never meets half a file.
    """
    target = os.path.realpath(path)  # a link keeps pointing where it does
    folder, name = os.path.split(target)
    if os.path.isdir(target):
        raise IsADirectoryError(f"path: expected a file to write, {path} is a folder")
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"path: the folder of {path} does not exist; make it first")
    part = os.path.join(folder, f".{name}.{secrets.token_hex(8)}.part")
    try:
        with open_compressed(part, compression, "wb") as stream:
            yield stream
        with open(part, "rb") as written:
            os.fsync(written.fileno())
        os.replace(part, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        raise
