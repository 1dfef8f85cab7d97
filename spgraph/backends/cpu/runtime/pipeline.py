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
import itertools
from collections.abc import Iterator
from types import BuiltinFunctionType, ModuleType
from typing import Any

from numba import _dynfunc
from numba.core import imputils, rewrites
from numba.core.analysis import dead_branch_prune, rewrite_semantic_constants
from numba.core.bytecode import ByteCode
from numba.core.compiler import CompilerBase, CompileResult, Flags
from numba.core.errors import NumbaError
from numba.core.extending import _Intrinsic
from numba.core.interpreter import (
    Interpreter,
    peep_hole_delete_with_exit,
    peep_hole_fuse_dict_add_updates,
)
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
from numba.core.typing import signature
from numba.core.untyped_passes import FixupArgs

from spgraph.backends.cpu.runtime import libraries
from spgraph.backends.cpu.runtime.lowering import CHOICES, KernelLowering, types

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
        """With few of Numba's definitions; with all, should a text need more."""
        try:
            return self._compile()
        except (NumbaError, NotImplementedError):
            if not _take_in_all():
                raise
        return self._compile()

    def _compile(self) -> CompileResult:
        """Numba's passes one after the other, as its PassManager runs them; that also measures
        each, checks what it has left, and describes it to listeners.
        """
        state = self.state
        with ConfigStack().enter(_fixed(state.flags)):
            state.func_ir = _Interpreter(state.func_id).interpret(ByteCode(state.func_id))
            FixupArgs().run_pass(state)
            _simplify(state)
            with _remembering(state.typingctx, state.targetctx):
                NopythonTypeInference().run_pass(state)
                _without_phis(state)
                if _as_numba_does(state.flags):  # where references end
                    check_and_legalize_ir(state.func_ir, state.flags)
                self.lower()
            NoPythonBackend().run_pass(state)
        state.pipeline = None  # it refers to this
        return state.cr

    def lower(self) -> None:
        """Machine code of the function and of all that it calls."""
        state = self.state
        state.library = libraries.library(libraries.KernelLibrary, state)
        _lowering(state).run_pass(state)


class InnerCompiler(KernelCompiler):
    """For functions that only kernels call."""

    def lower(self) -> None:
        """Intermediate code; the entry point, which nobody calls, identifies the function."""
        state = self.state
        library = state.library = libraries.library(libraries.InnerLibrary, state)
        state.flags.no_compile = True
        _lowering(state).run_pass(state)
        library.finalize()
        made = state["cr"]
        name = made.fndesc.qualname.rpartition(".")[2]
        kept = made.env, (library,)
        entry = _dynfunc.make_function(made.fndesc.lookup_module(), name, "", 0, *kept)
        state.targetctx.insert_user_function(entry, made.fndesc, [library])
        state.reload_init.extend(library._reload_init)
        state["cr"] = made._replace(cfunc=entry)


class _Interpreter(Interpreter):
    """Numba's, for texts without `with` and dictionaries."""

    def post_process(self, peepholes: list[Any], func_ir: Any) -> Any:
        """Without looking through all variables for what is left of those."""
        of_others = peep_hole_delete_with_exit, peep_hole_fuse_dict_add_updates
        return super().post_process([each for each in peepholes if each not in of_others], func_ir)


def _simplify(state: Any) -> None:
    """Branches that constants decide are pruned, twice: before variables are told apart by their
    assignments, and with what that tells.
    """
    state.func_ir.blocks = canonicalize_cfg(state.func_ir.blocks)
    rewrite_semantic_constants(state.func_ir, state.args)
    dead_branch_prune(state.func_ir, state.args)
    _rewrite(state)
    state.func_ir = reconstruct_ssa(state.func_ir)
    _define(state.func_ir)
    dead_branch_prune(state.func_ir, state.args)


def _rewrite(state: Any) -> None:
    """Numba's rules for statements with constants, where they match. Its own function then finds
    the lives of all variables, too.
    """
    blocks = state.func_ir.blocks
    for rule in rewrites.rewrite_registry.rewrites["before-inference"]:
        rewriting = rule(state)
        for key in blocks:
            while rewriting.match(state.func_ir, blocks[key], state.typemap, state.calltypes):
                blocks[key] = rewriting.apply()
    state.func_ir.blocks = canonicalize_cfg(blocks)


def _lowering(state: Any) -> NativeLowering:
    return NativeLowering() if _as_numba_does(state.flags) else KernelLowering()


def _as_numba_does(flags: Flags) -> bool:
    """Whether references are counted, or a debugger is to find variables in memory."""
    return bool(flags.nrt or flags.debuginfo)


def _without_phis(state: Any) -> None:
    state.func_ir = PreLowerStripPhis()._strip_phi_nodes(state.func_ir)
    _define(state.func_ir)


