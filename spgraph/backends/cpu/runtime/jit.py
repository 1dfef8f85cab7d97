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
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target

from spgraph.backends.cpu.device import atomics, prefetching
from spgraph.backends.cpu.runtime import (
    cache,  # noqa: F401 (texts import it)
    libraries,
    lowering,
    pipeline,
    teams,
)

# made at their first use, under locks of Numba's that a forked child would have for ever
assert cpu_target.typing_context and cpu_target.target_context

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
from spgraph.backends.cpu.runtime.pipeline import InnerCompiler
from spgraph.backends.cpu.runtime.teams import barrier, on_all_threads, poll

# Scalar functions and parts of kernels are called by kernels only, and need no wrappers for Python
# or C.
njit = functools.partial(
    numba.njit, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=True,
    pipeline_class=InnerCompiler,
)
# Without reference counts: those of an array that is taken out of a tuple or an array would be
# changed by all threads, and be wrong after an interrupted kernel. The caller of a kernel holds its
# arrays, and kernels allocate nothing.
inner = functools.partial(njit, _nrt=False)
"""


# bounded, for programs that keep defining new operators
@functools.lru_cache(maxsize=1024)
def module(stem: str, preamble: str) -> ModuleType:
    """A module with the kernels of `stem`.py under `preamble`; each is compiled by its first call.

    The module's name contains the hash of everything that determines its machine code.
    """
    text = _HEADER + preamble + "\n" + shared(text_of(stem))
    identity = hashlib.sha256("\0".join((text, _surroundings())).encode()).hexdigest()
    name = f"spgraph_kernel_{stem}_{identity[:24]}"
    lock, kept = _made()
    with lock:  # Numba identifies a module by its name: concurrent threads must share one
        found = kept.get(name)
        if found is None:
            found = kept[name] = _make(name, text)
    return found


@functools.cache
def _made() -> tuple[threading.Lock, weakref.WeakValueDictionary[str, ModuleType]]:
    """(lock, the modules of kernels that are in use, by name)."""
    return threading.Lock(), weakref.WeakValueDictionary()


if hasattr(os, "register_at_fork"):
    # its lock may have been held by a thread that the child does not have
    os.register_at_fork(after_in_child=_made.cache_clear)


def _make(name: str, text: str) -> ModuleType:
    """The module of the kernels of a text; it is unregistered when nobody refers to it any more."""
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
    """What machine code depends on beside the kernel's text: versions, the source of functions
    that texts call, and how they are compiled.
    """
    parts = (atomics, libraries, lowering, pipeline, prefetching, teams)
    callees = [pathlib.Path(str(part.__file__)).read_text("utf-8") for part in parts]
    return "\0".join((*callees, numba.__version__, np.__version__, sys.version))


def _forget(made: ModuleType) -> None:
    """Unregister a module whose kernels are not in use: Numba keeps its functions otherwise.

    Its machine code stays in memory: Numba cannot unload any.
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
    """The text with a first statement in each kernel that takes `thread, threads, sync`: called
    with `thread` -1, it calls itself on all threads of a launch.
    """
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
    """The text of `stem`.py. A text that several kernels share is added to their preambles."""
    return _text(BACKEND, stem)


@functools.cache
def _text(backend: pathlib.Path, stem: str) -> str:
    return _paths(backend)[stem].read_text(encoding="utf-8")


@functools.cache
def _paths(backend: pathlib.Path) -> dict[str, pathlib.Path]:
    """Where each text is, by its stem: under the folder `kernels` of some capability."""
    return {path.stem: path for path in backend.glob("*/kernels/*.py")}
