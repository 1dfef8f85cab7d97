"""Compile a kernel text for one specialisation, and keep it on disk."""

from __future__ import annotations

import atexit
import functools
import hashlib
import importlib.util
import os
import pathlib
import shutil
import sys
import tempfile
import warnings
from types import ModuleType

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
