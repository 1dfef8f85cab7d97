"""One function per GraphBLAS operation: check, direction, backend, accumulate, masked write.

Operands are Vectors, or Matrices and what `Matrix` can be made from. All operations share their
keyword arguments. If t is the result of the operation itself, then

1. Z = t, or with `accum` Z = accum(out, t), a union: where only one of both has an entry, that one;
2. out<mask, replace> = Z: a position that the mask allows gets Z's entry, or becomes empty if Z has
   none there; any other position keeps its entry, or under `replace` becomes empty.

Without `out` a new container is returned, which has entries only where the mask allows; its type is
the operator's result type over the operands' types, promoted as NumPy does. With `out` the values
are cast to out's type, and `out` is returned. An operand or the mask's container may be `out`
itself: nothing is written before everything is computed.

All raise DimensionMismatch for shapes that do not fit, BackendMismatch for containers on different
devices, DomainMismatch for what is no operand or operator, for an operator that does not take the
types, and for floats to be written into integers, and OverflowError for an integer that `out` does
not hold.

The semantics are those of the GraphBLAS C API specification 2.1 (Brock, Buluc, Kimmerer, Kitchen,
Kumar, Mattson, McMillan, Moreira, Pelletier, Welch, 2023).
"""

from spgraph.operations.assignment import assign
from spgraph.operations.blocks import block_array
from spgraph.operations.elements import apply, select
from spgraph.operations.ewise import ewise_add, ewise_mult, ewise_union
from spgraph.operations.extraction import extract
from spgraph.operations.products import mxm, mxv, vxm
from spgraph.operations.reductions import reduce, reduce_columnwise, reduce_mxm, reduce_rowwise
from spgraph.operations.structure import diag, kronecker, transpose

__all__ = [
    "apply",
    "assign",
    "block_array",
    "diag",
    "ewise_add",
    "ewise_mult",
    "ewise_union",
    "extract",
    "kronecker",
    "mxm",
    "mxv",
    "reduce",
    "reduce_columnwise",
    "reduce_mxm",
    "reduce_rowwise",
    "select",
    "transpose",
    "vxm",
]


def __dir__() -> list[str]:
    return sorted(__all__)
