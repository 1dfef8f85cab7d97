"""Containers from other libraries' objects, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spgraph.containers.annotations import DType, Scalar, SparseArray
from spgraph.containers.interchange.libraries import scipy_sparse
from spgraph.containers.memory import copying
from spgraph.containers.methods.parts import MatrixParts, VectorParts
from spgraph.containers.sparray.lines import plain
from spgraph.containers.storage.arrays import (
    Array,
    array_module,
    as_array,
    check_device,
    device_of,
    index_dtype,
    is_cuda,
    move,
    on_device,
    on_its_device,
    read_only,
    unpack_bits,
)
from spgraph.containers.storage.casting import differs, dtype_beside
from spgraph.containers.storage.compressed import (
    ascends,
    check_other,
    check_sums,
    checked,
    without_duplicates,
)
from spgraph.containers.storage.numbers import flags, flags_or_none
from spgraph.containers.storage.selection import compress
from spgraph.containers.storage.values import value_dtype
from spgraph.errors import DomainMismatch
from spgraph.process import lazy_imports

if TYPE_CHECKING:
    from spgraph.containers.matrix import Matrix
    from spgraph.containers.vector import Vector


# elements from which compiling a kernel pays that finds the entries of an array
MANY = 1 << 20


class VectorConversions(VectorParts):
    """The to_* of a Vector, whose base this is."""

    __slots__ = ()

    @on_its_device
    def to_coo(self) -> tuple[Array, Array]:
        """(indices, values): copies on the vector's device, indices ascending.

        >>> import spgraph as sg
        >>> v = sg.Vector.from_coo([4, 1], [2.5, 1.0], size=6)
        >>> [part.tolist() for part in v.to_coo()]
        [[1, 4], [1.0, 2.5]]
        """
        v: Vector = self.to_sparse()
        return v._indices.copy(), v._values.copy()  # type: ignore[union-attr]

    def to_numpy(self, fill: Scalar | None = None) -> np.ndarray:
        """A new NumPy array of length `size`, with `fill` where there is no entry.

        Its type is the Vector's where that holds `fill`, else promoted as NumPy promotes: integers
        of 64 bits beside NaN become float64. Raises ValueError where that would round one of them,
        as it may beyond 2**53, and when a position is empty and no `fill` was given: a silent 0
        would look like data.

        >>> import spgraph as sg
        >>> sg.Vector.from_coo([1], [5], size=3).to_numpy(fill=-1).tolist()
        [-1, 5, -1]
        """
        return move(self._dense(fill), "cpu")

    def to_cupy(self, fill: Scalar | None = None) -> Array:
        """As `to_numpy`, with `fill` as there, a CuPy array on the vector's device (or on the
        current one for a CPU vector).

        >>> import spgraph as sg
        >>> sg.Vector.arange(2).to_cupy().tolist()  # doctest: +SKIP
        [0, 1]
        """
        return move(
            self._dense(fill), self.device if self.device != "cpu" else check_device("cuda")
        )

    @on_its_device
    def _dense(self, fill: Scalar | None) -> Array:
        if self.nvals == self.size:
            return self.to_bitmap()._values.copy()
        if fill is None:
            raise ValueError(
                f"fill: the Vector has {self.nvals} entries in {self.size} positions; "
                "say what stands in the empty ones, for example to_numpy(fill=-1)"
            )
        xp = array_module(self._values)
        if self._bits is None:
            dense = xp.full(self.size, fill, dtype_beside(self._values, fill))
            dense[self._indices] = self._values
            return dense
        present = unpack_bits(self._bits, self.size)
        kind = dtype_beside(self._values, fill, present)
        return xp.where(present, self._values, xp.full(1, fill, kind))  # CuPy writes -0.0 as 0.0

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _by_numpy(function, args, kwargs)

    def __array__(self, dtype: DType | None = None, copy: bool | None = None) -> np.ndarray:
        if self.device != "cpu":
            where = f"on {self.device}" if isinstance(self.device, str) else "distributed"
            raise TypeError(
                f"the Vector is {where}: NumPy gets no copy from another device unasked; "
                ".to_numpy() copies it to the CPU; on a GPU .to_cupy() makes an array, and "
                "cupy.from_dlpack shares a full Vector's memory"
            )
        values = self._complete()
        if copy is not False:
            return values.astype(self.dtype if dtype is None else dtype)
        if dtype is not None and np.dtype(dtype) != self.dtype:
            raise ValueError(
                f"copy=False: an array of {np.dtype(dtype)} needs a copy of a Vector of "
                f"{self.dtype}"
            )
        return read_only(values)

    # What `__cuda_array_interface__` gives away is an address that lives as long as the object it
    # was asked of. A Vector may take over other arrays while it lives, so it offers DLPack, which
    # keeps the array itself; the array `values` offers both.

    def __dlpack__(self, **options: Any) -> Any:
        array = plain(self)._complete()
        if (options.get("max_version") or (0, 0)) >= (1, 0):  # those before cannot be read-only
            array = read_only(array)
        return array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return plain(self)._values.__dlpack_device__()

    def _complete(self) -> Array:
        """The values of all positions, without a copy; ValueError where one is empty."""
        if self.nvals != self.size:
            raise ValueError(
                f"the Vector has {self.nvals} entries in {self.size} positions; one with empty "
                "positions has no array to share, say what stands there to make one, for example "
                "to_numpy(fill=-1) or to_cupy(fill=-1)"
            )
        return self._values


class MatrixConversions(MatrixParts):
    """The from_* and to_* of a Matrix, whose base this is."""

    __slots__ = ()

    @classmethod
    def from_scipy(
        cls: Any, S: SparseArray, *, symmetric: bool | None = None, copy: bool = True
    ) -> Matrix:
        """The Matrix of `S`, a SciPy sparse array or matrix of any format; its explicit zeros are
        entries, duplicate entries are summed, as SciPy means them (OverflowError for a sum of
        integers that their type does not hold).

        The arrays are copied. `copy=False` borrows those of a CSR without duplicates whose columns
        ascend, and needs no memory. Then S must not be changed as long as the Matrix lives, because
        the Matrix keeps derived data (its transpose, the range of its values). The arrays are
        checked in either case, in one pass that takes about a fifth of the time of the copy:
        FormatError where offsets do not ascend or an index is out of range. `symmetric=True`
        asserts, unchecked, that A equals its transpose; None leaves it to be tested when needed.

        >>> import scipy.sparse, spgraph as sg
        >>> S = scipy.sparse.csr_array([[0, 2.0], [2.0, 0]])
        >>> A, B = sg.Matrix.from_scipy(S), sg.Matrix.from_scipy(S, copy=False)
        >>> S.data[:] = 7  # changes B as well, which must not be used any more
        >>> A.values.tolist()
        [2.0, 2.0]
        """
        flags("from_scipy", copy=copy)
        flags_or_none("from_scipy", symmetric=symmetric)
        if not hasattr(S, "tocsr"):
            raise DomainMismatch(
                f"S: expected a SciPy or CuPy sparse array or matrix, got {type(S).__name__}; "
                "Matrix.from_dense takes arrays"
            )
        with on_device(device_of(getattr(S, "data", None))):  # that of a CuPy sparse matrix
            return cls._from_csr(S, symmetric, copy)

    @classmethod
    def _from_csr(cls: Any, S: Any, symmetric: bool | None, copy: bool) -> Matrix:
        """`from_scipy` of what has rows in CSR."""
        csr, sparse_format = S, getattr(S, "format", None)
        if len(S.shape) != 2:
            remedy = "; Vector(S) takes 1" if len(S.shape) == 1 else ""
            raise DomainMismatch(f"S: expected 2 dimensions, got {len(S.shape)}{remedy}")
        if sparse_format != "csr":
            check_other("from_scipy", S)
            csr = S.tocsr()
        dtype = value_dtype(csr.dtype)
        nrows, ncols = csr.shape
        arrays = checked("from_scipy", csr, nrows, ncols)
        if not ascends(*arrays[:2]):
            with copying("from_scipy", "S", arrays):
                fresh = without_duplicates(csr, arrays)
            arrays = checked("from_scipy", fresh, nrows, ncols)
        elif copy and (csr is S or sparse_format is None):
            with copying("from_scipy", "S", arrays):
                arrays = tuple(array.copy() for array in arrays)
        indptr, indices, data = arrays
        check_sums("from_scipy", S, data)
        data = data if data.dtype == dtype else data.astype(dtype)
        return cls._of(nrows, ncols, indptr, indices, data, symmetric=symmetric)

    from_cupyx = from_scipy

    @classmethod
    def from_dense(cls: Any, array: Array, *, missing: Scalar | None = 0) -> Matrix:
        """The entries of a 2-D NumPy or CuPy `array` that differ from `missing` (None: all of
        them).

        >>> import spgraph as sg
        >>> sg.Matrix.from_dense([[0, 1], [0, 0]]).nvals
        1
        """
        array = as_array("from_dense", array)
        if array.ndim != 2:
            remedy = "; a Vector is made of 1" if array.ndim == 1 else ""
            raise DomainMismatch(
                f"from_dense: array: expected 2 dimensions, got {array.ndim}{remedy}"
            )
        with on_device(device_of(array)) as xp:
            dtype = value_dtype(array.dtype)
            if missing is None:
                present = xp.ones(array.shape, bool)
            else:
                present = differs(array, missing)
            indptr, columns, values = _present_entries(array, present, dtype)
        return cls._of(array.shape[0], array.shape[1], indptr, columns, values)

    def expanded_values(self) -> Array:
        """The values, one per entry: a view as `values` is; a new array where the matrix is iso.

        >>> import spgraph as sg
        >>> sg.Matrix.from_coo([0, 1], [1, 0], 7).expanded_values().tolist()
        [7, 7]
        """
        return self._expanded_values() if self.iso else self.values

    @on_its_device
    def _expanded_values(self) -> Array:
        if not self.iso:
            return self._values
        return array_module(self._indices).full(self.nvals, self._values[0])

    @on_its_device
    def row_indices(self) -> Array:
        """The row of every entry, of the type of `indices`.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 0, 2], [0, 1, 1], [1, 2, 5])
        >>> A.row_indices().tolist()
        [0, 0, 2]
        """
        dtype = self._indices.dtype
        if not is_cuda(self._indices):
            return np.repeat(np.arange(self.nrows, dtype=dtype), np.diff(self._indptr))
        # cupy.repeat takes no array of counts: a mark where a row begins, and a running sum
        xp = array_module(self._indices)
        marks = xp.zeros(self.nvals, np.dtype(f"u{dtype.itemsize}"))
        starts = self._indptr[1:-1]
        xp.add.at(marks, compress(starts < self.nvals, starts), marks.dtype.type(1))
        return xp.cumsum(marks, dtype=marks.dtype).view(dtype)

    @on_its_device
    def to_coo(self) -> tuple[Array, Array, Array]:
        """(rows, columns, values): copies on the matrix's device, row by row, columns ascending.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 0, 2], [0, 1, 1], [1, 2, 5])
        >>> [part.tolist() for part in A.to_coo()]
        [[0, 0, 2], [0, 1, 1], [1, 2, 5]]
        """
        values = self._expanded_values()
        return self.row_indices(), self._indices.copy(), values if self.iso else values.copy()

    def to_scipy(self, *, copy: bool = True) -> Any:
        """A scipy.sparse.csr_array of the same entries.

        Its arrays are copies. `copy=False` shares those of a Matrix on the CPU where the types
        allow it. Do not write into these: the Matrix would change, and its cached transpose and
        other derived data would become wrong.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 0, 2], [0, 1, 1], [1, 2, 5])
        >>> A.to_scipy().sum(axis=1).tolist()
        [3, 0, 5]
        """
        flags("to_scipy", copy=copy)
        A = self.to("cpu")
        arrays = A._arrays_of_csr("to_scipy", copy and A is self)
        return scipy_sparse().csr_array(arrays, shape=A.shape)

    def to_cupyx(self, *, copy: bool = True) -> Any:
        """A cupyx.scipy.sparse.csr_matrix of the same entries; integer values become float64, the
        type CuPy has.

        Its arrays are copies; `copy=False` shares those of a Matrix on CUDA where the types allow
        it, as with `to_scipy`.

        >>> import spgraph as sg
        >>> sg.Matrix.from_coo([0], [1]).to_cupyx().shape  # doctest: +SKIP
        (1, 2)
        """
        flags("to_cupyx", copy=copy)
        A = self.to(self.device if self.device != "cpu" else "cuda")
        with lazy_imports.whole():
            import cupyx.scipy.sparse

        values, indices, indptr = A._arrays_of_csr("to_cupyx", copy and A is self)
        values = values if values.dtype.kind in "bf" else values.astype(np.float64)
        return cupyx.scipy.sparse.csr_matrix((values, indices, indptr), shape=A.shape)

    def to_dense(self, fill: Scalar = 0) -> Array:
        """A new array of nrows x ncols, with `fill` where there is no entry: of NumPy, for a Matrix
        on CUDA of CuPy on its device.

        Its type is the Matrix's where that holds `fill`, else promoted as NumPy promotes;
        ValueError where that would round an integer of 64 bits, as float64 beside NaN may.

        >>> import spgraph as sg
        >>> sg.Matrix.from_coo([0, 1], [1, 0], [3, 4]).to_dense(fill=-1).tolist()
        [[-1, 3], [4, -1]]
        """
        with on_device(self.device) as xp:
            dtype = dtype_beside(self._values[: self.nvals], fill)
            try:
                dense = xp.empty(self.shape, dtype)
            except (MemoryError, ValueError) as error:  # ValueError: more than can be addressed
                raise MemoryError(
                    f"to_dense: no memory for {self.nrows} x {self.ncols} values of {dtype}, "
                    f"{self.nrows * self.ncols * dtype.itemsize} bytes; .to_scipy() stays sparse"
                ) from error
            dense[...] = xp.full(1, fill, dtype)  # CuPy writes a number -0.0 as 0.0
            dense[self.row_indices(), self._indices] = self._values
        return dense

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _by_numpy(function, args, kwargs)

    def __array__(self, dtype: DType | None = None, copy: bool | None = None) -> np.ndarray:
        raise TypeError(
            f"a Matrix of {self.nrows} x {self.ncols} is no array: "
            ".to_dense(fill=0) makes one, and .to_scipy() a sparse one; beside a sparse array of "
            "SciPy the Matrix comes first, A * S, and sg.mxm(S, A) is the product S A; of a "
            "column or table of pandas take the array, s.to_numpy() @ A"
        )

    def _arrays_of_csr(self, name: str, copy: bool) -> tuple[Array, Array, Array]:
        """(values, indices, indptr), one value an entry."""
        arrays = self._expanded_values(), self._indices, self._indptr
        if not copy:
            return arrays
        with copying(name, "the Matrix", arrays):
            values = arrays[0] if self.iso else arrays[0].copy()
            return values, self._indices.copy(), self._indptr.copy()


def _present_entries(array: Array, present: Array, dtype: np.dtype) -> tuple[Array, Array, Array]:
    """(indptr, columns, values) of the elements of a 2-D array that are present, row by row."""
    (rows, width), xp = array.shape, array_module(array)
    if not is_cuda(array) and array.size >= MANY:
        from spgraph.steps import backend

        return backend("cpu").dense_entries(array.astype(dtype, copy=False), present)
    indptr = xp.zeros(rows + 1, index_dtype(array.size))
    xp.cumsum(present.sum(axis=1), out=indptr[1:])
    places = xp.flatnonzero(present)
    columns = (places % max(width, 1)).astype(index_dtype(max(rows, width)))
    return indptr, columns, array.ravel()[places].astype(dtype, copy=False)


def _by_numpy(function: Any, args: Any, kwargs: Any) -> Any:
    """What NumPy's own code makes of containers; but its tests of equality take each error for
    False, so that what is no array is found out before.
    """
    if function in (np.array_equal, np.array_equiv):
        for given in (*args, *kwargs.values()):
            try:
                np.asarray(given)
            except (TypeError, ValueError) as error:
                raise TypeError(
                    f"numpy.{function.__name__}: expected arrays, got {type(given).__name__}; "
                    "A.isequal(B) compares entries, and .toarray() makes an array"
                ) from error
    return function._implementation(*args, **kwargs)
