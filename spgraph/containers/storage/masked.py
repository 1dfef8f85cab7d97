"""Refuse masked arrays of NumPy, whose hidden values would become entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spgraph.errors import DomainMismatch

LISTS = {list, tuple}  # what to look into


def refuse_masked_parts(name: str, given: Any, made: np.ndarray) -> None:
    """`refuse_masked` of a list that NumPy made the array `made` of: it turned one number that is
    hidden into NaN or True, and among integers it refused it, so that most numbers need no look.
    """
    kind = made.dtype.kind
    if kind in "bO" or (kind == "f" and bool(np.isnan(made).any())):
        refuse_masked(name, given)
    elif made.ndim > 1:
        refuse_masked(name, given, made.ndim - 1)


def refuse_masked(name: str, given: Any, levels: int = 64) -> None:
    """DomainMismatch for a masked array, or a list that has one; of lists in lists so many `levels`
    are looked at.
    """
    if _has_mask(given, levels) if type(given) in LISTS else isinstance(given, np.ma.MaskedArray):
        raise DomainMismatch(
            f"{name}: expected an array without a mask; x.filled(value) and missing=value of "
            "from_dense, or x.compressed() and its positions, leave out what is masked"
        )


def _has_mask(given: Sequence[Any], levels: int) -> bool:
    """Whether a list, or a list within it, has a masked array or number."""
    kinds = set(map(type, given))  # of a million numbers there are few
    if any(issubclass(kind, np.ma.MaskedArray) for kind in kinds):
        return True
    if levels == 1 or kinds.isdisjoint(LISTS):
        return False
    return any(_has_mask(part, levels - 1) for part in given if type(part) in LISTS)
