"""What the host does in a closure in rounds, with shards that compute nothing."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any

import pytest

from spgraph.distributed.loops import closure_rounds


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
