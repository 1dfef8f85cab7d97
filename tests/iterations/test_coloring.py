"""Greedy colourings in an order, against a loop over the vertices."""

from __future__ import annotations

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401
from networkx_cases import GRAPHS, case

import spgraph as sg
from spgraph.algorithms.triangle_count import undirected
from spgraph.iterations.coloring import (
    choose_greedily,
    color_greedily,
    composed_choice,
    composed_coloring,
)

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")


def one_by_one(both: nx.Graph, power: np.ndarray, word: np.ndarray) -> list[int]:
    color: dict[int, int] = {}
    for v in sorted(both, key=lambda v: (-int(power[v]), int(word[v]))):
        seen = {color[u] for u in both[v] if u in color}
        color[v] = next(c for c in range(len(seen) + 1) if c not in seen)
    return [color[v] for v in sorted(color)]


@pytest.mark.parametrize("levels", [1, 3])
@pytest.mark.parametrize("name", GRAPHS)
def test_colours_are_those_of_a_loop(name: str, levels: int, device: str) -> None:
    S, both = case(name)
    random = np.random.default_rng(4)
    power = random.integers(0, levels, S.shape[0]).astype(np.int8)
    word = random.permutation(S.shape[0]).astype(np.uint64) << np.uint64(40)
    A = undirected("test", sg.Matrix.from_scipy(S).to(device))
    order = sg.Vector.from_dense(power).to(device), sg.Vector.from_dense(word).to(device)
    weight = sg.Vector.from_dense(random.integers(4, 8, power.size) << power).to(device)
    found = color_greedily(A, weight, order[1])
    assert found.storage == "full" and found.dtype == np.int32 and found.device == A.device
    assert found.to_numpy().tolist() == one_by_one(both, power, word)
    assert found.isequal(composed_coloring(A, *order), check_dtype=True)


@pytest.mark.parametrize("name", GRAPHS)
def test_the_choice_is_that_of_a_loop(name: str, device: str) -> None:
    S, both = case(name)
    word = np.random.default_rng(6).permutation(S.shape[0]).astype(np.uint64) << np.uint64(40)
    chosen: set[int] = set()
    for v in sorted(both, key=lambda v: -int(word[v])):
        if not chosen & set(both[v]):
            chosen.add(v)
    A = undirected("test", sg.Matrix.from_scipy(S).to(device))
    order = sg.Vector.from_dense(word).to(device)
    found = choose_greedily(A, order)
    assert found.storage == "full" and found.dtype == bool and found.device == A.device
    assert set(np.flatnonzero(found.to_numpy()).tolist()) == chosen
    assert found.isequal(composed_choice(A, order), check_dtype=True)
    assert np.array_equal(order.to_numpy(), word)


def test_more_colours_than_a_word_has_bits(device: str) -> None:
    A = sg.Matrix.from_dense(1 - np.eye(150, dtype=np.int64)).pattern().to(device)
    A.symmetric = True
    word = np.random.default_rng(5).permutation(150)
    order = sg.Vector.filled(1, size=150).to(device), sg.Vector.from_dense(word).to(device)
    assert color_greedily(A, *order).to_numpy().tolist() == word.tolist()
    assert composed_coloring(A, *order).to_numpy().tolist() == word.tolist()
