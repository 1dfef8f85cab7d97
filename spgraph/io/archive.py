"""The arrays of a NumPy archive, one by one: nothing is unpickled, nothing is believed before it is
checked, and nothing is allocated that the file does not hold.
"""

from __future__ import annotations

import errno
import io
import lzma
import math
import struct
import tokenize
import zipfile
import zlib
from typing import IO, Any, NamedTuple

import numpy as np

from spgraph.containers import memory

# what zipfile and the decompressors in it raise at an archive that is not what it seems
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
# what NumPy raises at a header that is none
_NO_HEADER = (ValueError, TypeError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError)

_STEP = 1 << 24  # bytes read at once
_HEADER = 1 << 16  # bytes that hold every header
_WORDS = {"iu": "integers", "biuf": "numbers", "b": "true or false", "SU": "a word"}


class Header(NamedTuple):
    """What an array says of itself; `start` is where its values begin."""

    dtype: np.dtype
    shape: tuple[int, ...]
    fortran: bool
    start: int


class Archive:
    """The arrays of the .npz archive in a seekable stream, read by their keys.

    Each question raises ValueError, which begins with the key, for an array that is not there, is
    of another kind than asked for, or does not agree with its own header or checksum.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._archive = zipfile.ZipFile(stream)
        self._members = {
            info.filename.removesuffix(".npy"): info for info in self._archive.infolist()
        }
        self._headers: dict[str, Header] = {}
        self._kept: dict[str, np.ndarray] = {}  # what was read whole for its header

    def __contains__(self, key: str) -> bool:
        return key in self._members

    def array(self, key: str, kinds: str, ndim: int | None = 1) -> np.ndarray:
        """The array of that name, of one of these kinds of types, in the order of bytes of this
        machine; `ndim` None: of any number of dimensions.
        """
        dtype, shape, fortran, start = self.header(key)
        if dtype.hasobject:
            raise ValueError(f"{key}: expected plain values, got objects, which are never read")
        if dtype.kind not in kinds:
            raise ValueError(f"{key}: expected {_WORDS[kinds]}, got values of type {dtype}")
        if ndim is not None and len(shape) != ndim:
            raise ValueError(f"{key}: expected {ndim} dimensions, got the shape {shape}")
        content = self._content(key)
        if content.size != start + dtype.itemsize * math.prod(shape):
            raise ValueError(
                f"{key}: expected {dtype.itemsize * math.prod(shape)} bytes of values for the "
                f"shape {shape}, got {content.size - start}"
            )
        part = content[start:]
        if start % max(dtype.alignment, 1):
            part = part.copy()
        if dtype.kind == "b" and part.size and part.max() > 1:
            raise ValueError(f"{key}: expected truth values 0 and 1, got {part.max()}")
        array = part.view(dtype).reshape(shape, order="F" if fortran else "C")
        return array.astype(dtype.newbyteorder("="), copy=False)

    def scalar(self, key: str, kinds: str) -> Any:
        """The one value of an array without dimensions."""
        return self.array(key, kinds, 0).item()

    def header(self, key: str) -> Header:
        """What an array says of itself."""
        if key not in self._members:
            raise ValueError(f"{key}: expected an array of this name, there is none")
        if key not in self._headers:
            self._headers[key] = _parsed(key, io.BytesIO(self._head(key)))
        return self._headers[key]

    def _head(self, key: str) -> bytes:
        """The first bytes of a member, which hold its header."""
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
        """The bytes of a member, header and all, whose checksum is right."""
        if key in self._kept:
            return self._kept.pop(key)
        info = self._members[key]
        memory.require(info.file_size, f"{key}: the array")
        content = np.empty(info.file_size, np.uint8)
        end = 0
        try:
            with self._archive.open(info) as stream:
                while part := stream.read(_STEP):
                    content[end : end + len(part)] = np.frombuffer(part, np.uint8)
                    end += len(part)
        except BROKEN as error:
            raise _unreadable(key, error) from error
        if end != content.size:
            raise ValueError(f"{key}: the archive is cut off: {end} of {content.size} bytes")
        return content


def _parsed(key: str, head: IO[bytes]) -> Header:
    """The header at the beginning of the bytes of an array."""
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
    """ValueError for a broken member; an error of the disk as it is."""
    if is_of_disk(error):
        return error
    return ValueError(f"{key}: the archive is broken: {error}")


def is_of_disk(error: BaseException) -> bool:
    """Whether the system could not read, rather than that what it read is wrong: seeking to where a
    broken archive points is an invalid argument.
    """
    return isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)
