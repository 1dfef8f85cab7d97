"""Which library an argument is of, determined without importing that library."""

from __future__ import annotations

from typing import Any

import scipy.sparse


def is_sparse(csgraph: Any) -> bool:
    """Whether it is a sparse array or matrix of SciPy or CuPy."""
    return scipy.sparse.issparse(csgraph) or (
        type(csgraph).__module__.startswith("cupyx.scipy.sparse") and hasattr(csgraph, "tocsr")
    )


def is_gpu(csgraph: Any) -> bool:
    """Whether it is an array or sparse matrix on a GPU."""
    return hasattr(csgraph, "__cuda_array_interface__") or type(csgraph).__module__.startswith(
        "cupyx."
    )


def is_pydata(csgraph: Any) -> bool:
    """Whether it is an array of the package `sparse`."""
    return type(csgraph).__module__.partition(".")[0] == "sparse"
