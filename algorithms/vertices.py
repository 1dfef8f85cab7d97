"""Checks of the vertices that algorithms start from."""

from __future__ import annotations

import numpy as np

from ..containers import Matrix
from ..containers.annotations import Position, Vertices
from ..containers.storage.arrays import as_array
from ..containers.storage.numbers import is_integer
from ..errors import DomainMismatch, IndexOutOfBound


def vertex(name: str, A: Matrix, source: Position, argument: str = "source") -> int:
    """A vertex of A as an int."""
    if type(source) is not int and not is_integer(source):
        raise DomainMismatch(f"{name}: {argument}: expected an integer, got {source!r}")
    if not 0 <= source < A.nrows:
        raise IndexOutOfBound(f"{name}: {argument}: expected 0 <= source < {A.nrows}, got {source}")
    return int(source)


def vertices(name: str, A: Matrix, sources: Vertices) -> np.ndarray:
    """One vertex, or several in a 1-D array or sequence: ascending, each once."""
    if is_integer(sources):
        return np.array([vertex(name, A, sources, "sources")])
    try:
        array = np.asarray(as_array(f"{name}: sources", sources))
    except DomainMismatch:  # a masked array
        raise
    except Exception:  # CuPy's arrays convert by their own method only
        array = np.empty((0, 0))
    if array.size == 0 and array.ndim == 1:
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise DomainMismatch(
            f"{name}: sources: expected a vertex or a sequence of vertices, got {sources!r}"
        )
    if array.size and not 0 <= array.min() <= array.max() < A.nrows:
        wrong = array[(array < 0) | (array >= A.nrows)][0]
        raise IndexOutOfBound(f"{name}: sources: expected 0 <= source < {A.nrows}, got {wrong}")
    return np.unique(array)
