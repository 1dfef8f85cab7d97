"""Which library an argument is of, determined without importing that library."""

from __future__ import annotations

from typing import TypeAlias

import numpy.typing as npt
import scipy.sparse

from spgraph.containers.annotations import SparseArray

# graphs in any form that SciPy accepts, and arrays and sparse matrices of CuPy
GraphLike: TypeAlias = npt.ArrayLike | SparseArray


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
