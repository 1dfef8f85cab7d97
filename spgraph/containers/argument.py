"""What stands for a Matrix where one is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from spgraph.containers.annotations import Graph, SparseArray
from spgraph.containers.matrix import Matrix
from spgraph.containers.vector import Vector
from spgraph.errors import DomainMismatch

MatrixLike: TypeAlias = Matrix | SparseArray | Graph | np.ndarray | Sequence[Sequence[float]]


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
