"""Communities by label propagation on every device, against plain loops."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from fixtures_device import device  # noqa: F401
from networkx_cases import GRAPHS, case

import spgraph as sg
from spgraph.algorithms.greedy_color import greedy_color
from spgraph.algorithms.label_propagation import label_propagation
from spgraph.errors import ConvergenceError

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")


def propagate(both: nx.Graph, color: list[int]) -> dict[int, int]:
    """Labels colour by colour, until none changes."""
    label = {v: v for v in both}
    while True:
        last = dict(label)
        for c in range(max(color) + 1):
            fresh = {}
            for v in (v for v in both if color[v] == c and both[v]):
                count = Counter(label[u] for u in both[v])
                most = max(count.values())
                first = min(k for k in count if count[k] == most)
                fresh[v] = label[v] if count[label[v]] == most else first
            label |= fresh
        if label == last:
            return label


@pytest.mark.parametrize("name", GRAPHS)
def test_labels_equal_those_of_plain_loops(name: str, device: str) -> None:
    S, both = case(name)
    A = sg.Matrix.from_scipy(S).to(device)
    found = label_propagation(A, seed=9)
    assert found.storage == "full" and found.dtype.kind == "i"
    label = found.to_numpy().tolist()
    expected = propagate(both, greedy_color(A, seed=9).to_numpy().tolist())
    assert label == [expected[v] for v in range(len(label))]
    for v in both:
        count = Counter(label[u] for u in both[v])
        assert not count or count[label[v]] == max(count.values())


def test_labels_find_cliques(device: str) -> None:
    for G, communities in ((nx.caveman_graph(12, 8), 12), (nx.connected_caveman_graph(12, 8), 6)):
        label = label_propagation(sg.Matrix.from_networkx(G).to(device), seed=1).to_numpy()
        cliques = label.reshape(12, 8)
        assert (cliques == cliques[:, :1]).all()
        assert len(set(label.tolist())) >= communities


def test_labels_that_do_not_come_to_rest(device: str) -> None:
    A = sg.generators.grid(20, 20, device=device)
    with pytest.raises(ConvergenceError, match="label_propagation: .* after 1 sweeps") as error:
        label_propagation(A, max_iter=1, seed=1)
    result: Any = error.value.result
    assert result.size == 400 and len(set(result.to_numpy().tolist())) < 400


def test_bad_max_iter() -> None:
    A = sg.generators.grid(2, 2)
    for limit in (-1, 1.5, True):
        with pytest.raises(ValueError, match="label_propagation: max_iter: expected an integer"):
            label_propagation(A, max_iter=limit)


def test_bad_seed() -> None:
    with pytest.raises(ValueError, match="label_propagation: seed: expected an integer from 0"):
        label_propagation(sg.Matrix.empty(2, 2), seed=-1)
