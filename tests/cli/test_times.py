"""Times as they are printed: computing apart from what only a first call takes."""

from __future__ import annotations

import importlib
import threading
from types import SimpleNamespace

import pytest

import spgraph as sg
from spgraph import terminal
from spgraph.backends.cpu.runtime.cache import kernel
from spgraph.process import activity


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (terminal, activity):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=made.perf_counter))
    return made


def test_what_is_prepared_is_apart(clock: Clock) -> None:
    with terminal.measured() as times:
        clock.now += 2
        with activity.preparing():
            clock.now += 5
            with activity.preparing():  # a library that is imported to compile a kernel
                clock.now += 1
        clock.now += 3
    assert (times.seconds, times.compile_seconds) == (5, 6)
    assert str(times) == "5.00 s, after 6.00 s for compiling and loading"
    assert times.record("read_") == {"read_seconds": 5, "read_compile_seconds": 6}
    with terminal.measured() as again:
        clock.now += 0.25
    assert again.compile_seconds == 0 and str(again) == "250 ms"
    with pytest.raises(KeyError), terminal.measured(again), activity.preparing():
        clock.now += 1
        raise KeyError
    assert (again.seconds, again.compile_seconds) == (0.25, 1)


def test_several_threads_count_once(clock: Clock) -> None:
    """What passes on the clock is counted, not the sum over threads."""
    begun, done = threading.Event(), threading.Event()

    def other() -> None:
        with activity.preparing():
            begun.set()
            done.wait(120)

    thread = threading.Thread(target=other)
    with terminal.measured() as times:
        with activity.preparing():
            thread.start()
            begun.wait(120)
            clock.now += 2
        clock.now += 3
        assert activity.current().preparing == 1
        assert activity.current().prepare_seconds() > 0
        done.set()
        thread.join()
        clock.now += 4
    assert (times.seconds, times.compile_seconds) == (4, 5)


def test_kernels_are_compiled_apart() -> None:
    made = kernel(lambda x: x + 1)
    with terminal.measured() as first:
        assert made(1) == 2
    with terminal.measured() as second:
        assert made(1) == 2
    assert first.compile_seconds > 0 and second.compile_seconds == 0 < second.seconds


@pytest.mark.gpu
def test_kernels_of_a_gpu_are_compiled_apart() -> None:
    from spgraph.backends.cuda.runtime import jit

    A = sg.generators.grid(9, 9).to("cuda")
    sg.bfs(A, 0).level.to_numpy()
    search = importlib.import_module("spgraph.backends.cuda.search.search")
    for kept in (search.kernel_of, jit._kernel, jit._module):
        kept.cache_clear()  # they are loaded again, at least from the disk
    A = A.dup()  # with a Matrix what its searches need is kept
    with terminal.measured() as first:
        sg.bfs(A, 0).level.to_numpy()
    with terminal.measured() as second:
        sg.bfs(A, 0).level.to_numpy()
    assert first.compile_seconds > 0 and second.compile_seconds == 0 < second.seconds
