"""Checks of the vertices that algorithms start from; paths in the trees that they find."""

from __future__ import annotations

import numpy as np

from ..containers import Matrix, Vector
from ..containers.annotations import Position, Vertices
from ..containers.storage.arrays import as_array
from ..containers.storage.numbers import is_integer
from ..errors import DomainMismatch, IndexOutOfBound
from ..iterations.path_parents import path_from_root

NAMES = (
    "; a name's position is ids[name], with the ids that from_edges gives, or list(G).index(name) "
    "of a graph G of NetworkX"
)


def vertex(name: str, A: Matrix, source: Position, argument: str = "source") -> int:
    """A vertex of A as an int."""
    return _in_range(f"{name}: {argument}", "source", source, A.nrows)


def _in_range(where: str, word: str, given: Position, n: int) -> int:
    if type(given) is not int and not is_integer(given):
        hint = NAMES if isinstance(given, str) else ""
        raise DomainMismatch(f"{where}: expected an integer, got {given!r}{hint}")
    if not 0 <= given < n:
        raise IndexOutOfBound(f"{where}: expected 0 <= {word} < {n}, got {given}")
    return int(given)


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
        hint = NAMES if array.dtype.kind == "U" else ""
        raise DomainMismatch(
            f"{name}: sources: expected a vertex or a sequence of vertices, got {sources!r}{hint}"
        )
    if array.size and not 0 <= array.min() <= array.max() < A.nrows:
        wrong = array[(array < 0) | (array >= A.nrows)][0]
        raise IndexOutOfBound(f"{name}: sources: expected 0 <= source < {A.nrows}, got {wrong}")
    return np.unique(array)


def tree_path(name: str, parent: Vector | None, v: Position) -> list[int]:
    """The vertices on the path from the root of the tree `parent` to v; none if v is not in it."""
    if parent is None:
        raise ValueError(
            f"{name}.path_to: expected a result of parents=True, got one of parents=False"
        )
    v = _in_range(f"{name}.path_to: v", "v", v, parent.size)
    return path_from_root(f"{name}.path_to", parent, v)
