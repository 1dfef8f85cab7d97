"""Colourings on every device, by what makes one greedy."""

from __future__ import annotations

import pytest
from fixtures_device import device  # noqa: F401
from networkx_cases import GRAPHS, case

import spgraph as sg
from spgraph.algorithms.greedy_color import greedy_color


@pytest.mark.parametrize("name", GRAPHS)
def test_every_vertex_has_the_least_colour_that_it_can(name: str, device: str) -> None:
    S, both = case(name)
    found = greedy_color(sg.Matrix.from_scipy(S).to(device), seed=3)
    assert found.storage == "full" and found.dtype.kind == "i"
    color = found.to_numpy().tolist()
    for v in both:
        seen = {color[u] for u in both[v]}
        assert color[v] not in seen
        assert seen >= set(range(color[v]))
    assert max(color) <= max(degree for _, degree in both.degree)
