"""The typed part of a program: types, constants and scalar functions, as text that stands before
the kernel's own.

Every call of an operation asks for its preamble, so the texts are kept: writing one costs a hundred
microseconds.
"""

from __future__ import annotations

import functools

import numpy as np

from spgraph.semirings import Function, TypedMonoid, TypedSemiring, cuda_literal
from spgraph.semirings import monoid as monoids
from spgraph.semirings.functions import C_TYPES

# Monoids that take less than a loop of compare and swap to add to memory, by kind of type; see
# `combine` in kernels/monoid.cuh.
ORDER = {"min": "ADD_MIN", "max": "ADD_MAX"}
WHOLE = ORDER | {"plus": "ADD_PLUS", "bor": "ADD_OR", "band": "ADD_AND", "bxor": "ADD_XOR"}
KINDS = {
    "b": {"lor": "ADD_OR", "plus": "ADD_OR", "max": "ADD_OR", "lxor": "ADD_XOR"}
    | {"land": "ADD_AND", "times": "ADD_AND", "min": "ADD_AND"},
    "i": WHOLE,
    "u": WHOLE,
    "f": ORDER | {"plus": "ADD_PLUS"},
}


@functools.lru_cache(maxsize=1024)
def types(**names: np.dtype) -> str:
    """One typedef per name."""
    return "".join(
        f"typedef {C_TYPES[np.dtype(dtype).name]} {name};\n" for name, dtype in names.items()
    )


def constants(**values: int) -> str:
    """One constant per name, for `if constexpr` and #if alike."""
    return "".join(f"#define {name} {int(value)}\n" for name, value in values.items())


def cast(name: str, dtype: np.dtype) -> str:
    """A function name(x) that converts a scalar to `dtype`."""
    kind = C_TYPES[np.dtype(dtype).name]
    head = f"template <class T_> __device__ __forceinline__ {kind} {name}(T_ x)"
    return f"{head} {{ return ({kind})x; }}\n"


@functools.lru_cache(maxsize=1024)
def monoid(add: TypedMonoid) -> str:
    """`add`, identity(), ADD_KIND and, where a value ends the sum, TERMINAL and terminal()."""
    text = (
        add.define_cuda("add")
        + f"#define ADD_KIND {kind_of(add)}\n"
        + _constant("identity", add.identity)
    )
    if add.terminal is not None and not add.any:
        text += "#define TERMINAL 1\n" + _constant("terminal", add.terminal)
    return text


@functools.lru_cache(maxsize=1024)
def kind_of(add: TypedMonoid) -> str:
    """How `combine` adds to memory: a name of AddKind in kernels/monoid.cuh."""
    if add.any:
        return "ADD_ANY"
    kind = KINDS[add.dtype.kind].get(add.name)
    if kind is None:
        return "ADD_OTHER"
    # a user's monoid may carry any name
    built_in = getattr(monoids, add.name).resolve(add.dtype)
    return kind if built_in.function == add.function else "ADD_OTHER"


@functools.lru_cache(maxsize=1024)
def semiring(semiring: TypedSemiring, **values: int) -> str:
    """The preamble of a product, but for the types other than Z."""
    return (
        types(Z=semiring.dtype)
        + constants(**values)
        + semiring.multiply.define_cuda("multiply")
        + monoid(semiring.add)
    )


@functools.lru_cache(maxsize=1024)
def function(op: Function, name: str = "op", **values: int) -> str:
    """The preamble of a kernel around one operator; `cast` converts to its result type."""
    return constants(**values) + op.define_cuda(name) + cast("cast", op.result)


def _constant(name: str, value: np.generic) -> str:
    head = f"__device__ __forceinline__ {C_TYPES[value.dtype.name]} {name}()"
    return f"{head} {{ return {cuda_literal(value)}; }}\n"
