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


def as_matrix(A: MatrixLike, name: str = "A") -> Matrix:
    """`A` itself if it is a Matrix, else the Matrix it stands for; DomainMismatch if it stands for
    none.
    """
    if isinstance(A, Matrix):
        return A
    given: Any = A
    if hasattr(given, "tocsr"):
        made = Matrix.from_scipy(given, copy=False)  # for this call alone
    elif hasattr(given, "adj") and hasattr(given, "is_directed"):
        made = Matrix.from_networkx(given)
    elif isinstance(given, np.ndarray | list) or hasattr(given, "__cuda_array_interface__"):
        made = Matrix.from_dense(given)
    elif hasattr(given, "__dlpack__") and not isinstance(given, Vector):
        made = Matrix.from_dense(np.from_dlpack(given))
    else:
        raise DomainMismatch(
            f"{name}: expected a Matrix, a SciPy or CuPy sparse matrix, a NetworkX graph "
            f"or a 2-D array, got {type(given).__name__}"
        )
    made._transient = True
    return made
