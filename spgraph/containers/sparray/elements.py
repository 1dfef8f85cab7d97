"""Products and powers by element, the dot product, diagonals, and where values are not zero."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from spgraph.containers.annotations import Dense, DType, Scalar
from spgraph.containers.methods.parts import MatrixParts, Parts, VectorParts
from spgraph.containers.sparray.lines import plain, stored
from spgraph.containers.storage.arrays import (
    Array,
    array_module,
    as_array,
    device_of,
    is_array,
    of_kind,
    on_device,
    on_its_device,
)
from spgraph.containers.storage.casting import converted_exactly
from spgraph.containers.storage.numbers import flags
from spgraph.containers.storage.selection import compress
from spgraph.errors import BackendMismatch, DimensionMismatch, DomainMismatch

if TYPE_CHECKING:
    from spgraph.containers.matrix import Matrix


class Elements(Parts):
    """What both have."""

    __slots__ = ()

    def multiply(self, other: Any) -> Any:
        """The product by element with `other`: a number, a container, a sparse array of SciPy or
        CuPy, or an array, which broadcast as NumPy's arrays do.

        Values have NumPy's type. The product of two sparse ones has no entries that are zero; with
        an array it has this one's entries; where this one is of shape (1, 1), it is an array. With
        an array, shards raise DomainMismatch. DimensionMismatch for shapes that do not broadcast.

        >>> import spgraph as sg
        >>> A = sg.Matrix([[1, 2], [0, 4]])
        >>> A.multiply([10, 100]).toarray().tolist(), A.multiply(0.5).dtype
        ([[10, 200], [0, 400]], dtype('float64'))
        """
        return _multiplied(self, other)

    def power(self, n: Scalar, dtype: DType | None = None) -> Self:
        """The `n`-th power of every entry, in NumPy's type, of values converted to `dtype` if
        given. NotImplementedError, as in SciPy, for n = 0, which zeros would not keep, and for
        arrays.

        >>> import spgraph as sg
        >>> sg.Matrix([[1, 2], [0, 4]]).power(2).toarray().tolist()
        [[1, 4], [0, 16]]
        """
        if np.ndim(n):
            raise NotImplementedError(f"power: n: expected a number, got {type(n).__name__}")
        if not n:
            raise NotImplementedError(
                "power: n: expected a number other than 0, whose powers of missing entries are 1; "
                "numpy.ones(A.shape) makes an array of them"
            )
        u: Any = self
        kind = u.dtype if dtype is None else np.dtype(dtype)
        power = (np.ones(1, kind) ** n).dtype  # NumPy's: bools are int8, and int64 in CuPy
        return u._with_values(lambda x: x.astype(kind, copy=False).astype(power, copy=False) ** n)

    @on_its_device
    def dot(self, other: Any) -> Any:
        """The product `self @ other` in NumPy's type for the elements, in which bool is "or" and
        narrow integers wrap; with a list as with an array, with a sparse array of SciPy of one
        dimension as with a Vector, with a number `multiply`.

        >>> import spgraph as sg
        >>> A = sg.Matrix([[1, 2], [0, 4]])
        >>> A.dot([1, 10]).tolist(), A.dot(A.T).toarray().tolist()
        ([21, 40], [[5, 8], [8, 16]])
        """
        u: Any = self
        if _is_scalar(other):
            return self.multiply(other)
        if isinstance(other, list | tuple | memoryview):
            other = as_array("dot: other", other)
        elif hasattr(other, "tocsr"):
            other = container_of(other, "dot: other")
        x = as_array("dot: other", other) if is_array(other) else other
        found = (u @ x).astype(np.promote_types(self.dtype, x.dtype))
        return of_kind(other, found)

    def conj(self, copy: bool = True) -> Self:
        """The complex conjugate: as all types are real, a copy, or itself if `copy` is False.

        >>> import spgraph as sg
        >>> sg.Matrix([[1, 2]]).conj().toarray().tolist()
        [[1, 2]]
        """
        flags("conj", copy=copy)
        u: Any = self
        return u.dup() if copy else u


class VectorElements(Elements, VectorParts):
    """Of a Vector."""

    __slots__ = ()

    def nonzero(self) -> tuple[Array]:
        """(positions,) of the entries that are not zero; of a distributed Vector every process
        gathers all entries.

        >>> import spgraph as sg
        >>> sg.Vector([0, 3, 4]).nonzero()[0].tolist()
        [1, 2]
        """
        u = plain(self).to_sparse()
        with on_device(u.device):
            return (u._indices[u._values != 0],)


class MatrixElements(Elements, MatrixParts):
    """Of a Matrix."""

    __slots__ = ()

    def nonzero(self) -> tuple[Array, Array]:
        """(rows, columns) of the entries that are not zero, row by row; of a distributed Matrix
        every process gathers all entries.

        >>> import spgraph as sg
        >>> [ids.tolist() for ids in sg.Matrix([[1, 2], [0, 4]]).nonzero()]
        [[0, 0, 1], [0, 1, 1]]
        """
        A = plain(self)
        with on_device(A.device):
            there = stored(A) != 0
            return compress(there, A.row_indices()), compress(there, A._indices)

    def diagonal(self, k: int = 0) -> Dense:
        """The `k`-th diagonal, the elements (i, i + k), as an array with zeros where there is no
        entry: empty where the Matrix has no such. `sg.diag` gives its entries as a Vector.

        >>> import spgraph as sg
        >>> sg.Matrix([[1, 2, 0], [0, 0, 4]]).diagonal(1).tolist()
        [2, 4]
        """
        from spgraph import operations

        A: Any = self
        return operations.diag(A, k)._dense(0)

    def setdiag(self, values: Scalar | Dense, k: int = 0) -> None:
        """Write `values`, converted to the Matrix's type, to the `k`-th diagonal: a number to all
        of it, of a list as many as both have. Zeros become entries; integers take the whole part of
        floats, bool what is not 0. ValueError where the Matrix has no such diagonal or its type
        does not hold a value, DomainMismatch for what are no real numbers.

        >>> import spgraph as sg
        >>> A = sg.Matrix([[1, 2], [0, 4]])
        >>> A.setdiag([7, 8, 9])
        >>> A.toarray().tolist()
        [[7, 2], [0, 8]]
        """
        from spgraph import operations
        from spgraph.containers.matrix import Matrix
        from spgraph.semirings import binary

        k = operator.index(k)  # of NumPy's small types -k, and sums with it, would overflow
        if (k > 0 and k >= self.ncols) or (k < 0 and -k >= self.nrows):
            raise ValueError(f"setdiag: k: expected a diagonal of {self.shape}, got {k}")
        first, size = max(-k, 0), min(self.nrows + min(k, 0), self.ncols - max(k, 0))
        where = self.device if isinstance(self.device, str) else "cpu"
        with on_device(where) as xp:
            given = _as_type(xp.asarray(as_array("setdiag: values", values)), self.dtype)
            if given.ndim:
                given = given.ravel() if given.size == 1 else given[:size]
                size = min(size, given.size)
            rows = xp.arange(first, first + size)
            D = Matrix.from_coo(
                rows,
                rows + k,
                xp.broadcast_to(given, size).copy(),
                nrows=self.nrows,
                ncols=self.ncols,
            )
        A: Any = self
        operations.assign(A, D.to(A.device), accum=binary.second)


def _as_type(values: Array, dtype: np.dtype) -> Array:
    """Values for a diagonal in the Matrix's type; see `setdiag`."""
    if values.dtype.kind not in "biuf":
        raise DomainMismatch(f"setdiag: values: expected real numbers, got {values.dtype}")
    if dtype.kind == "b":
        return values.astype(bool)
    if dtype.kind in "iu" and values.dtype.kind == "f":
        values = array_module(values).trunc(values)
    return converted_exactly("setdiag: values", values, dtype)


