"""What calls do, counted: a change that makes one look at more edges, send more, allocate more or
compile more is seen here, on any machine, without a clock.

The graphs are fixed, a skewed one and a grid, both of 4,096 vertices. A bound is what was counted
when it was written, and a tenth more; a change that has a reason to pass one raises it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from two_devices import two_devices  # noqa: F401

import spgraph as sg

GRAPHS = ("kronecker", "grid")


@cache
def graph(name: str) -> sg.Matrix:
    if name == "grid":
        return sg.generators.grid(64, 64)
    return sg.generators.kronecker(12, 16, seed=3)


@cache
def weighted(name: str) -> sg.Matrix:
    A = graph(name)
    weight = ((A.row_indices() + A.indices) % 7 + 1).astype(np.int32)
    return sg.Matrix._of(*A.shape, A.indptr, A.indices, weight, symmetric=True)


@cache
def sharded(name: str, weights: bool) -> sg.Matrix:
    return (weighted(name) if weights else graph(name)).distribute(4)


def calls(A: Any, W: Any) -> dict[str, Callable[[], Any]]:
    """Algorithms on one graph, without and with weights."""
    return {
        "bfs": lambda: sg.bfs(A, 0),
        "levels": lambda: sg.bfs(A, 0, parents=False),
        "sssp": lambda: sg.sssp(W, 0),
        "distances": lambda: sg.sssp(W, 0, parents=False),
        "pagerank": lambda: sg.pagerank(A, tol=None, max_iter=10),
        "connected_components": lambda: sg.connected_components(A),
        "triangle_count": lambda: sg.triangle_count(A),
        "betweenness_centrality": lambda: sg.betweenness_centrality(A, sources=[0, 1]),
    }


def within(count: float, bound: float) -> bool:
    """Whether something was counted, and no more than a tenth above the bound."""
    return 0 < count <= 1.1 * bound


# of the 96,622 entries of the one and 16,128 of the other: edges that a search looked at, levels
LOOKED_AT = {
    ("kronecker", None): (6_176, 6),
    ("kronecker", "push"): (96_622, 6),
    ("grid", None): (16_128, 127),
    ("grid", "push"): (16_128, 127),
}


@pytest.mark.parametrize("parents", [False, True])
@pytest.mark.parametrize(("name", "direction"), LOOKED_AT)
def test_edges_looked_at(name: str, direction: Any, parents: bool) -> None:
    chosen = {"direction": direction} if direction else {}
    trace = sg.bfs(graph(name), 0, parents=parents, trace=True, **chosen).trace
    edges, levels = LOOKED_AT[name, direction]
    assert within(sum(level.edges for level in trace), edges)
    assert len(trace) == levels


# bytes a vertex, for each graph; results are 4 or 8 of them
ALLOCATED = {
    "bfs": (8.6, 8.5),
    "levels": (4.5, 4.5),
    "sssp": (23.4, 23.0),
    "distances": (12.0, 10.4),
    "pagerank": (33.1, 33.0),
    "connected_components": (4.1, 4.1),
    "triangle_count": (52.5, 20.2),
    "betweenness_centrality": (72.5, 72.5),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("algorithm", ALLOCATED)
def test_bytes_that_a_warm_call_allocates(algorithm: str, name: str) -> None:
    call = calls(graph(name), weighted(name))[algorithm]
    call(), call()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        most = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert within(most / graph(name).nrows, ALLOCATED[algorithm][GRAPHS.index(name)])


# between four shards: bytes and collectives, for each graph
SENT = {
    "bfs": ((153_944, 28), (3_072, 635)),
    "levels": ((42_647, 28), (1_920, 635)),
    "sssp": ((401_192, 143), (112_332, 860)),
    "pagerank": ((986_304, 25), (986_304, 25)),
    "connected_components": ((61_712, 4), (3_216, 4)),
    "distances": ((269_700, 137), (10_440, 798)),
    "betweenness_centrality": ((525_479, 75), (421_320, 3_294)),
    "triangle_count": ((874_752, 14), (391_788, 14)),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("algorithm", SENT)
def test_bytes_sent_between_shards(algorithm: str, name: str) -> None:
    A, W = sharded(name, weights=False), sharded(name, weights=True)
    comm = (W if algorithm in ("sssp", "distances") else A).device.communicator
    call = calls(A, W)[algorithm]
    call()
    before = comm.bytes_sent, comm.calls
    call()
    sent, collectives = SENT[algorithm][GRAPHS.index(name)]
    assert within(comm.bytes_sent - before[0], sent)
    assert within(comm.calls - before[1], collectives)


# in one process, in this order; each is compiled at its first call on a machine
KERNELS = {
    "bfs": 1,
    "sssp": 1,
    "pagerank": 1,
    "connected_components": 1,
    "triangle_count": 1,
    "betweenness_centrality": 1,
    "levels": 1,
    "distances": 1,
    "mxv": 1,
    "mxm": 2,
}
COUNTING = """
import json
import numpy as np
import spgraph as sg
from spgraph.backends.cpu.runtime.cache import KernelCache

found, load = [], KernelCache.load_overload
KernelCache.load_overload = lambda *given: found.append(given) or load(*given)
A = sg.generators.kronecker(8, 8, seed=1)
calls = {
    "bfs": lambda: sg.bfs(A, 0),
    "sssp": lambda: sg.sssp(A, 0),
    "pagerank": lambda: sg.pagerank(A),
    "connected_components": lambda: sg.connected_components(A),
    "triangle_count": lambda: sg.triangle_count(A),
    "betweenness_centrality": lambda: sg.betweenness_centrality(A, sources=[0]),
    "levels": lambda: sg.bfs(A, 0, parents=False),
    "distances": lambda: sg.sssp(A, 0, parents=False),
    "mxv": lambda: sg.mxv(A, x),
    "mxm": lambda: sg.mxm(A, A),
}
x = sg.Vector.from_dense(np.ones(A.nrows))
counts = {}
for name, call in calls.items():
    found.clear()
    call()
    counts[name] = len(found)
print(json.dumps(counts))
"""


def test_kernels_that_a_first_call_compiles() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COUNTING], capture_output=True, text=True, check=True, timeout=300
    )
    assert json.loads(done.stdout) == KERNELS  # fewer are a reason to write down fewer
