"""How wide the buckets of a closure are."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest
from closure_cases import CASES, graph
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph.backends.cuda.closure.closure import width_of
from spgraph.direction import bucket_width, may_be_narrow, narrow_width
from spgraph.iterations import closure_widths
from spgraph.iterations.closure_buckets import next_limit
from spgraph.semirings import min_plus

DELTAS = [1e-323, 1e308, 10**400, np.float16(0.5), np.float32(3e38), np.int8(3), np.uint64(2**63)]


def test_delta_may_be_any_positive_number(device: str) -> None:
    A = graph("sparse directed", CASES["distance"]).A
    for M in (A.to(device), A.astype("float32").to(device)):
        expected = sg.sssp(M, 0)
        assert expected.parent is not None
        for delta in DELTAS:
            found = sg.sssp(M, 0, delta=delta)
            assert found.parent is not None and found.parent.isequal(expected.parent)
            assert found.distance.isequal(expected.distance)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_buckets_are_as_wide_as_a_normal_number(kind: Any) -> None:
    """Others would never end where those below compare as zero."""
    dtype, tiny = np.dtype(kind), np.finfo(kind).tiny
    assert width_of(1e-323, dtype) == tiny and width_of(0.5, dtype) == 0.5
    assert width_of(1e308, dtype) == min(1e308, float(np.finfo(kind).max))
    for sign in (1, -1):
        assert next_limit(kind(0), 1e-323, sign, dtype) == sign * tiny
        assert next_limit(kind(1), 1e-323, sign, dtype) == np.nextafter(kind(1), kind(1 + sign))


def test_bucket_width() -> None:
    for where in ("cpu", "cuda:0"):
        assert bucket_width(32.5, 1000, 2500, where) > bucket_width(32.5, 1000, 32500, where)
        assert bucket_width(65.0, 1000, 2500, where) == 2 * bucket_width(32.5, 1000, 2500, where)
        assert bucket_width(0.0, 1000, 1000, where) == 1.0  # never none
        assert bucket_width(3.0, 5, 0, where) > 0
    assert bucket_width(32.5, 1000, 32500, "cpu") == 32.5 / 16
    # a GPU takes a road network in wide buckets; with many edges a vertex, it finds its work in any
    steps = [bucket_width(1.0, 1000, 1000 * degree, "cuda:0") for degree in (2, 4, 8, 32, 64, 700)]
    assert steps[:2] == [60.0, 60.0] and 1.0 < steps[2] < 2.0
    assert 0.15 < steps[4] < steps[3] < 0.25 and 0.08 < steps[5] < 0.11


def test_narrow_buckets() -> None:
    kron26 = 1 << 26, 2_100_000_000  # vertices, edges
    # a skewed graph of many edges has narrow buckets, a uniform one or a small one has not
    assert narrow_width(0.106, 0.5, 0.0, *kron26, 9400.0) < 0.106 / 20
    assert narrow_width(0.105, 0.5, 0.0, 1 << 24, 537_000_000, 33.0) > 0.105 / 2
    assert narrow_width(0.108, 0.5, 0.0, 1 << 18, 7_600_000, 1250.0) > 0.108 / 2
    # nor has one without large vertices, a grid
    assert narrow_width(30.0, 15.0, 0.0, 4_000_000, 15_992_000, 3.998) == 30.0
    # of integers none is narrower than three of the least, nor wider than others
    assert narrow_width(6.9, 32.5, 1.0, *kron26, 9400.0) == 3.0
    assert narrow_width(2.0, 32.5, 1.0, *kron26, 9400.0) == 2.0
    # a bucket costs more where the host drives its rounds
    narrow = [narrow_width(0.1, 0.5, 0.0, *kron26, 9400.0, host) for host in (False, True)]
    assert narrow[0] < narrow[1] < 0.1
    assert narrow_width(1.0, 0.0, 0.0, 5, 0, 0.0) == 1.0 and not may_be_narrow(4 << 19)
    # whatever the unit; where the sampled edges change nothing, nobody knows how narrow
    for unit in (1e-200, 1e-300, 1e250):
        ratio = narrow_width(0.1 * unit, 0.5 * unit, 0.0, *kron26, 9400.0) / unit
        assert ratio == pytest.approx(narrow_width(0.1, 0.5, 0.0, *kron26, 9400.0))
    assert narrow_width(1.0, 0.0, 0.0, *kron26, 9400.0) == 1.0


def test_default_widths() -> None:
    """A CPU has one width; a GPU two on skewed graphs, for floats and integers alike."""

    def widths(device: Any, kind: str, mean: float, low: float) -> tuple[float, float | None]:
        A: Any = types.SimpleNamespace(nrows=1 << 26, nvals=2_100_000_000, device=device)
        A._sampled_mean, A._value_range = lambda: mean, lambda: (low, 2 * mean)
        A._sampled_row_length = lambda: 9400.0
        return closure_widths.default_widths(A, min_plus, np.dtype(kind))

    assert widths("cpu", "float64", 0.5, 0.0) == (0.5 / 16, None)
    width, reach = widths("cuda:0", "float32", 0.5, 0.0)
    assert reach == bucket_width(0.5, 1 << 26, 2_100_000_000, "cuda:0") > 20 * width > 0
    assert widths("cuda:0", "int64", 32.5, 1.0) == (3.0, pytest.approx(65 * reach))
    assert widths("cuda:0", "int64", 0.5, 0.0) == (1.0, 1.0)

    def shards(number: int, peers: Any) -> Any:
        return types.SimpleNamespace(num_shards=number, devices=["cuda:0"], peers=peers)

    # edges are divided among GPUs, and rounds of the host cost more
    several = [widths(shards(4, peers), "float32", 0.5, 0.0) for peers in (True, None)]
    assert width < several[0][0] < several[1][0] < reach == several[0][1] == several[1][1]
