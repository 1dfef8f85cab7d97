"""What a closure decides about buckets and the push-pull threshold, in kernels for one GPU, for
peers and for rounds; and in the closure that is made of operations.
"""

from __future__ import annotations

import functools
from typing import Any

import cuda_host_shim
import numpy as np
import pytest

from spgraph import semirings
from spgraph.backends.cuda.closure.closure import program
from spgraph.backends.cuda.products import tiles
from spgraph.backends.cuda.runtime.sources import whole
from spgraph.iterations.closure_buckets import next_limit
from spgraph.semirings import BinaryOp, Semiring, binary, monoid

pytestmark = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")

FILES = "common closure_state closure_none closure_improve closure_decisions".split()
KERNELS = """
extern "C" __global__ void limits(const Z* from, i64 count, Z width, Z* to, Z* doubles) {
    if (thread_id() == 0)
        for (i64 i = 0; i < count; i++) to[i] = limit_after(from[i], width);
    if (thread_id() == 0) *doubles = doubled(width);
}
extern "C" __global__ void bucket(Z limit, Z width, Z reach, Z threshold, i64 empty, Z best,
                                  Z* to) {
    if (thread_id()) return;
    Limits at;
    no_limits(at, width, reach);
    at.limit = limit;
    at.threshold = threshold;
    at.has_threshold = !same(threshold, identity());
    to[0] = next_limit(at);
    to[1] = ends_threshold(at);
    to[2] = is_last(at, empty, best);
    move_on(at, empty, best, to[0]);
    to[3] = at.start;
    to[4] = at.limit;
    set_threshold(at);
    to[5] = at.threshold;
    to[6] = at.floor;
}
extern "C" __global__ void progress(Z reach, i64 rounds, i64 edges, i64 queued, i64 m, i64 bulk,
                                    i64 thresholds, i64 in_edges, i64* to) {
    if (thread_id()) return;
    Progress progress = {rounds, edges, (int)thresholds, bulk != 0};
    Limits at;
    no_limits(at, (Z)2, reach);
    to[0] = widens(progress, m);
    Arrays given = {};
    given.m = m;
    given.t_indptr = in_edges ? (const O*)to : nullptr;
    consider_threshold(at, progress, queued, given);
    to[1] = progress.thresholds - thresholds;
    to[2] = progress.bulk;
    to[3] = progress.thresholds;
    to[4] = is_unsettled(rounds, m);
}
"""


@functools.cache
def library(add: str, dtype: str) -> Any:
    kind = np.dtype(dtype)
    typed = getattr(semirings, f"{add}_plus").resolve(kind, kind)
    types = (("I", "<i4"), ("O", "<i4"), ("A", kind.str))
    text = program(typed, types, True, 1024) + "".join(whole(f"{f}.cuh") for f in FILES)
    return cuda_host_shim.compiled("closure_decisions", text + KERNELS)


def call(add: str, dtype: str, name: str, *arguments: Any) -> None:
    function = getattr(library(add, dtype), f"launch_{name}")
    cuda_host_shim.HostKernel("closure", function, False)((1,), (32,), arguments)


@pytest.mark.parametrize("add", ["min", "max"])
@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32", "float64"])
def test_limits_are_those_of_the_composed_closure(add: str, dtype: str) -> None:
    kind, sign = np.dtype(dtype), 1 if add == "min" else -1
    values = [0, 1, 3, 100] if kind.kind == "u" else [-70, -1, 0, 1, 3, 100]
    ends = np.finfo(kind) if kind.kind == "f" else np.iinfo(kind)
    widths: list[Any] = [1, 2, 60] if kind.kind != "f" else [1e-30, 0.75, 3, 1e30]
    # one step before the end, beyond which there is no limit
    before = ends.max - 1 if add == "min" else ends.min + 1
    given = np.array([*values, before], kind)
    for width in widths:
        to, doubles = np.empty(given.size, kind), np.empty(1, kind)
        call(add, dtype, "limits", given, given.size, kind.type(width), to, doubles)
        with np.errstate(over="ignore"):
            expected = [next_limit(value, width, sign, kind) for value in given]
        assert to.tolist() == [x.item() for x in expected], width
        most = float(np.float32(1e30)) if kind.kind == "f" else 2 ** (8 * kind.itemsize - 3)
        assert doubles[0] == kind.type(2 * width if kind.type(width) < most else width)


NONE = np.float64(np.inf)


