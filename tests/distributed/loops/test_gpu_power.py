"""Power iteration on several shards of one GPU, whose iterates are divided by a norm."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

import spgraph as sg
from spgraph.iterations.power_iteration import Hop, Step, power

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("norm", [1, 2, "max"])
def test_iterates_are_divided_by_their_norm(norm: Literal[1, 2, "max"]) -> None:
    A = sg.generators.kronecker(10, 8, seed=1)
    x = sg.Vector.from_dense(np.random.default_rng(2).random(A.nrows))
    expected = power(x, Step((Hop(A),)), norm=norm, max_iter=20, tol=None)
    G = A.distribute(3, devices=["cuda:0"] * 3)
    found = power(x.to(G.device), Step((Hop(G),)), norm=norm, max_iter=20, tol=None)
    got = found.value.gather().to_numpy()
    np.testing.assert_allclose(got, expected.value.to_numpy(), rtol=1e-12)
