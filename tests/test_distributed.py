"""Containers in blocks give what plain ones give: operations, loops, algorithms."""

from __future__ import annotations

from typing import Any

import distributed_cases as cases
import numpy as np
import pytest

BLOCKS = [1, 2, 3, 4, 7]


def partitions(n: int, blocks: int) -> dict[str, Any]:
    """'own' leaves a block empty where there are several."""
    own = np.random.default_rng(2).integers(0, max(1, blocks - 1), n)
    return {"edges": "edges", "random": "random", "biased": "biased", "own": own}


def spread_like(G: Any) -> Any:
    return lambda container: container.to(G.device)


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("how", ["edges", "random", "own"])
@pytest.mark.parametrize(
    "case",
    [
        cases.check_products,
        cases.check_elements,
        cases.check_structure,
        cases.check_matrix_products,
        cases.check_loops,
    ],
)
def test_operations_and_loops(case: Any, how: str, blocks: int) -> None:
    A = cases.graph()
    G = A.distribute(blocks, partition=partitions(A.nrows, blocks)[how])
    case(A, G, spread_like(G))


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("how", ["edges", "biased", "own"])
def test_algorithms(how: str, blocks: int) -> None:
    A, S = cases.graph(), cases.graph(symmetric=True)
    G, H = (X.distribute(blocks, partition=partitions(X.nrows, blocks)[how]) for X in (A, S))
    cases.check_algorithms(A, G, S, H)


def test_metis() -> None:
    pytest.importorskip("pymetis", reason="pymetis is not installed: extra 'partition'")
    S = cases.graph(symmetric=True)
    H = S.distribute(3, partition="metis")
    cases.check_loops(S, H, spread_like(H))
    assert H.partition.report().border.sum() <= S.nvals
