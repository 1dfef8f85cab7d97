"""Facts about raw arrays that both backends share: which library owns one, where it lives, how bits
are packed.

CuPy is imported only when an array already is CuPy's, or when one has to be made on a CUDA device.
"""

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

from spgraph import cache_folder, late_imports
from spgraph.errors import BackendUnavailable, DomainMismatch

Array = Any  # numpy.ndarray or cupy.ndarray: the two share no static type

INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1
_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)


def read_only(array: Array) -> Array:
    """What users see of an array of a container: a view that refuses to be written. CuPy has no
    such flag: the array itself.
    """
    if is_cuda(array):
        return array
    view = array.view()
    view.flags.writeable = False
    return view


class _Memory:
    """The memory of a NumPy array, described as memory that may be written."""

    def __init__(self, array: np.ndarray) -> None:
        facts = array.__array_interface__
        self.array = array  # it lives as long as what is made of this
        self.__array_interface__ = facts | {"data": (facts["data"][0], False)}


def writable(array: Array) -> Array:
    """`array`, or another array of the same memory that is not marked read-only.

    Numba compiles a kernel anew for arrays that are. It is for arrays that kernels only read, as
    those of a Matrix: they may be views from `read_only`, or a file that is mapped.
    """
    if not isinstance(array, np.ndarray) or array.flags.writeable:
        return array
    return np.asarray(_Memory(array))


def is_cuda(array: Array) -> bool:
    """True for a CuPy array."""
    cupy = sys.modules.get("cupy")
    return cupy is not None and isinstance(array, cupy.ndarray)


def array_module(array: Array) -> ModuleType:
    """The library (numpy or cupy) whose functions take `array`."""
    if type(array) is np.ndarray:
        return np
    return sys.modules["cupy"] if is_cuda(array) else np


def as_array(name: str, given: Any) -> Any:
    """`given` as an array, of CuPy if it is one on a GPU; DomainMismatch for a masked array, whose
    hidden values would become entries.
    """
    if isinstance(given, np.ma.MaskedArray):
        raise DomainMismatch(
            f"{name}: expected an array without a mask; x.filled(value) and missing=value of "
            "from_dense, or x.compressed() and its positions, leave out what is masked"
        )
    return given if hasattr(given, "__cuda_array_interface__") else np.asarray(given)


def device_of(array: Array) -> str:
    """'cpu', or 'cuda:0' and so on."""
    if type(array) is np.ndarray:  # the common case, asked several times a call
        return "cpu"
    return f"cuda:{array.device.id}" if is_cuda(array) else "cpu"


@functools.cache
def import_cupy() -> ModuleType:
    """The cupy module, or BackendUnavailable with what to install."""
    cache_folder.check_cupy()
    try:
        with late_imports.whole():
            import cupy

        count = cupy.cuda.runtime.getDeviceCount()
    except ImportError as error:
        raise BackendUnavailable(
            "device 'cuda' needs CuPy, which is not installed: "
            "pip install 'spgraph[cuda13]' (or [cuda12])"
        ) from error
    except Exception as error:  # CUDARuntimeError: no driver, or one too old
        raise BackendUnavailable(
            f"device 'cuda': CuPy is installed but finds no usable GPU ({error}); "
            "check the driver with nvidia-smi, or use device 'cpu'"
        ) from error
    if count == 0:
        raise BackendUnavailable("device 'cuda': no GPU is visible; use device 'cpu'")
    return cupy


def check_device(device: str) -> str:
    """The full name of a device ('cuda' means 'cuda:0'); raises where it is unknown or not
    there.
    """
    if device == "cpu":
        return device
    kind, _, number = str(device).partition(":")
    if kind != "cuda" or not (number == "" or number.isdigit()):
        raise ValueError(f"device: expected 'cpu', 'cuda' or 'cuda:N', got {device!r}")
    cupy = import_cupy()
    index, count = int(number or cupy.cuda.runtime.getDevice()), cupy.cuda.runtime.getDeviceCount()
    if index >= count:
        raise BackendUnavailable(f"device: {device!r} was asked for, but {count} GPUs are visible")
    return f"cuda:{index}"


def move(array: Array, device: str) -> Array:
    """`array` on `device` (a full name); itself if it is there already."""
    if device_of(array) == device:
        return array
    if device == "cpu":
        return array.get()
    with on_device(device) as cupy:
        return cupy.asarray(array)


def to_host(array: Array) -> Callable[[], np.ndarray]:
    """Start the copy of a small array to the host; a call of the result waits for it."""
    if not is_cuda(array):
        return lambda: array
    cupy = import_cupy()
    host = np.frombuffer(cupy.cuda.alloc_pinned_memory(array.nbytes), array.dtype, array.size)
    array.get(out=host, blocking=False)
    came = cupy.cuda.Event(disable_timing=True)
    came.record()

    def wait() -> np.ndarray:
        came.synchronize()
        return host

    return wait


def address(array: Array | None) -> int:
    """Where an array lies in its device's memory, for structs that hold pointers; 0 for None."""
    if array is None:
        return 0
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)


_ON_CPU = contextlib.nullcontext(np)


def on_device(device: str) -> contextlib.AbstractContextManager[ModuleType]:
    """The library that makes arrays for `device` (a full name), which is then the current one."""
    return _ON_CPU if device == "cpu" else _on_cuda(device)


@contextlib.contextmanager
def _on_cuda(device: str) -> Iterator[ModuleType]:
    cupy = import_cupy()
    with cupy.cuda.Device(int(device.partition(":")[2])):
        yield cupy


def index_dtype(bound: int) -> np.dtype:
    """The smallest index type that holds every integer from 0 to `bound`: int32, else int64."""
    return _INT32 if bound <= INT32_MAX else _INT64


def check_extent(name: str, extent: Any, least: int = 0) -> int:
    """A number of positions as an int; ValueError unless it is from `least` to 2^63 - 1."""
    if isinstance(extent, bool) or not isinstance(extent, int | np.integer) or extent < least:
        raise ValueError(f"{name}: expected an integer >= {least}, got {extent!r}")
    if extent > INT64_MAX:
        raise ValueError(f"{name}: expected an integer below 2**63, got {extent}")
    return int(extent)


def words(size: int) -> int:
    """How many 32-bit words hold `size` bits."""
    return (size + 31) // 32


def pack_bits(flags: Array) -> Array:
    """Bit i & 31 of word i >> 5 is flags[i]; bits past the end are 0."""
    xp = array_module(flags)
    packed = xp.zeros(4 * words(flags.size), np.uint8)
    octets = xp.packbits(flags, bitorder="little")
    packed[: octets.size] = octets
    return packed.view(np.uint32)


def unpack_bits(bits: Array, size: int) -> Array:
    """The boolean array of which `bits` is the packed form."""
    xp = array_module(bits)
    return xp.unpackbits(bits.view(np.uint8), bitorder="little")[:size].view(bool)


def count_bits(bits: Array) -> int:
    """How many bits are set."""
    if not is_cuda(bits):
        counts = np.bitwise_count(bits)
        few = counts.size <= 64  # which Python adds in less time than NumPy takes to begin
        return sum(counts.tolist()) if few else int(np.add.reduce(counts, dtype=_INT64))
    octets = array_module(bits).unpackbits(bits.view(np.uint8))
    return int(octets.sum(dtype=np.int64))
