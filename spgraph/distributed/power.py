"""The power iteration: every block iterates over its own vertices, in step with the others."""

from __future__ import annotations

from typing import Any

from spgraph.containers import Vector
from spgraph.containers.arrays import Array, array_module, on_device
from spgraph.distributed.placement import Placement
from spgraph.distributed.vector import DistributedVector
from spgraph.semirings import TypedSemiring

# the sum over vertices that is a greatest one where the norm is
SIZE, SUMS = 2, 3


def power(
    x: Any,
    matrices: tuple[Any, ...],
    scales: tuple[Any, ...],
    semiring: TypedSemiring,
    constants: tuple[float, float, float, float],
    restart: Any,
    norm: Any,
    tol: float | None,
    max_iter: int,
    single: bool,
) -> tuple[Vector, Any]:
    """As `power` of a backend. In every iteration each block's part of what a hop gathers goes to
    all blocks, and three sums of vertices are shared; with a `tol` one of them is read.
    """
    placement, n = x.device, x.size

    def of_block(v: Any, k: int) -> Any:
        return v.blocks[k].to_bitmap() if isinstance(v, Vector) else v  # type: ignore[attr-defined]

    steps, answers = [], [None] * len(x.blocks)
    for k, start in enumerate(x.blocks):
        steps.append(
            placement.plain(k).power_block(
                start.to_bitmap(),
                tuple(M.blocks[k] for M in matrices),
                tuple(of_block(scale, k) for scale in scales),
                *(semiring, constants, of_block(restart, k), norm, tol, max_iter, single),
            )
        )
    while True:
        questions, found = [], []
        for k, step in enumerate(steps):
            with on_device(placement.devices[k]):
                try:
                    questions.append(step.send(answers[k]))
                except StopIteration as end:
                    found.append(end.value)
        if found:
            blocks = [value for value, _ in found]
            return DistributedVector(n, blocks, placement), found[0][1]
        arrays = [array for _, array in questions]
        answers = ANSWERS[questions[0][0]](arrays, placement, n, norm)


def _gathered(parts: list[Array], placement: Placement, n: int, norm: Any) -> list[Array]:
    partition = placement.partition(n)
    whole = placement.communicator.all_gather(parts, sizes=partition.sizes)
    if partition.ids is None:
        return whole
    return placement.map(lambda k, x: partition.by_id(x), whole)


def _totals(parts: list[Array], placement: Placement, n: int, norm: Any) -> list[Array]:
    every = placement.communicator.all_gather(parts, sizes=[SUMS] * placement.blocks)
    totals = []
    for device, table in zip(placement.devices, every, strict=True):
        with on_device(device):  # nothing here waits: a thread for each would cost more
            totals.append(_summed(table.reshape(-1, SUMS), norm))
    return totals


def _summed(table: Array, norm: Any) -> Array:
    totals = table.sum(axis=0)
    if norm == "max":
        totals[SIZE:] = array_module(table).max(table[:, SIZE])
    return totals


def _change(totals: list[Array], placement: Placement, n: int, norm: Any) -> list[Any]:
    return [float(values[0]) for values in placement.communicator.fetch(totals)]


# what a block may ask for
ANSWERS = {"gather": _gathered, "totals": _totals, "change": _change}
