"""How Numba compiles kernels: without the passes that their texts have no use for, without looking
up again what an operator gives for types, and without machine code of functions that only kernels
call.

A kernel contains the functions that it calls: Numba links their intermediate code into the kernel's
before it optimises that. Code of their own would be generated for nothing.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator
from typing import Any

from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering, NopythonRewrites, NopythonTypeInference
from numba.core.untyped_passes import InlineClosureLikes

# for functions inside functions and for expressions of whole arrays, of which there are none
_NO_USE = (InlineClosureLikes, NopythonRewrites)

# what they give depends on the types of the operands alone
_OPERATORS = {bool, *(getattr(operator, name) for name in operator.__all__)}


class KernelCompiler(CompilerBase):
    """For functions that Python calls."""

    lowering = NativeLowering

    def define_pipelines(self) -> list[Any]:
        """Numba's pipeline with passes of ours, and without those of no use."""
        ours = {NopythonTypeInference: _Inference, NativeLowering: self.lowering}
        made = DefaultPassBuilder.define_nopython_pipeline(self.state)
        made.passes = [
            (ours.get(step, step), text) for step, text in made.passes if step not in _NO_USE
        ]
        made.finalize()
        return [made]


@contextlib.contextmanager
def _remembering(context: Any) -> Iterator[None]:
    """What operators give for types is looked up once for a kernel and the functions that it calls:
    Numba asks everything that could be meant by `array[k]`, lists and texts as well, each time.

    Numba's lock is held, so that no other thread compiles meanwhile.
    """
    if "resolve_function_type" in vars(context):  # for the function that calls this one
        yield
        return
    resolve = context.resolve_function_type
    found: dict[Any, Any] = {}

    def resolve_once(function: Any, arguments: Any, named: Any) -> Any:
        if named or getattr(function, "typing_key", function) not in _OPERATORS:
            return resolve(function, arguments, named)
        asked = function, tuple(arguments)
        if asked not in found:
            found[asked] = resolve(function, arguments, named)
        return found[asked]

    context.resolve_function_type = resolve_once
    try:
        yield
    finally:
        del context.resolve_function_type


@register_pass(mutates_CFG=True, analysis_only=False)
class _Inference(NopythonTypeInference):
    """Numba's inference of types, which remembers."""

    _name = "spgraph_type_inference"

    def run_pass(self, state: Any) -> bool:
        """Find the types of all variables."""
        with _remembering(state.typingctx):
            return bool(super().run_pass(state))


class _InnerLibrary(JITCodeLibrary):
    """Intermediate code, to be linked into that of callers."""

    def _optimize_final_module(self) -> None:
        """The kernel optimises all that it calls: here it would be done for nothing."""

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


class InnerCompiler(KernelCompiler):
    """For functions that only kernels call."""

    lowering = _InnerLowering
