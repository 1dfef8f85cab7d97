"""Compile a kernel text for one specialisation, keep it on disk, and run it on all cores.

A CPU kernel is a *single program for many threads*, as a CUDA kernel is: `def kernel(thread,
threads, ...)` is a nogil Numba function that every thread runs on its own share, meeting the others
at `atomics.barrier` where it has to. It is launched on Python's own threads. Numba's
`parallel=True` is not used: it takes several seconds to compile, its OpenMP layer kills a forked
child and its workqueue layer aborts under Python threads.
"""

from __future__ import annotations

import atexit
import functools
import gc
import hashlib
import importlib.util
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import ModuleType
from typing import Any

import numba
import numpy as np

from spgraph.backends.cpu import atomics, prefetching

KERNELS = pathlib.Path(__file__).parent / "kernels"

_HEADER = """\
import functools
import math
import numba
import numpy as np
from spgraph.backends.cpu.atomics import (
    atomic_add, atomic_load, atomic_or, atomic_store, barrier, compare_exchange, lowest_bit,
    nanoseconds,
)

# Numba makes ways into each function from Python and from C, which takes up to half of the time to
# compile. A kernel is called by Python only; scalar functions and parts of kernels by kernels only.
kernel = numba.njit(nogil=True, cache=True, error_model="numpy", no_cfunc_wrapper=True)
njit = functools.partial(
    numba.njit, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True
)
inner = njit
"""


@functools.cache
def module(stem: str, preamble: str) -> ModuleType:
    """The compiled module of kernels/`stem`.py under `preamble`.

    A closure never hits Numba's disk cache, so the specialisation is written out as a module of its
    own, named by the hash of everything that shapes its machine code, and imported: 0.03 s when it
    was compiled before.
    """
    text = _HEADER + preamble + "\n" + text_of(stem)
    # Numba does not notice an edited callee in another file: their texts are part of the name
    callees = [
        pathlib.Path(str(part.__file__)).read_text("utf-8") for part in (atomics, prefetching)
    ]
    identity = "\0".join((text, *callees, numba.__version__, np.__version__, sys.version))
    name = f"{stem}_{hashlib.sha256(identity.encode()).hexdigest()[:24]}"
    path = cache_folder() / f"{name}.py"
    if not path.exists():
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, suffix=".tmp", delete=False, encoding="utf-8"
        ) as file:
            file.write(text)
        os.replace(
            file.name, path
        )  # another process may be writing the same text: both leave it whole
    spec = importlib.util.spec_from_file_location(f"spgraph_kernel_{name}", path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made  # Numba's cache finds the functions again by this name
    spec.loader.exec_module(made)
    return made


def text_of(stem: str) -> str:
    """kernels/`stem`.py; what several kernels share stands in their preambles."""
    return (KERNELS / f"{stem}.py").read_text(encoding="utf-8")


@functools.cache
def cache_folder() -> pathlib.Path:
    """Where compiled kernels lie: $SPGRAPH_CACHE_DIR, else the user's cache folder; private to the
    user.
    """
    base = os.environ.get("SPGRAPH_CACHE_DIR")
    if base:
        folder = pathlib.Path(base)
    elif sys.platform == "win32":
        folder = (
            pathlib.Path(os.environ.get("LOCALAPPDATA", pathlib.Path.home())) / "spgraph" / "cache"
        )
    else:
        folder = (
            pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
            / "spgraph"
        )
    folder = folder / "cpu"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        warnings.warn(
            f"the kernel cache {folder} cannot be written ({error}); "
            "every process will compile anew. "
            "Set SPGRAPH_CACHE_DIR to a folder that can.",
            stacklevel=2,
        )
        folder = pathlib.Path(tempfile.mkdtemp(prefix="spgraph-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return folder


@functools.cache
def processors() -> int:
    """How many threads a large kernel runs on: $SPGRAPH_NUM_THREADS, else the processors this
    process may use.
    """
    asked = os.environ.get("SPGRAPH_NUM_THREADS")
    if asked is not None:
        if not asked.isdigit() or int(asked) < 1:
            raise ValueError(f"SPGRAPH_NUM_THREADS: expected an integer >= 1, got {asked!r}")
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_for(work: int) -> int:
    """Threads worth waking for `work` elementary steps: waking one costs about as much as 50 000 of
    them.
    """
    return int(max(1, min(processors(), work // 50_000)))


def new_sync() -> np.ndarray:
    """The words that the threads of one launch meet at."""
    return np.zeros(atomics.SYNC_WORDS, np.int64)


@functools.cache
def _workers() -> tuple[threading.Lock, ThreadPoolExecutor, int]:
    """The workers, all of them started: a kernel waits until every one of its threads has come."""
    count = max(1, processors() - 1)
    pool = ThreadPoolExecutor(count, thread_name_prefix="spgraph")
    started = threading.Barrier(count)
    for task in [pool.submit(started.wait) for _ in range(count)]:
        task.result()
    return threading.Lock(), pool, count


# the threads of the parent do not exist in a forked child, and its lock may be held for ever
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workers.cache_clear)


def launch(kernel: Callable[..., Any], threads: int, *arguments: Any) -> None:
    """Run kernel(thread, threads, *arguments) once on each of `threads` threads, and return when
    all have.
    """
    if getattr(kernel, "overloads", True) or not gc.isenabled():
        _run(kernel, threads, *arguments)
        return
    # compiled now: an eighth of the time would go into the search for garbage
    gc.disable()
    try:
        _run(kernel, threads, *arguments)
    finally:
        gc.enable()


def _run(kernel: Callable[..., Any], threads: int, *arguments: Any) -> None:
    if threads == 1:
        kernel(0, 1, *arguments)
        return
    lock, pool, count = _workers()
    if threads > count + 1:  # those that came would wait for ever
        raise RuntimeError(f"launch: expected at most {count + 1} threads, got {threads}")
    # kernels wait for each other: two launches that share the workers could wait for ever
    with lock:
        others: list[Future[None]] = []
        try:
            for thread in range(1, threads):
                others.append(pool.submit(kernel, thread, threads, *arguments))
        finally:  # an interrupt in between must not leave some of them waiting for the rest
            for thread in range(len(others) + 1, threads):
                others.append(pool.submit(kernel, thread, threads, *arguments))
            try:
                kernel(0, threads, *arguments)
            finally:
                for other in others:
                    other.result()