@pytest.mark.parametrize(
    ("limit", "threshold", "empty", "best", "expected"),
    [
        # next limit, whether the threshold ends, whether this was the last; start and limit then
        (10, NONE, False, NONE, (12, 0, 0, 10, 12)),
        (10, NONE, True, 40, (12, 0, 0, 10, 40)),
        (10, NONE, True, NONE, (12, 0, 1, 10, NONE)),
        (10, 11, False, 40, (11, 0, 0, 10, 11)),
        (10, 30, True, 20, (12, 0, 0, 10, 20)),
        (10, 30, True, 40, (12, 0, 0, 10, 30)),
        (10, 30, True, NONE, (12, 0, 0, 10, 30)),
    ],
)
def test_buckets(limit: Any, threshold: Any, empty: bool, best: Any, expected: Any) -> None:
    to = np.empty(7)
    limits = np.float64(limit), np.float64(2), np.float64(5), np.float64(threshold)
    call("min", "float64", "bucket", *limits, int(empty), np.float64(best), to)
    assert tuple(to[:5]) == expected
    # a threshold is the reach beyond the limit; what is before the bucket is done with
    assert to[5] == to[4] + 5 and to[6] == to[3]


def test_a_threshold_ends_with_the_bucket_before_it() -> None:
    to = np.empty(7)
    for limit, ends in ((29, 0), (30, 1)):
        limits = np.float64(limit), np.float64(2), np.float64(2), np.float64(30)
        call("min", "float64", "bucket", *limits, 0, NONE, to)
        assert to[1] == ends


@pytest.mark.parametrize(
    ("reach", "rounds", "edges", "queued", "m", "bulk", "thresholds", "in_edges", "expected"),
    [
        # widens, begins a threshold, bulk, thresholds so far, unsettled
        (2, 1, 16383, 0, 10**5, 1, 0, 1, (1, 0, 1, 0, 0)),
        (2, 1, 16384, 0, 10**5, 1, 0, 1, (0, 0, 1, 0, 0)),
        (2, 1, 16383, 0, 10**5, 0, 0, 1, (0, 0, 0, 0, 0)),
        (2, 0, 0, 0, 10**8, 1, 0, 1, (0, 0, 1, 0, 0)),
        # few of all edges, however many
        (2, 1, 10**6 - 1, 0, 16 * 10**6, 1, 0, 1, (1, 0, 1, 0, 0)),
        (2, 1, 10**6, 0, 16 * 10**6, 1, 0, 1, (0, 0, 1, 0, 0)),
        (2, 1, 10**9, 5 * 10**6, 10**8, 0, 0, 1, (0, 1, 1, 1, 0)),
        (2, 1, 10**9, 5 * 10**6 - 1, 10**8, 0, 0, 1, (0, 0, 0, 0, 0)),
        # a narrow bucket, of at most half the reach
        (3.9, 1, 10**9, 3 * 10**6, 10**8, 0, 0, 1, (0, 0, 0, 0, 0)),
        (4, 1, 10**9, 3 * 10**6, 3 * 10**8, 0, 0, 1, (0, 1, 1, 1, 0)),
        (4, 1, 10**9, 3 * 10**6 - 1, 3 * 10**8, 0, 0, 1, (0, 0, 0, 0, 0)),
        (2, 1, 10**9, (1 << 21) - 1, 1 << 21, 0, 0, 1, (0, 0, 0, 0, 0)),
        (2, 1, 10**9, 1 << 21, 1 << 21, 0, 2, 1, (0, 1, 1, 3, 0)),
        (2, 1, 10**9, 1 << 21, 1 << 21, 0, 3, 1, (0, 0, 1, 3, 0)),
        (2, 1, 10**9, 1 << 21, 1 << 21, 0, 0, 0, (0, 0, 1, 0, 0)),
        (2, 8, 10**9, 0, 7, 0, 0, 1, (0, 0, 0, 0, 1)),
        (2, 7, 10**9, 0, 7, 0, 0, 1, (0, 0, 0, 0, 0)),
    ],
)
def test_progress(
    reach: float,
    rounds: int,
    edges: int,
    queued: int,
    m: int,
    bulk: int,
    thresholds: int,
    in_edges: int,
    expected: tuple[int, ...],
) -> None:
    to = np.empty(5, np.int64)
    counts = rounds, edges, queued, m, bulk, thresholds, in_edges
    call("min", "float64", "progress", np.float64(reach), *counts, to)
    assert tuple(to) == expected


@pytest.mark.parametrize("name", ["firsti", "firstj", "secondi", "secondj"])
def test_a_users_operator_depends_on_no_position(name: str) -> None:
    """Whatever its name is: closures end rows at a threshold, and products are made in tiles."""
    types = (("I", "<i4"), ("O", "<i4"), ("A", "<i8"))
    mine = BinaryOp.define(lambda x, y: x + y, name)
    for multiply, depends in ((getattr(binary, name), 1), (mine, 0)):
        typed = Semiring(monoid.min, multiply).resolve("int64", "int64")
        assert f"#define POSITIONAL {depends}\n" in program(typed, types, True, 64)
        assert tiles.takes(typed) == (not depends)
