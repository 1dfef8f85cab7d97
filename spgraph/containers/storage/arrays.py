"""Arrays of NumPy and CuPy, as both backends use them: the library and the device of an array, and
bits packed in words.

CuPy is imported only when an array already is CuPy's, or when one has to be made on a CUDA device.
"""

import contextlib
import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from spgraph.containers.storage.columns import array_of, array_of_list, is_column, is_tabular
from spgraph.containers.storage.masked import refuse_masked
from spgraph.containers.storage.numbers import is_integer
from spgraph.errors import BackendMismatch, BackendUnavailable, DomainMismatch
from spgraph.process import cache_folder, lazy_imports

P = ParamSpec("P")
T = TypeVar("T")

Array = Any  # numpy.ndarray or cupy.ndarray: the two share no static type

# devices of DLPack: what NumPy and what CuPy can address
_HOST, _CUDA = {1, 3}, {2, 13}

INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1
_INT32, _INT64, _UINT32 = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint32)


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
    if type(array) is np.ndarray or not is_cuda(array):
        return np
    return sys.modules["cupy"]


def is_array(given: Any) -> bool:
    """Whether it is a dense array: of NumPy, of CuPy, of another library, such as PyTorch or JAX,
    that offers its memory, or a column of pandas, polars or Arrow.
    """
    known = isinstance(given, np.ndarray) or is_cuda(given)
    return known or is_foreign(given) or is_column(given)


def is_foreign(given: Any) -> bool:
    """Whether it is a dense array of another library than NumPy and CuPy: one that offers DLPack or
    `__cuda_array_interface__`, and is no container.
    """
    kind = type(given)
    if kind is np.ndarray or hasattr(kind, "tocsr"):
        return False
    if isinstance(given, np.ndarray | np.generic) or is_cuda(given) or is_tabular(given):
        return False
    offers = hasattr(kind, "__dlpack__") or hasattr(kind, "__cuda_array_interface__")
    return offers and not is_sparse_tensor(given)


def is_sparse_tensor(given: Any) -> bool:
    """True for a tensor of PyTorch of a sparse layout."""
    torch: Any = sys.modules.get("torch")
    return is_instance(given, "torch", "Tensor") and given.layout != torch.strided


def is_instance(given: Any, library: str, name: str) -> bool:
    """Whether it is of the class of that name of a library, which nobody may have imported, or not
    yet as a whole.
    """
    kind = getattr(sys.modules.get(library), name, None)
    return isinstance(kind, type) and isinstance(given, kind)


def as_array(name: str, given: Any) -> Any:
    """`given` as an array of NumPy, or of CuPy if it lies on a GPU, without a copy where it is an
    array already. DomainMismatch for a masked array, a column with missing values, integers that
    NumPy rounds beside floats, and what cannot be shared, such as tensors that require gradients.
    """
    if type(given) is np.ndarray:  # the common cases
        return given
    if type(given) in (list, tuple):
        return array_of_list(name, given)
    refuse_masked(name, given)
    if is_cuda(given):
        return given
    if is_tabular(given):
        return array_of(name, given)
    return _shared(name, given) if is_foreign(given) else np.asarray(given)


def _shared(name: str, given: Any) -> Array:
    """The memory of an array of another library, as an array of NumPy or CuPy."""
    by_dlpack = hasattr(type(given), "__dlpack__")
    named = f"{type(given).__name__} of {getattr(given, 'dtype', 'unknown type')}"
    try:
        place = int(given.__dlpack_device__()[0]) if by_dlpack else min(_CUDA)
        if place in _HOST:
            return np.asarray(given) if hasattr(given, "__array__") else np.from_dlpack(given)
        if place in _CUDA:
            cupy = import_cupy()
            return cupy.from_dlpack(given) if by_dlpack else cupy.asarray(given)
    except BackendUnavailable:
        raise
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise DomainMismatch(
            f"{name}: expected an array that shares its memory, of bool, integers or floats of 32 "
            f"or 64 bits, got {named}: {error}; convert it, or detach it from gradients"
        ) from error
    raise BackendMismatch(
        f"{name}: expected an array in the memory of the host or of a CUDA device, got "
        f"{named} on a device of DLPack's type {place}; move it to one of them"
    )


def of_kind(given: Any, made: Array) -> Any:
    """`made`, an array of NumPy or CuPy, as an array of the library of `given`; see `handed_to`."""
    library = _library_of(given) if is_foreign(given) else None
    return made if library is None else handed_to(library, made)


def handed_to(library: ModuleType, made: Array) -> Any:
    """An array of NumPy or CuPy as one of PyTorch, JAX or a similar `library`, without a copy.

    A library that knows narrower types only (JAX without jax_enable_x64) converts: OverflowError
    for integers that those do not hold.
    """
    made = array_module(made).ascontiguousarray(made)  # PyTorch aborts on strides below 0
    found = library.from_dlpack(made)
    if found.dtype.itemsize < made.dtype.itemsize and made.dtype.kind in "iu" and made.size:
        low, high = int(made.min()), int(made.max())
        bounds = np.iinfo(np.dtype(found.dtype))
        if not bounds.min <= low <= high <= bounds.max:
            raise OverflowError(
                f"expected integers that {library.__name__} holds in {found.dtype}, got {low} to "
                f"{high}; jax.config.update('jax_enable_x64', True) makes it hold 64 bits"
            )
    return found


