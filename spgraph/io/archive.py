"""Read the arrays of a NumPy archive (.npz) one by one, from files that may be damaged or hostile.

Nothing is unpickled, every header is checked before it is used, and no more memory is allocated
than the file has bytes for.
"""

from __future__ import annotations

import encodings.cp437  # noqa: F401 (zipfile's first archive would import it, during forks too)
import errno
import io
import lzma
import math
import struct
import tokenize
import zipfile
import zlib
from typing import IO, NamedTuple

import numpy as np

from spgraph.containers import memory
from spgraph.process.activity import step

# what zipfile and its decompressors raise for a damaged archive
BROKEN = (
    ValueError,
    EOFError,
    OSError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)
# what NumPy raises for an invalid .npy header
_NO_HEADER = (ValueError, TypeError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError)

_STEP = 1 << 24  # bytes per read
_HEADER = 1 << 16  # bytes: no .npy header is longer
_WORDS = {"iu": "integers", "biuf": "numbers", "b": "true or false", "SU": "a word"}


class Header(NamedTuple):
    """The header of an array; `start` is the offset in bytes at which its values begin."""

    dtype: np.dtype
    shape: tuple[int, ...]
    fortran: bool
    start: int


class Archive:
    """The arrays of the .npz archive in a seekable stream, read by their keys.

    Every method raises ValueError, with a message that begins with the key, if the array is
    missing, is of another kind than requested, or contradicts its own header or checksum.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._archive = zipfile.ZipFile(stream)
        self._members = {
            info.filename.removesuffix(".npy"): info for info in self._archive.infolist()
        }
        self._read = 0  # bytes, of all members
        self._headers: dict[str, Header] = {}
        self._kept: dict[str, np.ndarray] = {}  # small members, read whole with their header

    def __contains__(self, key: str) -> bool:
        return key in self._members

    def array(self, key: str, kinds: str, ndim: int | None = 1) -> np.ndarray:
        """The array named `key`, in native byte order. `kinds` lists the accepted dtype kinds, as
        NumPy's dtype.kind; `ndim` None accepts any number of dimensions.
        """
        dtype, shape, fortran, start = self.header(key)
        if dtype.hasobject:
            raise ValueError(f"{key}: expected plain values, got objects, which are never read")
        if dtype.kind not in kinds:
            raise ValueError(f"{key}: expected {_WORDS[kinds]}, got values of type {dtype}")
        if ndim is not None and len(shape) != ndim:
            raise ValueError(f"{key}: expected {ndim} dimensions, got the shape {shape}")
        size = self._members[key].file_size - start
        if size != dtype.itemsize * math.prod(shape):
            raise ValueError(
                f"{key}: expected {dtype.itemsize * math.prod(shape)} bytes of values for the "
                f"shape {shape}, got {size}"
            )
        part = self._content(key)[start:]
        if start % max(dtype.alignment, 1):
            part = part.copy()
        if dtype.kind == "b" and part.size and part.max() > 1:
            raise ValueError(f"{key}: expected truth values 0 and 1, got {part.max()}")
        array = part.view(dtype).reshape(shape, order="F" if fortran else "C")
        return array.astype(dtype.newbyteorder("="), copy=False)

    def scalar(self, key: str, kinds: str) -> bool | int | float | str | bytes:
        """The value of a 0-dimensional array."""
        value: bool | int | float | str | bytes = self.array(key, kinds, 0).item()
        return value

    def header(self, key: str) -> Header:
        """The header of an array."""
        if key not in self._members:
            raise ValueError(f"{key}: expected an array of this name, there is none")
        if key not in self._headers:
            self._headers[key] = _parsed(key, io.BytesIO(self._head(key)))
        return self._headers[key]

    def _head(self, key: str) -> bytes:
        """The first bytes of an archive member, which include its header."""
        info = self._members[key]
        if info.file_size <= _STEP:
            self._kept[key] = self._content(key)
            return self._kept[key][:_HEADER].tobytes()
        try:
            with self._archive.open(info) as stream:
                return stream.read(_HEADER)
        except BROKEN as error:
            raise _unreadable(key, error) from error

    def _content(self, key: str) -> np.ndarray:
        """All bytes of an archive member, header included; zipfile verifies the checksum."""
        if key in self._kept:
            return self._kept.pop(key)
        info = self._members[key]
        memory.require(info.file_size, f"{key}: the array")
        content = np.empty(info.file_size, np.uint8)
        end, total = 0, sum(each.file_size for each in self._members.values())
        try:
            with self._archive.open(info) as stream:
                while part := stream.read(_STEP):
                    content[end : end + len(part)] = np.frombuffer(part, np.uint8)
                    end += len(part)
                    step(self._read + end, total)
        except BROKEN as error:
            raise _unreadable(key, error) from error
        if end != content.size:
            raise ValueError(f"{key}: the archive is cut off: {end} of {content.size} bytes")
        self._read += end
        return content


def _parsed(key: str, head: IO[bytes]) -> Header:
    """The .npy header at the beginning of `head`."""
    try:
        version = np.lib.format.read_magic(head)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"version {version[0]}.{version[1]} of the format .npy")
        read = np.lib.format.read_array_header_1_0
        if version == (2, 0):
            read = np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(head)
    except _NO_HEADER as error:
        raise ValueError(f"{key}: not an array of NumPy: {error}") from error
    if any(isinstance(extent, bool) or extent < 0 for extent in shape):
        raise ValueError(f"{key}: expected extents >= 0, got the shape {shape}")
    return Header(dtype, shape, fortran, head.tell())


def _unreadable(key: str, error: Exception) -> Exception:
    """The ValueError for a damaged member; an error of the disk is returned unchanged."""
    if is_of_disk(error):
        return error
    return ValueError(f"{key}: the archive is broken: {error}")


def is_of_disk(error: BaseException) -> bool:
    """True if the system failed to read; False if the content is wrong. EINVAL counts as wrong
    content: it comes from seeking to an invalid offset that a damaged archive contains.
    """
    return isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)
