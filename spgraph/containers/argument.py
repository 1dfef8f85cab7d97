"""Objects that are accepted in place of a Matrix or a Vector, and their conversion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from spgraph.containers.annotations import Graph, SparseArray
from spgraph.containers.interchange.graphs import (
    is_graph,
    is_graphblas,
    matrix_of_graph,
    matrix_of_graphblas,
    vector_of_graphblas,
)
from spgraph.containers.interchange.tensors import is_tensor, matrix_of_tensor, vector_of_tensor
from spgraph.containers.matrix import Matrix
from spgraph.containers.storage.arrays import as_array, is_array
from spgraph.containers.vector import Vector
from spgraph.errors import DomainMismatch

MatrixLike: TypeAlias = Matrix | SparseArray | Graph | np.ndarray | Sequence[Sequence[float]]
VectorLike: TypeAlias = Vector | SparseArray | np.ndarray | Sequence[float]


def as_matrix(A: MatrixLike, name: str = "A") -> Matrix:
    """`A` itself if it is a Matrix, else a Matrix made from it, which may borrow its arrays;
    DomainMismatch if it does not convert to one.
    """
    if isinstance(A, Matrix):
        return A
    made = _converted(A, name, "", copy=False)  # for this call alone
    made._transient = True
    return made


def matrix_of(x: MatrixLike) -> Matrix:
    """A new Matrix made from x; see `Matrix`."""
    if isinstance(x, Matrix):
        _refuse_shards("Matrix", x)
        return x.dup()
    remedy = "; Matrix.from_coo takes coordinates, Matrix.empty a number of rows and of columns"
    return _converted(x, "Matrix: x", remedy, copy=True)


def vector_of(x: VectorLike) -> Vector:
    """A new Vector made from x; see `Vector`."""
    if isinstance(x, Vector):
        _refuse_shards("Vector", x)
        return x.dup()
    given: Any = x
    if hasattr(given, "tocoo"):
        if len(given.shape) != 1:
            remedy = "; Matrix(x) takes 2" if len(given.shape) == 2 else ""
            raise DomainMismatch(f"Vector: x: expected 1 dimension, got {len(given.shape)}{remedy}")
        coo = given.tocoo(copy=False)
        return Vector.from_coo(coo.coords[0], coo.data, size=coo.shape[0], dup_op="plus")
    if is_tensor(given):
        return vector_of_tensor(given)
    if is_graphblas(given, "Vector"):
        return vector_of_graphblas(given)
    array = as_array("Vector: x", given)
    if array.ndim != 1:
        remedy = "Vector.from_coo takes indices and values, Vector.empty a size"
        if array.ndim == 2:
            remedy = "Matrix(x) takes 2"
        raise DomainMismatch(
            f"Vector: x: expected a list or an array of 1 dimension, got {type(x).__name__} of "
            f"{array.ndim} dimensions; {remedy}"
        )
    return Vector.from_dense(array)


def _refuse_shards(name: str, x: Matrix | Vector) -> None:
    if not isinstance(x.device, str):
        raise DomainMismatch(
            f"{name}: x: expected a {name} on one device, got a distributed one; "
            ".gather() makes a plain one, .dup() a copy in shards"
        )


def _converted(given: Any, name: str, remedy: str, copy: bool) -> Matrix:
    """The Matrix made from another object; without `copy` it may share its arrays."""
    if is_tensor(given):
        return matrix_of_tensor(given, copy)
    if hasattr(given, "tocsr"):
        if not isinstance(given, Vector):
            return Matrix.from_scipy(given, copy=copy)
    elif is_graph(given):
        return matrix_of_graph(given)
    elif is_graphblas(given, "Matrix"):
        return matrix_of_graphblas(given)
    elif isinstance(given, list) or is_array(given) or hasattr(given, "__array__"):
        array = as_array(name, given)  # of what offers __array__ alone: a table of pandas
        if array.ndim != 2:
            hint = "; Vector(x) takes 1" if array.ndim == 1 else ""
            raise DomainMismatch(f"{name}: expected 2 dimensions, got {array.ndim}{hint}")
        return Matrix.from_dense(array)
    for field in getattr(given, "_fields", ()):  # of from_edges, and of readers
        if isinstance(getattr(given, field), Matrix):
            remedy = f"; .{field} of it is a Matrix"
    raise DomainMismatch(
        f"{name}: expected a Matrix, a SciPy or CuPy sparse matrix, a graph of NetworkX or igraph, "
        f"or a 2-D array, got {type(given).__name__}{remedy}"
    )
