"""What the host does for CUDA holds where several threads call one Matrix or kernel at a time: with
stand-ins for CuPy, whose devices are done at once.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from two_devices import two_devices  # noqa: F401

import spgraph as sg
from spgraph.backends.cuda.products import tiles
from spgraph.backends.cuda.runtime import jit


class Limited:
    """A kernel that refuses launches beyond its limit, as a driver does. After the first time that
    its limit was set, `another` runs: what another thread may do before the launch.
    """

    shared_size_bytes = 1024

    def __init__(self, another: Callable[[], None]) -> None:
        self.limit, self.another, self.launched = 48 << 10, another, list[int]()

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "max_dynamic_shared_size_bytes":
            super().__setattr__(name, value)
            return
        assert value + self.shared_size_bytes <= 99 << 10, "the device has no more"
        self.limit = value
        another, self.another = self.another, lambda: None
        another()

    def __call__(self, *_: Any, shared_mem: int = 0) -> None:
        assert shared_mem <= self.limit, "an error of the driver"
        self.launched.append(shared_mem)


def test_a_launch_never_meets_the_limit_of_a_smaller_one(
    two_devices: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    A = sg.Matrix.from_coo([0], [1], [2.0], nrows=2, ncols=2).to("cuda:1")
    u = sg.Vector.from_dense([1.0, 2.0]).to("cuda:1")

    def run(shared: int) -> None:
        cut: Any = SimpleNamespace(
            rest=SimpleNamespace(slices=0),
            number=1,
            width=2,
            pieces=0,
            split=0,
            blocks=1,
            columns=np.zeros(2, np.int32),
            words=None,
            shared=lambda *_: shared,
        )
        tiles.product(A, cut, u, "", u._values)

    kernel = Limited(lambda: run(60_000))
    monkeypatch.setattr(jit, "kernels", lambda *_: (lambda *_, **__: None, kernel, None, None))
    run(90_000)
    run(100)
    assert sorted(kernel.launched) == [100, 60_000, 90_000]
