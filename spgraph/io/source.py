"""The bytes of a file, decompressed, by lines; and a file that appears whole or not at all."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import re
import secrets
import sys
import zlib
from collections.abc import Iterator
from typing import IO, Any, Literal

from spgraph.containers import memory
from spgraph.containers.display import size_of
from spgraph.errors import FormatError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")

BLOCK = 1 << 24  # bytes parsed at once: enough for every core, little beside the graph
LONGEST_LINE = 1 << 20
_EMPTY_LINES = re.compile(rb"\n+")


MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\0": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
# what the libraries raise at a stream that is not what its suffix says
BROKEN = (EOFError, OSError, zlib.error, lzma.LZMAError, zstd.ZstdError)


def open_compressed(file: Any, compression: str, mode: Literal["rb", "wb"]) -> IO[bytes]:
    """The file at the path `file`, or a binary stream, through `compression`, a suffix or ''.

    All are Python's own; .zst comes from a package of the same interface before Python 3.14. What
    is written has a checksum of its content, which Zstandard leaves out unless it is asked for.
    """
    stream: Any
    if compression == ".gz":
        stream = gzip.open(file, mode, compresslevel=6)  # noqa: SIM115, the caller closes it
    elif compression == ".bz2":
        stream = bz2.BZ2File(file, mode)
    elif compression == ".xz":
        stream = lzma.LZMAFile(file, mode)  # noqa: SIM115
    elif compression == ".zst":
        checked = {int(zstd.CompressionParameter.checksum_flag): 1}
        stream = zstd.ZstdFile(file, mode, options=checked if mode == "wb" else None)
    else:
        stream = open(file, mode) if isinstance(file, str) else file  # noqa: SIM115
    return stream


class Ahead(io.RawIOBase):
    """A stream whose first bytes, `head`, have been read already."""

    def __init__(self, head: bytes, stream: IO[bytes]) -> None:
        self._head, self._stream = head, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._head[: len(buffer)] or self._stream.read(len(buffer))
        self._head = self._head[len(part) :]
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self._stream.close()
        super().close()


def open_unnamed(path: str) -> tuple[IO[bytes], str]:
    """A stream of the bytes of `path`, a pipe perhaps, and the compression that the first ones say
    they have.
    """
    stream = open(path, "rb")  # noqa: SIM115, closed with what is returned
    head = stream.read(max(map(len, MAGIC)))
    compression = next((MAGIC[magic] for magic in MAGIC if head.startswith(magic)), "")
    return io.BufferedReader(Ahead(head, stream)), compression


class Source:
    """A file being read: single lines for its header, then blocks of whole lines for its body.

    `line` counts the lines handed out so far. A broken compressed stream raises FormatError
    wherever it is met. `compression` None: the first bytes say it.
    """

    def __init__(self, path: str, compression: str | None = "") -> None:
        self.path = path
        self.line = 0
        self._closing = contextlib.ExitStack()
        file: Any = path
        if compression is None:
            file, compression = open_unnamed(path)
            self._closing.enter_context(file)
        self._stream = self._closing.enter_context(open_compressed(file, compression, "rb"))
        self._compression = compression
        self._at = self._before = self._taken = 0
        try:  # a byte order mark says nothing
            self._buffer = self._read(BLOCK).removeprefix(b"\xef\xbb\xbf")
        except BaseException:
            self._closing.close()
            raise

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

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
        text = text.removesuffix(b"\r")
        if b"\r" in text:
            raise lone_return(f"{self.path}, line {self.line}")
        return text

    def starts_with(self, text: bytes) -> bool:
        """Whether the file does, in any case; nothing of it must have been handed out."""
        return self._buffer[: len(text)].lower() == text.lower()

    def head(self) -> bytes:
        """The first bytes of the file, of which nothing must have been handed out."""
        return self._buffer

    def skip_empty_lines(self) -> None:
        """Goes on to the next line that has a byte, many times faster than line by line."""
        while (found := _EMPTY_LINES.match(self._buffer, self._at)) is not None:
            self.line += self._buffer.count(b"\n", self._at, found.end())
            self._at = found.end()
            if self._at < len(self._buffer) or not self._more():
                return

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
        """All bytes that are left, for formats that have no lines; MemoryError where they take more
        than half of the memory that is left, for they are about to be made arrays.
        """
        parts = [self._buffer[self._at :]]
        size = len(parts[0])
        while parts[-1]:
            if size > memory.available():
                raise MemoryError(
                    f"{self.path}: its content takes more than {size_of(size)} and as much again "
                    "as arrays, which is more than the memory available"
                )
            parts.append(self._read(BLOCK))
            size += len(parts[-1])
        return b"".join(parts)

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
        except BROKEN as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # the disk's fault, not the file's
            raise FormatError(
                f"{self.path}, after line {self.line}: the {self._compression} stream is cut off "
                f"or corrupt ({error}); fetch or compress the file again"
            ) from error


def lone_return(where: str) -> FormatError:
    """The error of a carriage return within a line, which some programs take for its end."""
    return FormatError(
        f"{where}: expected lines that end with a line feed, got a carriage return within one; "
        "convert the ends of lines, for example by: tr '\\r' '\\n'"
    )


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
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(part)
        if isinstance(error, OSError) and error.errno and error.filename in (None, part):
            raise OSError(error.errno, error.strerror, path) from error
        raise
