"""The CPU's pool in processes of their own: settings, refusals, forks, sub-interpreters."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from spgraph import operations
from spgraph.backends.cpu.runtime import pool
from tests.backends.cpu.test_pool import graph


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        cwd=pathlib.Path(__file__).parents[3],
        timeout=280,
    )


def test_number_of_threads_is_checked() -> None:
    program = "from spgraph.backends.cpu.runtime import pool\nprint(pool.processors())"
    assert run(program, SPGRAPH_NUM_THREADS="3").stdout == "3\n"
    for given in ("many", "0", "\u00b2", "9" * 20):
        wrong = run(program, SPGRAPH_NUM_THREADS=given)
        expected = f"SPGRAPH_NUM_THREADS: expected an integer from 1 to 4096, got {given!r}"
        assert wrong.returncode != 0 and expected in wrong.stderr


@pytest.mark.parametrize("call", ["pool._team()", "pool.call_parts(lambda *_: None, 2)"])
def test_a_system_that_starts_no_more_threads(call: str) -> None:
    """The error says what to do, the threads that were started end, and a later call has others."""
    program = f"""
        import threading
        from spgraph import errors
        from spgraph.backends.cpu.runtime import pool

        start, left = threading.Thread.start, 2

        def refused(self):
            global left
            left -= 1
            if left < 0:
                raise RuntimeError("can't start new thread")
            start(self)

        threading.Thread.start = refused
        before = set(threading.enumerate())
        try:
            {call}
        except errors.BackendUnavailable as error:
            print(error)
        for thread in set(threading.enumerate()) - before:
            thread.join(120)
            assert not thread.is_alive()
        left = 100
        {call}
    """
    done = run(program, SPGRAPH_NUM_THREADS="4")
    assert done.returncode == 0, done.stderr
    assert "refused (can't start new thread); let this user or container have" in done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forked_child_computes_after_the_parent_used_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool, "threads_for", lambda work, *share: 2)
    A, u, expected = graph()
    assert np.array_equal(operations.mxv(A, u).to_numpy(), expected)
    child = os.fork()
    if child == 0:
        right = np.array_equal(operations.mxv(A, u).to_numpy(), expected)
        os._exit(0 if right else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert np.array_equal(operations.mxv(A, u).to_numpy(), expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forked_child_computes_while_another_thread_compiles(tmp_path: pathlib.Path) -> None:
    """The child has none of the other thread's locks: Numba's, LLVM's, the file's; nor has it
    garbage collection off.
    """
    program = """
        import gc, os, signal, threading
        import spgraph as sg
        from spgraph.backends.cpu.runtime import cache
        A = sg.generators.kronecker(5, seed=1)
        begun = threading.Event()
        compiles = cache.KernelCache.load_overload

        def load_overload(*given):  # where compiling begins
            begun.set()
            return compiles(*given)

        cache.KernelCache.load_overload = load_overload
        # a daemon: a compilation that goes on does not keep the process
        other = threading.Thread(target=lambda: sg.bfs(A, 0), daemon=True)
        other.start()
        begun.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(80)
            gathers = gc.isenabled()
            found = sg.bfs(A, 0).level.nvals, sg.connected_components(A).nvals
            print(gathers, found[0] > 0, found[1] == A.nrows, flush=True)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        other.join()
        sg.bfs(A, 0)
    """
    done = run(program, SPGRAPH_CACHE_DIR=str(tmp_path))
    assert done.stdout.split() == ["True", "True", "True", "0"], done.stderr


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the module has another name there")
def test_a_sub_interpreter_computes() -> None:
    """As programs of mod_wsgi do: they may set no signal handler."""
    found = run(
        """
        import _xxsubinterpreters as interpreters
        made = interpreters.create(isolated=False)
        interpreters.run_string(made, '''if True:
            import spgraph as sg
            A = sg.Matrix.from_coo([0, 1], [1, 2], nrows=3, ncols=3)
            A[2, 0] = 1
            print(sg.bfs(A, 0).level.to_numpy().tolist())
        ''')
        """
    )
    assert found.stdout == "[0, 1, 2]\n", found.stderr