def _define(function: Any) -> None:
    function._definitions = build_definitions(function.blocks)


# --- what Numba would find again ------------------------------------------------------------------


# which are no functions of cffi's: Numba imports that to ask it for each operator
_KNOWN = (ModuleType, BuiltinFunctionType, _Intrinsic)
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
        chosen = _choice(function, arguments)
        if chosen is not None:
            return chosen
        asked = function, tuple(arguments)
        if asked not in found:
            found[asked] = resolve(function, arguments, named)
        return found[asked]

    resolve_value = typing.resolve_value_type

    def resolve_known(value: Any) -> Any:
        known = typing._get_global_type(value) if isinstance(value, _KNOWN) else None
        return resolve_value(value) if known is None else known

    typing.resolve_function_type = resolve_once
    typing.resolve_value_type = resolve_known
    try:
        yield
    finally:
        del typing.resolve_function_type, typing.resolve_value_type


def _choice(function: Any, arguments: Any) -> Any:
    """The signature of min or max of two numbers of one type, in functions that `lowering.py`
    translates.
    """
    if getattr(function, "typing_key", None) not in CHOICES or len(arguments) != 2:
        return None
    kind, other = map(types.unliteral, arguments)
    if kind != other or not isinstance(kind, types.Integer | types.Float):
        return None
    flags = ConfigStack.top_or_none()  # of what is being compiled, which may be a part of Numba
    lowered_here = isinstance(flags, _FixedFlags) and not _as_numba_does(flags)
    return signature(kind, kind, kind) if lowered_here else None


@contextlib.contextmanager
def refreshing_if_new() -> Iterator[None]:
    """Around compiling: let Numba take in definitions only where there are some that it has not.

    It looks for new ones hundreds of times: whenever it does not find how an operator is computed,
    and for each definition that it takes in, which itself looks for the registry of builtins.
    """
    typing, target = cpu_target.typing_context, cpu_target.target_context
    if "refresh" in vars(target):
        yield
        return
    typing.load_additional_registries = functools.partial(_load_types, typing)
    target.load_additional_registries = functools.partial(_load_functions, target)
    running, known = False, dict.fromkeys((typing, target), -1)

    def refresh(context: Any) -> None:
        nonlocal running
        if running and imputils.builtin_registry in target._registries:
            return  # what is defined meanwhile is taken in at the next call
        before, running = running, True
        try:
            while (now := _defined(context)) != known[context]:
                known[context] = now
                type(context).refresh(context)
        finally:
            running = before

    for context in known:
        context.refresh = functools.partial(refresh, context)
    try:
        yield
    finally:
        for context in known:
            del context.refresh
            vars(context).pop("load_additional_registries", None)


def _load_types(typing: Any) -> None:
    """What functions of numbers and arrays give. Numba also imports cffi, for its functions."""
    from numba.core.typing import cmathdecl, enumdecl, mathdecl, npydecl

    for part in (cmathdecl, enumdecl, mathdecl, npydecl):
        typing.install_registry(part.registry)


def _load_functions(target: Any) -> None:
    """How functions of numbers, tuples and arrays are computed. Numba also imports what it has for
    texts, lists, sets, random numbers and linear algebra, with that of SciPy: a tenth of the time
    of a first call.
    """
    from numba.core import optional  # noqa: F401 (it defines, as the next do)
    from numba.core.runtime import rtsys
    from numba.cpython import (  # noqa: F401
        builtins,
        cmathimpl,
        enumimpl,
        iterators,
        mathimpl,
        numbers,
        rangeobj,
        slicing,
        tupleobj,
    )
    from numba.misc import literal  # noqa: F401
    from numba.np import arrayobj, npyimpl  # noqa: F401

    rtsys.initialize(target)
    for part in (cmathimpl, mathimpl, npyimpl):
        target.install_registry(part.registry)


def _take_in_all() -> bool:
    """All that Numba takes in for functions of its users; False if that has been done already."""
    typing, target = cpu_target.typing_context, cpu_target.target_context
    if "load_additional_registries" not in vars(target):
        return False
    for context in (typing, target):
        del context.load_additional_registries
    for context in (target, typing):
        type(context).refresh(context)
    return True


def _defined(context: Any) -> int:
    """How many definitions of functions, attributes, conversions, ... there are."""
    kept = (vars(registry).values() for registry in context._registries)
    return sum(map(len, itertools.chain.from_iterable(kept)))


@functools.lru_cache(maxsize=1024)
def _size_of(kind: Any) -> int:
    """Bytes of a value of a type of LLVM's, which is asked by a module of its own each time."""
    target = cpu_target.target_context
    return int(type(target).get_abi_sizeof(target, kind))
