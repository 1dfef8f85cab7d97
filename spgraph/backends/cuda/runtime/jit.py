"""Compile a kernel for one specialisation through CuPy, and launch it on CuPy's current stream."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np

from spgraph.backends.cuda.runtime.sources import OPTIONS, SEPARATE, alone, source
from spgraph.containers.storage.arrays import Array
from spgraph.process import cache_folder
from spgraph.process.activity import preparing

BLOCK = 256  # the threads of a block, for all kernels launched by `launch`
# what a kernel takes for a pointer that leads nowhere; an empty CuPy array is one too
NULL = np.intp(0)

P = ParamSpec("P")
T = TypeVar("T")

ALWAYS = 48 << 10  # bytes of dynamic shared memory that every launch may have


class Kernel(Protocol):
    """A compiled kernel of CuPy's. It is called with the grid and the block, in threads of each
    dimension, and the arguments: arrays, NumPy's scalars, int and bool.
    """

    max_dynamic_shared_size_bytes: int
    shared_size_bytes: int  # what its variables take beside that
    kernel: Any  # CuPy's cupy.cuda.function.Function

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        arguments: tuple[object, ...],
        *,
        shared_mem: int = 0,
    ) -> None: ...

    def __hash__(self) -> int: ...


def on_device(operation: Callable[P, T]) -> Callable[P, T]:
    """`operation`, run on the device of its first argument: a container, or an array."""

    @functools.wraps(operation)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with device(getattr(args[0], "_values", args[0])):
            return operation(*args, **kwargs)

    return run


def device(array: Array) -> Any:
    """The device of an array, as a context to work in."""
    return array.device


def kernel(stem: str, name: str, preamble: str, *, cooperative: bool = False) -> Kernel:
    """The kernel `name` of kernels/`stem`.cu under `preamble`, compiled and loaded on the current
    device.

    CuPy keeps compiled programs on disk; within a process a kernel is found again without looking
    at its text.
    """
    import cupy

    return _kernel(stem, name, preamble, cooperative, cupy.cuda.runtime.getDevice())


def kernels(stem: str, text: str, *names: str) -> Iterator[Kernel]:
    """The kernels `names` of kernels/`stem`.cu under the preamble `text`."""
    return (kernel(stem, name, text) for name in names)


class Program(NamedTuple):
    """Kernels of one text: the stem of its file, the preamble, and their names."""

    stem: str
    preamble: str
    names: tuple[str, ...]
    cooperative: bool = False


def together(place: Array, *programs: Program) -> None:
    """Compile and load the programs that a first call is about to take, each in a thread, for the
    device of an array: NVRTC lets other threads of Python run, and compiles side by side.
    """
    from concurrent.futures import ThreadPoolExecutor

    def load(program: Program) -> None:
        with device(place):
            for name in program.names:
                kernel(program.stem, name, program.preamble, cooperative=program.cooperative)

    with preparing(), ThreadPoolExecutor(len(programs)) as pool:
        list(pool.map(load, programs))  # raises what a thread has raised


@functools.lru_cache(maxsize=1024)
def _module(stem: str, preamble: str, only: str, cooperative: bool, device_id: int) -> Any:
    import cupy

    text = alone(stem, preamble, only) if only else source(stem, preamble)
    return cupy.RawModule(code=text, options=OPTIONS, enable_cooperative_groups=cooperative)


@functools.lru_cache(maxsize=1024)
@preparing()
def _kernel(stem: str, name: str, preamble: str, cooperative: bool, device_id: int) -> Kernel:
    cache_folder.check_cupy()
    enter_context()
    only = name if stem in SEPARATE else ""
    module = _module(stem, preamble, only, cooperative, device_id)
    try:
        made = module.get_function(name)
    except OSError as error:  # compiled, but the disk has become full
        cache_folder.cupy_in_memory(f"CuPy cannot keep a compiled kernel ({error})")
        made = module.get_function(name)
    # compile it now: an operation must not find out that it cannot when it has begun to write
    assert made.kernel is not None
    return made


def launch(kernel: Kernel, threads: int, *arguments: object) -> None:
    """Run `kernel` on at least `threads` threads, in blocks of BLOCK."""
    kernel((max(1, -(-threads // BLOCK)),), (BLOCK,), arguments)


def sweep(kernel: Kernel, threads: int, *arguments: object) -> None:
    """Run a kernel whose threads stride over their work: no more blocks than fill the device."""
    launch(kernel, min(threads, 32 * multiprocessors(current_device()) * BLOCK), *arguments)


def resident(kernel: Kernel, threads: int, *arguments: object) -> None:
    """Run a kernel whose threads stride over their work: no more blocks than run at the same
    time.
    """
    launch(kernel, min(threads, occupancy(kernel) * BLOCK), *arguments)


def enter_context() -> None:
    """Let this thread have the context of the current device, before it asks the driver about a
    kernel. CuPy sees to that where it loads a program, launches or copies, but not where it finds a
    kernel of a loaded program, sets a limit or asks for the occupancy: for a thread that has done
    nothing else yet these end in "invalid device context".
    """
    import cupy

    cupy.cuda.runtime.setDevice(current_device())  # since CUDA 12 it makes the context


def allow(kernel: Kernel, shared: int) -> None:
    """Allow launches of `kernel` so many bytes of dynamic shared memory on the current device.

    For kernels whose launches ask for different numbers. The limit belongs to the kernel, which
    several threads may launch at a time, and a launch beyond it fails: so it is set once, to the
    most that there is, and never lowered to what a single launch asks for.
    """
    if shared > ALWAYS:
        _allow_most(kernel, current_device())


@functools.lru_cache(maxsize=1024)
def _allow_most(kernel: Kernel, device_id: int) -> None:
    enter_context()
    kernel.max_dynamic_shared_size_bytes = shared_memory(device_id) - kernel.shared_size_bytes


@functools.cache
def shared_memory(device_id: int) -> int:
    """The bytes of shared memory that a block may have on a device."""
    import cupy

    return int(cupy.cuda.Device(device_id).attributes["MaxSharedMemoryPerBlockOptin"])


def occupancy(kernel: Kernel, threads: int = BLOCK, shared: int = 0) -> int:
    """How many blocks of `threads` threads and `shared` bytes of dynamic shared memory run at the
    same time: the largest grid of a cooperative launch on the current device.
    """
    return _occupancy(kernel, threads, shared, current_device())


@functools.lru_cache(maxsize=1024)
def _occupancy(kernel: Kernel, threads: int, shared: int, device_id: int) -> int:
    from cupy.cuda import driver

    enter_context()
    each = driver.occupancyMaxActiveBlocksPerMultiprocessor(kernel.kernel.ptr, threads, shared)
    return int(each) * multiprocessors(device_id)


@functools.cache
def multiprocessors(device_id: int) -> int:
    """The number of multiprocessors of a device."""
    import cupy

    return int(cupy.cuda.Device(device_id).attributes["MultiProcessorCount"])


def current_device() -> int:
    """The number of the device that work goes to now."""
    import cupy

    return int(cupy.cuda.runtime.getDevice())
