"""Conversions of graphs between dense arrays, masked arrays and compressed rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import Array, array_module
from spgraph.containers.storage.compressed import ascends, check_other, checked
from spgraph.csgraph.kinds import flags, from_matrix, is_gpu, is_sparse
from spgraph.semirings import binary

# how numpy.ma.masked_values compares
ABSOLUTE, RELATIVE = 1e-8, 1e-5


def csgraph_from_dense(
    graph: Any, null_value: float | None = 0, nan_null: bool = True, infinity_null: bool = True
) -> Any:
    """The compressed rows of a dense graph, of type float64: a csr_array, for an np.matrix a
    csr_matrix, and for a CuPy array CuPy's csr_matrix.

    `graph` is N x N. Not edges are entries equal to `null_value` (within 1e-8, as in
    numpy.ma.masked_values; None: no value), NaN if `nan_null`, and infinite ones if
    `infinity_null`. Raises ValueError for an array that is not square.

    >>> from spgraph.csgraph import csgraph_from_dense
    >>> csgraph_from_dense([[0, 1], [2, 0]]).data
    array([1., 2.])
    """
    flags("csgraph_from_dense", nan_null=nan_null, infinity_null=infinity_null)
    if hasattr(graph, "__cuda_array_interface__"):
        return _from_cupy(graph, null_value, nan_null, infinity_null)
    masked = csgraph_masked_from_dense(graph, null_value, nan_null, infinity_null, copy=False)
    csr = csgraph_from_masked(masked)
    return scipy.sparse.csr_matrix(csr) if isinstance(graph, np.matrix) else csr


def csgraph_from_masked(graph: Any) -> Any:
    """The compressed rows of a masked array `graph`, a csr_array of float64; masked entries are not
    edges. Raises ValueError for an array that is not square.

    >>> import numpy as np
    >>> from spgraph.csgraph import csgraph_from_masked
    >>> csgraph_from_masked(np.ma.masked_equal([[0, 1], [2, 0]], 0)).indices
    array([1, 0], dtype=int32)
    """
    graph = np.ma.asarray(graph)
    n = _square(graph)
    present = ~np.asarray(np.ma.getmaskarray(graph))
    places = np.flatnonzero(present)
    counts = np.count_nonzero(present, axis=1)
    data = np.take(np.asarray(graph.data), places).astype(np.float64, copy=False)
    columns = (places - np.repeat(np.arange(0, n * n, n or 1), counts)).astype(np.int32)
    indptr = np.zeros(n + 1, np.int32)
    np.cumsum(counts, out=indptr[1:])
    return scipy.sparse.csr_array((data, columns, indptr), shape=(n, n))


def csgraph_masked_from_dense(
    graph: Any,
    null_value: float | None = 0,
    nan_null: bool = True,
    infinity_null: bool = True,
    copy: bool = True,
) -> Any:
    """A masked array of a dense graph: entries equal to `null_value` (within 1e-8, as in
    numpy.ma.masked_values; None: no value), NaN if `nan_null`, and infinite ones if
    `infinity_null` are masked. With `copy=False` it shares the memory of `graph` if possible; an
    existing mask of `graph` is ignored.

    Raises ValueError for an array that is not square, TypeError for one on a GPU: CuPy has no
    masked arrays.

    >>> from spgraph.csgraph import csgraph_masked_from_dense
    >>> csgraph_masked_from_dense([[0, 1], [2, 0]]).mask.tolist()
    [[True, False], [False, True]]
    """
    flags("csgraph_masked_from_dense", nan_null=nan_null, infinity_null=infinity_null, copy=copy)
    _refuse_gpu("csgraph_masked_from_dense: graph", graph)
    graph = np.array(graph, copy=True if copy else None)
    _square(graph)
    if null_value is not None:
        null_value = np.float64(null_value)
        if np.isnan(null_value):
            nan_null, null_value = True, None
        elif np.isinf(null_value):
            infinity_null, null_value = True, None
    if null_value is None:
        mask = np.zeros(graph.shape, bool)
    elif np.issubdtype(graph.dtype, np.floating):
        mask = abs(graph - null_value) <= ABSOLUTE + RELATIVE * abs(null_value)
    else:
        mask = graph == null_value
    if infinity_null and nan_null:
        mask |= ~np.isfinite(graph)
    elif infinity_null:
        mask |= np.isinf(graph)
    elif nan_null:
        mask |= np.isnan(graph)
    return np.ma.masked_array(graph, mask, fill_value=null_value, copy=False)


def csgraph_to_dense(csgraph: Any, null_value: float | None = 0) -> Array:
    """The N x N array of float64 of a sparse graph `csgraph` in the format csr, csc or lil, on its
    device, with `null_value` where there is no edge.

    Of parallel edges the least counts; NaN becomes infinity. An edge of length zero is kept. Raises
    ValueError for other formats, whose conversion would add up parallel edges, and for a graph that
    is not square.

    >>> import numpy as np, scipy.sparse
    >>> from spgraph.csgraph import csgraph_to_dense
    >>> S = scipy.sparse.csr_array((np.array([3, 2]), np.array([1, 1]), np.array([0, 2, 2])))
    >>> S.resize(2, 2)
    >>> csgraph_to_dense(S, np.inf)
    array([[inf,  2.],
           [inf, inf]])
    """
    csgraph = from_matrix(csgraph)
    if not is_sparse(csgraph):
        raise ValueError("csgraph must be sparse")
    if csgraph.format not in ("lil", "csr", "csc"):
        raise ValueError(f"csgraph must be lil, csr, or csc format, got {csgraph.format}")
    n = csgraph.shape[0]
    if csgraph.shape[1] != n:
        raise ValueError("csgraph should be a square matrix")
    if csgraph.format != "csr":
        check_other("csgraph_to_dense", csgraph)
    csr = csgraph.tocsr()
    if is_gpu(csgraph):
        return _to_cupy(csr, n, null_value)
    indptr, indices, data = checked("csgraph_to_dense", csr, n, n)
    data = data.astype(np.float64, copy=False)
    places = np.repeat(np.arange(n) * n, np.diff(indptr)) + indices
    unknown = np.isnan(data)
    if unknown.any():
        data = np.where(unknown, np.inf, data)
    dense = np.full(n * n, null_value, np.float64)
    if ascends(indptr, indices):
        dense[places] = data
    else:
        dense[places] = np.inf
        np.minimum.at(dense, places, data)
    return dense.reshape(n, n)


def csgraph_to_masked(csgraph: Any) -> Any:
    """The masked array of float64 of a sparse graph `csgraph` in the format csr, csc or lil.
    Positions without an edge, or with one of infinite length, are masked. Parallel edges and
    errors: as in `csgraph_to_dense`.

    A graph on a GPU raises TypeError: CuPy has no masked arrays.

    >>> import scipy.sparse
    >>> from spgraph.csgraph import csgraph_to_masked
    >>> csgraph_to_masked(scipy.sparse.csr_array([[0, 1.0], [0, 0]])).mask.tolist()
    [[True, False], [True, True]]
    """
    _refuse_gpu("csgraph_to_masked: csgraph", csgraph)
    return np.ma.masked_invalid(csgraph_to_dense(csgraph, np.nan), copy=False)


def _refuse_gpu(argument: str, graph: object) -> None:
    if is_gpu(graph):
        raise TypeError(
            f"{argument}: expected a graph on the CPU, for CuPy has no masked arrays; "
            "copy it with .get()"
        )


def _square(graph: Array) -> int:
    if graph.ndim != 2:
        raise ValueError("graph should have two dimensions")
    if graph.shape[0] != graph.shape[1]:
        raise ValueError("graph should be a square array")
    return int(graph.shape[0])


def _from_cupy(graph: Array, null_value: float | None, nan_null: bool, infinity_null: bool) -> Any:
    n, xp = _square(graph), array_module(graph)
    values = graph.astype(np.float64)
    null = xp.zeros(graph.shape, bool)
    if null_value is not None and np.isfinite(null_value):
        null = xp.isclose(values, float(null_value))
    if infinity_null or (null_value is not None and np.isinf(null_value)):
        null |= xp.isinf(values)
    if nan_null or (null_value is not None and np.isnan(null_value)):
        null |= xp.isnan(values)
    rows, columns = xp.nonzero(~null)
    indptr = xp.zeros(n + 1, np.int32)
    indptr[1:] = xp.cumsum((~null).sum(axis=1))
    return Matrix._of(n, n, indptr, columns.astype(np.int32), values[rows, columns]).to_cupyx(
        copy=False
    )


def _to_cupy(csr: Any, n: int, null_value: float | None) -> Array:
    xp = array_module(csr.data)
    data = csr.data.astype(np.float64)
    data = xp.where(xp.isnan(data), np.inf, data)
    rows = Matrix._of(n, n, csr.indptr, csr.indices, data).row_indices()
    # not CuPy's minimum.at, which rounds numbers of float64 to float32
    A = Matrix.from_coo(rows, csr.indices, data, nrows=n, ncols=n, dup_op=binary.min)
    dense = xp.full((n, n), null_value, np.float64)
    dense[A.row_indices(), A._indices] = A._expanded_values()
    return dense
