"""The devices that tests of containers and operations run on, and moving arguments there and back.

A test that takes the fixture `device` runs once on the CPU and, marked `gpu`, once on a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """'cpu', or 'cuda' where there is a GPU."""
    yield request.param


def entries(v: Any) -> dict[int, Any]:
    """The entries of a Vector as Python values by position."""
    v = v.to("cpu")
    indices, values = v.to_coo()
    return dict(zip(indices.tolist(), values.tolist(), strict=True))


def matrix_entries(A: Any) -> dict[tuple[int, int], Any]:
    """The entries of a Matrix as Python values by position."""
    return {(i, j): value for i, j, value in A}