def _library_of(given: Any) -> ModuleType | None:
    """The library with from_dlpack that makes arrays of such a type; None where there is none."""
    if hasattr(given, "__array_namespace__"):
        return given.__array_namespace__()
    for base in type(given).__mro__:
        library = sys.modules.get(base.__module__.partition(".")[0])
        if hasattr(library, "from_dlpack"):
            return library
    return None


def device_of(array: Array) -> str:
    """'cpu', or 'cuda:0' and so on."""
    if type(array) is np.ndarray:  # the common case, asked several times a call
        return "cpu"
    return _name_of(array.device.id) if is_cuda(array) else "cpu"


@functools.cache
def _name_of(device_id: int) -> str:
    """The same string each time, which is compared in no time."""
    return f"cuda:{device_id}"


@functools.cache
def import_cupy() -> ModuleType:
    """The cupy module, or BackendUnavailable with what to install."""
    cache_folder.check_cupy()
    try:
        with lazy_imports.whole():
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
    named = isinstance(device, str)  # of an array == is an array
    if named and device == "cpu":
        return device
    kind, _, number = device.partition(":") if named else ("", "", "")
    if kind != "cuda" or not (number == "" or number.isdecimal()):
        raise ValueError(f"device: expected 'cpu', 'cuda' or 'cuda:N', got {device!r}")
    cupy = import_cupy()
    index, count = int(number or cupy.cuda.runtime.getDevice()), cupy.cuda.runtime.getDeviceCount()
    if index >= count:
        raise BackendUnavailable(f"device: {device!r} was asked for, but {count} GPUs are visible")
    return _name_of(index)


def move(array: Array, device: str) -> Array:
    """`array` on `device` (a full name); itself if it is there already."""
    if device_of(array) == device:
        return array
    if device == "cpu":
        return array.get()
    if is_cuda(array):
        return _between_gpus(array, device)
    with on_device(device) as cupy:
        return cupy.asarray(array)


def _between_gpus(array: Array, device: str) -> Array:
    """A copy on another GPU, by the current streams of both: CuPy's own copy is in that of the
    target alone, waits for no kernel that still writes `array`, and is not waited for where its
    memory is used again.
    """
    here = device_of(array)
    with on_device(here) as cupy:
        array = cupy.ascontiguousarray(array)
        ready = cupy.cuda.Event(disable_timing=True)
        ready.record(cupy.cuda.get_current_stream())
    with on_device(device) as cupy:
        current, copied = cupy.cuda.get_current_stream(), cupy.cuda.Event(disable_timing=True)
        current.wait_event(ready)
        made = cupy.asarray(array)
        copied.record(current)
    with on_device(here) as cupy:
        cupy.cuda.get_current_stream().wait_event(copied)
    return made


_ON_CPU = contextlib.nullcontext(np)


def on_device(device: str) -> contextlib.AbstractContextManager[ModuleType]:
    """The library that makes arrays for `device` (a full name), which is then the current one."""
    return _ON_CPU if device == "cpu" else _OnCuda(device)


class _OnCuda(contextlib.AbstractContextManager[ModuleType]):
    """A GPU, current inside. A class takes half the time that a generator takes."""

    def __init__(self, device: str) -> None:
        self._cupy = import_cupy()
        self._device = self._cupy.cuda.Device(int(device.partition(":")[2]))

    def __enter__(self) -> ModuleType:
        self._device.__enter__()
        return self._cupy

    def __exit__(self, *error: object) -> None:
        self._device.__exit__(*error)


def on_its_device(call: Callable[P, T]) -> Callable[P, T]:
    """`call`, run on the device of its first argument, a container: CuPy computes, and makes new
    arrays, on the current device, wherever the arrays lie that it is given.
    """

    @functools.wraps(call)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        if "cupy" not in sys.modules:  # as is known faster than the device
            return call(*args, **kwargs)
        first = args[0] if args else next(iter(kwargs.values()), None)
        device: Any = getattr(first, "device", "cpu")
        if not isinstance(device, str) or device == "cpu":
            return call(*args, **kwargs)
        with _OnCuda(device):
            return call(*args, **kwargs)

    return run


def index_dtype(bound: int) -> np.dtype:
    """The smallest index type that holds every integer from 0 to `bound`: int32, else int64."""
    return _INT32 if bound <= INT32_MAX else _INT64


def check_extent(name: str, extent: Any, least: int = 0) -> int:
    """A number of positions as an int; ValueError unless it is from `least` to 2^63 - 1."""
    if not is_integer(extent) or extent < least:
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
    if flags.size % 32 == 0:
        return xp.packbits(flags, None, "little").view(_UINT32)
    packed = xp.zeros(4 * words(flags.size), np.uint8)
    octets = xp.packbits(flags, bitorder="little")
    packed[: octets.size] = octets
    return packed.view(np.uint32)


def all_bits(xp: ModuleType, size: int) -> Array:
    """Words with the first `size` bits set; bits past the end are 0."""
    bits = xp.full(words(size), 0xFFFFFFFF, np.uint32)
    if size % 32:
        bits[-1:] = (1 << size % 32) - 1
    return bits


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
