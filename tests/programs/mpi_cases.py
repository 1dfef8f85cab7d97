"""Programs for processes, under mpiexec or with a GPU each: containers in shards beside plain ones,
graphs that come in shards, a search that is killed, and command lines that fail in one process.
"""

from __future__ import annotations

import gc
import itertools
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import distributed_cases as cases
import numpy as np
import pytest

import spgraph as sg
from spgraph import distributed
from spgraph.distributed import Communicator, MpiCommunicator, NcclCommunicator, TcpStore
from spgraph.errors import CommunicationError
from spgraph.operations import assign
from spgraph.validation import validate_sssp


def operations(comm: Communicator, how: str) -> None:
    """Every operation and loop; every process looks at the whole of all results."""
    A = cases.graph()
    # the last of several shards is empty
    own = np.random.default_rng(2).integers(0, max(1, comm.num_shards - 1), A.nrows)
    G = A.distribute(comm.num_shards, partition=own if how == "own" else how, communicator=comm)
    for check in cases.OPERATIONS:
        check(A, G, lambda container: container.to(G.device))
    report = G.partition.report()
    assert report.edges.sum() == A.nvals and report.vertices.sum() == A.nrows


def algorithms(comm: Communicator, how: str) -> None:
    """Every algorithm; and none of the processes draws random numbers of its own."""
    A, S = cases.graph(), cases.graph(symmetric=True)
    G, H = (X.distribute(comm.num_shards, partition=how, communicator=comm) for X in (A, S))
    cases.check_algorithms(A, G, S, H)
    few(comm, how)
    for drawn in (
        sg.maximal_independent_set(H).gather().to_numpy(fill=0),
        sg.greedy_color(H).gather().to_numpy(),
        sg.betweenness_centrality(H, k=3).gather().to_numpy(fill=0),
    ):
        found = drawn.astype(np.float64)
        assert (comm.all_reduce_host(found, "max") == comm.all_reduce_host(found, "min")).all()


def few(comm: Communicator, how: str) -> None:
    """An algorithm of each kind."""
    S = cases.graph(symmetric=True)
    H = S.distribute(comm.num_shards, partition=how, communicator=comm)
    for plain, spread in ((sg.bfs(S, 5), sg.bfs(H, 5)), (sg.sssp(S, 5), sg.sssp(H, 5))):
        for one, shards in zip(plain, spread, strict=True):
            cases.same(shards, one)
    trees(S, H)
    cases.same(sg.connected_components(H), sg.connected_components(S))
    cases.same(sg.pagerank(H), sg.pagerank(S), close=1e-6)
    ids = [5, 9]
    for run in (sg.betweenness_centrality, sg.multi_source_bfs):
        cases.same(run(H, sources=ids), run(S, sources=ids), close=1e-9)
    assert sg.triangle_count(H) == sg.triangle_count(S)


def trees(S: sg.Matrix, H: sg.Matrix) -> None:
    """Every process is told the same of a right tree and of a wrong one."""
    distance, parent = sg.sssp(S, 5)
    v = int(distance.to_coo()[0][-1])
    for d in (distance, assign(distance.dup(), 1000, v)):
        found = validate_sssp(H, 5, d, parent)
        assert found == validate_sssp(S, 5, d, parent)
        assert [failure.check for failure in found] == ([] if d is distance else [2, 3])


def inputs(comm: Communicator, folder: str) -> None:
    """Graphs read and drawn in shards; an error of one process ends the call in all of them."""
    options: dict[str, Any] = {"communicator": comm}
    for name, both, how in (
        ("graph.wel", None, "edges"),
        ("graph.wel", True, "random"),
        ("graph.wel", None, "biased"),
        ("graph.npz", None, "random"),
        ("dense.mtx", None, "edges"),
    ):
        path = Path(folder, name)
        A = sg.read(path, symmetric=both)
        G = distributed.read(path, comm.num_shards, symmetric=both, partition=how, **options)
        assert G.symmetric == A.symmetric and G.partition.vertices.num_shards == comm.num_shards
        cases.same(G, A)
        cases.same(sg.bfs(G, 5).level, sg.bfs(A, 5).level)
    for symmetric in (True, False):
        model = sg.generators.kronecker_model(7, 4, symmetric=symmetric)
        G = distributed.from_model(model, comm.num_shards, partition="random", **options)
        A = sg.generators.kronecker(7, 4, symmetric=symmetric)
        cases.same(G, A)
        cases.same(sg.connected_components(G), sg.connected_components(A))
    last = comm.processes - 1
    missing = Path(folder, "graph.npz" if comm.rank < last else "missing.npz")
    with pytest.raises(FileNotFoundError if comm.rank == last else CommunicationError):
        distributed.read(missing, comm.num_shards, **options)
    with pytest.raises(ValueError, match="needs the whole graph"):
        distributed.from_model(model, comm.num_shards, partition="metis", **options)


def searches(comm: Communicator) -> None:
    """Searches without an end, in which a process is to be killed."""
    A = cases.graph(symmetric=True).distribute(comm.num_shards, communicator=comm)
    for run in itertools.count():
        sg.bfs(A, 5)
        if run == 3:
            print(f"process {comm.rank} has the id {os.getpid()};", flush=True)


