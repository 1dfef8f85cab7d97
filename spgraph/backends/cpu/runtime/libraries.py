"""What LLVM has of a kernel and of the functions that it calls, and how LLVM optimises it."""

from __future__ import annotations

from typing import Any

from llvmlite import binding
from numba.core.codegen import CPUCodeLibrary, JITCodeLibrary

from spgraph.backends.cpu.runtime import teams


def library(kind: type[CPUCodeLibrary], state: Any) -> CPUCodeLibrary:
    """An empty one for the function that Numba is compiling."""
    made = kind(state.targetctx.codegen(), state.func_id.func_qualname)
    made.enable_object_caching()
    return made


class Library(JITCodeLibrary):
    """A function that is optimised by itself first: as a part of a kernel it is not always as fast
    without that.
    """

    def _optimize_functions(self, ll_module: Any) -> None:
        """By one manager: making one takes as long as its passes over a small function."""
        ll_module.data_layout = self._codegen._data_layout
        manager, builder = self._codegen._function_pass_manager()
        for function in ll_module.functions:
            if not function.is_declaration:
                manager.run(function, builder)


class InnerLibrary(Library):
    """Intermediate code, to be linked into that of kernels."""

    def finalize(self) -> None:
        """Let callers remove it once they have inlined it."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == binding.Linkage.external:
                function.linkage = "linkonce_odr"
        self._shared_module = self._final_module
        self._finalized = True


class KernelLibrary(Library):
    """A kernel with all that it calls."""

    def _optimize_final_module(self) -> None:
        """With what all its parts had of the functions in `teams.py` as one of the kernel's own."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.name.startswith(teams.PREFIX):
                function.linkage = "internal"
        super()._optimize_final_module()

    def finalize(self) -> None:
        """Machine code, of the functions that called ones call as well."""
        for linked in self._linking_libraries:  # which grows
            if isinstance(linked, InnerLibrary):
                for called in linked._linking_libraries:
                    if called not in self._linking_libraries:
                        self._linking_libraries.append(called)
        super().finalize()
