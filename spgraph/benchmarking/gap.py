"""The GAP Benchmark Suite: six kernels, their trials, sources and checks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from spgraph import generators
from spgraph.algorithms import (
    betweenness_centrality,
    bfs,
    connected_components,
    pagerank,
    sssp,
    triangle_count,
)
from spgraph.benchmarking import verifiers
from spgraph.benchmarking.timing import timed
from spgraph.checks import matrix
from spgraph.containers import Matrix, MatrixLike
from spgraph.containers.storage.arrays import array_module, on_device
from spgraph.containers.storage.numbers import flags, is_integer
from spgraph.distributed import DistributedMatrix
from spgraph.random_edges import numbers, state_of

Kernel = Literal["bfs", "sssp", "pr", "cc", "bc", "tc"]
# the trials of each kernel
TRIALS: dict[Kernel, int] = {"bfs": 64, "sssp": 64, "pr": 16, "cc": 16, "bc": 16, "tc": 3}
ROOTS = 4  # of a trial of bc
TOLERANCE, ITERATIONS = 1e-4, 1000  # of pr
WEIGHTS = 255  # weights of edges without any are integers from 1 to this
SOURCES, LENGTHS = 5, 6  # purposes of random numbers, beside those of the edges


class Trials(NamedTuple):
    """The trials of a kernel: seconds of each, its sources if it has any, and what the verifier
    found wrong with its result; and the seconds of the run before them, which compiles.
    """

    kernel: Kernel
    seconds: list[float]
    sources: list[list[int]]
    failures: list[list[str]]
    verified: bool
    first_seconds: float

    @property
    def valid(self) -> bool:
        """Whether nothing was found wrong."""
        return not any(self.failures)

    @property
    def average(self) -> float:
        """The mean of the trials' seconds, which the suite reports."""
        return float(np.mean(self.seconds))

    @property
    def median(self) -> float:
        """The median of the trials' seconds."""
        return float(np.median(self.seconds))


def gap(
    A: MatrixLike,
    *,
    kernels: Collection[Kernel] = tuple(TRIALS),
    trials: int | None = None,
    seed: int = 1,
    verify: bool = True,
) -> list[Trials]:
    """Run kernels of the GAP Benchmark Suite on a graph: the `Trials` of each.

    Parameters:
        kernels: which of bfs, sssp, pr, cc, bc, tc.
        trials: how many of each; None: as the suite has it.
        seed: which random sources, and weights where A has none.
        verify: check the result of every trial.

    `A` is a graph on any device, or in shards. The kernels are `sg.bfs` with parents and the
    distances of `sg.sssp` (64 trials each, from a random vertex with out-edges each), `sg.pagerank`
    (16, to a change of at most 1e-4 in the 1-norm, at most 1,000 iterations),
    `sg.connected_components` (16), `sg.betweenness_centrality` from 4 such vertices (16),
    `sg.triangle_count` (3). `sssp` has A's weights, or, where all values are one, random integers
    from 1 to 255, the same both ways. Each kernel runs once before its trials, untimed, which
    compiles it. The verifiers do not share the code of the kernels and run where A is; a graph in
    shards is brought together on the first device for those of cc, bc and tc.

    Unlike in the suite, `sg.pagerank` spreads the rank of vertices without out-edges over all, and
    a vertex drawn twice for a trial of bc counts once.
    Raises ValueError for an unknown kernel, less than one trial, a graph without edges.

    Source: Beamer, Asanovic, Patterson, "The GAP benchmark suite", 2015; arXiv:1508.03619.

    >>> import spgraph as sg
    >>> found = sg.benchmarking.gap(sg.generators.kronecker(6), kernels=["bfs", "tc"], trials=2)
    >>> [(each.kernel, len(each.seconds), each.valid) for each in found]
    [('bfs', 2, True), ('tc', 2, True)]
    """
    flags("gap", verify=verify)
    A = matrix("gap", A)
    unknown = [kernel for kernel in kernels if kernel not in TRIALS]
    if unknown or isinstance(kernels, str):
        got = repr(kernels if isinstance(kernels, str) else unknown[0])
        raise ValueError(f"gap: kernels: expected a list of some of {', '.join(TRIALS)}, got {got}")
    if trials is not None and (not is_integer(trials) or trials < 1):
        raise ValueError(f"gap: trials: expected an integer >= 1, got {trials!r}")
    if A.nvals == 0:
        raise ValueError("gap: A: expected a graph with edges, got none")
    W = with_weights(A, seed) if A.iso and "sssp" in kernels else A
    check = verifiers.Verifiers(A, W, TOLERANCE) if verify else None
    return [_trials(A, W, kernel, int(trials or TRIALS[kernel]), seed, check) for kernel in kernels]


