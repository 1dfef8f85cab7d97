"""The cache on disk of kernels compiled by Numba.

Numba's own cache executes whatever it finds, needs the source of the kernel as a file beside it,
and loses entries when two processes compile at the same time (one index serves all signatures).
Here every signature of a kernel has a file, named by the hash of everything that determines its
machine code and verified before it is unpickled.
"""

from __future__ import annotations

import functools
import hashlib
import pathlib
import pickle
from collections.abc import Callable
from typing import Any

import numba
from llvmlite.binding import parse_assembly
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.serialize import dumps
from numba.core.sigutils import normalize_signature

from spgraph.backends.cpu.runtime.pipeline import KernelCompiler, refreshing_if_new
from spgraph.process import cache_folder
from spgraph.process.activity import preparing


def kernel(function: Callable[..., Any]) -> Any:
    """Decorator: a function compiled by Numba that Python calls without the GIL, cached on disk.

    Compilation omits the wrapper for calls from C, since wrappers take up to half of the time.
    Kernels allocate no arrays and count no references (_nrt): an interrupted one would leak them.
    """
    if numba.config.DISABLE_JIT:
        raise RuntimeError(
            "spgraph: expected Numba to compile the kernels of the CPU, which are no Python "
            "functions; got NUMBA_DISABLE_JIT=1; unset it"
        )
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "_nrt": False}
    made = numba.njit(**options, pipeline_class=KernelCompiler)(function)
    compile_it = refreshing_if_new()(made.compile)
    kept_in = folder()
    if kept_in is None:

        def compile_alone(signature: Any) -> Any:
            with preparing(), global_compiler_lock:
                return compile_it(signature)

        made.compile = compile_alone
        return made
    cache = made._cache = KernelCache(made, kept_in)

    def compile_once(signature: Any) -> Any:
        # taken before the file lock, so that no child is forked while this process holds that
        with preparing(), global_compiler_lock:
            path = cache.path(signature)
            if path.exists():
                return compile_it(signature)
            with cache_folder.alone(path):  # another process may have compiled it meanwhile
                return compile_it(signature)

    made.compile = compile_once
    return made


@functools.cache
def folder() -> pathlib.Path | None:
    """The folder of compiled kernels: `cpu` in the user's cache folder; None, after a warning, if
    it cannot be created or others could write into it.
    """
    asked = cache_folder.user_folder() / "cpu"
    found, reason = cache_folder.prepare(asked)
    if found is None:
        cache_folder.warn(
            f"the kernel cache {asked} is not used: {reason}; every process compiles its kernels. "
            "Set SPGRAPH_CACHE_DIR to a folder that you alone can write into"
        )
    return found


def _called_only(library: tuple[str, str, Any], data: Any) -> tuple[str, str, Any]:
    """A serialized library whose intermediate code, which only inlining needs, is replaced by empty
    functions of the same names: kernels are never inlined, and loading takes half the time.
    """
    name, kind, (machine_code, _) = library
    names = data.fndesc.llvm_func_name, data.fndesc.llvm_cpython_wrapper_name
    text = "".join(f'define void @"{name}"() {{ ret void }}\n' for name in names)
    return name, kind, (machine_code, parse_assembly(text).as_bitcode())


class KernelCache(_Cache):
    """Numba's cache interface for one kernel."""

    def __init__(self, made: Any, folder: pathlib.Path) -> None:
        self._name = f"{made.py_func.__module__}.{made.py_func.__qualname__}"
        self._codegen = made.targetctx.codegen
        self._folder = folder

    @property
    def cache_path(self) -> str:
        """The folder of the files."""
        return str(self._folder)

    def path(self, signature: Any) -> pathlib.Path:
        """The file of a signature; the kernel's name contains the hash of its text."""
        types, _ = normalize_signature(signature)
        shape = [f"{kind} {getattr(kind, 'fields', '')}" for kind in types]
        whole = "\0".join((self._name, *shape, *map(str, self._codegen().magic_tuple())))
        stem = self._name.removeprefix("spgraph_kernel_").partition("_")[0]
        return self._folder / f"{stem}-{hashlib.sha256(whole.encode()).hexdigest()[:32]}.kernel"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel for a signature; None if it must be compiled.

        Numba's own cache calls target_context.refresh() first, which imports for 0.2 s what only
        compiling needs; that calls it itself.
        """
        path = self.path(sig)
        content = cache_folder.read(path)
        if content is None:
            return None
        try:
            return CompileResult._rebuild(target_context, *pickle.loads(content))
        except Exception as error:  # written by other versions that claim to be these
            cache_folder.discard(path, f"cannot be loaded ({error!r})")
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compiled kernel to disk, unless it contains addresses of this process."""
        if not data.lifted and not data.library.has_dynamic_globals:
            library, *rest = data._reduce()
            cache_folder.write(self.path(sig), dumps((_called_only(library, data), *rest)))

    def enable(self) -> None:
        """Part of Numba's interface; it is always enabled."""

    def disable(self) -> None:
        """Part of Numba's interface; it is always enabled."""

    def flush(self) -> None:
        """Part of Numba's interface, for `recompile`, which kernels do not use."""
