"""Components on several GPUs, and of several shards on one, equal those of one GPU: about the giant
and by forests, through NCCL and through peer memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import spgraph as sg
from spgraph.distributed.loops import components
from tests.distributed.test_gpu_distributed import PLACEMENTS, spread

pytestmark = pytest.mark.gpu


def graphs() -> dict[str, sg.Matrix]:
    one = sg.generators.kronecker(13, 8, seed=2)
    n = one.nrows
    ends = [np.concatenate([x, x + n]) for x in one.to_coo()[:2]]
    return {
        "kronecker": sg.generators.kronecker(15, 16, seed=1),
        "two": sg.Matrix.from_coo(*ends, nrows=2 * n, ncols=2 * n, symmetric=True),
        "grid": sg.generators.grid(150, 150, remove=0.3),
        "directed": sg.generators.kronecker(13, 4, seed=1, symmetric=False),
    }


@pytest.mark.parametrize(("shards", "exchange", "how"), PLACEMENTS)
def test_labels(shards: int, exchange: str, how: str) -> None:
    for name, A in graphs().items():
        expected = sg.connected_components(A)
        G: Any = spread(A, shards, exchange, how)
        plan = components.plan_of(G)
        for _ in range(3):  # lists have grown, or the giant was given up, after the first
            found: Any = components.by_kernels(G, bool(A.symmetric))
            assert found.gather().isequal(expected), name
            for sampled in {False, bool(A.symmetric)}:
                found = components.by_forests(G, plan, sampled)
                assert found.gather().isequal(expected), (name, sampled)
        assert (plan.giant is not None) == (name == "kronecker" and exchange == "peer")
