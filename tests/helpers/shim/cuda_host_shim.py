"""Runs the CUDA backend where there is no GPU: its Python on NumPy arrays, its kernels as C++ under
cuda_host_shim.h.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from spgraph import distributed, operations, steps
from spgraph.backends import cuda
from spgraph.backends.cuda.runtime import jit
from spgraph.backends.cuda.runtime.sources import source

ROOT = pathlib.Path(__file__).resolve().parents[3]
HEADER = pathlib.Path(__file__).with_name("cuda_host_shim.h")
FIBERS = HEADER.with_suffix(".cpp")
COMPILER = shutil.which("g++")
SHARED = 1 << 17  # bytes of dynamic shared memory that a block may have
# of -O0, -Og and -O1 the least time in all, to compile and to run
FLAGS = "-std=c++17 -Og -w -fPIC -pthread -fno-strict-aliasing".split()
# a jump from one stack to another is what _longjmp is for here
FLAGS += ["-U_FORTIFY_SOURCE"]
# AddressSanitizer ends the process where a kernel loads or stores beside an array; it must not look
# at stacks, for fibers have their own
if "SPGRAPH_SHIM_SANITIZE" in os.environ:
    FLAGS += ["-fsanitize=address", "--param", "asan-stack=0"]
THREADS = 2  # of the operating system, for a launch that is not cooperative


class HostKernel:
    """Stands for a cupy.RawKernel: called with grid, block and arguments."""

    shared_size_bytes = 0  # the shim counts no bytes of variables

    def __init__(self, stem: str, function: Any, cooperative: bool) -> None:
        self.stem = stem  # of the program's file
        self.function = function
        self.cooperative = cooperative

    def __call__(
        self, grid: tuple[int], block: tuple[int], arguments: tuple[Any, ...], shared_mem: int = 0
    ) -> None:
        assert shared_mem <= SHARED, "the shim gives a block less shared memory"
        held = [as_argument(argument) for argument in arguments]
        pointers = (ctypes.c_void_p * len(held))(*(ctypes.addressof(one) for one in held))
        concurrent = grid[0] if self.cooperative else THREADS
        self.function(grid[0], block[0], concurrent, pointers)


def as_argument(value: Any) -> Any:
    """What CuPy passes to a kernel for a Python value, as a ctypes object."""
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous, "a kernel ignores strides"
        if "SPGRAPH_SHIM_SANITIZE" in os.environ and value.itemsize < 4:
            whole_words(value)
        return ctypes.c_void_p(value.ctypes.data if value.size else None)
    if isinstance(value, bool):
        return ctypes.c_bool(value)
    if isinstance(value, int):
        return ctypes.c_longlong(value)
    assert isinstance(value, np.generic), f"CuPy takes no {type(value).__name__}"
    return (ctypes.c_char * value.itemsize).from_buffer_copy(value.tobytes())


def whole_words(array: np.ndarray) -> None:
    """Let kernels use the last aligned 32-bit word of an array of small values, as atomics do: on a
    GPU no allocation ends inside one.
    """
    library = ctypes.CDLL(None)
    library.__asan_unpoison_memory_region(
        ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(-(-array.nbytes // 4) * 4)
    )


@functools.cache
def kernel(stem: str, name: str, preamble: str, cooperative: bool = False) -> HostKernel:
    return HostKernel(stem, getattr(library(stem, preamble), f"launch_{name}"), cooperative)


@functools.cache
def library(stem: str, preamble: str) -> ctypes.CDLL:
    """The kernels of one program, compiled."""
    return compiled(stem, source(stem, preamble))


def with_thresholds(
    monkeypatch: pytest.MonkeyPatch, names: Mapping[str, Sequence[str]], **chosen: int
) -> None:
    """Let kernels decide by other thresholds than they are shipped with: `names`, by stem, are
    macros that their texts define unless they are defined. They become variables, so that one
    program serves all values; those that are not chosen have the shipped one. Kernels that somebody
    keeps are not asked for, and go on as they were.
    """

    def made(stem: str, name: str, preamble: str, *, cooperative: bool = False) -> HostKernel:
        if stem not in names:
            return kernel(stem, name, preamble, cooperative)
        text = variables(stem, tuple(names[stem])) + preamble
        for each, shipped in shipped_values(stem, text, tuple(names[stem])).items():
            place = ctypes.c_int.in_dll(library(stem, text), f"variable_{each}")
            monkeypatch.setattr(place, "value", chosen.get(each, shipped))
        return kernel(stem, name, text, cooperative)

    monkeypatch.setattr(jit, "kernel", made)


@functools.cache
def variables(stem: str, names: tuple[str, ...]) -> str:
    """Definitions of macros as variables, in front of the preamble of a program."""
    text, lines = source(stem, ""), ""
    for name in names:
        found = re.search(rf"#ifndef {name}\b.*\n#define {name} (.*?)(?: //.*)?\n", text)
        assert found, f"{stem} has no threshold {name}"
        lines += f'extern "C" {{ int variable_{name} = {found[1]}; }}\n'
        lines += f"#define {name} variable_{name}\n"
    return lines


@functools.cache
def shipped_values(stem: str, preamble: str, names: tuple[str, ...]) -> dict[str, int]:
    """The thresholds of a program before anybody has chosen others."""
    made = library(stem, preamble)
    return {name: ctypes.c_int.in_dll(made, f"variable_{name}").value for name in names}


def compiled(name: str, text: str) -> ctypes.CDLL:
    """A program as a library with an entry for each kernel."""
    kernels = re.findall(r"__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\(", text)
    assert kernels
    text += "\n" + "\n".join(f"KERNEL_ENTRY({kernel})" for kernel in kernels) + "\n"
    # memory whose size comes with the launch
    dynamic = rf"static thread_local \1 \2[{SHARED} / sizeof(\1)];"
    text = re.sub(r"extern __shared__ (\w+) (\w+)\[\];", dynamic, text)
    text = f'#include "{header().name}"\n{text}'
    path = folder() / f"{name}_{digest(text)}.so"
    with alone(path):
        if not path.exists():
            path.with_suffix(".cpp").write_text(text)
            build(path, "-shared", path.with_suffix(".cpp"), header().with_suffix(".o"))
    return ctypes.CDLL(str(path))


@functools.cache
def header() -> pathlib.Path:
    """The header beside what it compiles to, which takes g++ less long to read, and beside the
    object that programs are linked with.
    """
    text = HEADER.read_text()
    path = folder() / f"shim_{digest(text + FIBERS.read_text())}.h"
    made = path.with_suffix(".o")
    with alone(made):
        if not made.exists():
            path.write_text(text)
            build(path.with_suffix(".h.gch"), "-xc++-header", path)
            build(made, "-O2", "-c", FIBERS)
    return path


@contextlib.contextmanager
def alone(path: pathlib.Path) -> Iterator[None]:
    """Hold the lock of a file: of the processes that need it, one makes it and the others wait."""
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build(result: pathlib.Path, *what: str | pathlib.Path) -> None:
    """Let g++ write `result`, which is there when it is complete: others may look for it."""
    written = result.with_name(f"{os.getpid()}_{result.name}")
    done = subprocess.run(
        [str(COMPILER), *FLAGS, *what, "-o", written], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[:4000]
    written.replace(result)


def digest(text: str) -> str:
    return hashlib.sha256(" ".join((*FLAGS, text)).encode()).hexdigest()[:20]


def under_address_sanitizer(*tests: str) -> subprocess.CompletedProcess[str]:
    """pytest over `tests` in a process whose kernels g++'s AddressSanitizer watches: every load and
    store. Its library has to be loaded before all others, under which NVRTC does not find its own.
    """
    library = subprocess.run(
        [str(COMPILER), "-print-file-name=libasan.so"], capture_output=True, text=True
    ).stdout.strip()
    if not os.path.isabs(library):
        pytest.skip("needs g++'s libasan")
    settings = {"SPGRAPH_SHIM_SANITIZE": "1", "LD_PRELOAD": library}
    settings["ASAN_OPTIONS"] = "detect_leaks=0:handle_segv=0"
    # -s: what pytest captures is lost with the process that the sanitizer ends
    options = ["-q", "-s", "-p", "no:cacheprovider", "-k", "not compile"]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **settings}, capture_output=True, text=True
    )


def folder() -> pathlib.Path:
    """Where programs are kept: see tests/conftest.py."""
    kept = pathlib.Path(os.environ["SPGRAPH_SHIM_CACHE"])
    kept.mkdir(parents=True, exist_ok=True)
    return kept


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let operations on CPU containers run on the CUDA backend."""
    monkeypatch.setattr(jit, "device", lambda array: contextlib.nullcontext())
    monkeypatch.setattr(jit, "kernel", kernel)
    monkeypatch.setattr(
        jit, "sweep", lambda kernel, threads, *rest: jit.launch(kernel, min(threads, 1024), *rest)
    )
    monkeypatch.setattr(jit, "occupancy", lambda *arguments: 2)
    monkeypatch.setattr(jit, "allow", lambda kernel, shared: None)
    monkeypatch.setattr(jit, "enter_context", lambda: None)
    parts = [module for module in vars(operations).values() if hasattr(module, "backend")]
    for module in (steps, *parts):
        monkeypatch.setattr(module, "backend", backend)


def backend(device: Any) -> Any:
    """The backend of a device: CUDA's for the CPU, that of shards for a Placement."""
    return cuda if isinstance(device, str) else distributed
