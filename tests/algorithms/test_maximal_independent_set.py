"""Maximal independent sets on every device, against taking vertices in turn."""

from __future__ import annotations

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401
from networkx_cases import GRAPHS, case

import spgraph as sg
from spgraph.algorithms.maximal_independent_set import maximal_independent_set
from spgraph.algorithms.random_words import random_words


@pytest.mark.parametrize("name", GRAPHS)
def test_the_set_is_that_of_taking_vertices_in_turn(name: str, device: str) -> None:
    S, both = case(name)
    found = maximal_independent_set(sg.Matrix.from_scipy(S).to(device), seed=3)
    assert found.storage == "full" and found.dtype == np.bool_
    words = random_words("", 3, S.shape[0], "cpu").to_numpy()
    expected: set[int] = set()
    for v in np.argsort(words)[::-1].tolist():
        if not expected & set(both[v]):
            expected.add(v)
    assert set(np.flatnonzero(found.to_numpy()).tolist()) == expected
