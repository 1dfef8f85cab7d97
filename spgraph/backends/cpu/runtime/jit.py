"""Compile a kernel text for one specialisation."""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import linecache
import os
import pathlib
import sys
import threading
import weakref
from types import ModuleType

import numba
import numpy as np
from llvmlite.binding import ffi
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

from spgraph.backends.cpu.device import atomics, prefetching
from spgraph.backends.cpu.runtime import teams

BACKEND = pathlib.Path(__file__).parents[1]

_HEADER = """\
import functools
import math
import numba
import numpy as np
from spgraph.backends.cpu.device.atomics import (
    atomic_add, atomic_load, atomic_or, atomic_store, compare_exchange, lowest_bit, nanoseconds,
)
from spgraph.backends.cpu.runtime.cache import kernel
from spgraph.backends.cpu.runtime.teams import barrier, on_all_threads, poll

# Scalar functions and parts of kernels are called by kernels only, and need no ways in from others.
njit = functools.partial(
    numba.njit, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=True
)
# Without reference counts: an array taken out of a tuple or of an array would have one, which all
# threads change, and which a kernel that is interrupted would leave as it is. Who launches a kernel
# holds its arrays, and nothing is allocated inside.
inner = functools.partial(njit, _nrt=False)
"""


# a program that makes operators without end does not keep all of them
@functools.lru_cache(maxsize=1024)
def module(stem: str, preamble: str) -> ModuleType:
    """The kernels of `stem`.py under `preamble`, by name; compiled when they are called.

    The module that they stand in is named by the hash of everything that shapes its machine code.
    """
    text = _HEADER + preamble + "\n" + shared(text_of(stem))
    identity = hashlib.sha256("\0".join((text, _surroundings())).encode()).hexdigest()
    name = f"spgraph_kernel_{stem}_{identity[:24]}"
    lock, kept = _made()
    with lock:  # Numba knows a module by its name: threads that come at once share one
        found = kept.get(name)
        if found is None:
            found = kept[name] = _make(name, text)
    return found


@functools.cache
def _made() -> tuple[threading.Lock, weakref.WeakValueDictionary[str, ModuleType]]:
    """The kernels that somebody holds, by the names of their modules; and who may look."""
    return threading.Lock(), weakref.WeakValueDictionary()


def _wait_for_compilers() -> None:
    """Take the locks of Numba and of LLVM: a child that is forked while another thread holds one
    has it locked for ever, and what that thread was changing as it was left. In the order in which
    who compiles takes them.
    """
    global_compiler_lock.acquire()
    ffi.lib._lock.__enter__()


def _let_compile() -> None:
    ffi.lib._lock.__exit__()
    global_compiler_lock.release()


def _after_fork_in_child() -> None:
    _let_compile()
    _made.cache_clear()  # its lock may be held for ever


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_wait_for_compilers,
        after_in_parent=_let_compile,
        after_in_child=_after_fork_in_child,
    )


def _make(name: str, text: str) -> ModuleType:
    """The kernels of a text; when nobody holds them any more, their module is forgotten."""
    made = ModuleType(name)
    made.__file__ = f"<{name}>"
    # for Numba's messages and for tracebacks
    linecache.cache[made.__file__] = (len(text), None, text.splitlines(True), made.__file__)
    sys.modules[name] = made  # where Numba looks for it
    exec(compile(text, made.__file__, "exec"), vars(made))
    found = ModuleType(name)
    vars(found).update(
        (name, value) for name, value in vars(made).items() if isinstance(value, Dispatcher)
    )
    weakref.finalize(found, _forget, made).atexit = False
    return found


@functools.cache
def _surroundings() -> str:
    """What else the machine code depends on: the versions, and the functions that texts call."""
    parts = (atomics, prefetching, teams)
    callees = [pathlib.Path(str(part.__file__)).read_text("utf-8") for part in parts]
    return "\0".join((*callees, numba.__version__, np.__version__, sys.version))


def _forget(made: ModuleType) -> None:
    """Let go of a module whose kernels nobody holds: Numba lists its functions, which hold it.

    Its machine code stays, as Numba cannot unload any.
    """
    if sys.modules.get(made.__name__) is made:
        del sys.modules[made.__name__]
        linecache.cache.pop(str(made.__file__), None)
    for value in vars(made).values():
        if isinstance(value, Dispatcher) and value.py_func.__module__ == made.__name__:
            for compiled in value.overloads.values():
                with contextlib.suppress(KeyError):
                    value.targetctx.remove_user_function(compiled.entry_point)
    vars(made).clear()


def shared(text: str) -> str:
    """The text whose kernels hand themselves to the threads of a launch where `thread` is -1."""
    lines = text.splitlines(keepends=True)
    first = "    if thread < 0:\n        on_all_threads(threads, sync)\n        return\n"
    for function in reversed(ast.parse(text).body):
        if not isinstance(function, ast.FunctionDef):
            continue
        marks = [ast.unparse(mark) for mark in function.decorator_list]
        names = [each.arg for each in function.args.args[:3]]
        if marks == ["kernel"] and names == ["thread", "threads", "sync"]:
            lines.insert(function.body[0].lineno - 1, first)
    return "".join(lines)


def text_of(stem: str) -> str:
    """The text of `stem`.py; what several kernels share stands in their preambles."""
    (path,) = BACKEND.glob(f"*/kernels/{stem}.py")
    return path.read_text(encoding="utf-8")
