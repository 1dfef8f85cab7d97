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
from two_devices import CudaArray, two_devices  # noqa: F401

import spgraph as sg
from spgraph import generators, operations
from spgraph.containers.storage import selection
from spgraph.containers.storage.arrays import device_of, on_device, on_its_device
from spgraph.containers.storage.one_entry import OneEntry, entry_of
from spgraph.operations.arrays import _dense
from spgraph.random_edges import LOOP
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


# block_array looks for the device of the matrices in a list: CALLS have it
@pytest.mark.parametrize("name", sorted(set(operations.__all__) - {"block_array"}))
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


# --- more elements than a C int counts -----------------------------------------------------------


def generated(device: str) -> Any:
    """A generated graph, whose edges are made on the host."""
    keys = np.array([u << 32 | v for u in range(6) for v in range(u)] + [5, 3 << 32, LOOP, LOOP])
    with on_device(device) as xp:
        A = generators._from_keys(xp.asarray(np.concatenate([keys, keys])), 6, symmetric=True)
    return A.indptr, A.indices


def with_repeated(device: str) -> Any:
    rows = np.arange(60) % 40
    with on_device(device) as xp:
        A = sg.Matrix.from_coo(xp.asarray(rows), xp.asarray(rows), True, nrows=40, ncols=40)
    return A.indptr, A.indices


def filled(device: str) -> Any:
    with on_device(device):
        return _dense(sg.Vector.from_coo([1, 2], [3, 4], size=50).to(device), np.int64(7))


LARGE: dict[str, Callable[[str], Any]] = {
    "kronecker": generated,
    "grid": lambda device: sg.generators.grid(3, 20, device=device).indices,
    "from_coo": with_repeated,
    "nonzero": lambda device: sg.Matrix(np.eye(40)).to(device).nonzero(),
    "select": lambda device: sg.Matrix(np.eye(40)).to(device)._where(lambda x: x > 0).indices,
    "slice": lambda device: sg.Vector.from_coo(range(40), 1.5, size=50).to(device)[:45].values,
    "fill": filled,
}


@pytest.mark.parametrize("name", LARGE)
def test_more_elements_than_a_c_int_counts(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CuPy refuses to choose 2**31 elements by flags; its stand-in refuses 16 here."""
    right = LARGE[name]("cpu")
    request.getfixturevalue("two_devices")
    get, set_ = CudaArray.__getitem__, CudaArray.__setitem__

    def counted(at: Any) -> Any:
        for part in at if isinstance(at, tuple) else (at,):
            if isinstance(part, np.ndarray) and part.dtype == bool and np.count_nonzero(part) >= 16:
                raise OverflowError("value too large to convert to int")
        return at

    monkeypatch.setattr(CudaArray, "__getitem__", lambda self, at: get(self, counted(at)))
    monkeypatch.setattr(CudaArray, "__setitem__", lambda self, at, x: set_(self, counted(at), x))
    monkeypatch.setattr(selection, "STEP", 15)
    found = LARGE[name]("cuda:1")
    pairs = zip(found, right, strict=True) if isinstance(right, tuple) else [(found, right)]
    for got, wanted in pairs:
        assert device_of(got) == "cuda:1"
        assert got.get().tolist() == wanted.tolist() and got.dtype == wanted.dtype


@pytest.mark.gpu
def test_more_elements_than_a_c_int_counts_on_a_gpu() -> None:
    with on_device("cuda:0") as xp:
        flags, values = xp.ones(2**31 + 3, bool), xp.zeros(2**31 + 3, np.int8)
        flags[1], values[-2:] = False, xp.asarray([4, 5], np.int8)
        found = selection.compress(flags, values)
        assert (found.size, found[-3:].tolist()) == (2**31 + 2, [0, 4, 5])
