"""Type inference by Numba: of a user's function as a whole, and of one operation inside it.

Numba is imported inside the functions, so that `import spgraph` does not load it.
"""

import ast
import math
import operator
import re
from collections.abc import Callable
from functools import cache, lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from ..errors import DomainMismatch
from ..process.activity import preparing
from ..process.interrupts import deferred
from ..process.lazy_imports import whole
from .functions import BOOL, C_TYPES, FLOAT64, INT64, NAME, names
from .vocabulary import OPERATORS

Types = tuple[np.dtype, ...]

# Operations of which everybody knows the types over two floats of the same one, and over the usual
# numbers of graphs. Many functions need no others, and importing what Numba finds types with takes
# longer than loading all kernels of an algorithm from disk.
_USUAL = {BOOL, np.dtype(np.int32), INT64, FLOAT64}
_ARITHMETIC = {operator.add, operator.sub, operator.mul, operator.truediv}
_ARITHMETIC |= {operator.floordiv, operator.mod}
_COMPARISONS = {operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge}


@lru_cache(maxsize=1024)
@preparing()
def infer(text: str, types: Types) -> np.dtype:
    """The type that a function, given as text, returns for arguments of `types`. DomainMismatch,
    with Numba's reason, if it does not compile for them or does not return one number.
    """
    known = _known_result(text, types)
    if known is not None:
        return known
    numba = _numba()
    try:
        function = _function(text)
        with deferred():  # exceptions get lost in LLVM
            function.compile(tuple(numba.from_dtype(dtype) for dtype in types))
    except (numba.core.errors.NumbaError, NotImplementedError) as error:
        raise DomainMismatch(f"not defined for {names(types)}: {_reason(str(error))}") from None
    returned = function.nopython_signatures[-1].return_type
    try:
        result = _dtype(getattr(returned, "literal_type", returned))
    except (numba.core.errors.NumbaError, NotImplementedError):
        result = None
    if result is None or result.name not in C_TYPES:
        raise DomainMismatch(f"returns {returned} for {names(types)}; expected one number")
    return result


def _known_result(text: str, types: Types) -> np.dtype | None:
    """What `infer` gives of a function that returns a formula of known types; None of others."""
    match ast.parse(text).body:
        case [ast.FunctionDef(args=arguments, body=[ast.Return(value=ast.expr() as value)])]:
            taken = (argument.arg for argument in arguments.args)
            return _type_of(value, dict(zip(taken, types, strict=True)))
    return None


def _type_of(node: ast.expr, taken: dict[str, np.dtype]) -> np.dtype | None:
    match node:
        case ast.Name(id=name):
            return taken.get(name)
        case ast.Constant(value=float()):
            return FLOAT64
        case ast.Constant(value=int() as value) if type(value) is int and value < 2**63:
            return INT64
        case ast.BinOp(left=left, op=op, right=right):
            parts = [left, right]
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            parts = [left, right]
        case _:
            return None
    found = [dtype for part in parts if (dtype := _type_of(part, taken)) is not None]
    function = OPERATORS.get(type(op))
    known = _known_types(function, tuple(found)) if function and len(found) == 2 else None
    return None if known is None else known[-1]


def _function(text: str) -> Any:
    """The Numba function of a text, to be compiled but never called: without wrappers for callers
    it takes a quarter of the memory, which Numba never frees.
    """
    scope: dict[str, Any] = {"np": np, "math": math}
    exec(text.replace(NAME, "user"), scope)
    function = next(value for name, value in scope.items() if name.startswith("user"))
    compiler = _numba().njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
    return compiler(function)


def _reason(message: str) -> str:
    """The most useful line of Numba's error report."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", message)
    call = re.search(r">>> (.+)", plain)
    if call and "No implementation" in plain:
        return f"Numba has no {call[1].strip()}"
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    useful = [
        line
        for line in lines
        if not re.match(r"Failed in|During|File |\^|There are|Invalid use|- ", line)
    ]
    return (useful or lines or ["no reason given"])[0][:200]


@cache
def operation_types(function: Callable[..., object], types: Types) -> Types | None:
    """The types that Numba casts the operands of an operation to, followed by its result type; None
    if the operation is not defined for `types`.
    """
    known = _known_types(function, types)
    if known is not None:
        return known
    found = _resolve(function, types)
    return (
        None
        if found is None
        else tuple(_dtype(dtype) for dtype in (*found.args, found.return_type))
    )


def _known_types(function: Callable[..., object], types: Types) -> Types | None:
    """What `operation_types` gives for arithmetic and comparisons of two floats of one type or two
    of the usual numbers; None for others.
    """
    if len(types) != 2:
        return None
    if not (types[0] == types[1] and types[0].kind == "f") and not _USUAL.issuperset(types):
        return None
    common = np.promote_types(*types)
    if function in _COMPARISONS:
        return common, common, BOOL
    if function in _ARITHMETIC:
        common = common if common.kind == "f" else INT64
        quotient = function is operator.truediv and common == INT64
        return common, common, FLOAT64 if quotient else common
    return None


@cache
def range_type(types: Types) -> np.dtype | None:
    """The type of the numbers of `range`; None if its arguments are not integers."""
    found = _resolve(range, types)
    return None if found is None else _dtype(found.return_type.dtype)


@cache
def unify(one: np.dtype, other: np.dtype) -> np.dtype:
    """The common type of a value that is of one of two types, depending on control flow."""
    if one == other:
        return one
    numba = _numba()
    context = numba.core.registry.cpu_target.typing_context
    return _dtype(context.unify_pairs(numba.from_dtype(one), numba.from_dtype(other)))


@preparing()
def _resolve(function: Callable[..., object], types: Types) -> Any:
    numba = _numba()
    context = numba.core.registry.cpu_target.typing_context
    context.refresh()
    try:
        return context.resolve_function_type(
            function, tuple(numba.from_dtype(dtype) for dtype in types), {}
        )
    except numba.core.errors.NumbaError:
        return None


def _dtype(numba_type: Any) -> np.dtype:
    return np.dtype(_numba().np.numpy_support.as_dtype(numba_type))


@cache
def _numba() -> ModuleType:
    """The library, with the parts that are used here."""
    with whole():
        import numba
        import numba.core.errors
        import numba.core.registry
        import numba.np.numpy_support

        target = numba.core.registry.cpu_target
        # made at their first use, under locks of Numba's that a forked child would have for ever
        assert target.typing_context and target.target_context
    return numba
