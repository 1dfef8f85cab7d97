"""How Numba compiles kernels: without the passes that their texts have no use for, and without
machine code of functions that only kernels call.

A kernel contains the functions that it calls: Numba links their intermediate code into the kernel's
before it optimises that. Code of their own would be generated for nothing.
"""

from __future__ import annotations

from typing import Any

from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering, NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes

# for functions inside functions and for expressions of whole arrays, of which there are none
_NO_USE = (InlineClosureLikes, NopythonRewrites)


class KernelCompiler(CompilerBase):
    """For functions that Python calls."""

    def define_pipelines(self) -> list[Any]:
        """Numba's pipeline without the passes of no use."""
        made = DefaultPassBuilder.define_nopython_pipeline(self.state)
        made.passes = [each for each in made.passes if each[0] not in _NO_USE]
        made.finalize()
        return [made]


class InnerCompiler(KernelCompiler):
    """For functions that only kernels call."""

    def define_pipelines(self) -> list[Any]:
        """The same, but for its end."""
        (made,) = super().define_pipelines()
        made.passes = [
            (_InnerLowering if step is NativeLowering else step, text) for step, text in made.passes
        ]
        made.finalize()
        return [made]


class _InnerLibrary(JITCodeLibrary):
    """Optimised intermediate code, to be linked into that of callers."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _InnerLowering(NativeLowering):
    """Numba's lowering up to the intermediate code."""

    _name = "spgraph_inner_lowering"

    def run_pass(self, state: Any) -> bool:
        """Make `state.cr`; its entry point, which nobody calls, identifies the function."""
        codegen = state.targetctx.codegen()
        library = state.library = _InnerLibrary(codegen, state.func_id.func_qualname)
        library.enable_object_caching()
        state.flags.no_compile = True
        super().run_pass(state)
        library.finalize()
        made = state["cr"]
        name = made.fndesc.qualname.rpartition(".")[2]
        kept = made.env, (library,)
        entry = _dynfunc.make_function(made.fndesc.lookup_module(), name, "", 0, *kept)
        state.targetctx.insert_user_function(entry, made.fndesc, [library])
        state.reload_init.extend(library._reload_init)
        state["cr"] = made._replace(cfunc=entry)
        return True
