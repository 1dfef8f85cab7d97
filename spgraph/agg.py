"""Aggregations of features over neighbours, as the layers of graph neural networks take them.

A is a Matrix of shape (n, m), or what `Matrix` can be made from, X an array of NumPy, CuPy,
PyTorch or JAX with a row of features for each column of A, of shape (m,) or (m, k), on the same
device. The result is a new array of that library, with a row for each row i of A: over the rows
X[j] for which A[i, j] is an entry. The values of A are not looked at: `A @ X` is the sum weighted
by them. A row without entries gives 0. Of a directed graph these are the vertices that edges lead
to; `A.T` takes those that edges come from. PyTorch's gradients are not tracked: give `X.detach()`.

Raises DimensionMismatch for an X of another number of rows or dimensions, DomainMismatch for one
that is no array of numbers, BackendMismatch for one on another device.

Source: Hamilton, Ying, Leskovec, "Inductive representation learning on large graphs" (2017).

>>> import numpy as np, spgraph as sg
>>> A = sg.Matrix.from_coo([0, 0, 1], [1, 2, 0], nrows=3, ncols=3)
>>> sg.agg.mean(A, np.array([[1.0, 4], [2, 6], [3, -8]])).tolist()
[[2.5, -1.0], [1.0, 4.0], [0.0, 0.0]]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spgraph import checks
from spgraph.containers import MatrixLike
from spgraph.containers.annotations import Dense
from spgraph.containers.storage.arrays import as_array, device_of, is_array, of_kind, on_device
from spgraph.errors import DomainMismatch
from spgraph.operations import arrays
from spgraph.semirings import Semiring, max_second, plus_second
from spgraph.steps import is_distributed

__all__ = ["max", "mean", "sum"]


def sum(A: MatrixLike, X: Dense) -> Dense:
    """The sum of the features `X`, of shape (A.ncols,) or (A.ncols, k), of each row's neighbours in
    `A`: an array of A.nrows rows, in X's type, in which integers wrap around; of bool how many are
    true, in int64. Errors as of `spgraph.agg`.

    >>> import numpy as np, spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 0, 1], [1, 2, 0], nrows=3, ncols=3)
    >>> sg.agg.sum(A, np.array([1.0, 2, 3])).tolist()
    [5.0, 1.0, 0.0]
    """
    return _aggregated("agg.sum", A, X, plus_second)


def max(A: MatrixLike, X: Dense) -> Dense:
    """The greatest of the features `X`, of shape (A.ncols,) or (A.ncols, k), of each row's
    neighbours in `A`, without NaN (-inf where there is nothing else): an array of A.nrows rows, in
    X's type. Errors as of `spgraph.agg`.

    >>> import numpy as np, spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 0, 1], [1, 2, 0], nrows=3, ncols=3)
    >>> sg.agg.max(A, np.array([-1.0, 2, 3])).tolist()
    [3.0, -1.0, 0.0]
    """
    return _aggregated("agg.max", A, X, max_second)


def mean(A: MatrixLike, X: Dense) -> Dense:
    """The mean of the features `X`, of shape (A.ncols,) or (A.ncols, k), of each row's neighbours
    in `A`: an array of A.nrows rows, in float32 if X is, else in float64. Errors as of
    `spgraph.agg`.

    >>> import numpy as np, spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 0, 1], [1, 2, 0], nrows=3, ncols=3)
    >>> sg.agg.mean(A, np.array([1, 2, 3])).tolist()
    [2.5, 1.0, 0.0]
    """
    A = checks.matrix("agg.mean", A)
    given, X = X, as_array("agg.mean: X", X) if is_array(X) else X
    if is_array(X) and X.dtype.kind in "biu":
        with on_device(device_of(X)):
            X = X.astype(np.float64)  # sums of integers could wrap around
    total = _aggregated("agg.mean", A, X, plus_second)
    degrees: Any = A.row_degrees()
    with on_device(device_of(total)) as xp:
        if is_distributed(A):
            degrees = degrees.gather(device_of(total))
        counts = xp.maximum(degrees.to_bitmap()._values, 1).astype(total.dtype)
        total /= counts if total.ndim == 1 else counts[:, None]
        return of_kind(given, total)


def _aggregated(name: str, A: MatrixLike, X: Dense, semiring: Semiring) -> Dense:
    """The sum over a semiring of the features of each row's neighbours; 0 for none."""
    if not is_array(X):
        raise DomainMismatch(
            f"{name}: X: expected an array of NumPy, CuPy, PyTorch or JAX, got {type(X).__name__}; "
            "numpy.asarray or to_numpy and to_dense make one"
        )
    return arrays.product(name, A, X, semiring, 0, {})


def __dir__() -> list[str]:
    return sorted(__all__)
