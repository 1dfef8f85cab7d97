"""What calls do on a GPU, counted as in test_counts.py: what they launch, allocate, ask of CuPy and
compile.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import cuda_host_shim
import numpy as np
import pytest
import shim_exchanges
import two_devices as stand_in
from two_devices import two_devices  # noqa: F401

import spgraph as sg
from spgraph.backends.cuda.runtime import jit
from spgraph.benchmarking import exchange
from spgraph.process import activity
from tests.benchmarks.test_counts import GRAPHS, calls, graph, weighted, within

# on a GPU: launches of our kernels, allocations, bytes of these a vertex; for each graph
COUNTED = {
    "bfs": ((1, 6, 24.7), (1, 6, 24.7)),
    "levels": ((1, 4, 20.6), (1, 4, 20.6)),
    "sssp": ((4, 9, 36.7), (4, 9, 36.7)),
    "distances": ((1, 4, 24.4), (1, 4, 24.4)),
    "pagerank": ((3, 7, 48.0), (3, 7, 48.0)),
    "connected_components": ((6, 4, 8.4), (6, 4, 8.4)),
    "triangle_count": ((9, 19, 621.7), (2, 3, 0.1)),
    "betweenness_centrality": ((4, 33, 193.9), (1, 9, 144.0)),
}


class Launched:
    """A kernel that counts its launches."""

    def __init__(self, made: Any, launches: list[Any]) -> None:
        vars(self).update(made=made, launches=launches)

    def __call__(self, *arguments: Any, **options: Any) -> None:
        self.launches.append(self.made)
        self.made(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.made, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.made, name, value)


def forget_kernels() -> None:
    """Empty all caches of the CUDA backend: of kernels, and of what was made of them."""
    for name, module in list(sys.modules.items()):
        if name.startswith("spgraph.backends.cuda"):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The kernels that are launched from now on."""
    found: list[Any] = []
    known: dict[Any, Launched] = {}
    get = jit._kernel

    def kernel(*given: Any) -> Launched:
        made = get(*given)
        return known.setdefault(made, Launched(made, found))

    forget_kernels()
    monkeypatch.setattr(jit, "_kernel", kernel)
    yield found
    forget_kernels()


@pytest.mark.gpu
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("algorithm", COUNTED)
def test_launches_and_allocations_of_a_warm_call(
    algorithm: str, name: str, launches: list[Any]
) -> None:
    import cupy

    class Hook(cupy.cuda.MemoryHook):  # type: ignore[misc]
        name = "counts"

        def __init__(self) -> None:
            self.sizes: list[int] = []

        def malloc_preprocess(self, **given: Any) -> None:
            self.sizes.append(given["size"])

    A, W = graph(name).to("cuda"), weighted(name).to("cuda")
    call = calls(A, W)[algorithm]
    call(), call()
    launches.clear()
    hook = Hook()
    with hook:
        call()
    most = COUNTED[algorithm][GRAPHS.index(name)]
    assert 0 < len(launches) <= most[0]
    assert 0 < len(hook.sizes) <= most[1]
    assert within(sum(hook.sizes) / A.nrows + 1e-9, most[2])


# --- what a call asks of CuPy: each is microseconds of the host's, and compiled by a first call ---


class Nothing:
    """A kernel that does nothing, and says that it was launched."""

    max_dynamic_shared_size_bytes = 0

    def __init__(self, name: str, asked: list[str]) -> None:
        self.name, self.asked = name, asked

    def __call__(self, *arguments: Any, **options: Any) -> None:
        self.asked.append(f"launch {self.name}")


