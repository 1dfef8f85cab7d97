"""Matrix: a sparse matrix as canonical CSR on one device, with iso values, a cached transpose and a
known symmetry.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spgraph.containers import display
from spgraph.containers.arrays import (
    Array,
    array_module,
    check_device,
    count_bits,
    device_of,
    index_dtype,
    is_cuda,
    move,
    on_device,
    pack_bits,
)
from spgraph.containers.mask import Mask
from spgraph.containers.sugar import MatrixSugar
from spgraph.containers.vector import value_dtype
from spgraph.errors import BackendMismatch, DomainMismatch


class Matrix(MatrixSugar):
    """A sparse matrix; as a graph, A[i, j] is the edge i -> j.

    The arrays are canonical CSR: the columns of row i are indices[indptr[i]:indptr[i + 1]],
    ascending, each once. An *iso* matrix keeps one value for all entries (`values` has length 1),
    so that a pattern costs no bytes for values. Index arrays are int32 or int64, each as it came.

    The constructor trusts its arrays: it neither checks nor copies. Users build matrices with
    `from_coo`, `from_scipy`, `from_dense`, `from_networkx`, `from_cupyx`, `spgraph.read` and
    `spgraph.generators`.

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 0, 1], [1, 2, 2], nrows=3, ncols=3)
    >>> A.nvals, A.iso, A.is_symmetric()
    (3, True, False)
    """

    __slots__ = (
        "_derived",
        "indices",
        "indptr",
        "iso",
        "ncols",
        "nrows",
        "symmetric",
        "transient",
        "values",
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
        self.indptr = indptr
        self.indices = indices
        self.values = values
        self.iso = iso
        self.symmetric = symmetric if nrows == ncols else False
        # True for a Matrix that one call made from a foreign object: nothing it caches is ever used
        # again
        self.transient = False
        self._derived: dict[str, Any] = {}

    # --- construction -----------------------------------------------------------------------------

    @classmethod
    def empty(
        cls, nrows: int, ncols: int, dtype: Any = np.float64, *, device: str = "cpu"
    ) -> Matrix:
        """A matrix without entries."""
        if nrows < 0 or ncols < 0:
            raise ValueError(f"nrows, ncols: expected integers >= 0, got {nrows}, {ncols}")
        kind = index_dtype(max(nrows, ncols))
        with on_device(check_device(device)) as xp:
            parts = (
                xp.zeros(nrows + 1, np.int32),
                xp.empty(0, kind),
                xp.empty(0, value_dtype(dtype)),
            )
        return cls(nrows, ncols, *parts)

    @classmethod
    def from_scipy(cls, S: Any, *, symmetric: bool | None = None) -> Matrix:
        """The Matrix of a SciPy sparse array or matrix of any format; its explicit zeros are
        entries.

        A canonical CSR is borrowed, not copied. Anything else is converted: duplicate entries are
        summed, as SciPy means them. `symmetric=True` is the caller's word that A equals its
        transpose; None leaves it to be tested when needed.

        >>> import scipy.sparse, spgraph as sg
        >>> S = scipy.sparse.csr_array([[0, 2.0], [2.0, 0]])
        >>> sg.Matrix.from_scipy(S).values is S.data
        True
        """
        if not hasattr(S, "tocsr"):
            raise DomainMismatch(
                f"S: expected a SciPy or CuPy sparse array or matrix, got {type(S).__name__}; "
                "Matrix.from_dense takes arrays"
            )
        csr = S.tocsr()
        if csr.ndim != 2:
            raise DomainMismatch(f"S: expected 2 dimensions, got {csr.ndim}")
        dtype = value_dtype(csr.dtype)
        if not csr.has_canonical_format:
            csr = csr.copy() if csr is S else csr
            csr.sum_duplicates()
        # a canonical CSR may still own arrays longer than its entries
        nvals = int(csr.indptr[-1])
        data = csr.data if csr.data.size == nvals else csr.data[:nvals]
        indices = csr.indices if csr.indices.size == nvals else csr.indices[:nvals]
        data = data if data.dtype == dtype else data.astype(dtype)
        return cls(csr.shape[0], csr.shape[1], csr.indptr, indices, data, symmetric=symmetric)

    from_cupyx = from_scipy

    @classmethod
    def from_dense(cls, array: Array, *, missing: Any = 0) -> Matrix:
        """The entries of a 2-D NumPy or CuPy array that differ from `missing` (None: all of them).

        >>> import spgraph as sg
        >>> sg.Matrix.from_dense([[0, 1], [0, 0]]).nvals
        1
        """
        array = array if hasattr(array, "__cuda_array_interface__") else np.asarray(array)
        if array.ndim != 2:
            raise DomainMismatch(f"array: expected 2 dimensions, got {array.ndim}")
        xp = array_module(array)
        dtype = value_dtype(array.dtype)
        if missing is None:
            present = xp.ones(array.shape, bool)
        else:
            present = array == array if missing != missing else array != missing
        indptr = xp.zeros(array.shape[0] + 1, index_dtype(array.size))
        xp.cumsum(present.sum(axis=1), out=indptr[1:])
        columns = xp.nonzero(present)[1].astype(index_dtype(max(array.shape)))
        values = array[present].astype(dtype, copy=False)
        return cls(array.shape[0], array.shape[1], indptr, columns, values)

    @classmethod
    def from_networkx(
        cls, G: Any, *, nodelist: Any = None, weight: str | None = "weight"
    ) -> Matrix:
        """The adjacency matrix of a NetworkX graph, rows in the order of `nodelist` (None: G's
        own).

        `weight` names the edge attribute that becomes the value (1 where an edge lacks it; parallel
        edges are summed); None makes a pattern matrix. An undirected graph gives a symmetric
        matrix.
        """
        import networkx

        if len(G) == 0:
            return cls.empty(0, 0)
        S = networkx.to_scipy_sparse_array(G, nodelist=nodelist, weight=weight, format="csr")
        A = cls.from_scipy(S, symmetric=True if not G.is_directed() else None)
        return A if weight is not None else A.pattern()

    def pattern(self) -> Matrix:
        """The iso Matrix of value True at the same entries; shares the index arrays."""
        xp = array_module(self.indices)
        A = Matrix(
            self.nrows,
            self.ncols,
            self.indptr,
            self.indices,
            xp.ones(1, bool),
            iso=True,
            symmetric=self.symmetric,
        )
        return A

    # --- what it is -------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        return (self.nrows, self.ncols)

    @property
    def nvals(self) -> int:
        """How many entries are stored."""
        return int(self.indices.size)

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    @property
    def device(self) -> str:
        """'cpu', or 'cuda:0' and so on."""
        return device_of(self.indices)

    @property
    def nbytes(self) -> int:
        """Bytes of the three CSR arrays; what is cached beside them (the transpose) is not
        counted.
        """
        return self.indptr.nbytes + self.indices.nbytes + self.values.nbytes

    @property
    def S(self) -> Mask:
        """The mask of the stored entries."""
        return Mask(self, structure=True)

    @property
    def V(self) -> Mask:
        """The mask of the stored entries that are true."""
        return Mask(self, structure=False)

    # --- what is derived once and kept ------------------------------------------------------------

    @property
    def T(self) -> Matrix:
        """The transpose, made when first asked for and kept; a matrix known to be symmetric is its
        own.
        """
        if self.symmetric:
            return self
        if "T" not in self._derived:
            transposed = transpose(self)
            transposed._derived["T"] = self
            self._derived["T"] = transposed
        return self._derived["T"]

    @property
    def has_transpose(self) -> bool:
        """Whether `T` costs nothing now."""
        return bool(self.symmetric) or "T" in self._derived

    def is_symmetric(self) -> bool:
        """Whether A equals its transpose, entries and values; tested once (by making the
        transpose), then known.
        """
        if self.symmetric is None:
            T = self.T
            same = bool((self.indptr == T.indptr).all()) and bool((self.indices == T.indices).all())
            self.symmetric = same and (self.iso or bool((self.values == T.values).all()))
            if self.symmetric:
                del self._derived["T"]
            T.symmetric = self.symmetric
        return self.symmetric

    def nonempty_rows(self) -> Array:
        """One bit a row, set where the row has an entry (packed as `arrays.pack_bits` does);
        kept.
        """
        if "nonempty" not in self._derived:
            self._derived["nonempty"] = pack_bits(self.indptr[1:] > self.indptr[:-1])
        return self._derived["nonempty"]

    def nonempty_count(self) -> int:
        """How many rows have an entry; kept."""
        if "nonempty_count" not in self._derived:
            self._derived["nonempty_count"] = count_bits(self.nonempty_rows())
        return self._derived["nonempty_count"]

    # --- the way out ------------------------------------------------------------------------------

    def expanded_values(self) -> Array:
        """The values, one per entry (a new array where the matrix is iso)."""
        return (
            array_module(self.indices).full(self.nvals, self.values[0]) if self.iso else self.values
        )

    def row_indices(self) -> Array:
        """The row of every entry, of the type of `indices`."""
        xp = array_module(self.indices)
        rows = xp.arange(self.nrows, dtype=self.indices.dtype)
        if is_cuda(self.indices):  # cupy.repeat takes no array of counts
            return xp.searchsorted(self.indptr[1:], xp.arange(self.nvals), side="right").astype(
                rows.dtype
            )
        return np.repeat(rows, np.diff(self.indptr))

    def to_coo(self) -> tuple[Array, Array, Array]:
        """(rows, columns, values): copies on the matrix's device, row by row, columns ascending."""
        values = self.expanded_values()
        return self.row_indices(), self.indices.copy(), values if self.iso else values.copy()

    def to_scipy(self) -> Any:
        """A scipy.sparse.csr_array of the same entries; it shares the arrays of a CPU Matrix where
        the types allow it.
        """
        import scipy.sparse

        A = self.to("cpu")
        return scipy.sparse.csr_array((A.expanded_values(), A.indices, A.indptr), shape=A.shape)

    def to_cupyx(self) -> Any:
        """A cupyx.scipy.sparse.csr_matrix of the same entries; integer values become float64, the
        type CuPy has.
        """
        A = self.to(self.device if self.device != "cpu" else "cuda")
        import cupyx.scipy.sparse

        values = A.expanded_values()
        values = values if values.dtype.kind in "bf" else values.astype(np.float64)
        return cupyx.scipy.sparse.csr_matrix((values, A.indices, A.indptr), shape=A.shape)

    def to(self, device: str) -> Matrix:
        """The same matrix on `device` ('cpu', 'cuda', 'cuda:1'); itself if it is there already."""
        device = check_device(device)
        if device == self.device:
            return self
        arrays = (move(a, device) for a in (self.indptr, self.indices, self.values))
        return Matrix(self.nrows, self.ncols, *arrays, iso=self.iso, symmetric=self.symmetric)

    def dup(self) -> Matrix:
        """A copy that shares nothing."""
        arrays = (a.copy() for a in (self.indptr, self.indices, self.values))
        return Matrix(self.nrows, self.ncols, *arrays, iso=self.iso, symmetric=self.symmetric)

    copy = dup

    # --- comparison -------------------------------------------------------------------------------

    def isequal(self, other: Matrix, *, check_dtype: bool = False) -> bool:
        """Same shape, same positions, equal values; NaN equals NaN. An iso matrix may equal one
        that is not.
        """
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
        if not (self.indptr == other.indptr).all() or not (self.indices == other.indices).all():
            return False
        x, y = self.values, other.values  # iso values broadcast
        return self.nvals == 0 or bool(((x == y) | ((x != x) & (y != y))).all())

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
        xp = array_module(self.indices)
        rows = xp.searchsorted(self.indptr[1:], xp.arange(count), side="right").tolist()
        values = (self.values[:1].repeat(count) if self.iso else self.values[:count]).tolist()
        head = list(zip(rows, self.indices[:count].tolist(), values, strict=True))
        return f"Matrix {self.nrows}x{self.ncols}, {self.nvals} entries", facts, head, self.nvals


