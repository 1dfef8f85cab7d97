"""New arrays for kernels to write."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

W = TypeVar("W")
# workspaces of calls that have ended, each with what it fits; a list, because appending and popping
# are atomic: every call has one of its own
Unused: TypeAlias = list[tuple[Hashable, W]]
# vertices up to which a workspace is kept: making one of a small graph takes longer than using it
SMALL, MOST = 1 << 14, 8

# bytes below which arrays usually come from memory that the process has already
LARGE = 1 << 22
PAGE = 4096


def empty(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> np.ndarray:
    """As np.empty, with all pages mapped.

    If two threads touch new pages of one array at the same time, the system may map small pages one
    by one instead of huge ones: a pass over 60 MB took 65 ms instead of 9 (Linux 6.18 with
    transparent huge pages, two virtual cores). So one thread touches them all first.
    """
    return touched(np.empty(shape, dtype))


def zeros(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> np.ndarray:
    """As np.zeros, with all pages mapped: see `empty`."""
    return touched(np.zeros(shape, dtype))


def touched(array: np.ndarray) -> np.ndarray:
    """`array`, which is contiguous, with all pages mapped: some of its values are set to 0."""
    if array.nbytes >= LARGE:
        array.reshape(-1).view(np.uint8)[::PAGE] = 0
    return array


def take(unused: Unused[W], fits: Hashable) -> W | None:
    """A workspace that an earlier call left, if the last one left fits."""
    try:
        found, work = unused.pop()
    except IndexError:
        return None
    return work if found == fits else None


def keep(unused: Unused[W], fits: Hashable, work: W, vertices: int) -> None:
    """Leave a workspace for the next call; that of a large graph is freed."""
    if vertices <= SMALL and len(unused) < MOST:
        unused.append((fits, work))
