"""Read the decompressed bytes of a file by lines; write a file atomically."""

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
from collections.abc import Callable, Iterator
from typing import IO, Any, Literal

import numpy as np

from spgraph.containers import memory
from spgraph.containers.methods.display import size_of
from spgraph.errors import FormatError
from spgraph.process.activity import step

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")

BLOCK = 1 << 21  # bytes parsed at once: enough to occupy all cores, and in their caches
LONGEST_LINE = 1 << 20
_EMPTY_LINES = re.compile(rb"\n+")


MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\0": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
# what the libraries raise for a damaged stream, or one of another format
BROKEN = (EOFError, OSError, zlib.error, lzma.LZMAError, zstd.ZstdError)


DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    ".bz2": bz2.BZ2Decompressor,
    ".xz": lzma.LZMADecompressor,
}
MEMBER_STEP = 1 << 18  # bytes


def open_compressed(
    file: str | IO[bytes], compression: str, mode: Literal["rb", "wb"]
) -> IO[bytes]:
    """A binary stream that (de)compresses `file`, a path or a stream; `compression` is a suffix, ''
    for none.

    The codecs are Python's own; before Python 3.14 .zst is that of the package backports.zstd.
    Whatever is written has a checksum of its content: for Zstandard it has to be requested.
    """
    stream: Any
    if compression == ".gz":
        stream = gzip.open(file, mode, compresslevel=6)  # noqa: SIM115, the caller closes it
    elif compression in DECOMPRESSORS and mode == "rb":
        stream = io.BufferedReader(Members(file, DECOMPRESSORS[compression]), MEMBER_STEP)
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


class Members(io.RawIOBase):
    """The content of all members of a compressed file, a path or a stream, one after the other.
    Zeros may stand between and behind them; anything else that is no member is an error.

    Python's BZ2File and LZMAFile end in front of the first member that is damaged at its beginning,
    and of what parallel compressors write, one of many, leave the rest out without an error.
    """

    def __init__(self, file: str | IO[bytes], new: Callable[[], Any]) -> None:
        self._own = open(file, "rb") if isinstance(file, str) else None  # noqa: SIM115
        self._file: Any = self._own or file
        self._new, self._member = new, new()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            given = b""
            if self._member.eof:
                if not (given := self._following()):
                    return 0
                self._member = self._new()
            elif self._member.needs_input and not (given := self._file.read(MEMBER_STEP)):
                raise EOFError("it ends within a compressed member")
            if part := self._member.decompress(given, len(buffer)):
                buffer[: len(part)] = part
                return len(part)

    def _following(self) -> bytes:
        """The first bytes of the next member, none at the end."""
        given: bytes = self._member.unused_data.lstrip(b"\0")
        while not given and (block := self._file.read(MEMBER_STEP)):
            given = block.lstrip(b"\0")
        return given

    def close(self) -> None:
        if self._own is not None:
            self._own.close()
        super().close()


def is_pipe(name: str) -> bool:
    """Whether it can only be read once, from beginning to end: neither a file nor a folder."""
    return os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name)


def is_unnamed(name: str) -> bool:
    """Whether it is a pipe, or a file that a shell passes in place of one."""
    streams = name.startswith(("/dev/stdin", "/dev/fd/", "/proc/"))  # /dev/shm has plain files
    return (streams and os.path.isfile(name)) or is_pipe(name)


class Ahead(io.RawIOBase):
    """A stream whose first bytes, `head`, have been read already."""

    def __init__(self, head: bytes, stream: IO[bytes]) -> None:
        self._head, self._stream = head, stream

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._stream.tell() - len(self._head)

    def readinto(self, buffer: Any) -> int:
        part = self._head[: len(buffer)] or self._stream.read(len(buffer))
        self._head = self._head[len(part) :]
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self._stream.close()
        super().close()


