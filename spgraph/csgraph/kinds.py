"""Which library an argument is of, determined without importing that library."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse

from spgraph.containers import Matrix
from spgraph.containers.annotations import SparseArray
from spgraph.containers.storage.numbers import is_integer
from spgraph.errors import DomainMismatch

# graphs in any form that SciPy accepts, arrays and sparse matrices of CuPy, and Matrices
GraphLike: TypeAlias = npt.ArrayLike | SparseArray | Matrix


def from_matrix(csgraph: Any) -> Any:
    """A Matrix as compressed rows of SciPy or CuPy, of its own arrays; anything else unchanged."""
    return csgraph.tocsr(copy=False) if isinstance(csgraph, Matrix) else csgraph


def is_sparse(csgraph: object) -> bool:
    """Whether it is a sparse array or matrix of SciPy or CuPy."""
    return scipy.sparse.issparse(csgraph) or (
        type(csgraph).__module__.startswith("cupyx.scipy.sparse") and hasattr(csgraph, "tocsr")
    )


def is_gpu(csgraph: object) -> bool:
    """Whether it is an array or sparse matrix on a GPU."""
    return hasattr(csgraph, "__cuda_array_interface__") or type(csgraph).__module__.startswith(
        "cupyx."
    )


def is_pydata(csgraph: object) -> bool:
    """Whether it is an array of the package `sparse`."""
    return type(csgraph).__module__.partition(".")[0] == "sparse"


def flags(name: str, **given: object) -> None:
    """DomainMismatch, a TypeError, unless each argument is a bool or, for programs written for
    SciPy, the integer 0 or 1, of Python's or NumPy's.
    """
    for argument, value in given.items():
        if isinstance(value, bool | np.bool_) or (is_integer(value) and value in (0, 1)):
            continue
        raise DomainMismatch(
            f"{name}: {argument}: expected True or False, or 1 or 0, got {value!r}"
        )
