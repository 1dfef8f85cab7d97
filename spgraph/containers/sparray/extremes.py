"""The larger and the smaller of each two elements."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from spgraph.containers.methods.parts import Parts
from spgraph.containers.sparray.elements import container_of, entries_where
from spgraph.containers.storage.arrays import on_its_device
from spgraph.errors import DimensionMismatch, DomainMismatch


class Extremes(Parts):
    """What both have."""

    __slots__ = ()

    @on_its_device
    def maximum(self, other: Any) -> Self:
        """The larger of each two elements, zeros where there is no entry, without entries that are
        zero; `other` is a container or a sparse array of SciPy or CuPy of the same shape. So
        `A.maximum(A.T)` is a graph of positive weights made undirected.

        Of a number and NaN it is the number. DomainMismatch for arrays and numbers, of which most
        give a result that is not sparse, DimensionMismatch for another shape.

        >>> import spgraph as sg
        >>> A = sg.Matrix([[1, 2], [0, -4]])
        >>> A.maximum(A.T).toarray().tolist()
        [[1, 2], [2, -4]]
        """
        return _extreme(self, other, "maximum", "max")

    @on_its_device
    def minimum(self, other: Any) -> Self:
        """The smaller of each two elements, with `other` as for `maximum`.

        >>> import spgraph as sg
        >>> A = sg.Matrix([[1, 2], [0, -4]])
        >>> A.minimum(A.T).toarray().tolist()
        [[1, 0], [0, -4]]
        """
        return _extreme(self, other, "minimum", "min")


def _extreme(u: Any, other: Any, name: str, op: str) -> Any:
    from spgraph import operations

    if not hasattr(other, "tocsr"):
        raise DomainMismatch(
            f"{name}: other: expected a container or a sparse array, got {type(other).__name__}; "
            f"np.{name}(x.toarray(), other) makes an array, sg.apply(x, '{op}', right=other) looks "
            "at stored entries only"
        )
    other = container_of(other, f"{name}: other")
    if other.shape != u.shape:
        raise DimensionMismatch(f"{name}: the shapes {u.shape} and {other.shape} differ")
    kind = np.promote_types(u.dtype, other.dtype)
    found = operations.ewise_union(u, other, op).astype(kind, copy=False)
    return entries_where(found, lambda x: x != 0)