def open_unnamed(path: str) -> tuple[IO[bytes], str]:
    """(a stream of the bytes of `path`, which may be a pipe; the compression that the first bytes
    indicate).
    """
    stream = open(path, "rb")  # noqa: SIM115, closed with what is returned
    head = stream.read(max(map(len, MAGIC)))
    compression = next((MAGIC[magic] for magic in MAGIC if head.startswith(magic)), "")
    return io.BufferedReader(Ahead(head, stream)), compression


class Source:
    """A file being read: single lines for its header, then blocks of whole lines for its body.

    `line` is the number of lines returned so far. Every method raises FormatError when it meets a
    damaged compressed stream. `compression` None: the first bytes determine it.
    """

    def __init__(self, path: str, compression: str | None = "") -> None:
        self.path = path
        self.line = 0
        self._closing = contextlib.ExitStack()
        if compression is None:
            file, compression = open_unnamed(path)
            self._closing.enter_context(file)
        else:
            file = self._closing.enter_context(open_compressed(path, "", "rb"))
        self._file = file
        self._size = os.stat(path).st_size if os.path.isfile(path) else 0  # 0: nobody knows
        self._stream = self._closing.enter_context(open_compressed(file, compression, "rb"))
        self._compression = compression
        self._at = self._before = self._taken = 0
        try:  # a byte order mark is skipped
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
        """The number of bytes of the decompressed file that have been returned."""
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
        """Whether the file begins with `text`, ignoring case; call it before reading lines."""
        return self._buffer[: len(text)].lower() == text.lower()

    def head(self) -> bytes:
        """The first bytes of the file; to be called before any line is read."""
        return self._buffer

    def skip_empty_lines(self) -> None:
        """Skip to the next line that is not empty, many times faster than line by line."""
        while (found := _EMPTY_LINES.match(self._buffer, self._at)) is not None:
            self.line += self._buffer.count(b"\n", self._at, found.end())
            self._at = found.end()
            if self._at < len(self._buffer) or not self._more():
                return

    def push_back(self) -> None:
        """Undo the last call, which must have been a `readline` that returned a line."""
        self._at = self._before
        self.line -= 1

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """The rest of the file in blocks of whole lines: (number of the first line, the bytes)."""
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
            # ten times as fast as bytes.count where lines are short
            self.line += int(np.count_nonzero(np.frombuffer(block, np.uint8) == ord("\n")))
            yield first, block

    def read_all(self) -> bytes:
        """The rest of the file, for formats without lines. MemoryError if it takes more than half
        of the available memory: the caller makes arrays of the same size from it.
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
        rest = self._read(LONGEST_LINE, line=True)  # so that the block needs no other copy
        self._buffer = b"".join((self._buffer[self._at :], chunk, rest))
        self._at = 0
        return bool(chunk)

    def _read(self, size: int, line: bool = False) -> bytes:
        """Up to `size` bytes, with `line` up to the end of a line."""
        try:
            found = self._stream.readline(size) if line else self._stream.read(size)
            self._taken += len(found)
            if self._size:
                step(self._file.tell() if found else 0, self._size if found else 0)
            return found
        except BROKEN as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # the system failed to read: the content may be fine
            raise FormatError(
                f"{self.path}, after line {self.line}: the {self._compression} stream is cut off "
                f"or corrupt ({error}); fetch or compress the file again"
            ) from error


def lone_return(where: str) -> FormatError:
    """The error for a carriage return within a line, which some programs treat as a line end."""
    return FormatError(
        f"{where}: expected lines that end with a line feed, got a carriage return within one; "
        "convert the ends of lines, for example by: tr '\\r' '\\n'"
    )


@contextlib.contextmanager
def replacing(path: str, compression: str = "") -> Iterator[IO[bytes]]:
    """A stream whose content replaces the file `path` when the `with` block ends without an
    exception, and is discarded otherwise.

    The bytes go to a file of a random name in the same folder, which is then renamed to `path`:
    no reader ever sees a part of the file, not even after a crash.
    """
    target = os.path.realpath(path)  # a symbolic link stays, its target is replaced
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
