"""What algorithms ask of containers instead of their arrays."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph.containers.storage import values
from spgraph.containers.storage.arrays import array_module
from spgraph.errors import BackendMismatch, DomainMismatch, IndexOutOfBound
from spgraph.iterations.power_iteration import Hop, Step
from spgraph.semirings import binary


class Elsewhere:
    """Stands for containers' device where they are spread over several: it makes them itself."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **options: (name, args, options)


def test_constructors_leave_spread_containers_to_their_device() -> None:
    there: Any = Elsewhere()
    assert sg.Vector.empty(3, int, device=there) == ("empty", (3, int), {})
    unit = sg.Vector.unit(1, 2, size=3, dtype=int, device=there)
    assert unit == ("unit", (1, 2), {"size": 3, "dtype": int})
    assert sg.Vector.filled(1, size=3, device=there)[0] == "filled"
    assert sg.Vector.arange(3, device=there) == ("arange", (3,), {"dtype": None})
    assert sg.Vector.from_coo([0], [1], size=3, device=there)[0] == "from_coo"
    assert sg.Matrix.empty(2, 3, device=there)[0] == "empty_matrix"
    assert sg.Matrix.from_coo([0], [1], nrows=2, device=there)[2]["nrows"] == 2


def test_filled_and_arange(device: str) -> None:
    v = sg.Vector.filled(2, size=4, dtype=np.float32, device=device)
    assert v.storage == "full" and v.dtype == np.float32 and v.to_numpy().tolist() == [2.0] * 4
    assert sg.Vector.filled(True, size=2, device=device).dtype == np.bool_
    assert sg.Vector.filled(0.5, size=0, device=device).dtype == np.float64
    ids = sg.Vector.arange(5, device=device)
    assert ids.dtype == np.int32 and ids.to_numpy().tolist() == [0, 1, 2, 3, 4]
    assert sg.Vector.arange(2, dtype=np.uint64, device=device).dtype == np.uint64
    for make in (lambda: sg.Vector.filled(1, size=-1), lambda: sg.Vector.arange(-1)):
        with pytest.raises(ValueError, match="size: expected an integer >= 0, got -1"):
            make()
    with pytest.raises(DomainMismatch, match="dtype"):
        sg.Vector.filled("x", size=3)


@pytest.mark.parametrize("value", [[1], [1, 2], np.array([1, 2]), np.ones((1, 1))], ids=repr)
def test_a_list_or_an_array_is_no_value(value: Any, device: str) -> None:
    """It would have become the values of single entries, where its size was theirs."""
    placement = sg.Matrix.empty(2, 2).to(device).distribute(2).device
    for there in (device, placement):
        for kind in (np.int32, np.float64):
            for make in (
                lambda to=there, kind=kind: sg.Vector.filled(value, size=2, dtype=kind, device=to),
                lambda to=there, kind=kind: sg.Vector.unit(1, value, size=2, dtype=kind, device=to),
            ):
                with pytest.raises(
                    DomainMismatch, match=r"value: expected a scalar, got (list|nd)"
                ):
                    make()
        assert sg.Vector.filled(np.array(3), size=2, device=there).to_numpy().tolist() == [3, 3]


@pytest.mark.parametrize("size", [3, 9, 90])
def test_with_values_keeps_the_entries(size: int, device: str) -> None:
    v = sg.Vector.from_coo([2, 0], [5, 7], size=size, device=device)
    storage = v.storage
    twice = v._with_values(lambda x: x * 2.0)
    assert twice.storage == storage and twice.dtype == np.float64 and twice.nvals == 2
    assert list(twice) == [(0, 14.0), (2, 10.0)]
    # nothing is shared: a write to one leaves the other
    sg.assign(twice, 1.0, [1])
    assert list(v) == [(0, 7), (2, 5)]


def test_with_values_of_several(device: str) -> None:
    u, v = sg.Vector.from_dense([1, 2]).to(device), sg.Vector.from_dense([0.5, 4.0]).to(device)
    assert u._with_values(np.maximum, v).to_numpy().tolist() == [1.0, 4.0]
    for other in (sg.Vector.filled(1, size=3, device=device), sg.Vector.empty(2, device=device)):
        with pytest.raises(DomainMismatch, match="_with_values: others: expected full Vectors"):
            u._with_values(np.maximum, other)
    with pytest.raises(DomainMismatch, match="dtype"):
        u._with_values(lambda x: x * 1j)


