"""Checks of the arguments of operations; every message starts with the name of the operation."""

from __future__ import annotations

from typing import Any

import numpy as np

from spgraph import semirings
from spgraph.containers import Mask, Matrix, MatrixLike, Vector, as_matrix
from spgraph.containers.annotations import Device
from spgraph.containers.methods.display import size_of
from spgraph.containers.storage.arrays import index_dtype
from spgraph.containers.storage.casting import storing
from spgraph.containers.storage.numbers import flags
from spgraph.errors import (
    BackendMismatch,
    DimensionMismatch,
    DomainMismatch,
    not_square,
)
from spgraph.semirings import BinaryOp, Function, Monoid, Semiring

# the remedy where two matrices would fit if they were square
SQUARE = "; built by from_coo with nrows= and ncols=, a graph's matrix is square"
# row pointers of more than LARGE bytes and more than RATIO times the bytes of the entries are an
# error unless `compact` is given
LARGE, RATIO = 1 << 30, 64


def matrix(name: str, A: MatrixLike, argument: str = "A") -> Matrix:
    """A as a Matrix."""
    if isinstance(A, Matrix):
        return A
    try:
        return as_matrix(A, argument)
    except DomainMismatch as error:
        raise DomainMismatch(f"{name}: {error}") from None


def square(name: str, A: MatrixLike) -> Matrix:
    """A as a square Matrix."""
    A = matrix(name, A)
    if A.nrows != A.ncols:
        raise not_square(name, A.nrows, A.ncols)
    return A


def operand(name: str, argument: str, u: Any) -> Vector | Matrix:
    """A Vector unchanged, anything else converted to a Matrix."""
    if isinstance(u, Vector | Matrix):
        return u
    parts = vectors_in(u)
    if parts or (not is_container(u) and np.ndim(u) < 2):
        remedy = parts or "; sg.Vector(x) makes a Vector of a list or an array"
        raise DomainMismatch(
            f"{name}: {argument}: expected a Vector, a Matrix or what converts to a Matrix, "
            f"got {type(u).__name__}{remedy}"
        )
    return matrix(name, u, argument)


def is_container(value: object) -> bool:
    """Whether it is a Vector, a Matrix, or a sparse matrix or graph of another library (SciPy,
    CuPy, NetworkX).
    """
    foreign = hasattr(value, "tocsr") or hasattr(value, "adj")
    return isinstance(value, Vector | Matrix) or foreign


def vector(name: str, argument: str, v: object) -> Vector:
    if not isinstance(v, Vector):
        remedy = vectors_in(v) or (
            "; sg.Vector(x) makes one of a list, an array or a Vector of python-graphblas, "
            "Vector.from_coo one of indices and values"
        )
        raise DomainMismatch(
            f"{name}: {argument}: expected a Vector, got {type(v).__name__}{remedy}"
        )
    return v


def vectors_in(given: Any) -> str:
    """What a message says of the Vectors in a result of several, such as that of `bfs`."""
    fields = getattr(given, "_fields", ())
    found = [f".{each}" for each in fields if isinstance(getattr(given, each), Vector)]
    return f"; {' and '.join(found)} of it {'is' if len(found) == 1 else 'are'}" if found else ""


def same_device(name: str, **containers: Any) -> Device:
    """The common device of all containers but None; BackendMismatch if they differ."""
    first = ""
    device: Any = ""
    for argument, container in containers.items():
        if container is None:
            continue
        at = container.device
        if not device:
            first, device = argument, at
        elif at is not device and at != device:
            own = f"{at}, which divide it in another way" if str(at) == str(device) else str(at)
            where = f"{name}: {argument} is on {own}, {first} on {device}"
            if isinstance(device, str):
                raise BackendMismatch(f"{where}; move one with .to({device!r})")
            whose = "device of the operands" if " " in first else f"{first}.device"
            raise BackendMismatch(f"{where}; move {argument} with .to({whose})")
    return device


def same_size(name: str, left: str, got: int, right: str, expected: int) -> None:
    if got != expected:
        raise DimensionMismatch(f"{name}: {left} {got} != {right} {expected}")


def same_shape(
    name: str, left: str, got: Vector | Matrix, right: str, expected: tuple[int, ...]
) -> None:
    if got.shape == expected:
        return
    size = "size" if len(expected) == 1 else "shape"
    shapes = [shape[0] if len(shape) == 1 else shape for shape in (got.shape, expected)]
    hint = SQUARE if len(expected) == 2 and got.shape == expected[::-1] else ""
    raise DimensionMismatch(
        f"{name}: {left}.{size} {shapes[0]} != {right}.{size} {shapes[1]}{hint}"
    )


def inner_size(name: str, A: Matrix, B: Matrix) -> None:
    """DimensionMismatch unless the product A B exists."""
    if B.nrows != A.ncols:
        hint = SQUARE if A.shape == B.shape else ""
        raise DimensionMismatch(f"{name}: B.nrows {B.nrows} != A.ncols {A.ncols}{hint}")


