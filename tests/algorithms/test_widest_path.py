"""Widest paths on every device, against plain loops and maximum spanning trees of NetworkX."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from closure_cases import GRAPHS, check_paths, check_random_paths, weighted
from fixtures_device import device  # noqa: F401
from hypothesis import given
from hypothesis import strategies as st

import spgraph as sg
from spgraph.algorithms import widest_path
from spgraph.errors import DimensionMismatch, DomainMismatch, IndexOutOfBound

networkx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")

# case of weights: value of the source
CASES = {"width": np.iinfo(np.int64).max, "width, float32": np.inf}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", GRAPHS)
def test_values_and_parents(name: str, case: str, device: str) -> None:
    check_paths(widest_path, name, case, CASES[case], max, min, device)


@given(st.data())
def test_small_graphs_with_many_ties(data: Any) -> None:
    check_random_paths(data, widest_path, 2**63 - 1, max, min)


def test_equals_networkx(device: str) -> None:
    """The widest path lies in the maximum spanning tree."""
    S = weighted(sg.generators.uniform_random(300, 4, seed=8), np.int64)
    tree = networkx.maximum_spanning_tree(networkx.from_scipy_sparse_array(S))
    width = widest_path(sg.Matrix.from_scipy(S).to(device), 5).width.to_numpy(fill=-1)
    for v, path in networkx.single_source_shortest_path(tree, 5).items():
        edges = list(pairwise(path))
        assert v == 5 or width[v] == min(tree.edges[edge]["weight"] for edge in edges)


def test_a_pattern_has_true_widths(device: str) -> None:
    pattern = sg.Matrix.from_dense(np.array([[0, 2, 9], [0, 0, 3], [0, 0, 0]])).pattern()
    width = widest_path(pattern.to(device), 0, parents=False).width
    assert width.dtype == bool and width.to_numpy().tolist() == [True, True, True]


def test_bad_input() -> None:
    A = sg.Matrix.from_coo([0, 1, 2], [1, 2, 3], [4.0, np.nan, 3.0], nrows=4, ncols=4)
    with pytest.raises(IndexOutOfBound, match="widest_path: source: .* got 9"):
        widest_path(A, 9)
    with pytest.raises(DomainMismatch, match="widest_path: source: .* got 1.5"):
        widest_path(A, 1.5)
    with pytest.raises(DimensionMismatch, match="widest_path: A: .* got 2 x 3"):
        widest_path(np.ones((2, 3)), 0)
    with pytest.raises(ValueError, match="^widest_path: A: .* = nan"):
        widest_path(A, 0)
