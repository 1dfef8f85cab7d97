"""Masked arrays of NumPy: what they hide would become entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spgraph.errors import DomainMismatch


def refuse_masked(name: str, given: Any) -> None:
    """DomainMismatch for a masked array, or a list that has one."""
    if isinstance(given, np.ma.MaskedArray) or (isinstance(given, list | tuple) and _any(given)):
        raise DomainMismatch(
            f"{name}: expected an array without a mask; x.filled(value) and missing=value of "
            "from_dense, or x.compressed() and its positions, leave out what is masked"
        )


def _any(given: Sequence[Any]) -> bool:
    """Whether a list, or a list within it, has a masked array or number."""
    kinds = set(map(type, given))
    if any(issubclass(kind, np.ma.MaskedArray) for kind in kinds):
        return True
    lists = () if kinds.isdisjoint((list, tuple)) else given
    return any(_any(part) for part in lists if isinstance(part, list | tuple))