def transpose(A: Matrix) -> Matrix:
    """A new Matrix, the transpose of A. SciPy's counting sort on the CPU, a stable sort by column
    on a GPU.
    """
    nvals = A.nvals
    if is_cuda(A.indices):
        xp = array_module(A.indices)
        order = xp.argsort(A.indices, kind="stable")
        rows = A.row_indices()
        counts = xp.bincount(A.indices, minlength=A.ncols)
        indptr = xp.zeros(A.ncols + 1, A.indptr.dtype)
        xp.cumsum(counts, out=indptr[1:])
        return Matrix(
            A.ncols, A.nrows, indptr, rows[order], A.values if A.iso else A.values[order], iso=A.iso
        )
    import scipy.sparse

    # an iso matrix still has to bring an array for SciPy to permute: one byte an entry
    data = np.zeros(nvals, np.int8) if A.iso else A.values
    csc = scipy.sparse.csr_array((data, A.indices, A.indptr), shape=A.shape).tocsc()
    return Matrix(
        A.ncols, A.nrows, csc.indptr, csc.indices, A.values if A.iso else csc.data, iso=A.iso
    )


def as_matrix(A: Any, name: str = "A") -> Matrix:
    """`A` itself if it is a Matrix, else the Matrix it stands for; DomainMismatch if it stands for
    none.
    """
    if isinstance(A, Matrix):
        return A
    if hasattr(A, "tocsr"):
        made = Matrix.from_scipy(A)
    elif hasattr(A, "adj") and hasattr(A, "is_directed"):
        made = Matrix.from_networkx(A)
    elif isinstance(A, np.ndarray | list) or hasattr(A, "__cuda_array_interface__"):
        made = Matrix.from_dense(A)
    elif hasattr(A, "__dlpack__"):
        made = Matrix.from_dense(np.from_dlpack(A))
    else:
        raise DomainMismatch(
            f"{name}: expected a Matrix, a SciPy or CuPy sparse matrix, a NetworkX graph "
            f"or a 2-D array, got {type(A).__name__}"
        )
    made.transient = True
    return made
