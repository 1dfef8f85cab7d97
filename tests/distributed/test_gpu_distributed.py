"""Containers in blocks on GPUs give what plain ones on the CPU give: several blocks on one GPU by
plain copies, one block a GPU through NCCL and through peer memory.
"""

from __future__ import annotations

from typing import Any

import distributed_cases as cases
import pytest

import spgraph as sg

pytestmark = pytest.mark.gpu


def placements() -> list[Any]:
    """(blocks, exchange, partition) for the GPUs that there are."""
    try:
        from spgraph.containers.arrays import import_cupy

        count = import_cupy().cuda.runtime.getDeviceCount()
    except sg.errors.BackendUnavailable:
        count = 0
    found = [(3, "auto", "edges"), (3, "auto", "random")]
    for blocks in (2, 4):
        lacking = pytest.mark.skipif(count < blocks, reason=f"needs {blocks} GPUs, got {count}")
        for exchange in ("nccl", "peer"):
            for how in ("edges", "random"):
                found.append(pytest.param(blocks, exchange, how, marks=lacking))  # type: ignore[arg-type]
    return found


def spread(A: sg.Matrix, blocks: int, exchange: str, how: str) -> Any:
    devices = ["cuda:0"] * blocks if exchange == "auto" else "cuda"
    return A.distribute(blocks, devices=devices, partition=how, exchange=exchange)


@pytest.mark.parametrize(("blocks", "exchange", "how"), placements())
@pytest.mark.parametrize(
    "case",
    [
        cases.check_products,
        cases.check_elements,
        cases.check_structure,
        cases.check_matrix_products,
        cases.check_counting,
        cases.check_writes,
        cases.check_loops,
        cases.check_power,
    ],
)
def test_operations_and_loops(case: Any, blocks: int, exchange: str, how: str) -> None:
    A = cases.graph()
    G = spread(A, blocks, exchange, how)
    case(A, G, lambda container: container.to(G.device))


@pytest.mark.parametrize(("blocks", "exchange", "how"), placements())
def test_algorithms(blocks: int, exchange: str, how: str) -> None:
    A, S = cases.graph(), cases.graph(symmetric=True)
    G, H = spread(A, blocks, exchange, how), spread(S, blocks, exchange, how)
    cases.check_algorithms(A, G, S, H)
