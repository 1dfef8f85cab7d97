"""How Numba compiles kernels: by the steps that their texts have a use for, without finding again
what it has found before, and without machine code of functions that only kernels call.

A kernel contains the functions that it calls: Numba links their intermediate code into the kernel's
before it optimises that. Code of their own would be generated for nothing.

Kernels count no references, define no functions inside functions and compute with no whole arrays:
what Numba does for those is left out.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

from llvmlite import binding
from numba import _dynfunc
from numba.core import rewrites
from numba.core.analysis import dead_branch_prune, rewrite_semantic_constants
from numba.core.codegen import CPUCodeLibrary, JITCodeLibrary
from numba.core.compiler import CompilerBase, CompileResult, Flags
from numba.core.ir_utils import build_definitions, check_and_legalize_ir
from numba.core.registry import cpu_target
from numba.core.ssa import reconstruct_ssa
from numba.core.targetconfig import ConfigStack
from numba.core.transforms import canonicalize_cfg
from numba.core.typed_passes import (
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import FixupArgs, TranslateByteCode

# that of all flags: Numba computes it from the names of the options
_HASH = hash(Flags())


class _FixedFlags(Flags):
    """Flags that nobody changes: Numba asks for their hash at every operator."""

    def __hash__(self) -> int:
        return _HASH

    def __eq__(self, other: object) -> bool:
        return self is other or super().__eq__(other)


class KernelCompiler(CompilerBase):
    """For functions that Python calls."""

    def _compile_core(self) -> CompileResult:
        """Numba's passes one after the other, as its PassManager runs them; that also measures
        each, checks what it has left, and describes it to listeners.
        """
        state = self.state
        with ConfigStack().enter(_fixed(state.flags)):
            TranslateByteCode().run_pass(state)
            FixupArgs().run_pass(state)
            _simplify(state)
            with _remembering(state.typingctx, state.targetctx):
                NopythonTypeInference().run_pass(state)
                _without_phis(state)
                # LLVM keeps fewer values across the steps of a loop if it is told their ends
                check_and_legalize_ir(state.func_ir, state.flags)
                self.lower()
            NoPythonBackend().run_pass(state)
        state.pipeline = None  # it refers to this
        return state.cr

    def lower(self) -> None:
        """Machine code of the function and of all that it calls."""
        state = self.state
        state.library = _library(_KernelLibrary, state)
        NativeLowering().run_pass(state)


class InnerCompiler(KernelCompiler):
    """For functions that only kernels call."""

    def lower(self) -> None:
        """Intermediate code; the entry point, which nobody calls, identifies the function."""
        state = self.state
        library = state.library = _library(_InnerLibrary, state)
        state.flags.no_compile = True
        NativeLowering().run_pass(state)
        library.finalize()
        made = state["cr"]
        name = made.fndesc.qualname.rpartition(".")[2]
        kept = made.env, (library,)
        entry = _dynfunc.make_function(made.fndesc.lookup_module(), name, "", 0, *kept)
        state.targetctx.insert_user_function(entry, made.fndesc, [library])
        state.reload_init.extend(library._reload_init)
        state["cr"] = made._replace(cfunc=entry)


def _simplify(state: Any) -> None:
    """Branches that constants decide are pruned, twice: before variables are told apart by their
    assignments, and with what that tells.
    """
    state.func_ir.blocks = canonicalize_cfg(state.func_ir.blocks)
    rewrite_semantic_constants(state.func_ir, state.args)
    dead_branch_prune(state.func_ir, state.args)
    rewrites.rewrite_registry.apply("before-inference", state)
    state.func_ir = reconstruct_ssa(state.func_ir)
    _define(state.func_ir)
    dead_branch_prune(state.func_ir, state.args)


def _without_phis(state: Any) -> None:
    state.func_ir = PreLowerStripPhis()._strip_phi_nodes(state.func_ir)
    _define(state.func_ir)


def _define(function: Any) -> None:
    function._definitions = build_definitions(function.blocks)


# --- what Numba would find again ------------------------------------------------------------------


# few: functions differ in whether they count references, and have wrappers
_made_fixed: list[_FixedFlags] = []


def _fixed(flags: Flags) -> _FixedFlags:
    """The one that has the values of `flags`: equal ones are compared fast if they are the same."""
    for made in _made_fixed:
        if made._values == flags._values:
            return made
    _made_fixed.append(_FixedFlags(flags))
    return _made_fixed[-1]


@contextlib.contextmanager
def _remembering(typing: Any, target: Any) -> Iterator[None]:
    """For a kernel and the functions that it calls, look up once what operators and functions give
    for types, and how large types are.

    Numba asks everything that could be meant by `array[k]`, lists and texts as well, each time. Its
    lock is held, so that no other thread compiles meanwhile.
    """
    target.get_abi_sizeof = _size_of
    if "resolve_function_type" in vars(typing):  # for the function that calls this one
        yield
        return
    resolve = typing.resolve_function_type
    found: dict[Any, Any] = {}

    def resolve_once(function: Any, arguments: Any, named: Any) -> Any:
        if named or isinstance(function, str):  # of which the arguments are values, not types
            return resolve(function, arguments, named)
        asked = function, tuple(arguments)
        if asked not in found:
            found[asked] = resolve(function, arguments, named)
        return found[asked]

    typing.resolve_function_type = resolve_once
    try:
        yield
    finally:
        del typing.resolve_function_type


@functools.lru_cache(maxsize=1024)
def _size_of(kind: Any) -> int:
    """Bytes of a value of a type of LLVM's, which is asked by a module of its own each time."""
    target = cpu_target.target_context
    return int(type(target).get_abi_sizeof(target, kind))


# --- libraries: what LLVM has of a function -------------------------------------------------------


def _library(kind: type[CPUCodeLibrary], state: Any) -> CPUCodeLibrary:
    library = kind(state.targetctx.codegen(), state.func_id.func_qualname)
    library.enable_object_caching()
    return library


class _InnerLibrary(JITCodeLibrary):
    """Intermediate code, to be linked into that of kernels."""

    def finalize(self) -> None:
        """Let callers remove it once they have inlined it."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == binding.Linkage.external:
                function.linkage = "linkonce_odr"
        self._shared_module = self._final_module
        self._finalized = True


class _KernelLibrary(JITCodeLibrary):
    """A kernel with all that it calls."""

    def finalize(self) -> None:
        """Machine code, of the functions that called ones call as well."""
        for library in self._linking_libraries:  # which grows
            if isinstance(library, _InnerLibrary):
                for called in library._linking_libraries:
                    if called not in self._linking_libraries:
                        self._linking_libraries.append(called)
        super().finalize()