@pytest.fixture
def asked(two_devices: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What CuPy is asked for, by its stand-in, and which kernels are launched, from now on."""
    found: list[str] = []
    called, ufunc = stand_in.called, stand_in.CudaArray.__array_ufunc__

    def counted(function: Any, *given: Any, **more: Any) -> Any:
        found.append(function.__name__)
        return called(function, *given, **more)

    def counted_ufunc(self: Any, function: Any, *given: Any, **more: Any) -> Any:
        found.append(function.__name__)
        return ufunc(self, function, *given, **more)

    forget_kernels()
    with monkeypatch.context() as patch:  # undone before `two_devices` undoes its own
        patch.setattr(stand_in, "called", counted)
        patch.setattr(stand_in.CudaArray, "__array_ufunc__", counted_ufunc)
        for name in ("get", "tolist"):

            def read(self: Any, *given: Any, name: str = name, **more: Any) -> Any:
                found.append("read")
                return getattr(stand_in.host(self), "copy" if name == "get" else name)()

            patch.setattr(stand_in.CudaArray, name, read)
        patch.setattr(jit, "kernel", lambda stem, name, *_, **__: Nothing(name, found))
        yield found
    forget_kernels()


@pytest.mark.parametrize("parents", [False, True])
def test_what_a_search_asks_of_cupy(parents: bool, asked: list[str]) -> None:
    A = graph("grid").dup().to("cuda:1")
    A.symmetric = True
    sg.bfs(A, 0, parents=parents)
    # the level, bits, workspace and state of a search, and its parents, with bits of their own
    rows = ["empty", "zeros", "launch nonempty", "empty", "launch leading_neighbours"]
    arrays = ["empty"] * (4 + 2 * parents)
    assert sorted(asked) == sorted([*rows, *arrays, "launch search"])
    asked.clear()
    sg.bfs(A, 0, parents=parents)
    assert asked == [*arrays, "launch search"]


# of a warm call: how many arrays that nothing fills, and what else is asked
ASKED = {
    "distances": (4, "closure read"),
    "sssp": (9, "closure parents_start parents_floor parents read"),
    "connected_components": (4, "start hook compress rest rest_long compress"),
}


@pytest.mark.parametrize("algorithm", ASKED)
def test_what_a_warm_call_asks_of_cupy(algorithm: str, asked: list[str]) -> None:
    A, W = (each.dup().to("cuda:1") for each in (graph("grid"), weighted("grid")))
    A.symmetric = W.symmetric = True
    call = calls(A, W)[algorithm]
    call(), asked.clear(), call()
    arrays, others = ASKED[algorithm]
    filled = [each for each in asked if each not in ("empty", "empty_like")]
    assert [each.removeprefix("launch ") for each in filled] == others.split()
    assert len(asked) - len(filled) == arrays


class Run(Nothing):
    """A kernel that runs, under the shim, and says that it was launched."""

    def __init__(self, made: Any, name: str, asked: list[str]) -> None:
        super().__init__(name, asked)
        self.made = made

    def __call__(self, *arguments: Any, **options: Any) -> None:
        super().__call__()
        self.made(*arguments, **options)


@pytest.fixture
def ran(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """As `asked`, with kernels that run: for calls that look at what others have made."""
    with monkeypatch.context() as patch:
        shim = cuda_host_shim.kernel
        patch.setattr(
            jit, "kernel", lambda stem, name, *g, **m: Run(shim(stem, name, *g, **m), name, asked)
        )
        yield asked


# of a warm call, at most: launches, arrays that nothing fills, what else is asked; for each graph,
# of PageRank, whose graphs are alike in this, for one
RAN = {
    "pagerank": ((3, 4, 0), (3, 4, 0)),
    "triangle_count": ((7, 5, 11), (1, 0, 2)),
    "betweenness_centrality": ((4, 10, 5), (1, 2, 2)),
}


@pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")
@pytest.mark.parametrize(
    ("algorithm", "name"),
    [(algorithm, name) for algorithm in RAN for name in GRAPHS[algorithm == "pagerank" :]],
)
def test_what_a_warm_call_launches_and_asks(algorithm: str, name: str, ran: list[str]) -> None:
    A = graph(name).dup().to("cuda:1")
    A.symmetric = True
    call = calls(A, A)[algorithm]
    call(), ran.clear(), call()
    launched = sum(each.startswith("launch ") for each in ran)
    empty = sum(each in ("empty", "empty_like") for each in ran)
    counts = (launched, empty, len(ran) - launched - empty)
    assert launched > 0
    for count, most in zip(counts, RAN[algorithm][GRAPHS.index(name)], strict=True):
        assert count <= most, counts


# of shortest paths on GPUs in rounds, on smaller graphs: edges read, rounds, bytes, collectives
ROUNDS = {"kronecker": (2_572, 18, 5_292, 10), "grid": (1_192, 21, 852, 11)}


@pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")
@pytest.mark.parametrize("name", ROUNDS)
def test_what_a_closure_reads_and_sends_in_rounds(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = sg.generators.grid(16, 16) if name == "grid" else sg.generators.kronecker(8, 8, seed=3)
    weight = ((small.row_indices() + small.indices) % 7 + 1).astype(np.int32)
    W = sg.Matrix._of(*small.shape, small.indptr, small.indices, weight, symmetric=True)
    shim_exchanges.install(monkeypatch)
    G, watched = exchange.in_rounds(shim_exchanges.EXCHANGES["rounds, 3 shards"].place(W))
    found = sg.sssp(G, 0, parents=False).distance.gather()
    assert found.isequal(sg.sssp(W, 0, parents=False).distance)
    watched.forget()
    sg.sssp(G, 0, parents=False)
    cost = watched.cost(None, None, 1.0)
    counts = (cost.edges, cost.rounds, cost.bytes_sent, cost.collectives)
    for count, bound in zip(counts, ROUNDS[name], strict=True):
        assert count is not None and within(count, bound)


def test_programs_of_a_first_call_compile_side_by_side(
    two_devices: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each in a thread; what one of them raises is raised."""
    both, found = threading.Barrier(2), []
    before = activity.current().prepare_seconds()

    def kernel(stem: str, name: str, text: str, *, cooperative: bool) -> None:
        both.wait(timeout=120)
        found.append((stem, name, text, cooperative))
        if text == "wrong":
            raise RuntimeError(stem)

    with monkeypatch.context() as patch:  # undone before `two_devices` undoes its own
        patch.setattr(jit, "kernel", kernel)
        place = stand_in.on(1, np.zeros(1))
        one = jit.Program("one", "right", ("a", "b"), cooperative=True)
        jit.together(place, one, jit.Program("other", "right", ("a", "b")))
        assert sorted(found) == [
            *(("one", name, "right", True) for name in "ab"),
            *(("other", name, "right", False) for name in "ab"),
        ]
        assert activity.current().prepare_seconds() > before, "the caller has waited for it"
        with pytest.raises(RuntimeError, match="other"):
            other = jit.Program("other", "wrong", ("a",))
            jit.together(place, one._replace(names=("a",)), other)


# in one process, in this order: programs of ours and of CuPy's that a first call compiles
PROGRAMS = {
    "bfs": (3, 0),
    "sssp": (2, 0),
    "pagerank": (4, 0),
    "connected_components": (1, 0),
    "betweenness_centrality": (1, 0),
    "mxv": (2, 0),
}
COMPILING = """
import json
import cupy
import numpy as np
from cupy.cuda import compiler
import spgraph as sg

found, compile_ = [], compiler._NVRTCProgram.compile

def noted(self, *given, **more):
    if "__global__" in self.src:  # CuPy compiles empty texts to learn the compiler's version
        found.append("preamble of" in self.src)
    return compile_(self, *given, **more)

compiler._NVRTCProgram.compile = noted
B = sg.generators.kronecker(8, 8, seed=1)
weight = ((B.row_indices() + B.indices) % 7 + 1).astype(np.int32)
W = sg.Matrix._of(*B.shape, B.indptr, B.indices, weight, symmetric=True).to("cuda")
A, x = B.to("cuda"), sg.Vector.from_dense(np.ones(256)).to("cuda")
calls = {
    "bfs": lambda: sg.bfs(A, 0),
    "sssp": lambda: sg.sssp(W, 0),
    "pagerank": lambda: sg.pagerank(A, tol=None, max_iter=10),
    "connected_components": lambda: sg.connected_components(A),
    "betweenness_centrality": lambda: sg.betweenness_centrality(A, sources=[0]),
    "mxv": lambda: sg.mxv(A, x),
}
counts = {}
for name, call in calls.items():
    found.clear()
    call()
    counts[name] = sum(found), len(found) - sum(found)
print(json.dumps(counts))
"""


@pytest.mark.gpu
def test_programs_that_a_first_call_compiles_on_a_gpu() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COMPILING],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        env={**os.environ, "CUPY_CACHE_IN_MEMORY": "1"},
    )
    counts = json.loads(done.stdout)
    assert counts.keys() == PROGRAMS.keys()
    for name, (ours, of_cupy) in counts.items():
        most = PROGRAMS[name]
        assert ours + of_cupy > 0 and ours <= most[0] and of_cupy <= most[1], counts
