"""The attributes of Vector and Matrix that their base classes use, declared for type checkers;
vector.py and matrix.py define them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spgraph.containers.storage.arrays import Array

if TYPE_CHECKING:
    from collections.abc import Callable

    from spgraph.containers.annotations import DType
    from spgraph.containers.matrix import Matrix
    from spgraph.containers.methods.display import Shown
    from spgraph.containers.vector import Vector


class Parts:
    """What both have."""

    __slots__ = ()
    _values: Array

    if TYPE_CHECKING:

        @property
        def dtype(self) -> np.dtype: ...
        @property
        def device(self) -> Any: ...
        @property
        def nvals(self) -> int: ...
        @property
        def nbytes(self) -> int: ...
        @property
        def shape(self) -> Any: ...
        def _with_values(self, function: Callable[..., Array]) -> Any: ...
        def _describe(self) -> Shown: ...


class VectorParts(Parts):
    """A Vector."""

    __slots__ = ()
    size: int
    _indices: Array | None
    _bits: Array | None
    _nvals: int | Callable[[], int] | None

    if TYPE_CHECKING:

        @property
        def storage(self) -> str: ...
        def to_sparse(self) -> Vector: ...
        def to_bitmap(self) -> Vector: ...
        def dup(self, dtype: DType | None = None) -> Vector: ...
        def _fetch_nvals(self) -> int | None: ...


class MatrixParts(Parts):
    """A Matrix."""

    __slots__ = ()
    nrows: int
    ncols: int
    iso: bool
    symmetric: bool | None
    _indptr: Array
    _indices: Array
    _derived: dict[str, Any]

    if TYPE_CHECKING:

        @property
        def shape(self) -> tuple[int, int]: ...
        @property
        def values(self) -> Array: ...
        @property
        def _with_arrays(self) -> MatrixParts: ...
        @property
        def _has_arrays(self) -> bool: ...
        @property
        def T(self) -> Matrix: ...
        @property
        def _T(self) -> Matrix: ...
        def _written_view(self) -> Matrix: ...
        def row_indices(self) -> Array: ...
        def to(self, device: str, *, storage: str | None = None) -> Matrix: ...
