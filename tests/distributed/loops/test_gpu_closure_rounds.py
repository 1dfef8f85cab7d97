"""Closures in rounds on GPUs: several shards on one of them, and one or two on each of several; and
what is the same in every form for several shards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from closure_cases import CASES, check_nan, entries, expected, graph
from gpus import names, visible

from spgraph.backends.cuda.closure import closure_rounds as kernels
from spgraph.backends.cuda.closure.closure import program
from spgraph.containers import Matrix, Vector
from spgraph.distributed.loops import closure as closures
from spgraph.errors import ConvergenceError
from spgraph.iterations import closure
from spgraph.semirings import Semiring, min_plus, monoid

pytestmark = pytest.mark.gpu


@pytest.fixture(
    params=[
        ("cuda:0",) * 3,
        ("cuda:0", "cuda:1"),
        ("cuda:0", "cuda:1") * 2,
        tuple(f"cuda:{d}" for d in range(4)),
    ]
)
def devices(request: pytest.FixtureRequest) -> list[str]:
    visible(len(set(request.param)))
    return list(request.param)


def spread(A: Matrix, devices: list[str], how: str) -> Any:
    exchange = "nccl" if len(set(devices)) == len(devices) else "auto"
    return A.distribute(len(devices), devices=devices, partition=how, exchange=exchange)


@pytest.mark.parametrize("how", ["edges", "random"])
@pytest.mark.parametrize("edges", [40, 1 << 19])
def test_closures(
    devices: list[str], how: str, edges: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = f"#define SATURATED_EDGES {edges}\n#define THRESHOLD_EDGES 1\n"
    monkeypatch.setattr(kernels, "program", lambda *given: chosen + program(*given))
    for name in ("skewed both", "sparse directed", "grid", "many sources"):
        for case in ("distance, zeros", "width, float32", "narrowness", "reached"):
            made, kind = graph(name, CASES[case]), CASES[case]
            typed = kind.semiring.resolve(made.v.dtype, made.A.dtype)
            G = spread(made.A, devices, how)
            view = G.T  # a threshold needs it
            assert view.shards
            start = made.v.to(G.device)
            ordered = kind.semiring.monoid in (monoid.min, monoid.max)
            for delta in (1, 50) if ordered else (None,):
                found = closures.closure(G, start, typed, delta)
                assert entries(found.gather()) == expected(name, kind), (name, case, delta)


def test_no_fixed_point(devices: list[str]) -> None:
    A = Matrix.from_coo([0, 3, 4, 5], [3, 4, 0, 0], [4, 3, -8, 1], nrows=7, ncols=7)
    G = spread(A, devices, "edges")
    start = G.device.unit(0, 0, size=7, dtype=np.int64)
    typed = min_plus.resolve("int64", "int64")
    with pytest.raises(ConvergenceError, match="7 rounds"):
        closures.closure(G, start, typed, 3)
    # the queues and counters that this has left do not matter to the next one
    other = G.device.unit(6, 4, size=7, dtype=np.int64)
    assert entries(closures.closure(G, other, typed, 3).gather()) == {6: 4}


def test_one_closure_after_another(devices: list[str]) -> None:
    """A launch begins at the step before the last one of the launch before: of the same closure."""
    made = graph("grid", CASES["distance"])
    G = spread(made.A, devices, "edges")
    typed, start = min_plus.resolve(made.v.dtype, made.A.dtype), made.v.to(G.device)
    for _ in range(5):
        found = closures.closure(G, start, typed, 3)
        assert entries(found.gather()) == expected("grid", CASES["distance"])


@pytest.mark.parametrize(("shards", "exchange"), [(3, "auto"), (2, "nccl"), (2, "peer")])
@pytest.mark.parametrize("sign", [1, -1])
def test_nan(shards: int, exchange: str, sign: int) -> None:
    devices = ["cuda:0"] * shards if exchange == "auto" else names(shards)

    def run(A: Matrix, start: Vector, semiring: Semiring) -> Any:
        G = A.distribute(shards, devices=devices, exchange=exchange)
        return closure(G, start.to(G.device), semiring, delta=2.5)

    check_nan(run, sign)
