"""Core numbers on every device, against NetworkX."""

from __future__ import annotations

import pytest
from fixtures_device import device  # noqa: F401
from networkx_cases import GRAPHS, case

import spgraph as sg
from spgraph.algorithms.core_number import core_number

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")


@pytest.mark.parametrize("name", GRAPHS)
def test_equals_networkx(name: str, device: str) -> None:
    S, both = case(name)
    found = core_number(sg.Matrix.from_scipy(S).to(device))
    assert found.storage == "full" and found.dtype.kind == "i"
    expected = nx.core_number(both)
    assert found.to_numpy().tolist() == [expected[v] for v in range(S.shape[0])]
