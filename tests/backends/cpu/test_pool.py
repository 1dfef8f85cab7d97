"""The CPU's pool of threads: launches, errors, interrupts, barriers."""

from __future__ import annotations

import gc
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import numba
import numpy as np
import pytest

import spgraph as sg
from spgraph import operations, semirings
from spgraph.backends.cpu.runtime import jit, pool
from spgraph.containers import Matrix, Vector


def graph() -> tuple[Matrix, Vector, np.ndarray]:
    chance = np.random.default_rng(3)
    dense = (chance.random((300, 300)) < 0.1) * 1.0
    return Matrix.from_dense(dense), Vector.from_dense(np.arange(300.0)), dense @ np.arange(300.0)


def test_calls_from_many_python_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "threads_for", lambda work, *share: 2)
    A, u, expected = graph()
    wrong: list[object] = []

    def work() -> None:
        for _ in range(30):
            for direction in ("push", "pull"):
                got = operations.mxv(A, u, direction=direction).to_numpy()
                if not np.array_equal(got, expected):
                    wrong.append(got)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


KERNELS = """
@kernel
def contend(thread, threads, sync, whole, real, flags):
    for _ in range(1000):
        atomic_add(whole, 0, 1)
        while True:
            old = real[0]
            if compare_exchange(real, 0, old, np.float32(old + 0.5)):
                break
    atomic_or(whole, 1, 1 << thread)
    compare_exchange(flags, thread, False, True)
    barrier(sync, threads)
    atomic_store(whole, 2 + thread, atomic_load(whole, 0))


@kernel
def fails(thread, threads, sync, which, seen):
    atomic_add(seen, 0, 1)
    if thread == which:
        raise ZeroDivisionError("of one thread")
    while seen[0] < 1_000_000_000:  # until it is stopped
        poll(sync)
        barrier(sync, threads)


@kernel
def runs_on(thread, threads, sync, kind, begun):
    # without end: waiting for each other, each on its own, or thread 0 for the others
    begun[0] = 1
    turns = 0
    while turns >= 0:
        turns += 1
        if kind == 0:
            barrier(sync, threads)
        elif kind == 1:
            poll(sync)
        elif thread == 0:
            barrier(sync, threads)
        else:
            poll(sync)


@kernel
def number(thread, threads, sync, z):
    z[thread] = thread + 1
"""


