"""Containers that lie on another GPU than the current one: what they are asked for happens there,
without a GPU by what stands for two.
"""

from __future__ import annotations

import cuda_host_shim
import pytest
from calls_on_a_device import ALGORITHMS, CALLS, GIVEN, check
from gpus import visible
from two_devices import two_devices  # noqa: F401

import spgraph as sg
from spgraph import operations
from spgraph.containers.storage.arrays import on_device, on_its_device

# operations that compile kernels which say nothing new: all have the same decorator
COMPILING = set(operations.__all__) - {"assign", "extract", "diag"}
COMPILING |= {"+ - *", "comparisons", "@", "matvec", "matmat", "agg", "mean", "min", "max"}
COMPILING |= {"v[mask]", "extract, Matrix", "extract, mask", "assign, Matrix", "assign, mask"}
CASES = [
    pytest.param(name, marks=pytest.mark.full)
    if COMPILING & {name, name.partition(",")[0]}
    else name
    for name in CALLS
]


@pytest.mark.parametrize("name", operations.__all__)
def test_operations_run_where_their_operand_is(name: str) -> None:
    def call(container: sg.Vector) -> None:
        pass

    assert getattr(operations, name).__code__ is on_its_device(call).__code__  # type: ignore[attr-defined]


@pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")
@pytest.mark.parametrize("name", CASES)
def test_on_the_other_device(name: str, request: pytest.FixtureRequest) -> None:
    right = CALLS[name](GIVEN.to("cpu"))
    request.getfixturevalue("two_devices")  # after what the CPU computes
    check(CALLS[name], "cuda:1", right)


@pytest.mark.gpu
@pytest.mark.parametrize("name", CALLS | ALGORITHMS)
def test_on_the_other_gpu(name: str) -> None:
    visible(2)
    call = (CALLS | ALGORITHMS)[name]
    right = call(GIVEN.to("cpu"))
    with on_device("cuda:0"):
        check(call, "cuda:1", right)
