"""Containers that lie on another GPU than the current one: what they are asked for happens there,
without a GPU by what stands for two.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import cuda_host_shim
import numpy as np
import pytest
from calls_on_a_device import ALGORITHMS, CALLS, GIVEN, check
from gpus import visible
from two_devices import two_devices  # noqa: F401

import spgraph as sg
from spgraph import operations
from spgraph.containers.storage.arrays import device_of, on_device, on_its_device
from spgraph.containers.storage.one_entry import OneEntry, entry_of
from tests.containers.test_threads import interrupted

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


# --- a Vector of one entry, whose arrays are made when somebody looks at them --------------------


def unit() -> Any:
    return sg.Vector.unit(3, 7, size=9, dtype="int32", device="cuda:1")


def check_looks(given: Any) -> None:
    """What it says, and what is made of it, is what a plain Vector says."""
    v = given()
    assert type(v) is OneEntry and isinstance(v, sg.Vector)
    assert (v.nvals, v.size, v.shape, v.dtype, v.device) == (1, 9, (9,), np.int32, "cuda:1")
    index, value = entry_of(v)  # type: ignore[misc]
    assert (index.tolist(), value.tolist()) == ([3], [7])
    assert type(v) is OneEntry  # nothing of that has made arrays
    for look in ("indices", "values", "bits", "storage"):
        v = given()
        getattr(v, look)
        assert type(v) is sg.Vector and entry_of(v) is None, look
        assert v.storage == "sparse" and v.bits is None
        assert {device_of(a) for a in (v.indices, v.values)} == {"cuda:1"}
        assert v.to("cpu").isequal(sg.Vector.unit(3, 7, size=9, dtype="int32"))
    for same in (given().dup(), copy.deepcopy(given()), given().to_sparse(), given() + 0):
        assert type(same) is sg.Vector and list(same.to("cpu")) == [(3, 7)]
        assert same.device == "cuda:1"
    w = given()
    w[5] = 2
    assert list(w.to("cpu")) == [(3, 7), (5, 2)]


LOOKS: dict[str, Callable[[Any], Any]] = {
    "entry": lambda v: [a.tolist() for a in entry_of(v) or (v._indices, v._values)],
    "facts": lambda v: (v.dtype, v.device, v.nvals, v._value_range()),
    "arrays": lambda v: (v._values.tolist(), v._indices.tolist(), v._bits),
    "places": lambda v: (device_of(v._indices), device_of(v._values), v.storage),
    "copy": lambda v: copy.copy(v)._values.tolist(),
}


def test_arrays_are_made_when_somebody_looks(two_devices: None) -> None:
    check_looks(unit)


@pytest.mark.parametrize("name", LOOKS)
def test_another_thread_looks_at_every_line(name: str, two_devices: None) -> None:
    """The arrays are made once or twice, and all threads see the same ones."""
    expected = LOOKS[name](unit())
    for other in LOOKS.values():
        at, more = 0, True
        while more:
            at += 1
            v = unit()
            found, more = interrupted(
                lambda v=v: LOOKS[name](v), at, lambda v=v, other=other: other(v)
            )
            assert found == expected, at
            assert list(v.to("cpu")) == [(3, 7)] and type(v) is sg.Vector


def test_a_pickle_holds_a_plain_vector(two_devices: None) -> None:
    make, given, state = unit().__reduce_ex__(4)[:3]
    assert given[-1] is sg.Vector and state["nvals"] == 1 and state["values"].tolist() == [7]
    assert make is not None


@pytest.mark.gpu
def test_one_entry_on_a_gpu() -> None:
    v = sg.Vector.unit(3, 7, size=9, dtype="int32", device="cuda")
    assert type(v) is OneEntry and v.device == "cuda:0"
    assert list(pickle.loads(pickle.dumps(v)).to("cpu")) == [(3, 7)]
    assert list((v + 0).to("cpu")) == [(3, 7)] and type(v) is sg.Vector
    for value, dtype in ((True, bool), (0.25, float), (-5, "int8"), (2**63 + 1, "uint64")):
        w = sg.Vector.unit(8, value, size=9, dtype=dtype, device="cuda")
        assert list(w.to("cpu")) == [(8, value)]
