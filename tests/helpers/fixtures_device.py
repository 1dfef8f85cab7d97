"""The devices that tests of containers and operations run on, and moving arguments there and back.

A test that takes the fixture `device` runs on the CPU, once with its backend and once with
`minimal_backend` in its place, and, marked `gpu`, on a GPU. The minimal backend is there to test
the contract of backends, for which small graphs and few rounds are enough. It is slow, so what is
marked `long` (the test or one of its parameters) runs on it only with `-m full`; every operation
and algorithm keeps quick cases (`tests/backends/test_minimal_runs.py`). What is marked `fused` says
nothing about it and is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import minimal_backend
import pytest

from spgraph import backends

DEVICES = ["cpu", "minimal", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """'cpu', or 'cuda' where there is a GPU."""
    if request.param == "minimal":  # whose containers are the CPU's
        if request.node.get_closest_marker("fused") or "shared_data" in request.fixturenames:
            pytest.skip("fused: it is about a fused form, or its graph is large")
        monkeypatch.setattr(backends, "module_of", lambda device: minimal_backend)
        yield "cpu"
    else:
        yield request.param


def entries(v: Any) -> dict[int, Any]:
    """The entries of a Vector as Python values by position."""
    v = v.to("cpu")
    indices, values = v.to_coo()
    return dict(zip(indices.tolist(), values.tolist(), strict=True))


def matrix_entries(A: Any) -> dict[tuple[int, int], Any]:
    """The entries of a Matrix as Python values by position."""
    return {(i, j): value for i, j, value in A}
