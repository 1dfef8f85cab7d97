"""What the host does in a closure in rounds, with shards that compute nothing."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import spgraph as sg
from spgraph.backends.shards import closure as protocol
from spgraph.distributed import Placement
from spgraph.distributed.loops import closure_rounds
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
    rounds: Any = object.__new__(closure_rounds.Rounds)
    rounds.offsets = range(5)
    rounds.shards = [types.SimpleNamespace(number=k, part=None) for k in range(4)]
    rounds.communicator = types.SimpleNamespace(
        devices=devices,
        local=range(4),
        all_gather=lambda parts, sizes: [of_device[device] for device in devices],
    )
    monkeypatch.setattr(closure_rounds, "on_device", on_device)
    rounds.gather()
    values = [shard.x for shard in rounds.shards]
    assert [x.device for x in values] == list(devices) and len(set(map(id, values))) == 4


class Shard:
    """A shard that is done at once, with the values that it began with."""

    pair = 2

    def __init__(self, *given: Any) -> None:
        self.host_counters = given[-1]

    def begin(self, sources: Any, values: Any, delta: Any) -> None:
        self.values = values.copy()

    def launch(self, action: int, totals: Any, received: Any, round_: int) -> None:
        self.host_counters[:] = round_
        self.host_counters[protocol.FLAGS] |= protocol.LAST << 16

    def take(self) -> Any:
        return self.values, np.full(1, 0b111, np.uint32)


def test_a_closure_keeps_its_values_while_another_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closures of one graph in two threads share its Rounds, one after the other."""
    monkeypatch.setattr(Placement, "kernels", types.SimpleNamespace(ClosureShard=Shard))
    A = sg.Matrix.from_coo([0, 1], [1, 2], [3, 4], nrows=3, ncols=3).distribute(1)
    typed, found = min_plus.resolve("int64", "int64"), []
    for value in (5, 7):
        start = A.device.filled(value, size=3, dtype="int64")
        found.append(closure_rounds.run_closure(A, start, typed, None))
    assert [outcome.parts[0][0].tolist() for outcome in found] == [[5] * 3, [7] * 3]
