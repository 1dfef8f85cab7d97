"""What the host does for CUDA holds where several threads call one Matrix or kernel at a time: with
stand-ins for CuPy, whose devices are done at once.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import cuda_host_shim
import numpy as np
import pytest
import two_devices as stand_in
from two_devices import Cupy, two_devices  # noqa: F401

import spgraph as sg
from spgraph.backends.cuda.exchange import plan
from spgraph.backends.cuda.products import tiles
from spgraph.backends.cuda.runtime import jit


class Limited:
    """A kernel that refuses launches beyond its limit, as a driver does. After the first time that
    its limit was set, `another` runs: what another thread may do before the launch.
    """

    shared_size_bytes = 1024

    def __init__(self, another: Callable[[], None]) -> None:
        self.limit, self.another, self.launched = 48 << 10, another, list[int]()

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "max_dynamic_shared_size_bytes":
            super().__setattr__(name, value)
            return
        assert value + self.shared_size_bytes <= 99 << 10, "the device has no more"
        self.limit = value
        another, self.another = self.another, lambda: None
        another()

    def __call__(self, *_: Any, shared_mem: int = 0) -> None:
        assert shared_mem <= self.limit, "an error of the driver"
        self.launched.append(shared_mem)


def test_a_launch_never_meets_the_limit_of_a_smaller_one(
    two_devices: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    A = sg.Matrix.from_coo([0], [1], [2.0], nrows=2, ncols=2).to("cuda:1")
    u = sg.Vector.from_dense([1.0, 2.0]).to("cuda:1")

    def run(shared: int) -> None:
        batch = SimpleNamespace(
            pieces=0, split=0, blocks=1, words=None, streamed=2, shared=lambda *_: shared
        )
        cut: Any = SimpleNamespace(
            batches=[batch],
            rest=SimpleNamespace(slices=0),
            places=2,
            copied=2,
            renumbered=True,
            columns=np.zeros(2, np.int32),
        )
        tiles.product(A, cut, u, "", u._values)

    kernel = Limited(lambda: run(60_000))
    with monkeypatch.context() as patch:
        patch.setattr(jit, "kernels", lambda *_: (kernel, None, None))
        patch.setattr(jit, "kernel", lambda *_: lambda *_, **__: None)
        run(90_000)
        run(100)
    assert sorted(kernel.launched) == [100, 60_000, 90_000]


class Driver:
    """What CuPy asks the driver for, which has a context for the threads that took a device."""

    def __init__(self) -> None:
        self.has_context = threading.local()

    def check(self) -> None:
        assert hasattr(self.has_context, "yes"), "invalid device context"

    def set_device(self, number: int) -> None:
        self.has_context.yes = number == 0

    def occupancy(self, pointer: int, threads: int, shared: int) -> int:
        self.check()
        return 2

    def program(self, **_: Any) -> Any:
        """A program that another thread has loaded: it is there, and its kernels are looked up."""
        driver = self

        class Looked:
            shared_size_bytes = 0

            @property
            def kernel(self) -> Any:
                driver.check()
                return SimpleNamespace(ptr=1)

            def __setattr__(self, name: str, value: int) -> None:
                driver.check()

        return SimpleNamespace(get_function=lambda name: Looked())


def test_a_thread_that_asks_the_driver_first_has_a_context(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy, driver = Cupy(), Driver()
    monkeypatch.setenv("CUPY_CACHE_IN_MEMORY", "1")
    cupy.cuda.runtime.setDevice = driver.set_device
    cupy.cuda.driver = SimpleNamespace(occupancyMaxActiveBlocksPerMultiprocessor=driver.occupancy)
    cupy.RawModule = driver.program  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "cupy.cuda", cupy.cuda)

    def in_a_new_thread(function: Callable[..., Any], *given: Any) -> Any:
        with ThreadPoolExecutor(1) as threads:
            return threads.submit(function, *given).result()

    forget()
    kernel = in_a_new_thread(jit.kernel, "search", "search", "")
    assert in_a_new_thread(jit.occupancy, kernel) == 2
    in_a_new_thread(jit.allow, kernel, 90_000)
    assert in_a_new_thread(jit.kernel, "search", "search", "") is kernel
    in_a_new_thread(plan.kernel_of, "closure", "", 0, 90_000)
    forget()


def forget() -> None:
    """The kernels of stand-ins."""
    for kept in (jit._kernel, jit._module, jit._occupancy, jit._allow_most, jit.multiprocessors,
                 jit.shared_memory, plan.kernel_of):  # fmt: skip
        kept.cache_clear()


# --- what is kept with a Matrix -------------------------------------------------------------------


class Watched(dict[str, Any]):
    """What a Matrix keeps, which nobody may find before its arrays have been made."""

    busy, found = False, set[str]()

    def __setitem__(self, name: str, value: Any) -> None:
        assert not (Watched.busy and has_arrays(value)), f"{name} is kept before it is made"
        Watched.found.add(name)
        super().__setitem__(name, value)


def has_arrays(value: Any) -> bool:
    if isinstance(value, sg.Matrix):
        return True
    if isinstance(value, tuple | list):
        return any(map(has_arrays, value))
    return isinstance(value, stand_in.CudaArray)


@pytest.fixture
def streams(two_devices: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Streams are busy from the next launch or call of CuPy to when somebody waits for them. The
    names of what is kept by a Matrix that `watched` has seen.
    """
    launch, called = cuda_host_shim.HostKernel.__call__, stand_in.called

    def busy(function: Any) -> Any:
        def run(*given: Any, **more: Any) -> Any:
            Watched.busy = True
            return function(*given, **more)

        return run

    def wait() -> None:
        Watched.busy = False

    Watched.busy, Watched.found = False, set()
    with monkeypatch.context() as patch:  # undone before `two_devices` undoes its own
        patch.setattr(cuda_host_shim.HostKernel, "__call__", busy(launch))
        patch.setattr(stand_in, "called", busy(called))
        patch.setattr(sys.modules["cupy"].cuda.get_current_stream(), "synchronize", wait)
        yield Watched.found
    Watched.busy = False


def test_what_is_kept_is_complete_when_others_can_find_it(streams: set[str]) -> None:
    """Another thread finds it from a stream that does not wait for the one that makes it."""
    A = sg.Matrix.from_coo([0, 1, 1, 3], [1, 2, 0, 1], [2.0, 3.0, 1.0, 2.0], nrows=4, ncols=4)
    A = A.to("cuda:1")
    A._derived = Watched()
    view = A.T
    view._derived = A._derived["T"] = Watched()
    _ = view._indptr
    sg.bfs(A, 0)
    sg.mxv(A, sg.Vector.filled(1.0, size=4, device="cuda:1"))
    sg.pagerank(A, max_iter=2, tol=None)
    sg.select(A, sg.semirings.indexunary.tril)
    assert streams >= {"arrays", "nonempty", "row_bins", "row_tiles", "leading", "warp_tasks_iso"}