def _is_scalar(other: Any) -> bool:
    """Whether it is one number; NumPy calls a memoryview a scalar, too, and it is an array."""
    numbers = np.isscalar(other) and not isinstance(other, memoryview)
    return numbers or (getattr(other, "shape", None) == () and not isinstance(other, memoryview))


def _multiplied(u: Any, other: Any) -> Any:
    """See `multiply`."""
    if is_array(other):
        other = as_array("multiply: other", other)
    if _is_scalar(other):
        return u._with_values(lambda x: x * other)
    if hasattr(other, "tocsr"):
        return _by_sparse(u, other)
    x = as_array("multiply: other", other)
    if x.dtype == object:
        raise DomainMismatch(f"multiply: other: expected numbers, got {type(other).__name__}")
    if x.ndim > 2:
        return u.toarray() * x
    if x.size == 1:
        scaled = u._with_values(lambda values: values * x.ravel()[0])
        return scaled if x.ndim <= u.ndim else as_row(scaled)
    if u.shape in ((1,), (1, 1)):
        return stored(plain(u)).sum() * x
    return with_elements(_spread(u, x.shape), "multiply", lambda values, y: values * y, x)


def with_elements(u: Any, name: str, function: Callable[..., Array], *arrays: Array) -> Any:
    """u with the values function(values, elements, ...): those of each of the arrays, which
    broadcast to u's shape, at u's entries.
    """
    if not isinstance(u.device, str):
        raise DomainMismatch(
            f"{name}: expected a number or a container of the same Placement beside a distributed "
            f"one, got an array; Matrix(x) or Vector(x), .to(its .device), makes one of it"
        )
    with on_device(u.device):
        if len(u.shape) == 1:
            u = u.to_sparse()
            places: Any = u._indices
        else:
            u = u if not u.iso else _expanded(u)
            places = u.row_indices(), u._indices
        elements = [_beside(name, u, x)[places] for x in arrays]
        return u._with_values(lambda values: function(values, *elements))


def _beside(name: str, u: Any, x: Array) -> Array:
    """The array x in the shape of u, on the same device."""
    _same_place(name, u, x)
    try:
        return array_module(x).broadcast_to(x, u.shape)
    except ValueError:
        raise DimensionMismatch(
            f"{name}: the shape {x.shape} of the array does not broadcast to {u.shape}"
        ) from None


