"""Times are no numbers, although NumPy's are integers by their class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import spgraph as sg
from spgraph.containers.storage.numbers import is_integer, is_real
from spgraph.iterations import closure, search

A = sg.Matrix.from_coo([0, 1], [1, 2], [1.0, 2.0], nrows=3, ncols=3)
V = sg.Vector.from_dense([1.0, 2.0, 3.0])
START = sg.Vector.from_coo([0], [0.0], size=3)

CALLS: dict[str, Callable[[Any], Any]] = {
    "bfs": lambda t: sg.bfs(A, t),
    "sssp": lambda t: sg.sssp(A, t),
    "sources": lambda t: sg.betweenness_centrality(A, sources=t),
    "betweenness k": lambda t: sg.betweenness_centrality(A, k=t, seed=1),
    "seed": lambda t: sg.maximal_independent_set(A, seed=t),
    "max_iter": lambda t: sg.pagerank(A, max_iter=t),
    "tol": lambda t: sg.pagerank(A, tol=t),
    "delta": lambda t: closure(A, START, "min_plus", delta=t),
    "max_depth": lambda t: search(A, START, "any_pair", max_depth=t),
    "element": lambda t: V[t],
    "matrix element": lambda t: A[t, 0],
    "row": lambda t: A[0, t],
    "written": lambda t: V.dup().__setitem__(t, 1.0),
    "matrix written": lambda t: A.dup().__setitem__((t, 0), 1.0),
    "extract": lambda t: sg.extract(A, t, slice(None)),
    "assign": lambda t: sg.assign(V.dup(), 1.0, t),
    "diag": lambda t: sg.diag(V, t),
    "axis": lambda t: A.sum(axis=t),
    "size": lambda t: sg.Vector.filled(1.0, size=t),
    "unit": lambda t: sg.Vector.unit(t, 1.0, size=3, dtype=float),
    "nrows": lambda t: sg.Matrix.from_coo([0], [0], nrows=t, ncols=3),
    "scale": lambda t: sg.generators.kronecker(t),
    "shards": lambda t: A.distribute(t),
}


@pytest.mark.parametrize("unit", ["ns", "s", None])
@pytest.mark.parametrize("call", CALLS)
def test_times_are_no_integers(call: str, unit: str | None) -> None:
    time = np.timedelta64(1) if unit is None else np.timedelta64(1, unit)
    with pytest.raises((TypeError, ValueError), match=r"expected|cannot|index"):
        CALLS[call](time)


def test_what_counts_as_a_number() -> None:
    for value in (3, np.int8(3), np.uint64(3)):
        assert is_integer(value) and is_real(value)
    for value in (3.0, np.float32(3)):
        assert not is_integer(value) and is_real(value)
    for value in (True, np.True_, np.timedelta64(3), np.timedelta64(3, "s"), "3", None, 3j):
        assert not is_integer(value) and not is_real(value)
