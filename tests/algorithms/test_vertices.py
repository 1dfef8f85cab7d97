"""The arguments of algorithms: what is taken for a graph, a vertex, several vertices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import spgraph as sg
from spgraph.algorithms.vertices import vertex, vertices
from spgraph.checks import square
from spgraph.errors import DimensionMismatch, DomainMismatch, IndexOutOfBound

A = sg.Matrix.from_coo([0, 1, 2], [1, 2, 3], nrows=4, ncols=4)


def test_square() -> None:
    assert square("f", A) is A
    assert square("f", np.eye(3)).shape == (3, 3)
    with pytest.raises(
        DimensionMismatch,
        match=r"f: A: expected a square matrix, got 2 x 3; .* from_coo with nrows= and ncols= ",
    ):
        square("f", np.ones((2, 3)))


@pytest.mark.parametrize("source", [3, np.int8(3), np.uint64(3)])
def test_a_vertex_is_an_integer(source: Any) -> None:
    found = vertex("f", A, source)
    assert type(found) is int and found == 3


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (4, IndexOutOfBound, "f: root: expected 0 <= source < 4, got 4"),
        (-1, IndexOutOfBound, "got -1"),
        (2.0, DomainMismatch, "f: root: expected an integer, got 2.0"),
        (True, DomainMismatch, "got True"),
    ],
)
def test_vertices_that_are_refused(source: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        vertex("f", A, source, "root")


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        (2, [2]),
        ([3, 0, 3], [0, 3]),
        ((), []),
        (range(1, 3), [1, 2]),
        (np.array([1, 1], np.uint8), [1]),
    ],
)
def test_vertices_come_ascending_and_once(sources: Any, expected: list[int]) -> None:
    found = vertices("f", A, sources)
    assert found.dtype.kind in "iu" and found.tolist() == expected


@pytest.mark.parametrize("sources", [[0.5], "ab", [[0]], True, None, [True]])
def test_what_is_no_sequence_of_vertices(sources: Any) -> None:
    with pytest.raises(DomainMismatch, match="f: sources: expected a vertex or a sequence"):
        vertices("f", A, sources)


def test_the_first_vertex_outside_is_named() -> None:
    with pytest.raises(IndexOutOfBound, match="f: sources: expected 0 <= source < 4, got 7"):
        vertices("f", A, [1, 7, -3])
