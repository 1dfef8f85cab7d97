"""Mask: which positions an operation may write. Made by `v.S` (structure), `v.V` (truth), `~`
(complement).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spgraph.containers.storage.arrays import Array
from spgraph.containers.storage.numbers import flags

if TYPE_CHECKING:
    from spgraph.containers.matrix import Matrix
    from spgraph.containers.vector import Vector


@dataclass(frozen=True, eq=False)
class Mask:
    """A view of a container as a set of positions.

    `structure` selects the stored entries, else the stored entries that are true (non-zero);
    `complement` selects the others. A mask reads its container when the operation runs, not when
    the mask is made.

    >>> import spgraph as sg
    >>> v = sg.Vector.from_coo([0, 2], [1, 0], size=4)
    >>> v.S, ~v.V
    (Mask(structure of Vector 4), Mask(complement of truth of Vector 4))
    """

    parent: Vector | Matrix
    structure: bool
    complement: bool = False

    def __post_init__(self) -> None:
        flags("Mask", structure=self.structure, complement=self.complement)

    def __invert__(self) -> Mask:
        return Mask(self.parent, self.structure, not self.complement)

    def __bool__(self) -> bool:
        raise TypeError("a Mask has no truth value; pass it as mask=, or reduce its container")

    def __repr__(self) -> str:
        parent = self.parent
        shape = "x".join(str(n) for n in parent.shape)
        return (
            f"Mask({'complement of ' if self.complement else ''}"
            f"{'structure' if self.structure else 'truth'}"
            f" of {type(parent).__name__} {shape})"
        )


def is_list(mask: Mask | None) -> bool:
    """Whether the mask of a Vector allows the positions of a list: `true_indices`."""
    return mask is not None and not mask.complement and mask.parent._indices is not None


def true_indices(mask: Mask) -> Array:
    """The positions of a sparse Vector that a mask selects before it is complemented."""
    v = mask.parent
    assert v._indices is not None
    return v._indices if mask.structure else v._indices[v._values != 0]
