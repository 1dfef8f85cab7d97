"""Values of containers: their types and ranges, and new values computed by functions of arrays,
which compile nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from spgraph.containers.annotations import Casting, DType
from spgraph.containers.methods.parts import MatrixParts, VectorParts
from spgraph.containers.storage.arrays import (
    Array,
    array_module,
    device_of,
    index_dtype,
    is_cuda,
    move,
    on_device,
    on_its_device,
    read_only,
)
from spgraph.containers.storage.numbers import flags
from spgraph.containers.storage.selection import compress
from spgraph.errors import BackendMismatch, DomainMismatch

if TYPE_CHECKING:
    from spgraph.containers.matrix import Matrix
    from spgraph.containers.vector import Vector

# values that are looked at on the CPU: in less time than two questions to a device take, or, once
# for a Matrix, than CuPy's two kernels take to load or compile; values that a mean is taken over
FEW, FEW_OF_MATRIX, SAMPLE = 1024, 1 << 20, 1 << 16
# the types of values
DOMAINS = {np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)}
DOMAINS |= {np.dtype(kind) for kind in ("?", "f4", "f8")}


class VectorValues(VectorParts):
    """What a Vector says and makes of its values."""

    __slots__ = ()

    def astype(self, dtype: DType, casting: Casting = "unsafe", copy: bool = True) -> Vector:
        """A copy with values of type `dtype`, converted as NumPy's `astype` does: without a check.

        Floats lose their fraction where `dtype` is one of integers, and integers that it does not
        hold wrap around; what NaN, infinity and floats out of its range become is left to the
        machine. What raises instead is the `dtype=` of `from_coo` and of readers. `casting` is the
        most that NumPy may convert, else TypeError. Without `copy`, of its own type it is itself.

        >>> import spgraph as sg
        >>> sg.Vector.from_dense([1.7, -2.7]).astype("int8").to_numpy().tolist()
        [1, -2]
        """
        flags("astype", copy=copy)
        if check_casting(self.dtype, dtype, casting) and not copy:
            return self  # type: ignore[return-value]
        with on_device(self.device) if isinstance(self.device, str) else nullcontext():
            return self.dup(dtype)

    def _by_shards(
        self, function: Callable[[Vector, Vector], tuple[Vector, Vector]], other: Vector
    ) -> tuple[Vector, Vector]:
        """function(self, other); of Vectors in shards, of each shard of both on its device."""
        with on_device(self.device):
            return function(cast("Vector", self), other)

    def _with_values(self, function: Callable[..., Array], *others: Vector) -> Vector:
        """The vector with entries at the same positions whose values are function(values, the
        values of each of the others).

        `function` gets NumPy or CuPy arrays of equal length and gives a new one of that length,
        each element made of those at its place alone: it is applied shard by shard, and under
        absent entries of a bitmap, too. NumPy's functions take both kinds of arrays. With `others`
        all vectors have to be full. Unlike a user-defined operator, this compiles nothing.

        >>> import numpy as np, spgraph as sg
        >>> v = sg.Vector.from_dense([1.0, 4.0])
        >>> v._with_values(lambda x, y: np.sqrt(x) + y, v).to_numpy().tolist()
        [2.0, 6.0]
        """
        if others:
            check_others(self, others)
        self._fetch_nvals()  # the arrays of an operation that may have failed
        with on_device(self.device):
            values = applied(function, self._values, *(other._values for other in others))
            indices = None if self._indices is None else self._indices.copy()
            bits = None if self._bits is None else self._bits.copy()
        made: Any = type(self)
        return made._of(self.size, values, indices=indices, bits=bits, nvals=self._nvals)

    def _total(self, function: Callable[[Array], Array] | None = None) -> Any:
        """The sum of the values of a full vector, or of function(values) as `_with_values` takes
        it: an array without dimensions on the vector's device, which is not waited for.

        >>> import numpy as np, spgraph as sg
        >>> float(sg.Vector.from_dense([3.0, -4.0])._total(np.abs))
        7.0
        """
        if self.nvals != self.size:  # a complete one may be stored as a bitmap
            raise DomainMismatch(
                f"_total: expected a full Vector, got one of {self.size} with {self.nvals} entries"
            )
        with on_device(self.device):
            return (self._values if function is None else function(read_only(self._values))).sum()

    def _value_range(self) -> tuple[float, float]:
        """(least, greatest) value of the entries as Python numbers, NaN where one is NaN; (0, 0)
        where there is none.

        >>> import spgraph as sg
        >>> sg.Vector.from_dense([3, 1, 2])._value_range()
        (1, 3)
        """
        return extent_of(self._values if self._bits is None else self.to_sparse()._values)


class MatrixValues(MatrixParts):
    """What a Matrix says and makes of its values."""

    __slots__ = ()

    def astype(self, dtype: DType, casting: Casting = "unsafe", copy: bool = True) -> Matrix:
        """The Matrix of the same entries with values of type `dtype`, converted without a check, as
        those of `Vector.astype`, with `casting` and `copy` as there; shares the index arrays.

        Bools become integers that count: plus over bool is or.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 0, 2], [0, 1, 1])
        >>> A.dtype, A.astype("int32").dtype
        (dtype('bool'), dtype('int32'))
        """
        flags("astype", copy=copy)
        from spgraph.containers.matrix import Matrix

        if check_casting(self.dtype, dtype, casting) and not copy:
            return self  # type: ignore[return-value]
        with on_device(self.device):
            values = converted(self._values, value_dtype(dtype))
        arrays = self._indptr, self._indices, values
        # values that differed may be equal now
        symmetric = self.symmetric or None
        return Matrix._of(self.nrows, self.ncols, *arrays, iso=self.iso, symmetric=symmetric)

    @on_its_device
    def row_degrees(self) -> Vector:
        """How many entries each row has: a full Vector of the smallest index type for it.

        >>> import spgraph as sg
        >>> sg.Matrix.from_coo([0, 0, 2], [0, 1, 1]).row_degrees().to_numpy().tolist()
        [2, 0, 1]
        """
        from spgraph.containers.vector import Vector

        there = self._with_arrays
        if there is self:
            counts = self._indptr[1:] - self._indptr[:-1]
        else:  # a view: its rows are columns of what it is the transpose of
            ids = there._indices
            counts = array_module(ids).bincount(ids, minlength=self.nrows)
        return Vector._of(self.nrows, counts.astype(index_dtype(self.ncols), copy=False))

    def _with_values(self, function: Callable[[Array], Array]) -> Matrix:
        """The Matrix with entries at the same positions whose values are function(values); as
        `_with_values` of a Vector, of an iso Matrix of its only value; shares the index arrays.

        >>> import numpy as np, spgraph as sg
        >>> sg.Matrix([[0, 4.0]])._with_values(np.sqrt).to_dense().tolist()
        [[0.0, 2.0]]
        """
        from spgraph.containers.matrix import Matrix

        if not self._has_arrays:  # the transpose of what is there
            return self.T._with_values(function)._written_view()
        with on_device(self.device):
            values = applied(function, self._values)
        arrays = self._indptr, self._indices, values
        symmetric = self.symmetric or None  # values that differed may be equal now
        return Matrix._of(self.nrows, self.ncols, *arrays, iso=self.iso, symmetric=symmetric)

    def _value_range(self) -> tuple[float, float]:
        """(least, greatest) value of the entries as Python numbers, NaN where one is NaN; (0, 0)
        where there is none. Kept.
        """
        if "range" not in self._derived:
            range_ = extent_of(self._values, FEW_OF_MATRIX) if self.nvals else (0, 0)
            self._derived["range"] = range_
        return self._derived["range"]

    def _sampled_mean(self) -> float:
        """The mean of the finite values, of a sample of them where there are many; 0 where there is
        none. Kept.
        """
        if "mean" not in self._derived:
            values = self._values[: self.nvals]
            with on_device(self.device):
                sample = values[:: max(1, -(-values.size // SAMPLE))]
                # on the host: CuPy's kernels for this would take longer to compile or load
                sample = move(array_module(sample).ascontiguousarray(sample), "cpu")
                sample = sample.astype(np.float64)
                sample = sample[np.isfinite(sample)]
                # a sum that does not overflow
                self._derived["mean"] = float((sample / max(sample.size, 1)).sum())
        return self._derived["mean"]

    def _sampled_row_length(self) -> float:
        """How many entries the row of an entry has, on average over a sample of the entries; 0
        where there is none. Kept. In skewed graphs it is far above nvals / nrows.
        """
        if "row length" not in self._derived:
            held = self.nvals
            entries = np.arange(0, held, max(1, -(-held // SAMPLE)))
            with on_device(self.device):
                xp, indptr = array_module(self._indptr), self._indptr
                after = xp.searchsorted(indptr, xp.asarray(entries, indptr.dtype), side="right")
                lengths = move(indptr[after], "cpu") - move(indptr[after - 1], "cpu")
            self._derived["row length"] = float(lengths.mean()) if held else 0.0
        return self._derived["row length"]

    def _where(self, function: Callable[..., Array], *vectors: Vector) -> Matrix:
        """The entries A[i, j] for which function(A[i, j], u[i], ..., u[j], ...) is true, u being
        each of the `vectors`, full ones of a size that fits the rows and the columns.

        `function` gets NumPy or CuPy arrays with an element an entry (one element for the values of
        an iso Matrix), first the values, then each vector at the rows, then each at the columns,
        and gives truth values, each of what stands at its place alone: it is applied shard by
        shard. Unlike a user-defined operator, this compiles nothing.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 1, 1, 2], [1, 0, 2, 1])
        >>> rank = sg.Vector.from_dense([3, 1, 2])
        >>> A._where(lambda a, x, y: x > y, rank).to_coo()[:2]
        (array([0, 2], dtype=int32), array([1, 1], dtype=int32))
        """
        check_sides(self, vectors)
        with on_device(self.device):
            rows = self.row_indices() if vectors else None
            of_rows = (v._values[rows] for v in vectors)
            of_columns = (v._values[self._indices] for v in vectors)
            return self._filtered(function(read_only(self._values), *of_rows, *of_columns))

    def _filtered(self, kept: Array) -> Matrix:
        """The entries whose flag is set, of one flag an entry (or one for all)."""
        from spgraph.containers.matrix import Matrix

        xp = array_module(self._indices)
        kept = xp.broadcast_to(xp.asarray(kept, bool), (self.nvals,))
        places = xp.zeros(self.nvals + 1, self._indptr.dtype)
        xp.cumsum(kept, dtype=places.dtype, out=places[1:])
        values = self._values if self.iso else compress(kept, self._values)
        indptr, indices = places[self._indptr], compress(kept, self._indices)
        return Matrix._of(self.nrows, self.ncols, indptr, indices, values, iso=self.iso)


def applied(function: Callable[..., Array], *given: Array) -> Array:
    """function(*given), a new array of the length of the first and of a type of values."""
    values = function(*map(read_only, given))
    if getattr(values, "shape", None) != given[0].shape:
        raise DomainMismatch(
            f"_with_values: function: expected an array of {given[0].size} values, one "
            f"for each that it was given, got {getattr(values, 'shape', type(values))}"
        )
    if is_cuda(values):
        shared = any(array_module(values).may_share_memory(values, a) for a in given)
    else:  # what it was given, or a part of that, is marked
        shared = not values.flags.writeable
    return values.astype(value_dtype(values.dtype), copy=shared)


def check_others(v: Any, others: tuple[Any, ...]) -> None:
    """What `_with_values` asks of other vectors."""
    for other in others:
        if other.device != v.device:
            raise BackendMismatch(
                f"_with_values: one of others is on {other.device}, the Vector on {v.device}; "
                "move one with .to() of the other's .device"
            )
        if not v.nvals == other.nvals == v.size == other.size:
            raise DomainMismatch(
                f"_with_values: others: expected full Vectors of {v.size}, as the first is, "
                f"got one with {v.nvals} entries and one of {other.size} with {other.nvals}"
            )


def check_sides(A: Any, vectors: tuple[Any, ...]) -> None:
    """What `_where` asks of vectors."""
    for v in vectors:
        if v.device != A.device:
            raise BackendMismatch(
                f"_where: one of vectors is on {v.device}, the Matrix on {A.device}; "
                "move one with .to() of the other's .device"
            )
        if (v.size, v.size) != A.shape or v.nvals != v.size:
            raise DomainMismatch(
                f"_where: vectors: expected full Vectors of the size of rows and columns, "
                f"{A.nrows} and {A.ncols}, got one of {v.size} with {v.nvals} entries"
            )


def each_entry(arrays: Sequence[Array]) -> Iterator[tuple[Any, ...]]:
    """The elements of arrays of one length as tuples of Python's numbers, made piece by piece: as
    objects they take several times the memory of the arrays.
    """
    held = [move(array, "cpu") for array in arrays]
    for k in range(0, held[0].size, SAMPLE):
        yield from zip(*(array[k : k + SAMPLE].tolist() for array in held), strict=True)


def extent_of(values: Array, few: int = FEW) -> tuple[float, float]:
    """(least, greatest) of an array as Python numbers; (0, 0) of an empty one. Up to `few` values
    are copied to the host.
    """
    if values.size == 0:
        return 0, 0
    if values.size == 1:
        one = values.item()
        return one, one
    if values.size <= few:
        values = move(values, "cpu")
    with on_device(device_of(values)):  # CuPy computes on the current device
        return values.min().item(), values.max().item()


def same_numbers(x: Array, y: Array) -> Array:
    """Where two arrays of one type hold the same numbers: 0.0 and -0.0 are two, as 1 / x tells them
    apart, and NaN differs from itself.
    """
    same = x == y
    if x.dtype.kind == "f":
        same &= x.view(f"i{x.dtype.itemsize}") == y.view(f"i{y.dtype.itemsize}")
    return same


def converted(values: Array, dtype: np.dtype) -> Array:
    """A copy of `values` in another type, as NumPy's astype makes it."""
    if values.dtype == dtype:
        return values.copy()
    with np.errstate(invalid="ignore", over="ignore"):  # of CuPy's nothing is reported anyway
        return values.astype(dtype, copy=True)


def check_casting(values: np.dtype, dtype: DType, casting: Casting) -> bool:
    """Whether they are of one type; TypeError if NumPy's rule `casting` does not allow to convert
    the one to the other.
    """
    target = value_dtype(dtype)
    if casting != "unsafe" and not np.can_cast(values, target, casting):
        raise TypeError(
            f"astype: casting: expected a type that NumPy's rule {casting!r} allows for {values}, "
            f"got {target}; casting='unsafe' allows all"
        )
    return target == values


def value_dtype(dtype: DType) -> np.dtype:
    """The NumPy type of a GraphBLAS domain; DomainMismatch for any other."""
    dtype = dtype if isinstance(dtype, np.dtype) else np.dtype(dtype)
    if dtype in DOMAINS:
        return dtype
    if dtype.kind not in "biuf" or dtype.itemsize > 8 or dtype == np.float16:
        raise DomainMismatch(f"dtype: expected bool, (u)int8..64, float32 or float64, got {dtype}")
    return dtype.newbyteorder("=")
