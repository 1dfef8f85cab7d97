"""Run a kernel on all cores.

A CPU kernel is one program for many threads (SPMD), as a CUDA kernel is: `def kernel(thread,
threads, sync, ...)` is a nogil Numba function that every thread runs on its share of the work;
threads synchronise at `barrier`. Numba's `parallel=True` is not used: it takes several seconds to
compile, its OpenMP layer kills a forked child and its workqueue layer aborts under Python threads.

A launch is one call of machine code, which a signal cannot interrupt halfway: kernels/pool.py
passes the work to waiting threads and waits until they have finished. They are Python threads,
which exist on all systems; they do not hold the GIL while they wait or work. The caller does the
parts of workers that have not come when it has done its own.

On the main thread, a launch runs Python's signal handlers every 50 ms, when the kernel calls
`barrier` or `poll`, and raises what they raise, so that Ctrl-C stops it.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import gc
import os
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import NamedTuple

import numba
import numpy as np
from numba.core.compiler_lock import global_compiler_lock

from spgraph.backends.cpu.runtime import teams, words
from spgraph.errors import BackendUnavailable
from spgraph.process import interrupts
from spgraph.process.processors import usable

# the least share of a thread, in steps: of those that read an entry; of those that take several
# nanoseconds, in kernels whose threads seldom wait for each other
SHORT_STEPS, LONG_STEPS = 200_000, 50_000
# elementary steps that a kernel may take between two checks for signals
PIECE = 1 << 24
# more than any machine has processors: each has a record, and a thread of the system
MOST_THREADS = 4096


@functools.cache
def processors() -> int:
    """How many threads a large kernel runs on: $SPGRAPH_NUM_THREADS, else the processors that this
    process may use.
    """
    asked = os.environ.get("SPGRAPH_NUM_THREADS")
    if asked is not None:
        number = int(asked) if asked.isdecimal() and len(asked) < 9 else 0
        if not 1 <= number <= MOST_THREADS:
            raise ValueError(
                f"SPGRAPH_NUM_THREADS: expected an integer from 1 to {MOST_THREADS}, got {asked!r}"
            )
        return number
    return usable()


def threads_for(work: int, share: int = SHORT_STEPS) -> int:
    """The number of threads for `work` elementary steps, each with no less than its `share`: waking
    one takes as long as 50 000 to 100 000 steps, and the others wait for it.
    """
    return 1 if work < 400_000 else int(min(processors(), work // share))


# C functions of kernels/pool.py
_SERVE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
_END = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
# of `call_parts`: the function, its part, all parts, the arguments, the queue of results
Task = tuple[Callable[..., None], int, int, tuple[object, ...], "SimpleQueue[BaseException | None]"]


class Callers(NamedTuple):
    """Two records (see teams.py) for callers of `launch`: the main thread, and any other one, which
    never checks for signals. `main` and `other` are their addresses.
    """

    memory: np.ndarray
    main: int
    other: int


class Team(NamedTuple):
    """The worker threads, which wait for work in kernels/pool.py."""

    memory: np.ndarray
    callers: Callers
    most: int  # threads of a launch: the workers and the one that launches
    workers: list[threading.Thread]
    end: Callable[[int, int], int]


def launch(kernel: Callable[..., object], threads: int, *arguments: object) -> None:
    """Run kernel(thread, threads, sync, *arguments) once on each of `threads` threads, and return
    when all have finished.

    On the main thread it raises what a signal handler raises meanwhile, KeyboardInterrupt after
    Ctrl-C; then the kernel's results are incomplete. A kernel that calls neither `barrier` nor
    `poll` always completes first.
    """
    processors()  # a wrong $SPGRAPH_NUM_THREADS is an error on small graphs, too
    first, callers = 0, _callers
    if threads > 1:
        team = _team()
        if threads > team.most:  # at a barrier they would wait forever for the missing ones
            raise RuntimeError(f"launch: expected at most {team.most} threads, got {threads}")
        first, callers = -1, team.callers
    main = threading.get_ident() == _main_thread
    if main and threads > 1 and callers.memory[teams.CHECKING // 8]:
        raise RuntimeError("launch: expected no call from a signal handler that interrupts another")
    given = (first, threads, callers.main if main else callers.other, *arguments)
    if not kernel.overloads:  # type: ignore[attr-defined]
        with _compiling():
            kernel.compile(tuple(map(numba.typeof, given)))  # type: ignore[attr-defined]
    try:
        kernel(*given)
    except KeyboardInterrupt:
        if main:
            _raise_from_handler(callers.memory)
        raise


@contextlib.contextmanager
def _compiling() -> Iterator[None]:
    """While compiling: no garbage collection, which would take an eighth of the time; Ctrl-C is
    delayed, because exceptions in Python functions that LLVM calls are lost; and Numba's lock is
    held, so that no child is forked in this state (`jit.py`).
    """
    with global_compiler_lock, interrupts.deferred():
        collects = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if collects:
                gc.enable()


def call_parts(function: Callable[..., None], parts: int, *arguments: object) -> None:
    """Call the Python function(part, parts, *arguments) for each part, on several Python threads:
    for NumPy functions, which release the GIL. Parts must not wait for each other.

    After an exception, Ctrl-C too, other parts may still run for a while.
    """
    if parts == 1:
        function(0, 1, *arguments)
        return
    errors: SimpleQueue[BaseException | None] = SimpleQueue()
    tasks = _python_threads()
    for part in range(1, parts):
        tasks.put((function, part, parts, arguments, errors))
    function(0, parts, *arguments)
    for error in [errors.get() for _ in range(1, parts)]:
        if error is not None:
            raise error


def close() -> None:
    """End the workers; the next launch makes new ones."""
    while _teams:
        _end(_teams.pop())


# --- callers --------------------------------------------------------------------------------------


def _words(count: int) -> np.ndarray:
    """An array of `count` words, all zero, aligned to a cache line."""
    memory = np.zeros(count + 8, np.int64)
    return memory[-(memory.ctypes.data // 8) % 8 :][:count]


def _new_callers(run: int, control: int) -> Callers:
    memory = _words(2 * teams.RECORD // 8)
    main, other = memory.ctypes.data, memory.ctypes.data + teams.RECORD
    for record, address in ((memory, main), (memory[teams.RECORD // 8 :], other)):
        record[teams.CALLER // 8] = address
        record[teams.RUN // 8] = run
        record[teams.CONTROL // 8] = control
    memory[(teams.RECORD + teams.NEXT) // 8] = teams.NEVER
    return Callers(memory, main, other)


def _raise_from_handler(memory: np.ndarray) -> None:
    """Raise the exception that a signal handler raised during a kernel, if any."""
    kept = memory[teams.TYPE // 8 :][:3]
    kind, value, trace = kept.tolist()
    kept[:] = 0
    if kind:
        ctypes.pythonapi.PyErr_Restore(*map(ctypes.c_void_p, (kind, value, trace)))


# --- the workers ----------------------------------------------------------------------------------


def _team() -> Team:
    """The team, made by the first launch on several threads."""
    while not _teams:
        with _compiling():  # under its lock, so that threads do not make two
            if not _teams:
                _teams.append(_new_team(max(1, processors() - 1)))
    return _teams[0]


def _new_team(workers: int) -> Team:
    names = ("run", "wait_at_barrier", "serve", "end")
    run, wait_at_barrier, serve, end = (words.address("pool", name) for name in names)
    memory = _words((teams.RECORDS + (workers + 1) * teams.RECORD) // 8)
    control = memory.ctypes.data
    for thread in range(workers + 1):
        record = memory[(teams.RECORDS + thread * teams.RECORD) // 8 :]
        record[teams.NEXT // 8] = teams.NEVER
        record[teams.CONTROL // 8] = control
        record[teams.WAIT_AT_BARRIER // 8] = wait_at_barrier
        record[teams.THREAD // 8] = thread
    callers = _new_callers(run, control)
    # without the GIL: the threads of Python that call them let others run
    team = Team(memory, callers, workers + 1, [], _END(end))
    for thread in range(1, workers + 1):
        given = (_SERVE(serve), control + teams.RECORDS + thread * teams.RECORD, memory)
        name = f"spgraph-{thread}"
        team.workers.append(threading.Thread(target=_work, args=given, name=name, daemon=True))
    try:
        for worker in team.workers:
            worker.start()
    except RuntimeError as error:
        _end(team)
        raise _no_thread(workers, error) from error
    return team


def _no_thread(wanted: int, error: RuntimeError) -> BackendUnavailable:
    """The error where the system starts no more threads."""
    return BackendUnavailable(
        f"the CPU's pool: expected to start {wanted} threads beside the caller's, the system "
        f"refused ({error}); let this user or container have more, or set SPGRAPH_NUM_THREADS=1"
    )


def _work(serve: Callable[[int], int], record: int, memory: np.ndarray) -> None:
    """The body of a worker thread; it refers to `memory`, which contains its record."""
    serve(record)


def _end(team: Team) -> None:
    """End the workers; a running kernel stops."""
    team.end(team.memory.ctypes.data, team.most)
    for worker in team.workers:
        if worker.is_alive():
            worker.join(1)


@functools.cache
def _python_threads() -> SimpleQueue[Task | None]:
    """The queue of tasks for Python threads. Adding a task takes no lock that an interrupt could
    leave locked.
    """
    tasks: SimpleQueue[Task | None] = SimpleQueue()
    wanted = max(1, processors() - 1)
    for started in range(wanted):
        try:
            threading.Thread(target=_take, args=(tasks,), name="spgraph", daemon=True).start()
        except RuntimeError as error:
            for _ in range(started):
                tasks.put(None)
            raise _no_thread(wanted, error) from error
    return tasks


def _take(tasks: SimpleQueue[Task | None]) -> None:
    while (task := tasks.get()) is not None:
        function, part, parts, arguments, errors = task
        try:
            function(part, parts, *arguments)
            errors.put(None)
        except BaseException as error:
            errors.put(error)
        del task, function, arguments, errors  # keep nothing alive while waiting


def _after_fork() -> None:
    """Forget the team, in a forked child: its threads do not exist, its lock may be held."""
    global _callers, _main_thread
    _teams.clear()
    _python_threads.cache_clear()
    _callers, _main_thread = _new_callers(0, 0), threading.get_ident()


_main_thread = threading.main_thread().ident
_callers = _new_callers(0, 0)
# one at most; a list, because appending and popping are atomic
_teams: list[Team] = []
# at exit, before the machine code that the workers run is freed
atexit.register(close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