def _same_place(name: str, u: Any, x: Array) -> None:
    if device_of(x) != u.device:
        raise BackendMismatch(
            f"{name}: the array is on {device_of(x)}, the {type(u).__name__} on {u.device}; "
            f".to({device_of(x)!r}) moves the {type(u).__name__}"
        )


def _expanded(A: Any) -> Matrix:
    """An iso Matrix with a value for each entry."""
    from spgraph.containers.matrix import Matrix

    return Matrix._of(A.nrows, A.ncols, A._indptr, A._indices, A._expanded_values())


def _spread(u: Any, shape: tuple[int, ...]) -> Any:
    """u repeated along the axes of length 1, as it broadcasts beside `shape`."""
    try:
        wanted = np.broadcast_shapes(u.shape, shape)
    except ValueError:
        raise DimensionMismatch(f"multiply: the shapes {u.shape} and {shape} differ") from None
    if wanted == u.shape:
        return u
    from spgraph import operations

    u = u if u.ndim == 2 else as_row(u)
    repeats = (
        None if have == want else np.zeros(want, np.int64)
        for have, want in zip(u.shape, wanted, strict=True)
    )
    return operations.extract(u, *repeats)


def as_row(v: Any) -> Matrix:
    """The Matrix of one row with a Vector's entries."""
    from spgraph.containers.matrix import Matrix

    u = plain(v).to_sparse()
    with on_device(u.device) as xp:
        offsets = xp.asarray([0, u.nvals], np.int32 if u.nvals < 2**31 else np.int64)
        A = Matrix._of(1, u.size, offsets, u._indices, u._values)
    return A.to(v.device)


def _by_sparse(u: Any, other: Any) -> Any:
    """The product by element of two sparse arrays, which broadcast."""
    from spgraph import operations

    other = container_of(other, "multiply: other")
    if u.shape == other.shape:
        product: Any = operations.ewise_mult(u, other)
        for one, beside in ((u, other), (other, u)):
            product = _with_nan(product, one, beside)
        product = product.astype(np.promote_types(u.dtype, other.dtype), copy=False)
        return entries_where(product, lambda x: x != 0)
    if other.shape in ((1,), (1, 1)):
        scalar = other.toarray().ravel()[0]
        return u._with_values(lambda x: x * scalar)
    if u.shape in ((1,), (1, 1)):
        total = u.sum(dtype=u.dtype)
        scaled = other._with_values(lambda x: x * total)
        # it shares the index arrays of a Matrix, here perhaps those of somebody's sparse array
        return scaled if other.ndim == 1 else scaled.dup()
    A, B = (each if each.ndim == 2 else as_row(each) for each in (u, other))
    if A.nrows == 1 == B.ncols or A.ncols == 1 == B.nrows:  # each of one with each of the other
        product = (B if A.nrows == 1 else A).dot(A if A.nrows == 1 else B)
        return entries_where(product, lambda x: x != 0)
    if 1 in A.shape:
        A, B = B, A
    if B.shape not in ((1, A.ncols), (A.nrows, 1)):
        raise DimensionMismatch(f"multiply: the shapes {u.shape} and {other.shape} differ")
    return entries_where(_multiplied(A, B.toarray()), lambda x: x != 0)


def container_of(given: Any, name: str) -> Any:
    """The container of a sparse array of one or two dimensions; of one of ours itself."""
    from spgraph.containers.argument import as_matrix, vector_of
    from spgraph.containers.vector import Vector

    if len(given.shape) == 2:
        return as_matrix(given, name)
    return given if isinstance(given, Vector) else vector_of(given)


def _with_nan(product: Any, u: Any, other: Any) -> Any:
    """The product with NaN where u is infinite or NaN and the other has no entry, which means 0."""
    from spgraph import operations
    from spgraph.semirings import unary

    if u.dtype.kind != "f" or all(np.isfinite(end) for end in u._value_range()):
        return product
    alone = entries_where(u, lambda x: ~np.isfinite(x))
    alone = operations.apply(alone, unary.identity, mask=~other.S)
    return operations.ewise_add(product, alone._with_values(lambda x: x * np.nan))


def entries_where(u: Any, test: Callable[[Array], Array]) -> Any:
    """The entries of u for whose values the test is true; of a Matrix itself where it always is."""
    from spgraph import operations
    from spgraph.containers.vector import Vector
    from spgraph.semirings import unary

    if len(u.shape) == 2:
        if isinstance(u.device, str):
            with on_device(u.device):
                every = bool(test(u._values).all())
            if every:
                return u
        return u._where(test)
    if not isinstance(u.device, str):
        return operations.apply(u, unary.identity, mask=u._with_values(test).V)
    u = u.to_sparse()
    with on_device(u.device):
        kept = test(u._values)
        values, indices = compress(kept, u._values), compress(kept, u._indices)
        return Vector._of(u.size, values, indices=indices)._conform()
