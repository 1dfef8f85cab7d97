"""The Laplacian matrix of a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

from spgraph.containers import Matrix
from spgraph.containers.annotations import DType
from spgraph.containers.storage.arrays import Array, array_module
from spgraph.containers.storage.compressed import checked
from spgraph.csgraph.graphs import known, like
from spgraph.csgraph.kinds import GraphLike, flags, is_gpu, is_sparse

Function = Callable[[Array], Array]


def laplacian(
    csgraph: GraphLike,
    normed: bool = False,
    return_diag: bool = False,
    use_out_degree: bool = False,
    *,
    copy: bool = True,
    form: str = "array",
    dtype: DType | None = None,
    symmetrized: bool = False,
) -> Any:
    """L = D - A, where D is the diagonal matrix of the degrees without self-loops; with `normed`
    D^(-1/2) L D^(-1/2). With `return_diag` the pair of L and the diagonal of D, or with `normed` of
    its square root, 1 for vertices without edges.

    Degrees are the sums of A's columns, with `use_out_degree` of its rows; `symmetrized` uses A
    plus its conjugate transpose. `form` is "array" for a dense array if `csgraph` is one, else a
    coo_array (coo_matrix for a sparse matrix; diagonal format for a diagonal one); "lo" for a
    LinearOperator; "function" for a function that multiplies by L. The type is `dtype`, by default
    that of `csgraph`, or float64 for `normed` integers. With `copy=False` a `csgraph` that is dense
    or in coordinate format is overwritten by the result. On a GPU results stay there.

    Raises ValueError for a graph that is not square and for another `form`.

    >>> import numpy as np
    >>> from spgraph.csgraph import laplacian
    >>> laplacian(np.array([[0, 1, 0], [1, 0, 2], [0, 2, 0]]))
    array([[ 1, -1,  0],
           [-1,  3, -2],
           [ 0, -2,  2]])
    """
    flags(
        "laplacian",
        normed=normed,
        return_diag=return_diag,
        use_out_degree=use_out_degree,
        copy=copy,
        symmetrized=symmetrized,
    )
    graph = known(csgraph)
    if graph.ndim != 2 or graph.shape[0] != graph.shape[1]:
        raise ValueError(f"csgraph must be a square matrix or array, got shape {graph.shape}")
    if normed and (
        np.issubdtype(graph.dtype, np.signedinteger) or np.issubdtype(graph.dtype, np.uint)
    ):
        graph = graph.astype(np.float64)
    axis = 1 if use_out_degree else 0
    dtype = graph.dtype if dtype is None else dtype
    if form != "array":
        L, diagonal = _multiplied(graph, normed, axis, copy, form, dtype, symmetrized)
    elif is_sparse(graph):
        L, diagonal = _sparse(graph, normed, axis, copy, dtype, symmetrized)
    else:
        L, diagonal = _dense(graph, normed, axis, copy, dtype, symmetrized)
    L = like(csgraph, L)
    return (L, diagonal) if return_diag else L


def _sparse(
    graph: Any, normed: bool, axis: int, copy: bool, dtype: Any, symmetrized: bool
) -> tuple[Any, Array]:
    if graph.format in ("lil", "dok"):
        graph = graph.tocoo()
    if symmetrized:
        graph = graph + graph.T.conj()
    degree = _sums(graph, axis) - graph.diagonal()
    if graph.format == "dia" and not normed:
        L = graph.copy()
        L.data *= -1
        L.setdiag(degree)
        return L.astype(dtype, copy=False), degree.astype(dtype)
    xp, n = array_module(degree), graph.shape[0]
    row, col, data, kind = _coordinates(graph)
    outside = row != col
    if not bool(outside.all()):
        row, col, data = row[outside], col[outside], data[outside]
    m = row.size
    rows, cols = xp.empty((2, m + n), row.dtype)
    rows[:m], cols[:m] = row, col
    rows[m:] = cols[m:] = xp.arange(n, dtype=row.dtype)
    # sums of short integers are longer: they fit a longer `dtype`
    values = xp.empty(m + n, np.result_type(data.dtype, degree.dtype))
    edges = values[:m]
    if normed:
        isolated = degree == 0
        degree = xp.where(isolated, 1, xp.sqrt(degree))
        xp.divide(data, degree[row], out=edges)
        xp.divide(edges, degree[col], out=edges)
        xp.multiply(edges, -1, out=edges)
        values[m:] = 1 - isolated
    else:
        edges[:] = xp.multiply(data, -1, out=xp.empty_like(data))
        values[m:] = degree
    if copy or graph.format != "coo" or is_gpu(graph):
        L = kind((values, (rows, cols)), shape=(n, n))
    else:
        L, graph.coords, graph.data = graph, (rows, cols), values
        L.has_canonical_format = False
    return L.astype(dtype, copy=False), degree.astype(dtype)


def _coordinates(graph: Any) -> tuple[Array, Array, Array, Any]:
    """(rows, columns, values, the class of graphs in coordinate format of the same library)."""
    if is_gpu(graph):
        coo = graph.tocoo()
        return coo.row, coo.col, coo.data, type(coo)
    kind = scipy.sparse.coo_matrix
    if isinstance(graph, scipy.sparse.sparray):
        kind = scipy.sparse.coo_array
    if graph.format != "csr":
        coo = graph.tocoo(copy=False)
        return coo.row, coo.col, coo.data, kind
    indptr, indices, data = checked("laplacian", graph, *graph.shape)
    A = Matrix._of(graph.shape[0], graph.shape[1], indptr, indices, data)
    return A.row_indices(), indices, data, kind


def _dense(
    graph: Any, normed: bool, axis: int, copy: bool, dtype: Any, symmetrized: bool
) -> tuple[Array, Array]:
    xp = array_module(graph)
    graph = xp.asarray(graph)
    L = xp.empty_like(graph) if copy else graph
    xp.multiply(graph + graph.T.conj() if symmetrized else graph, -1, out=L)
    xp.fill_diagonal(L, 0)
    degree = -L.sum(axis=axis)
    if normed:
        isolated = degree == 0
        degree = xp.where(isolated, 1, xp.sqrt(degree))
        L /= degree
        L /= degree[:, None]
        xp.fill_diagonal(L, 1 - isolated)
    else:
        xp.fill_diagonal(L, degree)
    return L.astype(dtype, copy=False), degree.astype(dtype, copy=False)


def _multiplied(
    graph: Any, normed: bool, axis: int, copy: bool, form: str, dtype: Any, symmetrized: bool
) -> tuple[Any, Array]:
    """(a function or LinearOperator that multiplies by L without storing it, the diagonal)."""
    if form not in ("function", "lo"):
        raise ValueError(f"Invalid form: {form!r}, expected 'array', 'function' or 'lo'")
    if not is_sparse(graph):
        xp = array_module(graph)
        graph = xp.array(graph) if copy else xp.asarray(graph)
    total, loops = _sums(graph, axis), graph.diagonal()
    degree = total - loops
    if symmetrized:
        total = total + _sums(graph, 1 - axis)
        degree = total - loops - loops

    def times(v: Array) -> Array:
        product = _along(total, v) - graph @ v
        return product - (v.T.conj() @ graph).T.conj() if symmetrized else product

    multiply: Function = times
    if normed:
        xp = array_module(degree)
        degree = xp.where(degree == 0, 1, xp.sqrt(degree))
        scale = 1.0 / degree

        def multiply(v: Array) -> Array:
            return _along(scale, times(_along(scale, v)))

    diagonal = degree.astype(dtype, copy=False)
    if form == "function":
        return multiply, diagonal
    made = _operator_class(graph)(matvec=multiply, matmat=multiply, shape=graph.shape, dtype=dtype)
    return made, diagonal


def _operator_class(graph: Any) -> Any:
    if not is_gpu(graph):
        return LinearOperator
    import cupyx.scipy.sparse.linalg

    return cupyx.scipy.sparse.linalg.LinearOperator


def _sums(graph: Any, axis: int) -> Array:
    """Sums of the columns (0) or rows (1)."""
    sums = graph.sum(axis=axis)
    return (sums if is_gpu(sums) else np.asarray(sums)).ravel()


def _along(factors: Array, v: Array) -> Array:
    """Each row of v multiplied by its factor."""
    return v * (factors if v.ndim == 1 else factors[:, None])
