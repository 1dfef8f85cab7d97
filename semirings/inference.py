"""What Numba knows about types: of a user's function as a whole, and of one operation inside it.

Numba is imported when it is first asked: spgraph itself imports without it.
"""

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np

from ..errors import DomainMismatch
from .functions import C_TYPES, NAME, names

Types = tuple[np.dtype[Any], ...]


@lru_cache(maxsize=1024)
def infer(text: str, types: Types) -> np.dtype[Any]:
    """The type that Numba finds a function given as text to return; DomainMismatch with why not."""
    from numba import from_dtype
    from numba.core.errors import NumbaError

    try:
        function = _function(text)
        function.compile(tuple(from_dtype(dtype) for dtype in types))
    except (NumbaError, NotImplementedError) as error:
        raise DomainMismatch(f"not defined for {names(types)}: {_reason(str(error))}") from None
    returned = function.nopython_signatures[-1].return_type
    try:
        result = _dtype(getattr(returned, "literal_type", returned))
    except (NumbaError, NotImplementedError):
        result = None
    if result is None or result.name not in C_TYPES:
        raise DomainMismatch(f"returns {returned} for {names(types)}; expected one number")
    return result


def _function(text: str) -> Any:
    """The function to compile; nobody calls it, and without ways in it takes a quarter of the
    memory, which Numba never frees.
    """
    import math

    from numba import njit

    scope: dict[str, Any] = {"np": np, "math": math}
    exec(text.replace(NAME, "user"), scope)
    function = next(value for name, value in scope.items() if name.startswith("user"))
    compiler = njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
    return compiler(function)


def _reason(message: str) -> str:
    """The one useful line of Numba's report."""
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
def operation_types(function: Callable[..., Any], types: Types) -> Types | None:
    """The types that Numba casts an operation's operands to, and its result's; None for no such."""
    found = _resolve(function, types)
    return (
        None
        if found is None
        else tuple(_dtype(dtype) for dtype in (*found.args, found.return_type))
    )


@cache
def range_type(types: Types) -> np.dtype[Any] | None:
    """The type of the numbers that range gives; None where the arguments are not integers."""
    found = _resolve(range, types)
    return None if found is None else _dtype(found.return_type.dtype)


@cache
def unify(one: np.dtype[Any], other: np.dtype[Any]) -> np.dtype[Any]:
    """The type of a value that comes from either of two places."""
    from numba import from_dtype
    from numba.core.registry import cpu_target

    return _dtype(cpu_target.typing_context.unify_pairs(from_dtype(one), from_dtype(other)))


def _resolve(function: Callable[..., Any], types: Types) -> Any:
    from numba import from_dtype
    from numba.core.errors import NumbaError
    from numba.core.registry import cpu_target

    context = cpu_target.typing_context
    context.refresh()
    try:
        return context.resolve_function_type(
            function, tuple(from_dtype(dtype) for dtype in types), {}
        )
    except NumbaError:
        return None


def _dtype(numba_type: Any) -> np.dtype[Any]:
    from numba.np.numpy_support import as_dtype

    return np.dtype(as_dtype(numba_type))
