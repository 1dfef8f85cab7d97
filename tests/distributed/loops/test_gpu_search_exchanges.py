"""Searches over any semiring on one GPU, on several that write into each other's memory, through
NCCL, and in shards on one.
"""

from __future__ import annotations

from typing import Any

import gpus
import numpy as np
import pytest
from search_cases import CASES, check_search, gathered

import spgraph as sg
from spgraph.iterations import search
from spgraph.semirings import (
    BinaryOp,
    Semiring,
    any_first,
    max_first,
    min_plus,
    monoid,
    plus_first,
)

pytestmark = pytest.mark.gpu

EXCHANGES = {
    "one": (1, ""),
    "3 shards on one": (1, "auto"),
    "2 peers": (2, "peer"),
    "4 peers": (4, "peer"),
    "2 by NCCL": (2, "nccl"),
    "4 by NCCL": (4, "nccl"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_all_semirings(exchange: str, case: str) -> None:
    """Integers, min and max equal plain loops in all bits, whoever adds the products."""
    count, how = EXCHANGES[exchange]
    devices = gpus.names(count)

    def place(A: Any) -> Any:
        if not how:
            return A.to(devices[0])
        named = devices * 3 if how == "auto" else devices
        return A.distribute(len(named), devices=named, exchange=how)

    for name in ("skewed both", "sparse directed", "dense directed"):
        for direction in ("auto", "push", "pull"):
            check_search(name, case, place, direction)


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("name", ["kronecker", "grid"])
def test_large_graphs_on_peers(count: int, name: str) -> None:
    """As on one GPU; five times, since what goes wrong between devices does not go wrong always."""
    devices = gpus.names(count)
    generators = sg.generators
    A = generators.kronecker(17, 16, seed=1) if name == "kronecker" else generators.grid(300, 500)
    rng = np.random.default_rng(2)
    W = sg.Matrix.from_coo(*A.to_coo()[:2], rng.integers(1, 99, A.nvals), nrows=A.nrows)
    source = int(A.row_degrees().values.argmax())
    for semiring, B, start, kind in (
        (plus_first, A, 1.0, "float64"),
        (max_first, A, -7, "int16"),
        (min_plus, W, 0, "int64"),
        (any_first, A, 3, "uint8"),
    ):
        one, G = B.to(devices[0]), B.distribute(count, devices=devices, exchange="peer")

        def found(C: Any, direction: Any, semiring=semiring, start=start, kind=kind) -> Any:  # type: ignore[no-untyped-def]
            begin = sg.Vector.unit(source, start, size=A.nrows, dtype=kind).to(C.device)
            return search(C, begin, semiring, direction=direction)

        expected = found(one, "auto")
        for direction in ("auto", "push", "pull") if name == "kronecker" else ("auto",):
            for _ in range(5):
                got = found(G, direction)
                assert gathered(got.level).isequal(gathered(expected.level))
                value, right = gathered(got.value), gathered(expected.value)
                assert (
                    value.isclose(right, rtol=1e-12) if kind == "float64" else value.isequal(right)
                )


@pytest.mark.parametrize("how", ["peer", "nccl"])
def test_an_operator_named_as_one_that_gives_ids(how: str) -> None:
    """A user's `secondi` gives numbers that are no ids."""
    devices = gpus.names(2)
    A = sg.generators.grid(20, 30)
    semiring = Semiring(monoid.min, BinaryOp.define(lambda x, y: x + 0.5, "secondi"))
    start = sg.Vector.unit(7, 0.0, size=A.nrows, dtype="float64")
    expected = search(A, start, semiring)
    G = A.distribute(2, devices=devices, exchange=how)
    found = search(G, start.to(G.device), semiring)
    assert found.value is not None and expected.value is not None
    assert gathered(found.value).isequal(expected.value)
