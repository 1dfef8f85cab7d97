"""Dependencies of sources on vertices, level by level: on GPUs by kernels of their own, else out of
operations.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from spgraph.backends.cuda.dependencies.dependencies_plan import Plan
from spgraph.backends.cuda.dependencies.dependencies_shard import (
    Workspace,
    dependencies_shard,
    workspace_words,
)
from spgraph.backends.cuda.exchange.peers import PeerBuffers
from spgraph.backends.cuda.runtime.jit import address
from spgraph.containers import Vector
from spgraph.containers.arrays import array_module, on_device
from spgraph.distributed.containers.placement import Placement
from spgraph.distributed.exchange.collectives import tag_graph
from spgraph.distributed.loops import peers
from spgraph.distributed.loops.search import search
from spgraph.distributed.loops.single_device import single_device_of
from spgraph.operations import assign, ewise_add, ewise_mult, mxv, select, vxm
from spgraph.semirings import (
    BinaryOp,
    Monoid,
    Semiring,
    binary,
    indexunary,
    plus_first,
    plus_second,
)

# numbers of paths up to here and their inverses are exact enough in float64
MOST = 1e290


class Numbers(NamedTuple):
    """How numbers of paths are kept: as they are, or as logarithms, where float64 does not hold
    them.
    """

    forward: Semiring
    backward: Semiring
    zero: float
    one: float
    times: BinaryOp
    over: BinaryOp
    more: Callable[[Any], Any]  # 1 + d, of an array d
    plain: Callable[[Any], Any]  # the number itself, of an array d


@functools.cache
def plain_numbers() -> Numbers:
    """Numbers as they are."""
    return Numbers(
        forward=plus_first,
        backward=plus_second,
        zero=0.0,
        one=1.0,
        times=binary.times,
        over=binary.truediv,
        more=lambda d: d + 1.0,
        plain=np.positive,  # a copy
    )


@functools.cache
def logarithms() -> Numbers:
    """Logarithms: a sum of numbers is log(exp(x) + exp(y))."""
    add = BinaryOp.from_expressions(
        "log_plus",
        python="x if y == -math.inf else max(x, y) + math.log1p(math.exp(-abs(x - y)))",
        cuda="y == -INFINITY ? x : fmax(x, y) + log1p(exp(-fabs(x - y)))",
    )
    plus = Monoid(add, -np.inf, None)
    return Numbers(
        forward=Semiring(plus, binary.first),
        backward=Semiring(plus, binary.second),
        zero=-np.inf,
        one=0.0,
        times=binary.plus,
        over=binary.minus,
        more=lambda d: np.logaddexp(0.0, d),
        plain=np.exp,
    )


def dependencies(A: Any, T: Any, sources: np.ndarray, level: Any) -> Vector:
    """As `dependencies` of a backend: of every one of `sources`, or with a `level`, of its only
    vertex of level 0 along the edges of A.

    On GPUs kernels of their own do it, shards in step with each other, or at home where rounds are
    what costs; on the CPU, with a `level` (betweenness of weighted graphs), and for sources whose
    numbers of paths leave float64 it is made of operations, which takes ten times as long.
    """
    tag_graph(A)
    placement, n = A.device, A.nrows
    if one := single_device_of(A):
        taken = None if level is None else one.gather(level)
        return one.scatter(
            placement.backend(0).dependencies(one.whole, one.whole.T, sources, taken)
        )
    score = placement.filled(0.0, size=n, dtype=np.float64)
    if level is None and placement.devices[0] != "cpu":
        sources = in_shards(A, T, sources, [shard._values for shard in score.shards])
    for source in sources.tolist():
        steps = level
        if level is None:
            steps = _levels_from(A, T, source)
        found = _of_source(A, steps, level is None, plain_numbers())
        if found is None:
            found = _of_source(A, steps, level is None, logarithms())
        assign(score, found, accum=binary.plus)
    return score


def _levels_from(A: Any, T: Any, source: int) -> Any:
    start = A.device.unit(source, True, size=A.nrows, dtype=np.bool_)
    return search(A, T, start, None, True, "auto", A.nrows, False)[0]


# --- shards in step -------------------------------------------------------------------------------


def in_shards(A: Any, T: Any, sources: np.ndarray, scores: Sequence[Any]) -> np.ndarray:
    """Add to `scores`, arrays of the local shards; the sources whose numbers of paths leave
    float64, of which nothing is added.

    A source takes a search, one read-back, and in each direction one exchange a level, two where
    edges are pushed along. GPUs that write into each other's memory then only meet: kernels write
    values where they are read, into workspaces of 36 bytes a vertex of the whole that stay with A.
    Otherwise lists of values go through the communicator.
    """
    placement, n = A.device, A.nrows
    graph = peers.peer_graph(A, T)
    inside = placement.partition(n).to_internal(sources)
    reports = _on_each(placement, lambda k, xp: xp.zeros(max(1, sources.size), np.uint8))
    answers = _by_communicator if placement.peers is None else _by_peers
    with contextlib.nullcontext() if placement.peers is None else PeerBuffers.lock:
        workspaces = _workspaces(A, graph.offsets)
        for j, (source, place) in enumerate(zip(sources.tolist(), inside.tolist(), strict=True)):
            level = _levels_from(A, T, source)
            if placement.peers is not None:  # nobody reads the last source's values any more
                placement.peers.meet()
            steps = [
                dependencies_shard(
                    *(edges, graph.offsets, p, workspaces[k], level.unchecked[k], place, scores[k]),
                    reports[k][j : j + 1],
                )
                for k, (p, edges) in enumerate(zip(placement.local, graph.shards, strict=True))
            ]
            _run(placement, n, steps, answers)
        lost = placement.communicator.fetch(reports)[0][: sources.size]
        if sources.size:
            _ = level.shards  # raises where a device was lost: in one search, and all after it
    return sources[lost > 0]


def _on_each(placement: Placement, make: Callable[[int, Any], Any]) -> list[Any]:
    """make(k, the library of arrays) for each local shard, on its device."""
    made = []
    for k, device in enumerate(placement.devices):
        with on_device(device) as xp:
            made.append(make(k, xp))
    return made


def _workspaces(A: Any, offsets: Sequence[int]) -> list[Workspace]:
    """The workspaces of the local shards; those that others write to are kept with A."""
    placement, words = A.device, workspace_words(A.nrows)
    shared = placement.peers is not None
    if shared:
        if "dependencies" not in A._derived:
            A._derived["dependencies"] = PeerBuffers(placement.peers.devices)
        places = A._derived["dependencies"].reserve(words, [8 * words] * placement.num_shards)

    def workspace(k: int, xp: Any) -> Workspace:
        firsts = xp.asarray(offsets, np.int64)
        if shared:
            return Workspace(places[k], xp.asarray(places, np.int64), True, firsts)
        held = xp.empty(words)
        return Workspace(address(held), xp.full(1, address(held), np.int64), False, firsts, held)

    return _on_each(placement, workspace)


def _run(
    placement: Placement,
    n: int,
    steps: Sequence[Any],
    answer: Callable[[Placement, str, list[Any]], list[Any]],
) -> None:
    """Let the shards of n vertices go on from question to question, until they are done."""
    answers: list[Any] = [None] * len(steps)
    while True:
        questions, done = [], False
        for step, device, told in zip(steps, placement.devices, answers, strict=True):
            with on_device(device):
                try:
                    questions.append(step.send(told))
                except StopIteration:
                    done = True
        if done:
            return
        question, asked = questions[0][0], [given for _, given in questions]
        if question == "plan":
            plan = Plan.of(_of_all(placement, asked), n, placement.peers is not None)
            answers = [plan] * len(asked)
        else:
            answers = answer(placement, question, asked)


def _of_all(placement: Placement, parts: list[Any]) -> list[np.ndarray]:
    """What all shards have counted, on the host."""
    comm = placement.communicator
    if comm.processes == 1:
        return comm.fetch(parts)
    every = comm.all_gather(parts, sizes=[parts[0].size] * comm.num_shards)
    return list(comm.fetch(every)[0].reshape(comm.num_shards, -1))


def _by_peers(placement: Placement, question: str, asked: list[Any]) -> list[Any]:
    """Values are where they are read once all devices have met."""
    assert placement.peers is not None
    placement.peers.meet()
    return [None] * len(asked)


def _by_communicator(placement: Placement, question: str, asked: list[Any]) -> list[Any]:
    """Lists go from shard to shard."""
    parts, sizes = [part for part, _ in asked], asked[0][1]
    if question == "sums":
        return placement.communicator.reduce_scatter(parts, sizes, "sum")
    return placement.communicator.all_gather(parts, sizes=sizes)


# --- out of operations ----------------------------------------------------------------------------


def _of_source(A: Any, level: Any, adjacent: bool, numbers: Numbers) -> Any:
    """The dependency of one source; None if its numbers of paths do not fit `numbers`. `adjacent`:
    of A's edges only those count that lead to the next level, else all of them lead on."""
    n, device = A.nrows, A.device
    deepest = level._value_range()[1]
    levels = [select(level, indexunary.valueeq, depth) for depth in range(deepest + 1)]
    paths = [_constant(levels[0], numbers.one)]
    total = paths[0]
    for at in levels[1:]:
        # p<level> = p plus.first A
        came = vxm(paths[-1], A, numbers.forward, mask=at.S if adjacent else None)
        if not adjacent:
            total = ewise_add(total, came, numbers.forward.monoid)
            came = ewise_mult(total, at, binary.first)
        paths.append(came)
    if numbers.zero == 0.0 and not max(p._value_range()[1] for p in paths) < MOST:
        return None
    score = Vector.empty(n, np.float64, device=device)
    share = Vector.empty(n, np.float64, device=device)
    for p in paths[:0:-1]:
        # d<level> = p * (A plus.second share); share = (1 + d) / p
        carried = ewise_mult(mxv(A, share, numbers.backward, mask=p.S), p, numbers.times)
        d = ewise_add(_constant(p, numbers.zero), carried, binary.second)
        assign(score, d._with_values(numbers.plain), mask=d.S)
        near = ewise_mult(d._with_values(numbers.more), p, numbers.over)
        share = near if adjacent else ewise_add(share, near, binary.second)
    return score


def _constant(v: Any, value: float) -> Any:
    return v._with_values(lambda x: array_module(x).full(x.size, value))
