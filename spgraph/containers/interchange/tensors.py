"""Sparse tensors of PyTorch and JAX, and back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spgraph.containers.interchange.libraries import importing
from spgraph.containers.methods.parts import MatrixParts
from spgraph.containers.sparray.lines import plain
from spgraph.containers.storage.arrays import (
    INT32_MAX,
    Array,
    as_array,
    device_of,
    handed_to,
    is_instance,
    is_sparse_tensor,
    on_device,
)
from spgraph.containers.storage.compressed import ascends, checked
from spgraph.containers.storage.numbers import flags
from spgraph.containers.storage.values import value_dtype
from spgraph.errors import DomainMismatch

if TYPE_CHECKING:
    from spgraph.containers.matrix import Matrix
    from spgraph.containers.vector import Vector

NAME = "x"


class CompressedRows(NamedTuple):
    """Rows as they came, under the names that SciPy gives their parts."""

    indptr: Array
    indices: Array
    data: Array


class MatrixTensors(MatrixParts):
    """The to_torch and to_jax of a Matrix, whose base this is."""

    __slots__ = ()

    def to_torch(self, *, copy: bool = True) -> Any:
        """A sparse_csr tensor of PyTorch with the same entries, on the same device.

        Its parts are copies. `copy=False` shares those of the Matrix where the types allow it
        (offsets and columns of one type, no iso values). Do not write into these: the Matrix would
        change, and its cached transpose and other derived data would become wrong.
        `sg.Matrix(tensor)` is the way back.

        >>> import spgraph as sg
        >>> sg.Matrix([[0, 2.0], [3.0, 0]]).to_torch().values()  # doctest: +SKIP
        tensor([2., 3.], dtype=torch.float64)
        """
        flags("to_torch", copy=copy)
        with importing("to_torch", "torch"):
            import torch

        A: Matrix = plain(self)
        with on_device(A.device):
            kind = np.promote_types(A._indptr.dtype, A._indices.dtype)
            indptr, indices = (a.astype(kind, copy=copy) for a in (A._indptr, A._indices))
            values = A._expanded_values()
            values = values.copy() if copy and not A.iso else values
            parts = (handed_to(torch, each) for each in (indptr, indices, values))
            return torch.sparse_csr_tensor(*parts, size=A.shape)

    def to_jax(self) -> Any:
        """A BCOO array of jax.experimental.sparse with the same entries, in order and unique, on
        the same device; its arrays are copies.

        JAX holds values of 32 bits at most unless jax_enable_x64 is set, and converts others as
        its own functions do; OverflowError for positions that it does not hold. `sg.Matrix(x)` is
        the way back.

        >>> import spgraph as sg
        >>> sg.Matrix([[0, 2.0], [3.0, 0]]).to_jax().indices.tolist()  # doctest: +SKIP
        [[0, 1], [1, 0]]
        """
        with importing("to_jax", "jax"):
            import jax
            from jax.experimental import sparse

        A: Matrix = plain(self)
        if max(A.shape) > INT32_MAX and not jax.config.jax_enable_x64:
            raise OverflowError(
                f"to_jax: expected positions of 32 bits, which JAX holds, got the shape {A.shape}; "
                "jax.config.update('jax_enable_x64', True) makes it hold 64"
            )
        with on_device(A.device) as xp:
            indices = xp.stack([A.row_indices(), A._indices], axis=1)
            values = A._expanded_values() if A.iso else A._values.copy()
            arrays = tuple(handed_to(jax.numpy, each) for each in (values, indices))
        return sparse.BCOO(arrays, shape=A.shape, indices_sorted=True, unique_indices=True)


def is_tensor(given: Any) -> bool:
    """True for a sparse tensor of PyTorch or a sparse array of jax.experimental.sparse."""
    return is_sparse_tensor(given) or _is_sparse_of_jax(given)


def _is_sparse_of_jax(given: Any) -> bool:
    return is_instance(given, "jax.experimental.sparse", "JAXSparse")


def matrix_of_tensor(given: Any, copy: bool) -> Matrix:
    """The Matrix of a sparse tensor, its duplicates summed; without `copy` its arrays are those of
    the tensor where the types allow it.
    """
    parts = _rows_of(given)
    if parts is not None:
        _check_dimensions(given, 2)
        return _of_rows(CompressedRows(*(as_array(NAME, each) for each in parts)), given, copy)
    ids, values = _coordinates_of(given, 2)
    return _of_coordinates(ids, values, given)


def vector_of_tensor(given: Any) -> Vector:
    """The Vector of a sparse tensor of one dimension, its duplicates summed."""
    from spgraph.containers.vector import Vector

    (ids,), values = _coordinates_of(given, 1)
    (size,) = map(int, given.shape)
    return Vector.from_coo(ids, values, size=size, dup_op=_sum_of(values))


def _rows_of(given: Any) -> tuple[Any, Any, Any] | None:
    """(offsets, columns, values) where it is made of compressed rows."""
    if type(given).__name__ == "BCSR":
        return given.indptr, given.indices, given.data
    if is_sparse_tensor(given) and given.layout == sys.modules["torch"].sparse_csr:
        return given.crow_indices(), given.col_indices(), given.values()
    return None


def _coordinates_of(given: Any, ndim: int) -> tuple[Any, Array]:
    """(the positions along each dimension, the values)."""
    _check_dimensions(given, ndim)
    if is_sparse_tensor(given):
        coo = given.to_sparse_coo()
        # not those of coalesce(), whose integers wrap around; but _values() hides gradients
        values = coo.coalesce().values() if coo.requires_grad else coo._values()
        return as_array(NAME, coo._indices()), as_array(NAME, values)
    if type(given).__name__ != "BCOO":
        raise DomainMismatch(
            f"{NAME}: expected a BCOO or BCSR array of JAX, got {type(given).__name__}"
        )
    indices, values = as_array(NAME, given.indices), as_array(NAME, given.data)
    with on_device(device_of(indices)) as xp:
        # what pads the arrays to a length lies outside of the shape
        inside = (indices < xp.asarray(given.shape)).all(axis=1)
        return indices[inside].T, values[inside]


def _check_dimensions(given: Any, ndim: int) -> None:
    dense = given.dense_dim() if is_sparse_tensor(given) else 0
    dense += getattr(given, "n_batch", 0) + getattr(given, "n_dense", 0)
    if given.ndim != ndim or dense:
        raise DomainMismatch(
            f"{NAME}: expected a sparse array of {ndim} dimension{'s' * (ndim > 1)}, neither "
            f"batched nor of dense blocks, got one of the shape {tuple(given.shape)}; Matrix takes "
            "2 dimensions, Vector 1"
        )


def _sum_of(values: Array) -> str:
    return "lor" if values.dtype.kind == "b" else "plus"


def _of_coordinates(ids: Any, values: Array, given: Any) -> Matrix:
    from spgraph.containers.matrix import Matrix

    (rows, columns), (nrows, ncols) = ids, map(int, given.shape)
    dup_op = _sum_of(values)
    return Matrix.from_coo(rows, columns, values, nrows=nrows, ncols=ncols, dup_op=dup_op)


def _of_rows(parts: CompressedRows, given: Any, copy: bool) -> Matrix:
    """... of compressed rows, which are checked; columns that do not ascend are sorted."""
    from spgraph.containers.matrix import Matrix

    nrows, ncols = map(int, given.shape)
    kind = value_dtype(parts.data.dtype)
    with on_device(device_of(parts.indptr)):
        indptr, indices, data = checked(NAME, parts, nrows, ncols)
        A = Matrix._of(nrows, ncols, indptr, indices, data.astype(kind, copy=False))
        if not ascends(indptr, indices):
            return _of_coordinates((A.row_indices(), indices), A._values, given)
        return A.dup() if copy else A