def ended(comm: Communicator, exchange: str, end: str) -> None:
    """Searches of 600 levels, in the middle of which the last process gets the signal `end`."""
    plain = sg.generators.grid(300, 300)
    expected = sg.bfs(plain, 0).level
    A: Any = plain.distribute(comm.num_shards, communicator=comm, exchange=exchange)
    sg.bfs(A, 0)
    if comm.rank == comm.processes - 1:
        number = getattr(signal, end)
        threading.Timer(0.3, os.kill, (os.getpid(), number)).start()
    while True:
        assert sg.bfs(A, 0).level.gather().isequal(expected)


def loops(comm: Communicator, exchange: str, first: str, step: str) -> None:
    """Searches and closures over every `step`-th semiring from the `first` on."""
    import closure_cases
    import search_cases

    def place(A: Any) -> Any:
        return A.distribute(comm.num_shards, communicator=comm, exchange=exchange)

    for case in list(search_cases.CASES)[int(first) :: int(step)]:
        for name, direction in itertools.product(
            ("skewed both", "sparse directed"), ("auto", "push", "pull")
        ):
            search_cases.check_search(name, case, place, direction)
    for closed in list(closure_cases.CASES.values())[int(first) :: int(step)]:
        for name in ("acyclic", "grid"):
            G = place(closure_cases.graph(name, closed).A)
            closure_cases.check_closure(name, closed, G)


def voids(comm: Communicator) -> None:
    """Components of a graph that only the last process knows to be no small world."""

    def place(A: Any, **how: Any) -> Any:
        return A.distribute(comm.num_shards, communicator=comm, exchange="peer", **how)

    cases.check_void_components(comm.num_shards, place)


def freed(comm: Communicator) -> None:
    """Graphs come and go, and garbage is collected at other times in every process."""
    plain: Any = sg.generators.kronecker(12, 8, seed=1)
    expected, held = sg.bfs(plain, 1).level, []
    own, others = _alive("allocate", "free"), _alive("map", "unmap")
    alive = []
    for turn in range(50):
        A = plain.distribute(comm.num_shards, communicator=comm, exchange="peer")
        assert sg.bfs(A, 1).level.gather().isequal(expected)
        held.append(A)
        if len(held) > 1 + 3 * comm.rank:
            del A
            held.clear()
            gc.collect()
        if turn in (0, 20, 49):
            alive.append((len(own), len(others)))
    for first, before, after in zip(*alive, strict=True):
        assert first > 0 and after - before < 15 * first, alive


def _alive(takes: str, gives: str) -> set[int]:
    """The addresses that one method of MappableMemory has given and the other not taken back; what
    a whole GPU has left depends on other processes, too.
    """
    from spgraph.backends.cuda.exchange.mappable import MappableMemory

    addresses: set[int] = set()
    take, give = getattr(MappableMemory, takes), getattr(MappableMemory, gives)

    def taken(self: Any, what: Any) -> int:
        addresses.add(address := take(self, what))
        return address

    def given(self: Any, address: int) -> None:
        give(self, address)
        addresses.discard(address)  # it may be older

    setattr(MappableMemory, takes, taken)
    setattr(MappableMemory, gives, given)
    return addresses


def command(*arguments: str) -> None:
    """The command line, with RANK in `arguments` replaced by the number of the process; where they
    end with `fails` or `interrupted`, the search of process 1 does that.
    """
    from spgraph.cli import launch, main

    words = [word.replace("RANK", str(launch.rank())) for word in arguments]
    ends: dict[str, Any] = {"fails": _fails, "interrupted": _interrupted}
    if words[-1] in ends:
        end = ends[words.pop()]
        if launch.rank() == 1:
            sg.bfs = end
    sys.exit(main(words))


def _fails(*_: Any, **__: Any) -> None:
    raise ValueError("what process 1 alone has met")


def _interrupted(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(3600)


def with_gpu(runs: str, address: str, rank: str, processes: str) -> None:
    """One of several processes that have a GPU each; `runs` as in `main`, a space between them."""
    store = TcpStore(address, int(rank), int(processes), timeout=120)
    try:
        with NcclCommunicator.for_process(f"cuda:{rank}", store) as comm:
            for run in runs.split():
                name, *arguments = run.split(":")
                globals()[name](comm, *arguments)
    except CommunicationError as error:
        print(f"process {rank} raised: {error}", flush=True)
        os._exit(1)  # what is asked here is whether it raises, not how a broken GPU is left
    print(f"process {rank} is done;", flush=True)


def main(*runs: str) -> None:
    """`runs` are functions of this file, each with a number of shards and its arguments behind
    colons.
    """
    for run in runs:
        name, shards, *arguments = run.split(":")
        with MpiCommunicator(shards=int(shards)) as comm:
            globals()[name](comm, *arguments)
    print(f"process {comm.rank} is done;", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "command":
        command(*sys.argv[2:])
    if sys.argv[1] == "nccl":
        sys.exit(with_gpu(*sys.argv[2:]))
    main(*sys.argv[1:])
