"""The two operands of a matrix product, and its mask, as kernels take them."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np

from spgraph.backends.cuda.entrywise.edge_parallel import keep
from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.containers import Mask, Matrix
from spgraph.containers.storage.arrays import Array, array_module
from spgraph.semirings import Function, TypedSemiring, binary

BYTE = np.dtype(np.uint8)


def operands(A: Matrix, B: Matrix, mask: Mask | None) -> tuple[Any, ...]:
    """The arrays of both operands and of the mask, and whether the mask is a complement."""
    parts: list[Any] = []
    for given in (A, B):
        parts += (given._indptr, given._indices, given._values, keep(given))
    if mask is None:
        return (*parts, jit.NULL, jit.NULL, jit.NULL, 0, False)
    M = mask.parent
    assert isinstance(M, Matrix)
    return (*parts, M._indptr, M._indices, M._values, keep(M), mask.complement)


def operand_types(A: Matrix, B: Matrix, mask: Mask | None, values: bool) -> str:
    """The types O I A, P J B and Q N M of those arrays. Without `values` those of A and B are not
    read, and count as bytes, so that one program serves all types.
    """
    M = A if mask is None else mask.parent
    assert isinstance(M, Matrix)
    types = preamble.types(O=A._indptr.dtype, I=A._indices.dtype, A=A.dtype if values else BYTE)
    types += preamble.types(P=B._indptr.dtype, J=B._indices.dtype, B=B.dtype if values else BYTE)
    kind = BYTE if mask is None else M.dtype
    return types + preamble.types(Q=M._indptr.dtype, N=M._indices.dtype, M=kind)


def row_flops(A: Matrix, B: Matrix) -> Array:
    """How many products each row of A times B sums up. A fill and a launch."""
    flops = array_module(A._indptr).zeros(A.nrows, np.int64)
    if A.nvals:
        text = preamble.types(O=A._indptr.dtype, I=A._indices.dtype, P=B._indptr.dtype)
        kernel = jit.kernel("row_flops", "row_flops", text)
        # a warp takes 1024 entries
        jit.launch(
            kernel, 32 * -(-A.nvals // 1024), A._indptr, A._indices, A.nrows, B._indptr, flops
        )
    return flops


def one_value(A: Matrix, B: Matrix, semiring: TypedSemiring) -> Array | None:
    """The value of all entries of A B, as an array, where they have one; else None."""
    if not semiring.gives_one_value(A.iso, B.iso):
        return None
    xp = array_module(A._indptr)
    z = xp.empty(1, semiring.dtype)
    # an operand without entries has no value, but then nor has the product
    x, y = (M._values if M._values.size else xp.zeros(1, M.dtype) for M in (A, B))
    text = value_preamble(A, B, semiring.multiply)
    jit.launch(jit.kernel("one_value", "one_value", text), 1, x, y, z)
    return z


def value_preamble(A: Matrix, B: Matrix, multiply: Function) -> str:
    """The preamble of kernels/one_value.cu."""
    types = preamble.types(A=A.dtype, B=B.dtype, Z=multiply.result)
    return types + multiply.define_cuda("multiply")


@functools.lru_cache(maxsize=1024)
def is_pair(multiply: Function) -> bool:
    """Whether every product is 1."""
    # a user's operator may carry any name
    ones = binary.pair.resolve(multiply.result, multiply.result)
    return multiply.name == "pair" and multiply == replace(ones, arguments=multiply.arguments)
