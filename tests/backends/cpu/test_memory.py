"""Workspaces that a call leaves for the next one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import spgraph as sg
from spgraph.backends.cpu.runtime import memory


def path(n: int, back: bool) -> sg.Matrix:
    """0 -> 1 -> ... -> n - 1, or back."""
    i = np.arange(n - 1)
    ends = (i + 1, i) if back else (i, i + 1)
    return sg.Matrix.from_coo(*ends, 2, nrows=n, ncols=n)


def test_a_workspace_is_taken_by_one_call_and_by_one_that_it_fits() -> None:
    unused: memory.Unused[str] = []
    memory.keep(unused, (5, 1), "five", 5)
    assert memory.take(unused, (5, 1)) == "five"
    assert memory.take(unused, (5, 1)) is None
    memory.keep(unused, (5, 1), "five", 5)
    assert memory.take(unused, (6, 1)) is None
    memory.keep(unused, (9, 1), "large", memory.SMALL + 1)
    assert not unused
    for _ in range(memory.MOST + 1):
        memory.keep(unused, (5, 1), "five", 5)
    assert len(unused) == memory.MOST


@pytest.mark.parametrize("call", [sg.bfs, sg.sssp])
def test_results_stay_as_they_are_when_the_workspace_is_used_again(call: Any) -> None:
    """Graphs of one size, one after the other and at the same time."""
    n, far = 40, {sg.bfs: 1, sg.sssp: 2}[call]
    there, back = path(n, False), path(n, True)
    i = np.arange(n)
    expected = {
        False: (i * far, np.maximum(i - 1, 0)),
        True: ((n - 1 - i) * far, np.minimum(i + 1, n - 1)),
    }

    def check(backward: bool) -> None:
        found = call(back if backward else there, n - 1 if backward else 0)
        kept.append((backward, found))

    kept: list[tuple[bool, Any]] = []
    for backward in (False, True, False, True):
        check(backward)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(check, [False, True] * 20))
    for backward, found in kept:
        for vector, values in zip(found, expected[backward], strict=True):
            assert vector.to_numpy().tolist() == values.tolist()
