"""Matrix: a sparse matrix as canonical CSR on one device, with iso values, a cached transpose and a
known symmetry.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from spgraph.containers import display
from spgraph.containers.arrays import (
    Array,
    array_module,
    check_device,
    check_extent,
    count_bits,
    device_of,
    index_dtype,
    is_cuda,
    move,
    on_device,
    pack_bits,
    read_only,
    writable,
)
from spgraph.containers.conversions import MatrixConversions
from spgraph.containers.mask import Mask
from spgraph.containers.sugar import MatrixSugar
from spgraph.containers.values import MatrixValues, converted, value_dtype
from spgraph.containers.vector import Vector
from spgraph.containers.views import MatrixViews
from spgraph.errors import BackendMismatch, DomainMismatch


class Matrix(MatrixViews, MatrixValues, MatrixConversions, MatrixSugar):
    """A sparse matrix; as a graph, A[i, j] is the edge i -> j.

    The arrays are canonical CSR: the columns of row i are indices[indptr[i]:indptr[i + 1]],
    ascending, each once. An *iso* matrix keeps one value for all entries (`values` has length 1),
    so that a pattern costs no bytes for values. Index arrays are int32 or int64, each as it came.
    On the CPU the three are read-only views. CuPy has no such flag: who writes into those of a
    Matrix on CUDA changes it behind its back, and what it has derived and kept goes wrong.

    The constructor trusts its arrays: it neither checks nor copies. Users build matrices with
    `from_coo`, `from_scipy`, `from_dense`, `from_networkx`, `from_cupyx`, `spgraph.read` and
    `spgraph.generators`.

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 0, 1], [1, 2, 2], nrows=3, ncols=3)
    >>> A.nvals, A.iso, A.is_symmetric()
    (3, True, False)
    """

    __slots__ = (
        "__weakref__",
        "_derived",
        "_indices",
        "_indptr",
        "_source",
        "_transient",
        "_values",
        "_view",
        "iso",
        "ncols",
        "nrows",
        "symmetric",
    )

    def __init__(
        self,
        nrows: int,
        ncols: int,
        indptr: Array,
        indices: Array,
        values: Array,
        *,
        iso: bool = False,
        symmetric: bool | None = None,
    ) -> None:
        self.nrows = nrows
        self.ncols = ncols
        self._indptr = writable(indptr)
        self._indices = writable(indices)
        self._values = writable(values)
        self.iso = iso
        self.symmetric = symmetric if nrows == ncols else False
        # True for a Matrix that one call made from a foreign object: nothing it caches is ever used
        # again
        self._transient = False
        self._begin()

    # --- construction -----------------------------------------------------------------------------

    @classmethod
    def empty(
        cls, nrows: int, ncols: int, dtype: Any = np.float64, *, device: Any = "cpu"
    ) -> Matrix:
        """A matrix without entries."""
        if not isinstance(device, str):  # spread over several devices
            return device.empty_matrix(nrows, ncols, dtype)
        nrows, ncols = check_extent("nrows", nrows), check_extent("ncols", ncols)
        kind = index_dtype(max(nrows, ncols))
        with on_device(check_device(device)) as xp:
            parts = (
                xp.zeros(nrows + 1, np.int32),
                xp.empty(0, kind),
                xp.empty(0, value_dtype(dtype)),
            )
        return cls(nrows, ncols, *parts)

    @classmethod
    def _from_columns(cls, columns: Vector, *, ncols: int) -> Matrix:
        """The iso Matrix of value True with one entry a row: that of row i in column columns[i] of
        a full Vector of integers, which are not checked.

        >>> import spgraph as sg
        >>> list(sg.Matrix._from_columns(sg.Vector.from_dense([2, 0]), ncols=3))
        [(0, 2, True), (1, 0, True)]
        """
        if not isinstance(columns.device, str):
            return columns.device._from_columns(columns, ncols=ncols)
        n, ncols = columns.size, check_extent("ncols", ncols)
        with on_device(columns.device) as xp:
            indptr = xp.arange(n + 1, dtype=index_dtype(n))
            indices = columns._values.astype(index_dtype(max(n, ncols)))
            return cls(n, ncols, indptr, indices, xp.ones(1, bool), iso=True)

    def pattern(self, dtype: Any = bool) -> Matrix:
        """The iso Matrix of value True, or 1 of another `dtype`, at the same entries; shares the
        index arrays.
        """
        xp = array_module(self._indices)
        A = Matrix(
            self.nrows,
            self.ncols,
            self._indptr,
            self._indices,
            xp.ones(1, value_dtype(dtype)),
            iso=True,
            # where the values alone made it asymmetric, the pattern is not
            symmetric=self.symmetric or None,
        )
        return A

    # --- what it is -------------------------------------------------------------------------------

    @property
    def indptr(self) -> Array:
        """Where each row begins among the entries, and how many there are: nrows + 1 offsets."""
        return read_only(self._indptr)

    @property
    def indices(self) -> Array:
        """The column of every entry."""
        return read_only(self._indices)

    @property
    def values(self) -> Array:
        """The value of every entry; of an iso matrix the one of all."""
        return read_only(self._values)

    @property
    def shape(self) -> tuple[int, int]:
        return (self.nrows, self.ncols)

    @property
    def nvals(self) -> int:
        """How many entries are stored."""
        return int(self._with_arrays._indices.size)

    @property
    def dtype(self) -> np.dtype:
        return self._with_arrays._values.dtype

    @property
    def index_dtype(self) -> np.dtype:
        """The type of the ids of columns, and so of the vertices of a graph."""
        return self._indices.dtype if self._has_arrays else index_dtype(max(self.shape))

    @property
    def device(self) -> Any:
        """'cpu', or 'cuda:0' and so on; of a distributed one its Placement."""
        return device_of(self._with_arrays._indices)

    @property
    def nbytes(self) -> int:
        """Bytes of the three CSR arrays; what is cached beside them (the transpose) is not
        counted.
        """
        return self._indptr.nbytes + self._indices.nbytes + self._values.nbytes

    @property
    def S(self) -> Mask:
        """The mask of the stored entries."""
        return Mask(self, structure=True)

    @property
    def V(self) -> Mask:
        """The mask of the stored entries that are true."""
        return Mask(self, structure=False)

    # --- what is derived once and kept ------------------------------------------------------------

    def is_symmetric(self) -> bool:
        """Whether A equals its transpose, entries and values; tested once (by making the
        transpose), then known.
        """
        if self.symmetric is None:
            T = self.T
            same = bool((self._indptr == T._indptr).all()) and bool(
                (self._indices == T._indices).all()
            )
            self._decide(T, same and (self.iso or bool((self._values == T._values).all())))
        return bool(self.symmetric)

    def _nonempty_rows(self) -> Array:
        """One bit a row, set where the row has an entry (packed as `arrays.pack_bits` does);
        kept.
        """
        if "nonempty" not in self._derived:
            self._derived["nonempty"] = pack_bits(self._indptr[1:] > self._indptr[:-1])
        return self._derived["nonempty"]

    def _nonempty_count(self) -> int:
        """How many rows have an entry; kept."""
        if "nonempty_count" not in self._derived:
            self._derived["nonempty_count"] = count_bits(self._nonempty_rows())
        return self._derived["nonempty_count"]

    # --- the way out ------------------------------------------------------------------------------

    def expanded_values(self) -> Array:
        """The values, one per entry: a view as `values` is; a new array where the matrix is iso."""
        return self._expanded_values() if self.iso else self.values

    def _expanded_values(self) -> Array:
        return (
            array_module(self._indices).full(self.nvals, self._values[0])
            if self.iso
            else self._values
        )

    def row_indices(self) -> Array:
        """The row of every entry, of the type of `indices`."""
        kind = self._indices.dtype
        if not is_cuda(self._indices):
            return np.repeat(np.arange(self.nrows, dtype=kind), np.diff(self._indptr))
        # cupy.repeat takes no array of counts: a mark where a row begins, and a running sum
        xp = array_module(self._indices)
        marks = xp.zeros(self.nvals, np.dtype(f"u{kind.itemsize}"))
        starts = self._indptr[1:-1]
        xp.add.at(marks, starts[starts < self.nvals], marks.dtype.type(1))
        return xp.cumsum(marks, dtype=marks.dtype).view(kind)

    def to_coo(self) -> tuple[Array, Array, Array]:
        """(rows, columns, values): copies on the matrix's device, row by row, columns ascending."""
        values = self._expanded_values()
        return self.row_indices(), self._indices.copy(), values if self.iso else values.copy()

    def to(self, device: Any) -> Matrix:
        """The same matrix on `device` ('cpu', 'cuda', 'cuda:1'); itself if it is there already.

        A Placement, the `device` of a distributed container, spreads it as that one is.
        """
        if not isinstance(device, str):
            return device.scatter(self)
        device = check_device(device)
        if device == self.device:
            return self
        arrays = (move(a, device) for a in (self._indptr, self._indices, self._values))
        return Matrix(self.nrows, self.ncols, *arrays, iso=self.iso, symmetric=self.symmetric)

    def dup(self, dtype: Any = None) -> Matrix:
        """A copy that shares nothing, with values of type `dtype` (see `astype`) if given."""
        values = converted(self._values, self.dtype if dtype is None else value_dtype(dtype))
        arrays = self._indptr.copy(), self._indices.copy(), values
        # values that differed may be equal in another type
        symmetric = self.symmetric if dtype is None else self.symmetric or None
        return Matrix(self.nrows, self.ncols, *arrays, iso=self.iso, symmetric=symmetric)

    copy = dup

    def _become(self, other: Matrix) -> None:
        """Take over the arrays of `other` (the last step of an operation that writes `out`)."""
        view = self._living_view()
        if view is not None:  # it stays the transpose of what was here
            arrays = self._indptr, self._indices, self._values
            view._follow(Matrix(self.nrows, self.ncols, *arrays, iso=self.iso))
        # nothing is called between the first and the last, so that no signal handler comes between
        (self.nrows, self.ncols, self._indptr, self._indices, self._values, self.iso) = (
            other.nrows, other.ncols, other._indptr, other._indices, other._values, other.iso
        )  # fmt: skip
        self.symmetric, self._transient = other.symmetric, False
        self._source, self._view, self._derived = None, None, {}

    # --- comparison -------------------------------------------------------------------------------

    def isequal(self, other: Matrix, *, check_dtype: bool = False) -> bool:
        """Same shape, same positions, equal values; NaN equals NaN. An iso matrix may equal one
        that is not.
        """
        return self._matches(other, check_dtype, lambda xp, x, y: (x == y) | ((x != x) & (y != y)))

    def isclose(self, other: Matrix, *, rtol: float = 1e-7, atol: float = 0.0) -> bool:
        """Same shape, same positions, values within `atol + rtol * abs(other)`; NaN equals NaN."""
        return self._matches(
            other,
            False,
            lambda xp, x, y: xp.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True),
        )

    def _matches(self, other: Matrix, check_dtype: bool, same: Any) -> bool:
        if not isinstance(other, Matrix):
            raise DomainMismatch(f"other: expected a Matrix, got {type(other).__name__}")
        if self.device != other.device:
            raise BackendMismatch(
                f"other is on {other.device}, the Matrix on {self.device}; move one with .to()"
            )
        if (
            self.shape != other.shape
            or self.nvals != other.nvals
            or (check_dtype and self.dtype != other.dtype)
        ):
            return False
        if not (self._indptr == other._indptr).all() or not (self._indices == other._indices).all():
            return False
        # iso values broadcast
        values = same(array_module(self._indices), self._values, other._values)
        return self.nvals == 0 or bool(values.all())

    # --- for Python -------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[tuple[int, int, Any]]:
        """(row, column, value) of every entry, row by row."""
        rows, columns, values = (move(a, "cpu") for a in self.to_coo())
        return zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True)

    def __getstate__(self) -> dict[str, Any]:
        arrays = {"indptr": self._indptr, "indices": self._indices, "values": self._values}
        names = ("nrows", "ncols", "iso", "symmetric")
        return arrays | {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    # --- for people -------------------------------------------------------------------------------

    def __bool__(self) -> bool:
        raise TypeError("a Matrix has no truth value; compare .nvals")

    def __repr__(self) -> str:
        return display.text(*self._describe())

    def _repr_html_(self) -> str:
        return display.html(*self._describe())

    def _describe(self) -> tuple[str, list[str], list[tuple[Any, ...]], int]:
        facts = [str(self.dtype) + (" iso" if self.iso else ""), "CSR"]
        facts += ["symmetric"] if self.symmetric else []
        facts += [self.device, display.size_of(self.nbytes)]
        count = min(display.ROWS, self.nvals)
        xp = array_module(self._indices)
        rows = xp.searchsorted(self._indptr[1:], xp.arange(count), side="right").tolist()
        values = (self._values[:1].repeat(count) if self.iso else self._values[:count]).tolist()
        head = list(zip(rows, self._indices[:count].tolist(), values, strict=True))
        return f"Matrix {self.nrows}x{self.ncols}, {self.nvals} entries", facts, head, self.nvals


def as_matrix(A: Any, name: str = "A") -> Matrix:
    """`A` itself if it is a Matrix, else the Matrix it stands for; DomainMismatch if it stands for
    none.
    """
    if isinstance(A, Matrix):
        return A
    if hasattr(A, "tocsr"):
        made = Matrix.from_scipy(A, copy=False)  # for this call alone
    elif hasattr(A, "adj") and hasattr(A, "is_directed"):
        made = Matrix.from_networkx(A)
    elif isinstance(A, np.ndarray | list) or hasattr(A, "__cuda_array_interface__"):
        made = Matrix.from_dense(A)
    elif hasattr(A, "__dlpack__") and not isinstance(A, Vector):
        made = Matrix.from_dense(np.from_dlpack(A))
    else:
        raise DomainMismatch(
            f"{name}: expected a Matrix, a SciPy or CuPy sparse matrix, a NetworkX graph "
            f"or a 2-D array, got {type(A).__name__}"
        )
    made._transient = True
    return made
