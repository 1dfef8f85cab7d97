"""What public functions take, as types: for editors and type checkers alone.

An array of a container is NumPy's or CuPy's, which share no static type (`arrays.Array`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from spgraph.containers.mask import Mask
    from spgraph.containers.matrix import Matrix
    from spgraph.containers.vector import Vector
    from spgraph.distributed import Placement
    from spgraph.semirings import BinaryOp, IndexUnaryOp, Monoid, Semiring, UnaryOp

Scalar: TypeAlias = bool | int | float | np.generic
Dense: TypeAlias = np.ndarray  # CuPy's, too, which has no static type
# what a reduction gives
Number: TypeAlias = np.bool_ | np.integer | np.floating
DType: TypeAlias = npt.DTypeLike
# 'cpu', 'cuda', 'cuda:1'; or the `device` of a distributed container
Device: TypeAlias = "str | Placement"
Direction: TypeAlias = Literal["auto", "push", "pull"]
# NumPy's rules of conversion
Casting: TypeAlias = Literal["no", "equiv", "safe", "same_kind", "unsafe"]
Position: TypeAlias = int | np.integer
# operators, each by itself or by its name in spgraph.semirings
SemiringLike: TypeAlias = "Semiring | str"
MonoidLike: TypeAlias = "Monoid | str"
BinaryLike: TypeAlias = "BinaryOp | Monoid | str"
IndexUnaryLike: TypeAlias = "IndexUnaryOp | str"
OperatorLike: TypeAlias = "UnaryOp | BinaryOp | Monoid | IndexUnaryOp | str"
# of a reduction; None for all
Axis: TypeAlias = int | tuple[int, ...] | None
# one vertex, or several
Vertices: TypeAlias = int | np.integer | Sequence[int] | np.ndarray
# what may stand between brackets, where a tuple has a meaning of its own
Several: TypeAlias = "slice | list[int] | np.ndarray | Vector"
Indices: TypeAlias = "slice | Sequence[int] | Sequence[np.integer] | np.ndarray | Vector"


class Into(TypedDict, total=False):
    """How an operation writes its result."""

    mask: Mask | None
    accum: BinaryLike | None
    replace: bool


class IntoVector(Into, total=False):
    """... into a Vector."""

    out: Vector | None


class IntoMatrix(Into, total=False):
    """... into a Matrix."""

    out: Matrix | None


class FromCoo(TypedDict, total=False):
    """What `Matrix.from_coo` takes beside the coordinates."""

    nrows: int | None
    ncols: int | None
    dtype: DType | None
    dup_op: BinaryLike | None
    symmetric: bool | None


class SparseArray(Protocol):
    """A sparse array or matrix of SciPy or CuPy."""

    def tocsr(self) -> Any:
        """The same entries in compressed rows."""

    def asformat(self, format: Any) -> Any:
        """The same entries in another format."""


class Graph(Protocol):
    """A graph of NetworkX."""

    @property
    def adj(self) -> Any:
        """The neighbours of each node."""

    def is_directed(self) -> bool:
        """Whether edges have a direction."""

    def __len__(self) -> int:
        """How many nodes there are."""
