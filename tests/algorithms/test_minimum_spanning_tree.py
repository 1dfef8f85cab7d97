"""Minimum spanning trees on every device, against Kruskal's algorithm and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401
from networkx_cases import GRAPHS, case
from scipy.sparse import csgraph

import spgraph as sg
from spgraph.algorithms.minimum_spanning_tree import minimum_spanning_tree

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")


def kruskal(S: Any) -> set[tuple[int, int, Any]]:
    """The entries of the tree, equal weights in the order of (i, j)."""
    C = S.tocoo()
    edges = sorted(zip(C.data.tolist(), C.row.tolist(), C.col.tolist(), strict=True))
    trees = nx.utils.UnionFind(range(S.shape[0]))
    kept = set()
    for weight, i, j in edges:
        if trees[i] != trees[j]:
            trees.union(i, j)
            kept.add((i, j, weight))
    return kept


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(
    "kind", ["int64", "float32", pytest.param("uint8", marks=pytest.mark.full), "iso"]
)
def test_tree_equals_kruskal_and_scipy(name: str, kind: str, device: str) -> None:
    S, _ = case(name)
    A = sg.Matrix.from_scipy(S)
    if kind == "iso":
        A = A.pattern()
        A.is_symmetric()
    elif kind == "float32":
        A = A.dup(kind)
        A._values[:] = np.random.default_rng(2).standard_normal(A.nvals)
    else:
        A = A.dup(kind)
    S = A.to_scipy()
    found = minimum_spanning_tree(A.to(device))
    assert found.shape == A.shape and found.dtype == A.dtype and found.device.startswith(device)
    assert set(found) == kruskal(S)
    T = csgraph.minimum_spanning_tree(S.astype(np.float64))
    assert found.nvals == T.nnz
    assert np.isclose(found.to_scipy().astype(np.float64).sum(), T.sum())


def test_tree_of_a_symmetric_matrix_keeps_first_entries(device: str) -> None:
    A = sg.generators.kronecker(9, 6).to(device)
    tree = minimum_spanning_tree(A)
    assert tree.iso and all(i < j for i, j, _ in tree)
    assert set(tree) == kruskal(A.to_scipy())


def test_tree_keeps_edges_of_weight_zero_and_the_lesser_direction(device: str) -> None:
    A = sg.Matrix.from_coo([0, 1, 1, 2, 2], [1, 0, 2, 1, 0], [5, 3, 0, 7, 9], nrows=4, ncols=4)
    assert list(minimum_spanning_tree(A.to(device))) == [(1, 0, 3), (1, 2, 0)]
    zero = sg.Matrix.from_coo([0, 0, 1, 2], [1, 2, 2, 0], [0.0, -0.0, 0.0, -np.inf])
    assert list(minimum_spanning_tree(zero.to(device))) == [(0, 1, 0.0), (2, 0, -np.inf)]


def test_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="minimum_spanning_tree: A: .* got NaN"):
        minimum_spanning_tree([[0.0, np.nan], [1.0, 0.0]])
