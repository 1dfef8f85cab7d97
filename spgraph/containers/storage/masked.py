"""Masked arrays of NumPy: what they hide would become entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spgraph.errors import DomainMismatch

# types of elements that hide nothing, and of those to look into
NUMBERS, LISTS = {bool, int, float}, {list, tuple}


def refuse_masked(name: str, given: Any) -> None:
    """DomainMismatch for a masked array, or a list that has one."""
    if _has_mask(given) if type(given) in LISTS else isinstance(given, np.ma.MaskedArray):
        raise DomainMismatch(
            f"{name}: expected an array without a mask; x.filled(value) and missing=value of "
            "from_dense, or x.compressed() and its positions, leave out what is masked"
        )


def _has_mask(given: Sequence[Any]) -> bool:
    """Whether a list, or a list within it, has a masked array or number."""
    kinds = set(map(type, given))
    if kinds <= NUMBERS:
        return False
    if kinds <= LISTS:
        return any(map(_has_mask, given))
    return any(
        isinstance(part, np.ma.MaskedArray) or (type(part) in LISTS and _has_mask(part))
        for part in given
    )
