"""Matrix: a sparse matrix as canonical CSR on one device, with iso values, a cached transpose and a
known symmetry.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from spgraph.containers.annotations import DType
from spgraph.containers.interchange.graphs import MatrixGraphs
from spgraph.containers.interchange.tensors import MatrixTensors
from spgraph.containers.mask import Mask
from spgraph.containers.methods.arithmetic import MatrixArithmetic
from spgraph.containers.methods.comparison import MatrixComparison
from spgraph.containers.methods.construction import MatrixConstruction
from spgraph.containers.methods.conversions import MatrixConversions
from spgraph.containers.methods.devices import MatrixDevices
from spgraph.containers.methods.display import MatrixDisplay
from spgraph.containers.methods.indexing import MatrixIndexing
from spgraph.containers.methods.views import MatrixViews
from spgraph.containers.sparray import MatrixSparray
from spgraph.containers.storage.arrays import (
    Array,
    count_bits,
    device_of,
    index_dtype,
    on_device,
    on_its_device,
    pack_bits,
    read_only,
    writable,
)
from spgraph.containers.storage.values import (
    MatrixValues,
    converted,
    each_entry,
    same_numbers,
    value_dtype,
)

if TYPE_CHECKING:
    from spgraph.containers.argument import MatrixLike


class Matrix(
    MatrixViews,
    MatrixConstruction,
    MatrixValues,
    MatrixConversions,
    MatrixTensors,
    MatrixGraphs,
    MatrixComparison,
    MatrixDevices,
    MatrixArithmetic,
    MatrixIndexing,
    MatrixSparray,
    MatrixDisplay,
):
    """A sparse matrix; as a graph, A[i, j] is the edge i -> j.

    The arrays are canonical CSR: the columns of row i are indices[indptr[i]:indptr[i + 1]],
    ascending, each once. An *iso* matrix keeps one value for all entries (`values` has length 1),
    so that a pattern costs no bytes for values. Index arrays are int32 or int64, each as it came.
    On the CPU the three are read-only views. CuPy has no such flag: do not write into those of a
    Matrix on CUDA, whose cached transpose and other derived data would become wrong.

    `Matrix(x)` makes a new one from a sparse array or matrix of SciPy or CuPy, a sparse tensor of
    PyTorch or JAX, an array (of any library that offers DLPack), nested lists or a table of pandas,
    whose zeros are no entries, a graph of NetworkX or igraph, a Matrix of python-graphblas, or a
    Matrix, which is copied. `from_scipy`, `from_dense`, `from_networkx` and
    `from_igraph` do the same and have options; `from_coo`, `empty`, `spgraph.read` and
    `spgraph.generators` make others. Raises DomainMismatch for anything else.

    >>> import spgraph as sg
    >>> sg.Matrix([[0, 2], [3, 0]]).to_coo()[2].tolist()
    [2, 3]
    >>> A = sg.Matrix.from_coo([0, 0, 1], [1, 2, 2], nrows=3, ncols=3)
    >>> A.nvals, A.iso, A.is_symmetric()
    (3, True, False)
    """

    __slots__ = {
        "__weakref__": "",
        "_derived": "",
        "_indices": "",
        "_indptr": "",
        "_source": "",
        "_transient": "",
        "_values": "",
        "_view": "",
        "iso": """Whether one value stands for all entries.

        >>> import spgraph as sg
        >>> sg.Matrix.from_coo([0, 1], [1, 0], 7).iso
        True
        """,
        "ncols": """How many columns.

        >>> import spgraph as sg
        >>> sg.Matrix.from_dense([[1, 2, 0]]).ncols
        3
        """,
        "nrows": """How many rows.

        >>> import spgraph as sg
        >>> sg.Matrix.from_dense([[1, 2, 0]]).nrows
        1
        """,
        "symmetric": """Whether the Matrix equals its transpose, as far as is known: None where
        nobody has asked; `is_symmetric()` finds out.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 1], [1, 0])
        >>> A.symmetric, A.is_symmetric(), A.symmetric
        (None, True, True)
        """,
    }

    def __init__(self, x: MatrixLike) -> None:
        from spgraph.containers.argument import matrix_of

        made = matrix_of(x)
        self._begin()
        self._become(made)

    @classmethod
    def _of(
        cls,
        nrows: int,
        ncols: int,
        indptr: Array,
        indices: Array,
        values: Array,
        *,
        iso: bool = False,
        symmetric: bool | None = None,
    ) -> Self:
        """The Matrix of these arrays, which are trusted: neither checked nor copied."""
        A = object.__new__(cls)
        A.nrows = nrows
        A.ncols = ncols
        A._indptr = writable(indptr)
        A._indices = writable(indices)
        A._values = writable(values)
        A.iso = iso
        A.symmetric = symmetric if nrows == ncols else False
        # True for a Matrix that one call made from a foreign object: nothing it caches is ever used
        # again
        A._transient = False
        A._begin()
        return A

    # --- what it is -------------------------------------------------------------------------------

    @property
    def indptr(self) -> Array:
        """Where each row begins among the entries, and how many there are: nrows + 1 offsets.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 0, 2], [0, 1, 1], [1, 2, 5])
        >>> A.indptr.tolist()
        [0, 2, 2, 3]
        """
        return read_only(self._indptr)

    @property
    def indices(self) -> Array:
        """The column of every entry.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 0, 2], [0, 1, 1], [1, 2, 5])
        >>> A.indices.tolist()
        [0, 1, 1]
        """
        return read_only(self._indices)

    @property
    def values(self) -> Array:
        """The value of every entry; of an iso matrix the one of all.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 0, 2], [0, 1, 1], [1, 2, 5])
        >>> A.values.tolist(), A.pattern().values.tolist()
        ([1, 2, 5], [True])
        """
        return read_only(self._values)

    @property
    def shape(self) -> tuple[int, int]:
        """(nrows, ncols).

        >>> import spgraph as sg
        >>> sg.Matrix.from_dense([[1, 2, 0]]).shape
        (1, 3)
        """
        return (self.nrows, self.ncols)

    @property
    def nvals(self) -> int:
        """How many entries are stored.

        >>> import spgraph as sg
        >>> sg.Matrix.from_coo([0, 0, 2], [0, 1, 1]).nvals
        3
        """
        kept = self if self._source is None else self._with_arrays
        return kept._indices.size

    @property
    def dtype(self) -> np.dtype:
        """The type of the values.

        >>> import spgraph as sg
        >>> sg.Matrix.from_coo([0], [1]).dtype, sg.Matrix.from_coo([0], [1], 2.5).dtype
        (dtype('bool'), dtype('float64'))
        """
        kept = self if self._source is None else self._with_arrays
        return kept._values.dtype

    @property
    def index_dtype(self) -> np.dtype:
        """The type of the ids of columns, and so of the vertices of a graph.

        >>> import spgraph as sg
        >>> sg.Matrix.empty(3, 3).index_dtype
        dtype('int32')
        """
        if self._source is None or self._has_arrays:
            return self._indices.dtype
        return index_dtype(max(self.shape))

    @property
    def device(self) -> Any:
        """'cpu', or 'cuda:0' and so on; of a distributed one its Placement.

        >>> import spgraph as sg
        >>> A = sg.Matrix.empty(3, 3)
        >>> A.device, sg.Vector.empty(3, device=A.device).device
        ('cpu', 'cpu')
        """
        kept = self if self._source is None else self._with_arrays
        return device_of(kept._indices)

    @property
    def nbytes(self) -> int:
        """Bytes of the three CSR arrays; what is cached beside them (the transpose) is not
        counted.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 0, 2], [0, 1, 1], [1, 2, 5])
        >>> A.nbytes == A.indptr.nbytes + A.indices.nbytes + A.values.nbytes
        True
        """
        return self._indptr.nbytes + self._indices.nbytes + self._values.nbytes

    @property
    def S(self) -> Mask:
        """The mask of the stored entries.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 1, 2], [1, 2, 0])
        >>> sg.mxm(A, A, mask=A.S).nvals, sg.mxm(A, A, mask=~A.S).nvals
        (0, 3)
        """
        return Mask(self, structure=True)

    @property
    def V(self) -> Mask:
        """The mask of the stored entries that are true.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 0, 2], [0, 1, 1], [1, 2, 5])
        >>> A[(A > 1).V].to_coo()[2].tolist()
        [2, 5]
        """
        return Mask(self, structure=False)

    # --- what is derived once and kept ------------------------------------------------------------

    def is_symmetric(self) -> bool:
        """Whether A equals its transpose, entries and values, where 0.0 and -0.0 are two; tested
        once (by making the transpose), then known.

        >>> import spgraph as sg
        >>> sg.Matrix.from_coo([0, 1], [1, 0]).is_symmetric()
        True
        """
        if self.symmetric is None:
            T = self.T
            with on_device(self.device):
                same = bool((self._indptr == T._indptr).all())
                same = same and bool((self._indices == T._indices).all())
                same = same and (self.iso or bool(same_numbers(self._values, T._values).all()))
            self._decide(T, same)
        return bool(self.symmetric)

    def _nonempty_rows(self) -> Array:
        """One bit a row, set where the row has an entry (packed as `arrays.pack_bits` does);
        kept.
        """
        if "nonempty" not in self._derived:
            with on_device(self.device):
                self._keep("nonempty", pack_bits(self._indptr[1:] > self._indptr[:-1]))
        return self._derived["nonempty"]

    def _nonempty_count(self) -> int:
        """How many rows have an entry; kept."""
        if "nonempty_count" not in self._derived:
            with on_device(self.device):
                self._derived["nonempty_count"] = count_bits(self._nonempty_rows())
        return self._derived["nonempty_count"]

    # --- copies -----------------------------------------------------------------------------------

    @on_its_device
    def dup(self, dtype: DType | None = None) -> Matrix:
        """A copy that shares nothing, with values of type `dtype` (see `astype`) if given.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 0, 2], [0, 1, 1], [1, 2, 5])
        >>> B = A.dup("float32")
        >>> B[0, 0] = 9
        >>> B.dtype, int(A[0, 0])
        (dtype('float32'), 1)
        """
        values = converted(self._values, self.dtype if dtype is None else value_dtype(dtype))
        arrays = self._indptr.copy(), self._indices.copy(), values
        # values that differed may be equal in another type
        symmetric = self.symmetric if dtype is None else self.symmetric or None
        return Matrix._of(self.nrows, self.ncols, *arrays, iso=self.iso, symmetric=symmetric)

    copy = dup

    def _become(self, other: Matrix) -> None:
        """Take over the arrays of `other` (the last step of an operation that writes `out`)."""
        self._check_written()
        view = self._living_view()
        if view is not None:  # it stays the transpose of what was here
            arrays, known = (self._indptr, self._indices, self._values), self.symmetric
            view._follow(Matrix._of(*self.shape, *arrays, iso=self.iso, symmetric=known))
        # nothing is called between the first and the last, so that no signal handler comes between
        (self.nrows, self.ncols, self._indptr, self._indices, self._values, self.iso) = (
            other.nrows, other.ncols, other._indptr, other._indices, other._values, other.iso
        )  # fmt: skip
        self.symmetric, self._transient = other.symmetric, False
        self._source, self._view, self._derived = None, None, {}

    # --- for Python -------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[tuple[int, int, Any]]:
        """(row, column, value) of every entry, row by row."""
        return each_entry(self.to_coo())

    def __getstate__(self) -> dict[str, Any]:
        arrays = {"indptr": self._indptr, "indices": self._indices, "values": self._values}
        names = ("nrows", "ncols", "iso", "symmetric")
        return arrays | {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._begin()
        self._become(Matrix._of(**state))

    # --- for people -------------------------------------------------------------------------------

    def __bool__(self) -> bool:
        raise TypeError("a Matrix has no truth value; compare .nvals")
