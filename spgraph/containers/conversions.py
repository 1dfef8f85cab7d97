"""Matrices from other libraries' objects, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spgraph.containers.arrays import Array, array_module, index_dtype
from spgraph.containers.vector import value_dtype
from spgraph.errors import DomainMismatch

if TYPE_CHECKING:
    from spgraph.containers.matrix import Matrix


class MatrixConversions:
    """The from_* and to_* of a Matrix, whose base this is."""

    __slots__ = ()

    @classmethod
    def from_scipy(cls: Any, S: Any, *, symmetric: bool | None = None) -> Matrix:
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
    def from_dense(cls: Any, array: Array, *, missing: Any = 0) -> Matrix:
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
        places = xp.flatnonzero(present)
        columns = (places % max(array.shape[1], 1)).astype(index_dtype(max(array.shape)))
        values = array.ravel()[places].astype(dtype, copy=False)
        return cls(array.shape[0], array.shape[1], indptr, columns, values)

    @classmethod
    def from_networkx(
        cls: Any, G: Any, *, nodelist: Any = None, weight: str | None = "weight"
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
        kind = index_dtype(max(S.nnz, *S.shape))  # NetworkX gives 64 bits, whatever the size
        S.indptr, S.indices = S.indptr.astype(kind), S.indices.astype(kind)
        A = cls.from_scipy(S, symmetric=True if not G.is_directed() else None)
        return A if weight is not None else A.pattern()

    def to_scipy(self: Any) -> Any:
        """A scipy.sparse.csr_array of the same entries; it shares the arrays of a CPU Matrix where
        the types allow it.
        """
        import scipy.sparse

        A = self.to("cpu")
        return scipy.sparse.csr_array((A.expanded_values(), A._indices, A._indptr), shape=A.shape)

    def to_cupyx(self: Any) -> Any:
        """A cupyx.scipy.sparse.csr_matrix of the same entries; integer values become float64, the
        type CuPy has.
        """
        A = self.to(self.device if self.device != "cpu" else "cuda")
        import cupyx.scipy.sparse

        values = A.expanded_values()
        values = values if values.dtype.kind in "bf" else values.astype(np.float64)
        return cupyx.scipy.sparse.csr_matrix((values, A._indices, A._indptr), shape=A.shape)
