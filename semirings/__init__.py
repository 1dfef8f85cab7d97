"""The algebra of spgraph: operators, monoids and semirings, each for Numba and for CUDA.

The namespaces `unary`, `binary`, `indexunary` and `monoid` hold the operators of GraphBLAS by name;
semirings are attributes of this module, named monoid_operator:

>>> from spgraph.semirings import binary, min_plus, monoid
>>> min_plus.monoid == monoid.min and min_plus.multiply == binary.plus
True
"""

from .functions import TYPES, Function, cuda_literal, python_literal
from .monoids import Monoid, TypedMonoid, monoid
from .operators import BinaryOp, IndexUnaryOp, UnaryOp, binary, indexunary, unary
from .semirings import Semiring, TypedSemiring, all_names, by_name

__all__ = [
    "TYPES",
    "BinaryOp",
    "Function",
    "IndexUnaryOp",
    "Monoid",
    "Semiring",
    "TypedMonoid",
    "TypedSemiring",
    "UnaryOp",
    "binary",
    "cuda_literal",
    "indexunary",
    "monoid",
    "python_literal",
    "unary",
]


def __getattr__(name: str) -> Semiring:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return by_name(name)


def __dir__() -> list[str]:
    return sorted([*__all__, *all_names()])
