"""Stands for CuPy and two GPUs where there is none: arrays are NumPy's and know which device they
lie on, kernels run under the shim. What CuPy does on the current device fails for an array of the
other one: there it would warn, or give an array that lies elsewhere than its container says.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import types
from collections.abc import Iterator
from typing import Any

import cuda_host_shim
import numpy as np
import pytest

from spgraph.backends.cuda.runtime import jit
from spgraph.containers.storage import arrays

_DEVICES: list[int] = [0]  # the current one is the last


class Device:
    """Stands for cupy.cuda.Device."""

    attributes = types.MappingProxyType(
        {"MultiProcessorCount": 1, "MaxSharedMemoryPerBlockOptin": 99 << 10}
    )

    def __init__(self, number: int) -> None:
        self.id = number

    def __enter__(self) -> Device:
        _DEVICES.append(self.id)
        return self

    def __exit__(self, *error: object) -> None:
        _DEVICES.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self) -> int:
        return self.id


def check(what: str, values: Any) -> None:
    """AssertionError where one of the arrays lies on another device than the current one."""
    for value in values:
        if isinstance(value, list | tuple):
            check(what, value)
        elif isinstance(value, CudaArray):
            assert value.number == _DEVICES[-1], f"{what} of an array of cuda:{value.number}"


def host(value: Any) -> Any:
    """NumPy's view of an array, and of those in a list."""
    if isinstance(value, list | tuple):
        return type(value)(map(host, value)) if type(value) in (list, tuple) else value
    return np.asarray(value.view(np.ndarray)) if isinstance(value, CudaArray) else value


class Memory:
    """Stands for cupy.cuda.MemoryPointer."""

    def __init__(self, array: CudaArray) -> None:
        self.array = array
        self.ptr = array.ctypes.data

    def copy_from_host_async(self, source: int, size: int) -> None:
        assert self.array.number == _DEVICES[-1] and size <= self.array.nbytes
        ctypes.memmove(self.ptr, source, size)

    def copy_from_device_async(self, source: Memory, size: int) -> None:
        assert source.array.number == self.array.number and size <= self.array.nbytes
        ctypes.memmove(self.ptr, source.ptr, size)


class CudaArray(np.ndarray):
    """Stands for cupy.ndarray."""

    number: int

    def __array_finalize__(self, source: Any) -> None:
        self.number = getattr(source, "number", _DEVICES[-1])

    @property
    def device(self) -> Any:
        return Device(self.number)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return dict(self.__array_interface__)

    @property
    def data(self) -> Any:
        return Memory(self)

    def __deepcopy__(self, memory: Any) -> CudaArray:
        return on(self.number, host(self).copy())

    def get(self, out: np.ndarray | None = None, blocking: bool = True) -> np.ndarray:
        if out is None:
            return host(self).copy()
        out[...] = host(self)
        return out

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **more: Any) -> Any:
        out = more.pop("out", ())
        check(ufunc.__name__, (*inputs, *out))
        if out:
            more["out"] = host(out)
        found = made(getattr(ufunc, method)(*map(host, inputs), **more))
        return out[0] if out else found

    def __array_function__(self, function: Any, kinds: Any, given: Any, more: Any) -> Any:
        return called(function, *given, **more)

    def __getitem__(self, at: Any) -> Any:
        parts = at if isinstance(at, tuple) else (at,)
        if any(isinstance(part, list | np.ndarray) for part in parts):
            check("index", (self, *parts))
            return made(host(self)[host(at)])
        found = super().__getitem__(at)  # a view
        return found if isinstance(found, CudaArray) else on(self.number, found)

    def __setitem__(self, at: Any, value: Any) -> None:
        check("assignment", (self, at, value))
        host(self)[host(at)] = host(value)


def on(number: int, value: Any) -> CudaArray:
    """An array on a device."""
    array = np.asarray(value).view(CudaArray)
    array.number = number
    return array


def made(value: Any) -> Any:
    """What CuPy gives: arrays on the current device, also for numbers."""
    if isinstance(value, tuple):
        return tuple(map(made, value))
    plain = isinstance(value, np.ndarray | np.generic)
    return on(_DEVICES[-1], value) if plain else value


def called(function: Any, *given: Any, **more: Any) -> Any:
    """A function of NumPy's as CuPy has it."""
    check(function.__name__, (*given, *more.values()))
    out = more.get("out")
    named = {name: host(value) for name, value in more.items()}
    found = function(*map(host, given), **named)
    return out if out is not None else made(found)


def method(name: str) -> Any:
    plain = getattr(np.ndarray, name)

    def run(self: CudaArray, *given: Any, **more: Any) -> Any:
        if name == "astype" and more.get("copy") is False and self.dtype == given[0]:
            return self
        return called(plain, self, *given, **more)

    run.__name__ = name
    return run


for _name in ("astype copy sum min max cumsum nonzero fill argsort sort any all take repeat argmin "
              "argmax mean prod searchsorted").split():  # fmt: skip
    setattr(CudaArray, _name, method(_name))


class Cupy(types.ModuleType):
    """Stands for the module: what is not here is NumPy's."""

    ndarray = CudaArray

    def __init__(self) -> None:
        super().__init__("cupy")
        runtime = types.SimpleNamespace(
            getDeviceCount=lambda: 2, getDevice=lambda: _DEVICES[-1], setDevice=lambda number: None
        )
        # all is done at once
        stream = types.SimpleNamespace(wait_event=lambda event: None, synchronize=lambda: None)
        self.cuda = types.SimpleNamespace(
            Device=Device, runtime=runtime, get_current_stream=lambda: stream,
            Event=lambda **options: types.SimpleNamespace(
                record=lambda stream=None: None, synchronize=lambda: None
            ),
            alloc_pinned_memory=bytearray,
        )  # fmt: skip

    @staticmethod
    def asarray(value: Any, dtype: Any = None) -> Any:
        if isinstance(value, CudaArray):
            if dtype is not None and value.dtype != dtype:
                return value.astype(dtype)
            if value.number == _DEVICES[-1]:
                return value
            return on(_DEVICES[-1], host(value).copy())  # a copy between GPUs
        return on(_DEVICES[-1], np.array(value, dtype))

    @staticmethod
    def array(value: Any, dtype: Any = None, copy: bool = True, order: str = "K") -> Any:
        found = Cupy.asarray(value, dtype)
        return on(found.number, np.array(host(found), order=order)) if copy else found

    @staticmethod
    def asnumpy(value: Any) -> Any:
        return value.get() if isinstance(value, CudaArray) else np.asarray(value)

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if isinstance(found, np.ufunc | type) or not callable(found):
            return found
        return functools.partial(called, found)


@pytest.fixture
def two_devices(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The device "cuda:1" beside the current one, 0."""
    arrays.import_cupy.cache_clear()
    launch = cuda_host_shim.HostKernel.__call__
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "cupy", Cupy())
        patch.setenv("CUPY_CACHE_IN_MEMORY", "1")
        patch.setattr(jit, "kernel", cuda_host_shim.kernel)
        patch.setattr(jit, "occupancy", lambda *arguments: 2)

        def launched(self: Any, grid: Any, block: Any, given: Any, **more: Any) -> None:
            check(self.stem, given)
            launch(self, grid, block, given, **more)

        patch.setattr(cuda_host_shim.HostKernel, "__call__", launched)
        yield
    arrays.import_cupy.cache_clear()