@pytest.mark.parametrize("storage", ["sparse", "bitmap", "full"])
def test_a_complete_vector_is_a_full_one_however_it_is_stored(storage: str, device: str) -> None:
    """Where a write finds no memory to count its entries, a complete result stays a bitmap."""
    given = np.array([2.0, 1.0, 4.0])
    xp = array_module(sg.Vector.filled(0.0, size=3, device=device)._values)
    parts: dict[str, Any] = {
        "sparse": {"indices": xp.arange(3, dtype=np.int32)},
        "bitmap": {"bits": xp.full(1, 7, np.uint32)},
        "full": {},
    }
    v = sg.Vector._of(3, xp.asarray(given), **parts[storage])
    assert v.storage == storage
    assert float(v._total()) == 7.0
    for other in (v, sg.Vector.from_dense(given).to(device)):
        for u in (v, other):
            assert u._with_values(np.add, other).to_numpy().tolist() == [4.0, 2.0, 8.0]
    A = sg.Matrix.from_dense(np.ones((3, 3))).to(device)
    assert A._where(lambda a, x, y: x < y, v).to_coo()[0].tolist() == [0, 1, 1]
    power = sg.iterations.power(v, Step((Hop(A),)), norm=1, max_iter=1, tol=None)
    assert power.value.to_numpy().tolist() == pytest.approx([1 / 3] * 3)


def test_total_and_extent(device: str) -> None:
    v = sg.Vector.from_dense([3.0, -4.0, 0.5]).to(device)
    assert float(v._total()) == -0.5 and float(v._total(np.abs)) == 7.5
    assert v._value_range() == (-4.0, 3.0)
    with pytest.raises(DomainMismatch, match="_total: expected a full Vector, got one of 3 with 0"):
        sg.Vector.empty(3, device=device)._total()
    assert sg.Vector.empty(3, device=device)._value_range() == (0, 0)
    for size in (4, 40, 4000):  # what lies under absent entries does not count
        w = sg.Vector.from_coo(range(3), [9, 4, 7], size=size, device=device)
        assert w._value_range() == (4, 9)
    low, high = sg.Vector.from_dense([1.0, np.nan]).to(device)._value_range()
    assert low != low and high != high


def test_facts_about_a_matrix(device: str) -> None:
    A = sg.Matrix.from_coo([0, 0, 2], [1, 3, 0], [4.0, -1.0, np.inf], nrows=3, ncols=4)
    A = A.to(device)
    assert A.row_degrees().to_numpy().tolist() == [2, 0, 1]
    assert A.T.row_degrees().to_numpy().tolist() == [1, 1, 0, 1] and not A.T._has_arrays
    assert A.index_dtype == A.T.index_dtype == np.int32 and not A.T._has_arrays
    assert A._value_range() == (-1.0, np.inf) and A._sampled_mean() == 1.5
    assert A._sampled_row_length() == (2 * 2 + 1 * 1) / 3
    A[2, 0] = 0.0
    assert A._value_range() == (-1.0, 4.0) and A._sampled_mean() == 1.0
    for empty in (sg.Matrix.empty(3, 3), sg.Matrix.empty(3, 3).pattern()):
        assert empty._value_range() == (0, 0) and empty._sampled_mean() == 0.0
        assert empty._sampled_row_length() == 0.0
        assert empty.row_degrees().to_numpy().tolist() == [0, 0, 0]
    P = sg.generators.grid(3, 3, device=device).pattern(np.int64)
    assert P.iso and P.symmetric and P.dtype == np.int64 and P._value_range() == (1, 1)


def test_where_equals_a_loop(device: str) -> None:
    rng = np.random.default_rng(1)
    S = sg.generators.uniform_random(60, 5, seed=1)
    A = sg.Matrix._of(*S.shape, S.indptr, S.indices, rng.integers(0, 9, S.nvals))
    u, v = rng.integers(0, 9, 60), rng.random(60)
    on = A.to(device)
    x, y = (sg.Vector.from_dense(w).to(device) for w in (u, v))
    got = on._where(lambda a, x, y, p, q: (x <= a) & (y < q) & (p > 2), x, y)
    expected = [(i, j, a) for i, j, a in A if u[i] <= a and v[i] < v[j] and u[j] > 2]
    assert list(got) == expected and 0 < len(expected) < A.nvals and got.dtype == A.dtype
    assert list(on._where(lambda a: a == 8)) == [entry for entry in A if entry[2] == 8]
    one = on.pattern()._where(lambda a, p, q: p < q, x)
    assert one.iso and list(one) == [(i, j, True) for i, j, _ in A if u[i] < u[j]]
    assert on.pattern()._where(lambda a: a).nvals == A.nvals
    assert sg.Matrix.empty(2, 2)._where(lambda a, p, q: p < q, sg.Vector.arange(2)).nvals == 0