def output(
    name: str,
    shape: tuple[int, ...],
    device: Device,
    mask: object,
    accum: object,
    replace: bool,
    out: object,
) -> None:
    """Check the keyword arguments that all operations share, for a result of `shape`: a Vector for
    one dimension, a Matrix for two.
    """
    if out is None and mask is None and accum is None and replace is False:  # most calls
        return
    flags(name, replace=replace)
    container: type[Vector | Matrix] = Vector if len(shape) == 1 else Matrix
    if out is None and accum is not None:
        raise ValueError(
            f"{name}: accum was given without out: there is nothing to accumulate into"
        )
    if out is None and replace:
        raise ValueError(f"{name}: replace was given without out: there is nothing to replace")
    if out is not None:
        if not isinstance(out, container):
            raise DomainMismatch(
                f"{name}: out: expected a {container.__name__}, got {type(out).__name__}"
            )
        same_shape(name, "out", out, "the result", shape)
        same_device(name, **{"the result": On(device), "out": out})
    if mask is not None:
        if isinstance(mask, Vector | Matrix):
            x = "v" if isinstance(mask, Vector) else "A"
            raise DomainMismatch(
                f"{name}: mask: expected a Mask, got a {type(mask).__name__}; "
                f"{x}.S is its structure, {x}.V its truth"
            )
        if not isinstance(mask, Mask):
            raise DomainMismatch(
                f"{name}: mask: expected a Mask (v.S, v.V, ~v.S, ~v.V), got {type(mask).__name__}; "
                "sg.Vector(x).V and sg.Matrix(x).V make one of an array of truths"
            )
        if not isinstance(mask.parent, container):
            raise DimensionMismatch(
                f"{name}: mask: expected the mask of a {container.__name__}, got {mask!r}"
            )
        same_shape(name, "mask", mask.parent, "the result", shape)
        same_device(name, **{"the result": On(device), "mask": mask.parent})


class On:
    """A result that does not exist yet: `same_device` needs only its device."""

    def __init__(self, device: Device) -> None:
        self.device = device


def semiring(name: str, semiring: object) -> Semiring:
    """A Semiring unchanged, or that of this name; DomainMismatch for anything else."""
    if isinstance(semiring, Semiring):
        return semiring
    if isinstance(semiring, str):
        try:
            return semirings.by_name(semiring)
        except AttributeError as error:
            raise DomainMismatch(f"{name}: semiring: {error}") from None
    raise DomainMismatch(
        f"{name}: semiring: expected a Semiring such as semirings.plus_times or its name, "
        f"got {semiring!r}; Semiring(monoid.plus, BinaryOp.define(f)) makes one of a function f"
    )


def named(name: str, argument: str, op: str, *namespaces: Any) -> Any:
    """The operator of this name in the first of the namespaces that has it; DomainMismatch, with
    similar names, where none has.
    """
    for namespace in namespaces:
        if op in namespace:
            return getattr(namespace, op)
    told = []
    for namespace in namespaces:
        try:
            getattr(namespace, op)
        except AttributeError as error:
            told.append(str(error))
    near = [hint for hint in told if "; " in hint and "lists them" not in hint]
    expected = f"expected an operator or its name, got {op!r}"
    raise DomainMismatch(f"{name}: {argument}: {'; '.join([expected, *(near or told[:1])])}")


def binary(name: str, argument: str, op: object) -> BinaryOp:
    """A BinaryOp unchanged, or that of a Monoid or of this name; DomainMismatch for anything
    else.
    """
    if isinstance(op, str):
        op = named(name, argument, op, semirings.binary)
    if isinstance(op, BinaryOp):
        return op
    if isinstance(op, Monoid):
        return op.op
    raise DomainMismatch(
        f"{name}: {argument}: expected a BinaryOp or Monoid such as semirings.binary.plus, "
        f"got {op!r}; BinaryOp.define(f) makes one of a function f"
    )


def typed(name: str, op: Any, *types: Any) -> Any:
    """The operator, monoid or semiring resolved for these types, of which that of positions is the
    last, or DomainMismatch.
    """
    try:
        return op.resolve(*types)
    except DomainMismatch as error:
        raise DomainMismatch(f"{name}: {error}") from None


def accumulator(
    name: str, accum: object, out: Vector | Matrix | None, dtype: np.dtype
) -> Function | None:
    """`accum` resolved for entries of `out` and of a result of type `dtype`; None without one.
    DomainMismatch if a container of out's type cannot take its results.
    """
    if out is None:
        return None
    target = out.dtype
    if dtype is not target:
        storable(name, dtype, target)
    if accum is None:
        return None
    op = binary(name, "accum", accum)
    if op.positional:
        raise DomainMismatch(f"{name}: accum: expected an operator of two values, got {op!r}")
    function: Function = typed(name, op, target, dtype)
    if function.result is not target:
        storable(name, function.result, target)
    return function


def storable(name: str, values: np.dtype, target: np.dtype) -> None:
    """Raise DomainMismatch if values of the type `values` may never be written into `target`."""
    if storing(values, target) == "never":
        raise DomainMismatch(
            f"{name}: expected values of a type that may be written into {target} (NumPy's "
            f"same_kind), got {values}; convert them, .astype({target.name!r}), or write into "
            f"a container of {values}"
        )


def direction(name: str, value: object) -> None:
    if value not in ("auto", "push", "pull"):
        raise ValueError(f"{name}: direction: expected 'auto', 'push' or 'pull', got {value!r}")


def row_pointers(
    name: str, nrows: int, nvals: int, entries: int, compact: bool | None, *, square: bool
) -> None:
    """Raise MemoryError if the row pointers of a Matrix would be large in absolute terms and beside
    the `entries` bytes of its ids and values: then ids are far apart, or one of them is wrong.
    """
    nbytes = (nrows + 1) * index_dtype(nvals).itemsize
    if compact is not None or nbytes <= LARGE or nbytes <= RATIO * entries:
        return
    remedy = "compact=False allocates them nevertheless"
    if square:
        remedy = (
            "compact=True numbers the vertices that have entries 0, 1, ... and returns their ids "
            f"beside the Matrix; {remedy}"
        )
    raise MemoryError(
        f"{name}: the row pointers of {nrows:,} rows take {size_of(nbytes)}, the ids and values of "
        f"{nvals:,} entries {size_of(entries)}; {remedy}"
    )
