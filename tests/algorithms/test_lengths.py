"""Lengths of uint64: as int64 where it holds them, left out where it does not."""

from __future__ import annotations

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph.algorithms.lengths import check_reached, in_int64


def lengths(values: list[int], kind: type) -> sg.Matrix:
    """A path with these lengths."""
    n = len(values)
    at = np.arange(n)
    return sg.Matrix.from_coo(at, at + 1, np.array(values, kind), nrows=n + 1, ncols=n + 1)


def test_other_types_are_left_alone(device: str) -> None:
    A = lengths([1, 2], np.int32).to(device)
    found, whole = in_int64(A)
    assert found is A and whole is None


def test_lengths_that_int64_holds(device: str) -> None:
    found, whole = in_int64(lengths([1, 2**63 - 1], np.uint64).to(device))
    assert found.dtype == np.int64 and whole is None
    assert [value for _, _, value in found] == [1, 2**63 - 1]


def test_lengths_beyond_are_left_out_and_looked_for(device: str) -> None:
    A = lengths([5, 2**63, 7], np.uint64).to(device)
    found, whole = in_int64(A)
    assert whole is A and list(found) == [(0, 1, 5), (2, 3, 7)]
    start = sg.Vector.from_coo([0], [0], size=4, device=device)
    with pytest.raises(OverflowError, match="f: A: expected distances that int64 holds"):
        check_reached("f", whole, start, sg.Vector.from_coo([0, 1], [0, 5], size=4, device=device))
    # from 2 on nothing that was left out is on the way
    start = sg.Vector.from_coo([2], [0], size=4, device=device)
    check_reached("f", whole, start, sg.Vector.from_coo([2, 3], [0, 7], size=4, device=device))
