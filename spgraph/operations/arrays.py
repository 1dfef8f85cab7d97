"""Products of a Matrix with an array of NumPy, CuPy, PyTorch or JAX, which give an array of the
same library.

An array has a value at every position, so that nothing is masked or accumulated; a row without
entries, whose sum is one of nothing, gets the monoid's identity or `fill`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spgraph import checks
from spgraph.containers import Matrix, MatrixLike, Vector
from spgraph.containers.annotations import Direction, Scalar, SemiringLike
from spgraph.containers.storage.arrays import (
    Array,
    array_module,
    as_array,
    device_of,
    of_kind,
    on_device,
    unpack_bits,
    writable,
)
from spgraph.containers.storage.casting import held_number
from spgraph.containers.storage.values import value_dtype
from spgraph.errors import BackendMismatch, DimensionMismatch, DomainMismatch
from spgraph.semirings import TypedSemiring
from spgraph.steps import backend, is_distributed, push_or_pull

# of each operation: (the array's name, its dimensions, what takes another number of them)
OPERANDS = {
    ("mxv", False): ("u", (1,), "; mxm takes 2"),
    ("vxm", True): ("u", (1,), "; mxm takes 2"),
    ("mxm", False): ("B", (2,), "; mxv takes 1"),
    ("mxm", True): ("A", (2,), "; vxm takes 1"),
} | {(f"agg.{name}", False): ("X", (1, 2), "") for name in ("sum", "max", "mean")}
# the methods of a linear operator, which have looked at the shape
OPERANDS |= {(name, False): ("x", (1, 2), "") for name in ("matvec", "rmatvec")}
OPERANDS |= {("rmatvec", True): ("x", (1,), "")}
OPERANDS |= {(name, False): ("X", (2,), "") for name in ("matmat", "rmatmat")}


def product(
    name: str,
    A: MatrixLike,
    x: Array,
    semiring: SemiringLike,
    fill: Scalar | None,
    written: dict[str, Any],
    left: bool = False,
    direction: Direction = "auto",
) -> Array:
    """A x, or x A if the array is `left`, for the operation `name`; a new array of x's library and
    device. `written` are mask, accum, replace and out, of which none may be given.
    """
    argument, dimensions, other = OPERANDS[name, left]
    A = checks.matrix(name, A, "B" if argument == "A" else "A")
    for keyword, value in written.items():
        if value is not None and value is not False:
            raise ValueError(
                f"{name}: {keyword}: expected none beside an array, which has a value at every "
                f"position; give {argument} as a Vector or Matrix (from_dense makes one), or use "
                "NumPy's functions on the result"
            )
    given, x = x, _values(name, argument, x, A.device)
    if x.ndim not in dimensions:
        asked = " or ".join(map(str, dimensions))
        raise DimensionMismatch(
            f"{name}: {argument}: expected an array of {asked} dimension{'s' * (asked != '1')}, "
            f"got {x.ndim}{other if x.ndim in (1, 2) else ''}"
        )
    extent, expected = ("nrows", A.nrows) if left else ("ncols", A.ncols)
    matrix = "B" if argument == "A" else "A"
    if x.shape[-1 if left else 0] != expected:
        raise DimensionMismatch(
            f"{name}: {argument}.shape {x.shape} does not fit {matrix}.{extent} {expected}"
        )
    types = (x.dtype, A.dtype) if left else (A.dtype, x.dtype)
    typed = checks.typed(name, checks.semiring(name, semiring), *types, A.index_dtype)
    nothing = _nothing(name, typed, fill)
    with on_device(device_of(x)):
        if x.ndim == 1:
            made = _by_vector(name, A, x, typed, nothing, left, direction)
        elif left:
            made = product_of_columns(A._T, _rows(x.T), typed, True, nothing).T
        else:
            made = product_of_columns(A, _rows(x), typed, False, nothing)
        return of_kind(given, made)


def product_of_columns(
    A: Matrix, X: Array, typed: TypedSemiring, flip: bool, fill: np.generic
) -> Array:
    """The array of the sums over k of A[i, k] * X[k, c] (flip: X[k, c] * A[i, k]), X in rows of
    consecutive values on A's device; `fill` where row i has no entry.

    The backend's `multiply_array`, else a product of Matrices; of a single column always a pull.
    """
    on, columns = backend(A.device), X.shape[1]
    xp = array_module(X)
    if columns == 0 or X.shape[0] == 0:
        return xp.full((A.nrows, columns), fill, typed.dtype)
    if hasattr(on, "multiply_array") and (columns > 1 or is_distributed(A)):
        return on.multiply_array(A, X, typed, flip, fill)
    if columns == 1:
        t = on.pull(A, Vector._of(X.shape[0], X.ravel()), typed, None, flip)
        return _dense(t, fill).reshape(A.nrows, 1)
    if flip:
        return (
            on.multiply_rows(Matrix.from_dense(X.T, missing=None), A._T, typed, None)
            .to_dense(fill)
            .T
        )
    return on.multiply_rows(A, Matrix.from_dense(X, missing=None), typed, None).to_dense(fill)


def _values(name: str, argument: str, given: Any, device: Any) -> Array:
    """The array in a type of spgraph's, once it is where the Matrix is."""
    x = as_array(f"{name}: {argument}", given)
    try:
        dtype = value_dtype(x.dtype)
    except DomainMismatch as error:
        raise DomainMismatch(f"{name}: {argument}: {error}") from None
    here = device_of(x)
    if isinstance(device, str):
        if here != device:
            to = "cupy.asarray" if device != "cpu" else "cupy.asnumpy"
            raise BackendMismatch(
                f"{name}: {argument} is an array on {here}, the Matrix on {device}; "
                f"{to}({argument}) makes one that fits, or .to({here!r}) moves the Matrix"
            )
    elif here != "cpu" and here not in device.devices:
        raise BackendMismatch(
            f"{name}: {argument} is an array on {here}, the Matrix in {device}; "
            f"cupy.asnumpy({argument}) makes one that fits"
        )
    with on_device(here):
        return x.astype(dtype, copy=False)