def test_where_refuses_what_does_not_fit() -> None:
    A = sg.generators.grid(2, 2)
    for v in (sg.Vector.arange(3), sg.Vector.empty(4)):
        with pytest.raises(DomainMismatch, match="where: vectors: expected full Vectors of the"):
            A._where(lambda a, p, q: p < q, v)
    with pytest.raises(DomainMismatch, match="3 and 4"):
        sg.Matrix.empty(3, 4)._where(lambda a, p, q: p < q, sg.Vector.arange(3))


def test_from_columns(device: str) -> None:
    A = sg.Matrix._from_columns(sg.Vector.from_dense([2, 0, 2]).to(device), ncols=4)
    assert A.shape == (3, 4) and A.iso and A.device.startswith(device)
    assert list(A) == [(0, 2, True), (1, 0, True), (2, 2, True)]
    assert sg.Matrix._from_columns(sg.Vector.arange(0), ncols=0).nvals == 0


def test_indices_may_be_a_vector(device: str) -> None:
    ids = sg.Vector.from_dense([3, 1, 3]).to(device)
    v = sg.Vector.from_coo([1, 4], [10, 40], size=5, device=device)
    assert list(sg.extract(v, ids)) == [(1, 10)]
    A = sg.Matrix.from_dense(np.arange(20).reshape(5, 4)).to(device)
    assert sg.extract(A, ids, ids).to_scipy().toarray()[0].tolist() == [15, 13, 15]
    w = sg.Vector.filled(1, size=5, device=device)
    sg.assign(w, sg.Vector.from_dense([5, 6, 7]).to(device), ids, accum=binary.plus)
    assert w.to_numpy().tolist() == [1, 7, 1, 13, 1]
    sg.assign(w, 0, sg.Vector.from_coo([0, 1], [4, 0], size=2, device=device))
    assert w.to_numpy().tolist() == [0, 7, 1, 13, 0]
    with pytest.raises(ValueError, match="an index is given more than once"):
        sg.assign(w, 0, ids)
    with pytest.raises(IndexOutOfBound, match="extract: indices: expected 0 <= index < 3, got 3"):
        sg.extract(sg.Vector.arange(3, device=device), ids)
    with pytest.raises(DomainMismatch, match="extract: indices: expected integers, got float64"):
        sg.extract(v, sg.Vector.from_dense([0.0]).to(device))
    with pytest.raises(DomainMismatch, match="indices: expected a full Vector, got 1 entries in 2"):
        sg.assign(w, 0, sg.Vector.from_coo([0], [1], size=2, device=device))


@pytest.mark.gpu
def test_containers_of_other_devices_are_refused() -> None:
    on_gpu = sg.Vector.arange(4, device="cuda")
    with pytest.raises(BackendMismatch, match="where: one of vectors is on cuda:0"):
        sg.generators.grid(2, 2)._where(lambda a, p, q: p < q, on_gpu)
    with pytest.raises(BackendMismatch, match="_with_values: one of others is on cuda:0"):
        sg.Vector.arange(4)._with_values(np.maximum, on_gpu)


@pytest.mark.parametrize("storage", ["sparse", "bitmap", "almost full", "full"])
@pytest.mark.parametrize("position", [0, 31, 32, -1])
def test_one_position_is_assigned(storage: str, position: int, device: str) -> None:
    """w[i] = value; the last missing one makes a bitmap full."""
    size = 70
    there = {
        "sparse": [3],
        "bitmap": [*range(0, size, 2), 31],
        "almost full": [i for i in range(size) if i != position % size],
        "full": list(range(size)),
    }[storage]
    w = sg.Vector.from_coo(there, np.array(there) * 10, size=size, device=device)
    assert w.storage == {"almost full": "bitmap"}.get(storage, storage)
    expected = {i: 10 * i for i in there} | {position % size: -7}
    w[position] = -7
    assert dict(w) == expected and w.nvals == len(expected)
    assert (w.storage == "full") == (len(expected) == size)
    with pytest.raises(sg.errors.DomainMismatch):
        w[position] = 1.5
    assert dict(w) == expected


def test_extremes_are_found_on_the_device_of_the_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy computes on the current device, wherever the array lies."""
    current, seen = ["cuda:0"], []

    @contextlib.contextmanager
    def on_device(device: str) -> Iterator[None]:
        current.append(device)
        yield
        current.pop()

    class Values(np.ndarray):
        def min(self, *given: Any, **named: Any) -> Any:
            seen.append(current[-1])
            return super().min(*given, **named)

    monkeypatch.setattr(values, "on_device", on_device)
    monkeypatch.setattr(values, "device_of", lambda array: "cuda:1")
    array = np.arange(2.0 * values.FEW).view(Values)
    assert values.extent_of(array) == (0, array.size - 1) and seen == ["cuda:1"]