def _trials(
    A: Matrix,
    W: Matrix,
    kernel: Kernel,
    count: int,
    seed: int,
    check: verifiers.Verifiers | None,
) -> Trials:
    """The trials of one kernel, after one that is not timed."""
    roots = {"bfs": 1, "sssp": 1, "bc": ROOTS}.get(kernel, 0)
    drawn = sources(A, count * roots, seed)
    starts = [drawn[k * roots : (k + 1) * roots] for k in range(count)]
    run: Callable[[Sequence[int]], Any] = partial(_run, W if kernel == "sssp" else A, kernel)
    devices = A.device.devices if isinstance(A, DistributedMatrix) else [A.device]
    _, first = timed(devices, partial(run, starts[0]))
    found = Trials(kernel, [], starts, [], check is not None, first)
    for start in starts:
        result, seconds = timed(devices, partial(run, start))
        found.seconds.append(seconds)
        found.failures.append(check.failures(kernel, start, result) if check else [])
    return found


def _run(A: Matrix, kernel: Kernel, start: Sequence[int]) -> Any:
    """The result of a kernel, which devices have written."""
    if kernel in ("bfs", "sssp"):
        found = bfs(A, start[0]) if kernel == "bfs" else sssp(A, start[0], parents=False)
        found[0].nvals  # noqa: B018 (a number that the devices write)
        return found if kernel == "bfs" else found[0]
    if kernel == "pr":
        return pagerank(A, tol=TOLERANCE, max_iter=ITERATIONS)
    if kernel == "bc":
        return betweenness_centrality(A, sources=list(start))
    return connected_components(A) if kernel == "cc" else triangle_count(A)


def sources(A: Matrix, count: int, seed: int) -> list[int]:
    """`count` random vertices with out-edges, perhaps some of them twice."""
    if count == 0:
        return []
    degrees = A.row_degrees().to_numpy()
    there = np.flatnonzero(degrees)
    random = numbers(state_of(seed, SOURCES), np.arange(count, dtype=np.uint64))
    return there[(random % np.uint64(there.size)).astype(np.int64)].tolist()


def with_weights(A: Matrix, seed: int) -> Matrix:
    """A with random integers from 1 to 255 as values, int32: the same for (i, j) and (j, i)."""
    if isinstance(A, DistributedMatrix):
        return with_weights(A.gather(), seed).to(A.device)
    with on_device(A.device):
        rows = A.row_indices().astype(np.uint64)
        columns = A.indices.astype(np.uint64)
        xp = array_module(rows)
        pair = xp.minimum(rows, columns) << np.uint64(32) | xp.maximum(rows, columns)
        random = numbers(state_of(seed, LENGTHS), pair) >> np.uint64(32)
        values = (random * np.uint64(WEIGHTS) >> np.uint64(32)).astype(np.int32) + np.int32(1)
        return Matrix._of(*A.shape, A.indptr, A.indices, values, symmetric=A.symmetric)


def graph(name: str, scale: int, *, degree: int = 16, seed: int = 1, device: str = "cpu") -> Matrix:
    """A graph of the suite that can be generated, of 2**scale vertices: kron and urand of
    degree * 2**scale edges, and road, of which this is a grid without a tenth of its edges.

    Those of the suite have scale 27; its road network is a file of 24 million vertices.

    >>> graph("road", 6).nrows
    64
    """
    if name == "kron":
        return generators.kronecker(scale, degree, seed=seed, device=device)
    if name == "urand":
        return generators.uniform_random(1 << scale, degree, seed=seed, device=device)
    if name != "road":
        raise ValueError(f"graph: name: expected kron, urand or road, got {name!r}")
    rows = 1 << scale // 2
    return generators.grid(rows, (1 << scale) // rows, remove=0.1, seed=seed, device=device)
