"""The CPU's pool of threads: launches, errors, forks, barriers."""

from __future__ import annotations

import gc
import os
import pathlib
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from numba import njit

from spgraph import operations, semirings
from spgraph.backends.cpu import atomics, pool
from spgraph.containers import Matrix, Vector


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        cwd=pathlib.Path(__file__).parents[1],
        timeout=120,
    )


def test_number_of_threads_is_checked() -> None:
    program = "from spgraph.backends.cpu import pool\nprint(pool.processors())"
    assert run(program, SPGRAPH_NUM_THREADS="3").stdout == "3\n"
    wrong = run(program, SPGRAPH_NUM_THREADS="many")
    assert (
        wrong.returncode != 0
        and "SPGRAPH_NUM_THREADS: expected an integer >= 1, got 'many'" in wrong.stderr
    )


def graph() -> tuple[Matrix, Vector, np.ndarray]:
    chance = np.random.default_rng(3)
    dense = (chance.random((300, 300)) < 0.1) * 1.0
    return Matrix.from_dense(dense), Vector.from_dense(np.arange(300.0)), dense @ np.arange(300.0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forked_child_computes_after_the_parent_used_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool, "threads_for", lambda work: 2)
    A, u, expected = graph()
    assert np.array_equal(operations.mxv(A, u).to_numpy(), expected)
    child = os.fork()
    if child == 0:
        right = np.array_equal(operations.mxv(A, u).to_numpy(), expected)
        os._exit(0 if right else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert np.array_equal(operations.mxv(A, u).to_numpy(), expected)


def test_calls_from_many_python_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "threads_for", lambda work: 2)
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


def test_an_error_in_a_worker_reaches_the_caller() -> None:
    def kernel(thread: int, threads: int) -> None:
        if thread == 1:
            raise ZeroDivisionError("in the worker")

    with pytest.raises(ZeroDivisionError, match="in the worker"):
        pool.launch(kernel, 2)
    pool.launch(kernel, 1)


def test_the_collector_rests_while_a_kernel_is_compiled() -> None:
    class Kernel:
        def __init__(self) -> None:
            self.overloads: list[bool] = []

        def __call__(self, thread: int, threads: int, known: bool) -> None:
            assert gc.isenabled() == known
            self.overloads.append(known)
            raise ZeroDivisionError

    kernel = Kernel()
    for known in (False, True):
        with pytest.raises(ZeroDivisionError):
            pool.launch(kernel, 1, known)
        assert gc.isenabled()


@njit(nogil=True)
def contend(thread, threads, sync, whole, real, flags):  # type: ignore[no-untyped-def]
    for _ in range(1000):
        atomics.atomic_add(whole, 0, 1)
        while True:
            old = real[0]
            if atomics.compare_exchange(real, 0, old, np.float32(old + 0.5)):
                break
    atomics.atomic_or(whole, 1, 1 << thread)
    atomics.compare_exchange(flags, thread, False, True)
    atomics.barrier(sync, threads)
    atomics.atomic_store(whole, 2 + thread, atomics.atomic_load(whole, 0))


def test_atomics_and_barrier() -> None:
    whole, real, flags = np.zeros(4, np.int64), np.zeros(1, np.float32), np.zeros(4, bool)
    pool.launch(contend, 2, pool.new_sync(), whole, real, flags)
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
            monkeypatch.setattr(pool, "threads_for", lambda work, threads=threads: threads)
            results.append(operations.vxm(u, A, direction=direction).to_numpy(fill=0))
        assert np.array_equal(*results), (
            "bit for bit: the order of additions does not depend on the threads"
        )
        assert np.allclose(results[0], u.to_numpy() @ A.to_scipy())
