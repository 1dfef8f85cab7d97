"""What the host does in a closure in rounds, with shards that compute nothing."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
import pytest

import spgraph as sg
from spgraph.backends.shards.closure import Part
from spgraph.distributed import LocalCommunicator, Placement
from spgraph.distributed.exchange import lockstep
from spgraph.distributed.loops import closure as closures
from spgraph.distributed.loops.sharded_graph import sparse_entries
from spgraph.semirings import min_plus


def test_shards_of_one_device_get_copies_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy copies an array to the current device, whichever the array is on."""
    current = ["cuda:0"]

    @contextlib.contextmanager
    def on_device(device: str) -> Iterator[None]:
        current.append(device)
        yield
        current.pop()

    class Values:
        def __init__(self, device: str) -> None:
            self.device = device

        def copy(self) -> Values:
            return Values(current[-1])

    devices = ("cuda:0", "cuda:1", "cuda:0", "cuda:1")
    of_device = {device: Values(device) for device in devices}
    communicator: Any = types.SimpleNamespace(
        devices=devices,
        all_gather=lambda parts, sizes: [of_device[device] for device in devices],
    )
    monkeypatch.setattr(lockstep, "on_device", on_device)
    values = lockstep.ByCommunicator(communicator).gather_own([(None, [1] * 4)] * 4)
    assert [x.device for x in values] == list(devices) and len(set(map(id, values))) == 4


class Shard:
    """A shard that is done at once, with the values that it began with."""

    def __init__(self, *given: Any) -> None:
        self.host_counters, self.round = given[-1], 0

    def closure(
        self, sources: Any, values: Any, delta: Any, reach: Any
    ) -> Generator[Any, Any, Part]:
        self.round += 1
        self.host_counters[:] = self.round
        rows, sums, more = yield "counts", (self.host_counters, self.round, None)
        assert rows == [sums] and not any(sums) and more is None
        return Part(values.copy(), np.full(1, 0b111, np.uint32), None, 0, True)


def test_a_closure_keeps_its_values_while_another_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closures of one graph in two threads share their shards, one after the other."""
    monkeypatch.setattr(Placement, "kernels", types.SimpleNamespace(ClosureShard=Shard))
    A = sg.Matrix.from_coo([0, 1], [1, 2], [3, 4], nrows=3, ncols=3).distribute(1)
    typed, found = min_plus.resolve("int64", "int64"), []
    for value in (5, 7):
        start = sparse_entries(A.device.filled(value, size=3, dtype="int64"))
        found.append(closures.in_rounds(A, *start, typed, None))
    assert [parts[0].values.tolist() for parts in found] == [[5] * 3, [7] * 3]


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_what_shards_send_comes_joined(shards: int) -> None:
    """Also where a shard sends nothing to some, itself included, or gets nothing."""
    sizes = np.arange(shards**2).reshape(shards, shards) % 3  # [p, q]: from p to q
    sizes[:, 0] = 0

    def step(p: int) -> Generator[Any, Any, Any]:
        parts = [np.full(size, 10 * p + q) for q, size in enumerate(sizes[p].tolist())]
        coming = sizes[:, p].tolist()
        whole = np.empty(sum(coming), np.int64)
        came = yield "send", (parts, coming, whole)
        assert came is whole
        return came

    communicator = LocalCommunicator(shards)
    exchange = lockstep.ByCommunicator(communicator)
    found = lockstep.run([step(p) for p in range(shards)], communicator.devices, exchange)
    for q, came in enumerate(found):
        np.testing.assert_array_equal(came, np.repeat(10 * np.arange(shards) + q, sizes[:, q]))


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_shard_that_fails_ends_the_others(interrupted: bool) -> None:
    """Each leaves what it keeps as after a failure of its own, before the call returns."""
    left = []

    def steps(number: int) -> Generator[Any, Any, None]:
        try:
            yield "gather", number
            if number == 1 and not interrupted:
                raise ZeroDivisionError
            yield "gather", number
        except BaseException as error:
            left.append((number, type(error)))
            raise

    def gather(given: list[Any]) -> list[Any]:
        if interrupted:
            raise KeyboardInterrupt
        return given

    error = KeyboardInterrupt if interrupted else ZeroDivisionError
    with pytest.raises(error):
        lockstep.run([steps(k) for k in range(3)], ["cpu"] * 3, None, gather=gather)
    own = GeneratorExit if interrupted else ZeroDivisionError
    assert sorted(left) == [(0, GeneratorExit), (1, own), (2, GeneratorExit)]
