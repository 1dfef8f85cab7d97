"""Convert the arguments of `spgraph.csgraph`'s functions to compressed rows, on their device."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse

from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import Array, device_of, is_cuda, writable
from spgraph.containers.storage.compressed import ascends, check_other, checked
from spgraph.containers.storage.masked import refuse_masked
from spgraph.csgraph.conversions import csgraph_from_dense, csgraph_from_masked
from spgraph.csgraph.kinds import from_matrix, is_gpu, is_pydata, is_sparse
from spgraph.errors import BackendUnavailable
from spgraph.semirings import binary
from spgraph.steps import backend

# types of lengths that kernels read; others are converted to float64, as SciPy does with all
LENGTHS = tuple(map(np.dtype, ("float64", "float32", "int32", "int64")))
# edges below which SciPy's transpose, by one thread, is faster than ours
FEW = 1 << 20
# stands for "no vertex"
NULL = -9999


class Rows(NamedTuple):
    """The out-edges of every vertex as compressed rows, unsorted and with parallel edges allowed;
    the arrays are those of the argument if possible. `kind` is the class of the results: the
    compressed rows of the argument's library.
    """

    n: int
    indptr: Array
    indices: Array
    values: Array
    kind: type

    @property
    def on_gpu(self) -> bool:
        return is_cuda(self.indices)

    def matrix(self) -> Matrix:
        """A Matrix of the same arrays, to be used during this call only."""
        made = Matrix._of(self.n, self.n, self.indptr, self.indices, self.values)
        made._transient = True
        return made

    def ascend(self) -> bool:
        """Whether the columns of every row are strictly ascending."""
        if self.indices.size < 2:
            return True
        rises = self.indices[1:] > self.indices[:-1]
        starts = self.indptr[1:-1]
        rises[starts[(starts > 0) & (starts < self.indices.size)] - 1] = True
        return bool(rises.all())

    def canonical(self, values: Array) -> Matrix:
        """The Matrix with other values and strictly ascending rows; of parallel edges the least
        value counts.
        """
        made = self._replace(values=values).matrix()
        if not self.ascend():
            parts = made.row_indices(), made._indices, values
            made = Matrix.from_coo(*parts, nrows=self.n, ncols=self.n, dup_op=binary.min)
            made._transient = True
        return made

    def arrays(self) -> tuple[Array, Array, Array]:
        """(indptr, indices, values)."""
        return self.indptr, self.indices, self.values

    def lengths(self) -> Array:
        """The values in a type that kernels read."""
        values = self.values
        return values if values.dtype in LENGTHS else values.astype(np.float64)

    def transposed(self, values: bool = True) -> Rows:
        """The in-edges of every vertex, stably sorted; with their lengths, or one value for all."""
        if not self.on_gpu and self.indices.size < FEW:
            data = self.lengths() if values else np.zeros(self.indices.size, np.int8)
            shape = (self.n, self.n)
            made = scipy.sparse.csr_array((data, self.indices, self.indptr), shape=shape).tocsc()
            return Rows(self.n, made.indptr, made.indices, made.data, self.kind)
        A = self._replace(values=self.lengths()).matrix() if values else self.matrix().pattern()
        T = backend(A.device).transpose(A)
        return Rows(self.n, T._indptr, T._indices, T._values, self.kind)

    def summed(self) -> Rows:
        """The same with rows that ascend, of parallel edges the sum in float64."""
        values = self.values.astype(np.float64)
        made = self.build(self.indptr.copy(), self.indices.copy(), values)
        made.sum_duplicates()
        indptr, indices, data = map(writable, (made.indptr, made.indices, made.data))
        return Rows(self.n, indptr, indices, data, self.kind)

    def build(self, indptr: Array, indices: Array, values: Array) -> Any:
        """A result of class `kind`."""
        return self.kind((values, indices, indptr), shape=(self.n, self.n))


def rows_of(csgraph: Any, directed: bool = True) -> Rows:
    """The edges of a graph in any form that SciPy accepts; ValueError if it is not square."""
    csr = as_csr(csgraph, directed)
    indptr, indices, values = map(writable, checked("csgraph", csr, *csr.shape))
    if values.dtype.kind == "c":
        values = values.astype(np.float64)  # with NumPy's warning that imaginary parts are lost
    rows = Rows(csr.shape[0], indptr, indices, values, type(csr))
    # SciPy converts other types to float64, and sorts rows and adds up parallel edges in doing so
    converted = csr.dtype != np.float64 and not ascends(indptr, indices)
    return rows.summed() if converted else rows


def as_csr(csgraph: Any, directed: bool = True) -> Any:
    """The graph as compressed rows of SciPy or CuPy; unchanged if it is that already."""
    csgraph = known(csgraph)
    if is_sparse(csgraph):
        if csgraph.ndim != 2:
            raise ValueError("compressed-sparse graph must be 2-D")
        # in an undirected graph columns serve as well as rows
        if not directed and csgraph.format == "csc":
            csgraph = csgraph.T
        if csgraph.format != "csr":
            check_other("csgraph", csgraph)
        csr = csgraph.tocsr()
        if csgraph.format == "bsr":  # what fills its blocks is no edge, as for SciPy from 1.18 on
            csr.eliminate_zeros()
    elif np.ma.isMaskedArray(csgraph):
        csr = csgraph_from_masked(csgraph)
    else:
        csr = csgraph_from_dense(csgraph)
    if csr.shape[0] != csr.shape[1]:
        raise ValueError(
            f"compressed-sparse graph must be shape (N, N), got {csr.shape[0]} x {csr.shape[1]}"
        )
    return csr


def known(csgraph: Any) -> Any:
    """A Matrix, and an array of the package `sparse` (PyData), as a sparse array of SciPy or CuPy;
    anything else unchanged.

    The fill value of an array of `sparse` may be 0, infinity or NaN.
    """
    if not is_pydata(csgraph):
        return from_matrix(csgraph)
    fill = csgraph.fill_value
    if not (fill == 0 or fill != fill or np.isinf(fill)):
        raise ValueError(f"expected a fill value of 0, infinity or NaN, got {fill}")
    coo = csgraph.asformat("coo")
    made = scipy.sparse.coo_array((coo.data, tuple(coo.coords)), shape=coo.shape)
    return made.tocsr()


def like(csgraph: Any, result: Any) -> Any:
    """The result as an array of the package `sparse` if the argument is one."""
    if not is_pydata(csgraph):
        return result
    made = type(csgraph).from_scipy_sparse(result)
    if csgraph.fill_value != 0 and hasattr(made, "fill_value"):
        made.fill_value = made.data.dtype.type(csgraph.fill_value)
    return made


def traversals(array: Array) -> ModuleType:
    """The module `traversals` of the backend for the array's device."""
    device = device_of(array)
    found = getattr(backend(device), "traversals", None)
    if found is None:
        raise BackendUnavailable(
            f"csgraph: the backend of device {device!r} has no traversals; "
            "give the graph on the CPU or on a CUDA device"
        )
    return found


def vertices_of(indices: npt.ArrayLike | None, n: int) -> tuple[np.ndarray, tuple[int, ...]]:
    """(`indices` as a 1-D array of vertices >= 0, their original shape); None stands for all."""
    if indices is None:
        return np.arange(n, dtype=np.int32), (n,)
    given: Any = indices
    if is_gpu(given):
        given = given.get()
    refuse_masked("indices", given)
    found = np.asarray(given)
    if found.dtype.kind not in "biuf":  # Python's long integers
        found = np.array(given, dtype=np.int32)
    # before the conversion, which takes 2**32 + 1 for 1 and, as in SciPy, the whole part of floats
    if not np.all((found >= -n) & (found < n)):
        raise ValueError(f"indices out of range 0...N: expected -{n} <= indices < {n}")
    ids = np.atleast_1d(found).astype(np.int32).reshape(-1)
    ids[ids < 0] += n
    return ids, found.shape
