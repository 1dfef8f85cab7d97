"""Loops that LLVM is to leave as they are written."""

from typing import Any

from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def rolled(typing_context, counter):  # type: ignore[no-untyped-def]
    """`counter`, by means that LLVM does not see through: it cannot tell how often a loop runs
    whose counter goes through this, and neither unrolls nor vectorises it. It takes no time.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (value,) = arguments
        kind = cgutils.ir.FunctionType(value.type, [value.type])
        return builder.asm(kind, "", "=r,0", [value], False)  # no instruction; out is in

    return counter(counter), codegen