def _nothing(name: str, typed: TypedSemiring, fill: Scalar | None) -> np.generic:
    """The value of a row without entries."""
    if fill is not None:
        try:
            return held_number(f"{name}: fill", fill, typed.dtype)
        except ValueError:
            raise ValueError(
                f"{name}: fill: expected a number that {typed.dtype} holds, the type of the "
                f"product over {typed.name}, got {fill}; to_numpy and to_dense, of a product of "
                "Vectors or Matrices, take any"
            ) from None
    if typed.add.any:
        raise ValueError(
            f"{name}: fill: expected a number for rows without entries, as {typed.name} has no "
            "sum of nothing, got none; give fill=0, for example"
        )
    return typed.add.identity


def _rows(X: Array) -> Array:
    """X in rows of consecutive values, which Numba need not know to be read-only."""
    return writable(array_module(X).ascontiguousarray(X))


def _by_vector(
    name: str,
    A: Matrix,
    x: Array,
    typed: TypedSemiring,
    fill: np.generic,
    left: bool,
    direction: Direction,
) -> Array:
    """The product with an array of one dimension: that with the full Vector of its values."""
    u: Vector = Vector._of(x.size, _rows(x))
    if is_distributed(A):
        u = u.to(A.device)
    over_transpose = "pull" if left else "push"
    way = push_or_pull(name, direction, A, u, typed, None, over_transpose)
    form = getattr(backend(A.device), way)
    t = form(A._T if way == over_transpose else A, u, typed, None, way == over_transpose)
    if is_distributed(A):
        t = t.gather(device_of(x))
    return _dense(t, fill)


def _dense(t: Vector, fill: np.generic) -> Array:
    """The values of t, a new Vector that is given up, by position."""
    t = t.to_bitmap()
    if t._bits is not None:
        xp = array_module(t._values)
        absent = ~unpack_bits(t._bits, t.size)
        # an array, since CuPy writes a number -0.0 as 0.0
        xp.copyto(t._values, xp.full(1, fill, t.dtype), where=absent)
    return t._values