@pytest.fixture
def kernels(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The kernels above, and a pool for three threads."""
    folder = tmp_path / "room" / "kernels"
    folder.mkdir(parents=True)
    for stem in ("given", "pool"):
        text = KERNELS if stem == "given" else jit.text_of("pool")
        (folder / f"{stem}.py").write_text(text)
    monkeypatch.setattr(jit, "BACKEND", tmp_path)
    monkeypatch.setattr(pool, "processors", lambda: 3)
    pool.close()
    yield jit.module("given", "")
    pool.close()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_thread_runs_the_kernel(kernels: Any, threads: int) -> None:
    for _ in range(200):
        z = np.zeros(3, np.int64)
        pool.launch(kernels.number, threads, z)
        assert z[:threads].tolist() == list(range(1, threads + 1)) and not z[threads:].any()


def test_a_launch_does_not_wait_for_workers_that_have_not_come(
    kernels: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller does their parts; when they come they find nothing to do."""
    late: list[threading.Thread] = []
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", lambda worker: late.append(worker))
        z = np.zeros(3, np.int64)
        pool.launch(kernels.number, 3, z)
        assert z.tolist() == [1, 2, 3] and len(late) == 2
        with pytest.raises(ZeroDivisionError, match="of one thread"):
            pool.launch(kernels.fails, 3, 0, np.zeros(1, np.int64))
    z[:] = 0
    for worker in late:
        worker.start()
    time.sleep(0.05)
    assert not z.any()
    whole, real, flags = np.zeros(5, np.int64), np.zeros(1, np.float32), np.zeros(4, bool)
    pool.launch(kernels.contend, 3, whole, real, flags)  # with a barrier: all of them are needed
    assert whole.tolist() == [3000, 7, 3000, 3000, 3000]


def test_a_worker_that_comes_late_touches_nothing_of_an_earlier_launch(kernels: Any) -> None:
    chance = np.random.default_rng(1)
    ended = []
    for gap in chance.integers(0, 60, 3000).tolist():
        z = np.zeros(3, np.int64)
        pool.launch(kernels.number, 3, z)
        assert z.tolist() == [1, 2, 3]
        z[:] = 0  # from now on nobody writes to it
        ended.append(z)
        for _ in range(gap):
            pass
    assert not any(z.any() for z in ended)


def test_more_threads_than_there_are(kernels: Any) -> None:
    with pytest.raises(RuntimeError, match="launch: expected at most 3 threads, got 4"):
        pool.launch(kernels.number, 4, np.zeros(4, np.int64))


@pytest.mark.parametrize("which", [0, 1, 2])
def test_an_error_in_a_thread_reaches_the_caller(kernels: Any, which: int) -> None:
    """... and the others do not wait for it."""
    for _ in range(50):
        with pytest.raises(ZeroDivisionError, match="of one thread"):
            pool.launch(kernels.fails, 3, which, np.zeros(1, np.int64))
    z = np.zeros(3, np.int64)
    pool.launch(kernels.number, 3, z)
    assert z.tolist() == [1, 2, 3]


def test_an_error_in_a_part_reaches_the_caller() -> None:
    def fails(part: int, parts: int) -> None:
        if part == 1:
            raise ZeroDivisionError("in a part")

    with pytest.raises(ZeroDivisionError, match="in a part"):
        pool.call_parts(fails, 2)
    pool.call_parts(fails, 1)


def interrupt_once(begun: np.ndarray) -> threading.Thread:
    """A thread that sends SIGINT when a kernel has begun."""

    def send() -> None:
        while not begun[0]:
            time.sleep(0.001)
        time.sleep(0.06)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


class Stop(Exception):
    """What a handler raises."""


@pytest.mark.skipif(sys.platform == "win32", reason="no signal to one's own process")
@pytest.mark.parametrize("kind", [0, 1, 2])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_what_a_signal_handler_raises_stops_a_kernel(
    kernels: Any, kind: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def handler(number: int, frame: Any) -> None:
        raise Stop(number)

    before = signal.signal(signal.SIGINT, handler)
    try:
        for expected in (Stop, KeyboardInterrupt):
            if expected is KeyboardInterrupt:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            begun = np.zeros(1, np.int64)
            # compiled before the signal comes: then Ctrl-C waits
            kernels.runs_on.compile(tuple(map(numba.typeof, (0, 1, 0, kind, begun))))
            held = sys.getrefcount(begun)
            sender = interrupt_once(begun)
            with pytest.raises(expected) as caught:
                pool.launch(kernels.runs_on, threads, kind, begun)
            sender.join()
            del sender
            assert caught.value.args == ((signal.SIGINT,) if expected is Stop else ())
            del caught
            gc.collect()
            assert sys.getrefcount(begun) == held  # an interrupt loses no memory
    finally:
        signal.signal(signal.SIGINT, before)
    z = np.zeros(3, np.int64)
    pool.launch(kernels.number, 3, z)
    assert z.tolist() == [1, 2, 3]


@pytest.mark.skipif(sys.platform == "win32", reason="no signal to one's own process")
def test_a_launch_from_a_handler_that_interrupts_another(kernels: Any) -> None:
    """One thread is enough for it; several would wait for themselves."""
    found: list[Any] = []

    def handler(number: int, frame: Any) -> None:
        z = np.zeros(3, np.int64)
        pool.launch(kernels.number, 1, z)
        found.extend(z)
        pool.launch(kernels.number, 2, z)

    begun = np.zeros(1, np.int64)
    pool.launch(kernels.number, 3, np.zeros(3, np.int64))
    before = signal.signal(signal.SIGINT, handler)
    try:
        kernels.runs_on.compile(tuple(map(numba.typeof, (0, 1, 0, 0, begun))))
        sender = interrupt_once(begun)
        with pytest.raises(RuntimeError, match="no call from a signal handler"):
            pool.launch(kernels.runs_on, 2, 0, begun)
        sender.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert found == [1, 0, 0]


def test_interrupts_at_random_moments() -> None:
    """A few of what `python tests/programs/interrupts.py` does a thousand times."""
    done = subprocess.run(
        [sys.executable, "tests/programs/interrupts.py", "30", "--threads", "1,2,3,8"],
        capture_output=True,
        text=True,
        cwd=pathlib.Path(__file__).parents[3],
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "30 interrupts" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="no signal to another process")
# one thread is interrupted at random moments above
@pytest.mark.parametrize("threads", [pytest.param("1", marks=pytest.mark.full), "2"])
def test_ctrl_c_ends_the_command(threads: str, tmp_path: pathlib.Path) -> None:
    graph = tmp_path / "graph.npz"
    sg.save(graph, sg.generators.kronecker(16, 16))
    program = "import sys\nfrom spgraph.cli import main\nprint('begun', flush=True)\n"
    program += f"sys.exit(main(['betweenness-centrality', {str(graph)!r}]))"
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SPGRAPH_NUM_THREADS": threads},
        cwd=pathlib.Path(__file__).parents[3],
    )
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    time.sleep(5)  # hours of work before it, and before that perhaps a kernel to compile
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130 and not out and "Traceback" not in err


def test_the_collector_rests_while_a_kernel_is_compiled() -> None:
    class Kernel:
        def __init__(self) -> None:
            self.overloads: list[bool] = []

        def compile(self, types: tuple[Any, ...]) -> None:
            assert len(types) == 4 and not gc.isenabled()
            self.overloads.append(True)

        def __call__(self, thread: int, threads: int, sync: int, known: bool) -> None:
            assert gc.isenabled() and self.overloads == [True]
            raise ZeroDivisionError

    kernel = Kernel()
    for known in (False, True):
        with pytest.raises(ZeroDivisionError):
            pool.launch(kernel, 1, known)
        assert gc.isenabled()


@pytest.mark.skipif(sys.platform == "win32", reason="no signal to one's own process")
def test_an_interrupt_while_a_kernel_is_compiled_comes_after_it() -> None:
    class Kernel:
        overloads: ClassVar[list[bool]] = []

        def compile(self, types: tuple[Any, ...]) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            self.overloads.append(True)

    kernel = Kernel()
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        pool.launch(kernel, 1)
    assert kernel.overloads == [True] and signal.getsignal(signal.SIGINT) is handler


def test_atomics_and_barrier(kernels: Any) -> None:
    whole, real, flags = np.zeros(4, np.int64), np.zeros(1, np.float32), np.zeros(4, bool)
    pool.launch(kernels.contend, 2, whole, real, flags)
    assert whole.tolist() == [2000, 3, 2000, 2000]
    assert real[0] == 1000 and flags.tolist() == [True, True, False, False]


def test_large_products_use_all_processors_and_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(7)
    rows, columns = chance.integers(0, 5000, (2, 60_000))
    A = Matrix.from_coo(
        rows, columns, chance.random(60_000), nrows=5000, ncols=5000, dup_op=semirings.binary.plus
    )
    u = Vector.from_dense(chance.random(5000))
    for direction in ("push", "pull"):
        results = []
        for threads in (1, 2):
            monkeypatch.setattr(pool, "threads_for", lambda work, *share, threads=threads: threads)
            results.append(operations.vxm(u, A, direction=direction).to_numpy(fill=0))
        assert np.array_equal(*results), (
            "bit for bit: the order of additions does not depend on the threads"
        )
        assert np.allclose(results[0], u.to_numpy() @ A.to_scipy())


def test_threads_that_launch_first_at_the_same_time_make_one_team(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool.close()
    both, made, make = threading.Barrier(2), [], pool._new_team

    def new_team(workers: int) -> pool.Team:
        made.append(make(workers))
        return made[-1]

    def ask() -> pool.Team:
        both.wait()
        return pool._team()

    monkeypatch.setattr(pool, "_new_team", new_team)
    with ThreadPoolExecutor(2) as threads:
        found = [each.result() for each in [threads.submit(ask) for _ in range(2)]]
    assert len(made) == 1 and found[0] is found[1] is made[0]
