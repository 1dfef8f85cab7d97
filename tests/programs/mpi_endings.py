"""Programs under mpiexec whose last process ends, or goes another way than the others: written as
the guide has it, without `with`.
"""

from __future__ import annotations

import logging
import os
import pathlib
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import spgraph as sg
from spgraph import distributed
from spgraph.distributed import Communicator
from spgraph.distributed.communicators import MpiCommunicator, TcpStore, messages, timeouts
from spgraph.errors import CommunicationError
from spgraph.semirings import min_plus, plus_times

LONG = 3600.0  # seconds: whoever sleeps so long is ended by another


def collectives(comm: MpiCommunicator) -> None:
    """Calls without end."""
    while True:
        comm.all_reduce([np.ones(3)] * len(comm.local), "sum")


def odd(comm: MpiCommunicator, call: Callable[[], Any]) -> None:
    """The last process calls, the others make collectives until an error tells them not to."""
    collectives_of = [np.ones(3)] * len(comm.local)
    for _ in range(5):
        comm.all_reduce(collectives_of, "sum")
    if comm.rank == comm.processes - 1:
        call()
        return
    collectives(comm)


def fails() -> None:
    raise ValueError("something of this process alone")


def in_a_thread() -> None:
    thread = threading.Thread(target=fails)
    thread.start()
    thread.join()


def interrupts() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(LONG)


def interrupted_while_it_waits(comm: MpiCommunicator) -> None:
    """Ctrl-C in the last process, in the midst of a call to which another does not come."""
    if comm.rank == comm.processes - 1:
        threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
        collectives(comm)
    time.sleep(LONG)


def raises_while_others_compute(comm: MpiCommunicator) -> None:
    if comm.rank == comm.processes - 1:
        fails()
    time.sleep(LONG)


def ends_at_different_times(comm: MpiCommunicator) -> None:
    """Nothing is wrong: process 0 has something to do for longer than the grace of an error."""
    assert comm.all_reduce_host(np.array([1]), "sum")[0] == comm.processes
    if comm.rank == 0:
        time.sleep(messages.GRACE + 2)


def another_order(comm: MpiCommunicator) -> None:
    comm.all_reduce_host(np.array([1]), "sum")
    try:
        if comm.rank == comm.processes - 1:
            comm.all_reduce_host(np.array([1, 2]), "max")
        else:
            comm.all_reduce([np.ones(3)] * len(comm.local), "sum")
    except CommunicationError as error:
        tell(f"process {comm.rank}: {error}")
        return
    tell("no error")


def another_graph(comm: MpiCommunicator) -> None:
    """Of the same size, and with as many edges."""
    odd_one = comm.rank == comm.processes - 1
    rows = [0, 1, 2, 3, 4, 5, 6, 7]
    columns = [1, 2, 3, 4, 5, 6, 7, 1 if odd_one else 0]
    A = sg.Matrix.from_coo(rows, columns, nrows=8, ncols=8).distribute(
        comm.num_shards, communicator=comm
    )
    B = sg.Matrix.from_coo(columns, rows, nrows=8, ncols=8).distribute(
        comm.num_shards, communicator=comm
    )
    try:
        sg.bfs(A, 0)
    except CommunicationError as error:
        tell(f"process {comm.rank}: {error}")
        return
    tell(f"no error {B!r}")


def another_of_two_graphs(comm: MpiCommunicator) -> None:
    """All have both, and the last one takes the wrong one."""
    A, B = (
        sg.generators.kronecker(6, 4, seed=seed).distribute(
            comm.num_shards, communicator=comm, partition="random"
        )
        for seed in (1, 2)
    )
    sg.bfs(A, 0)
    sg.bfs(B, 0)
    try:
        sg.bfs(B if comm.rank == comm.processes - 1 else A, 0)
    except CommunicationError as error:
        tell(f"process {comm.rank}: {error}")
        return
    tell("no error")


def another_partition(comm: MpiCommunicator) -> None:
    """Of one graph: the last process has exchanged the shards of two vertices."""
    odd_one, shards = comm.rank == comm.processes - 1, comm.num_shards
    A = sg.generators.kronecker(6, 4, seed=1)
    owner = np.arange(A.nrows) % shards
    if odd_one:
        owner[[0, 1]] = owner[[1, 0]]
    A.distribute(shards, communicator=comm, partition="random")  # alike everywhere
    G = A.distribute(shards, communicator=comm, partition=owner)
    try:
        found = sg.bfs(G, 0)
    except CommunicationError as error:
        tell(f"process {comm.rank}: {error}")
        return
    tell(f"no error {found.level.nvals}")


def another_partition_in_shards(comm: MpiCommunicator) -> None:
    """The same of a graph that is made in shards."""
    owner = np.arange(64) % comm.num_shards
    if comm.rank == comm.processes - 1:
        owner[[0, 1]] = owner[[1, 0]]
    model = sg.generators.kronecker_model(6, 4)
    try:
        distributed.from_model(model, comm.num_shards, partition=owner, communicator=comm)
    except CommunicationError as error:
        tell(f"process {comm.rank}: {error}")
        return
    tell("no error")


def another_source(comm: MpiCommunicator) -> None:
    """In searches of a graph that all have searched before."""
    A = sg.generators.kronecker(6, 4, seed=1).distribute(comm.num_shards, communicator=comm)
    sg.bfs(A, 0)
    assert sg.bfs(A, 1).level.nvals
    search_from(comm, sg.bfs, A)


def another_source_of_paths(comm: MpiCommunicator) -> None:
    """The same for shortest paths."""
    A = sg.generators.kronecker(6, 4, seed=1).distribute(comm.num_shards, communicator=comm)
    sg.sssp(A, 0)
    search_from(comm, sg.sssp, A)


def search_from(comm: MpiCommunicator, search: Callable[..., Any], A: Any) -> None:
    """The last process searches from the vertex behind that of the others."""
    try:
        found = search(A, 5 + (comm.rank == comm.processes - 1))
    except CommunicationError as error:
        tell(f"process {comm.rank}: {error}")
        return
    tell(f"no error {found[0].nvals}")


def another_semiring(comm: MpiCommunicator) -> None:
    """In a product, where the exchange is the same."""
    A = sg.generators.kronecker(6, 4, seed=1).distribute(comm.num_shards, communicator=comm)
    odd_one = comm.rank == comm.processes - 1
    try:
        found = sg.mxm(A, A, min_plus if odd_one else plus_times)
    except CommunicationError as error:
        tell(f"process {comm.rank}: {error}")
        return
    tell(f"no error {found!r}")


def another_damping(comm: MpiCommunicator) -> None:
    """In a loop that takes as many rounds with either."""
    A = sg.generators.kronecker(6, 4, seed=1).distribute(comm.num_shards, communicator=comm)
    damping = 0.5 if comm.rank == comm.processes - 1 else 0.85
    try:
        found = sg.pagerank(A, damping=damping, tol=None, max_iter=3)
    except CommunicationError as error:
        tell(f"process {comm.rank}: {error}")
        return
    tell(f"no error {found!r}")


def another_seed(comm: MpiCommunicator) -> None:
    """Of a graph that is generated in shards."""
    model = sg.generators.kronecker_model(6, 4, seed=comm.rank // (comm.processes - 1))
    try:
        distributed.from_model(model, comm.num_shards, communicator=comm)
    except CommunicationError as error:
        tell(f"process {comm.rank}: {error}")
        return
    tell("no error")


def another_version(comm: MpiCommunicator) -> None:
    """Of a file, as long as that of the others: on the disk of another host, say."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "graph.el")
        odd_one = comm.rank == comm.processes - 1
        path.write_text("".join(f"{i} {i + 1} {1 + odd_one}\n" for i in range(1000)))
        try:
            distributed.read(path, comm.num_shards, communicator=comm)
        except CommunicationError as error:
            tell(f"process {comm.rank}: {error}")
            return
    tell("no error")


def comes_late(comm: MpiCommunicator) -> None:
    """The log tells of the last process, which comes in the end."""
    logging.basicConfig(level=logging.WARNING, format="LOG %(name)s %(message)s")
    timeouts.WARN_AFTER = 0.5
    comm.all_reduce_host(np.array([1]), "sum")
    if comm.rank == comm.processes - 1:
        time.sleep(3)
    assert comm.all_reduce_host(np.array([1]), "sum")[0] == comm.processes
    comm.close()


def never_comes(comm: MpiCommunicator) -> None:
    if comm.rank == comm.processes - 1:
        time.sleep(LONG)
    comm.all_reduce_host(np.array([1]), "sum")


def goes_on_after_a_timeout(comm: MpiCommunicator) -> None:
    """A user catches the error of the others, which then end without one."""
    if comm.rank == comm.processes - 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    try:
        comm.all_reduce_host(np.array([1]), "sum")
    except CommunicationError:
        tell(f"process {comm.rank} goes on")


def begins_alone(what: str) -> None:
    """The last process never makes the communicator, or the store."""
    from mpi4py import MPI

    if MPI.COMM_WORLD.Get_rank() == MPI.COMM_WORLD.Get_size() - 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    if what == "store_alone":
        TcpStore.over_mpi(MPI.COMM_WORLD, timeout=2)
    else:
        MpiCommunicator(timeout=2)
    tell("it has begun;")


def no_rows(comm: MpiCommunicator) -> None:
    """The last shard has no rows, the others more than one."""
    searched(comm)
    odd(comm, fails)


def searched(comm: Communicator) -> None:
    """A search and ranks, where the last shard of several has no rows."""
    A = sg.generators.kronecker(6, 4, seed=1)
    owner = np.arange(A.nrows) % max(1, comm.num_shards - 1)
    G = A.distribute(comm.num_shards, communicator=comm, partition=owner)
    assert G.partition.sizes[-1] == 0 or comm.num_shards == 1
    assert sg.bfs(G, 0).level.gather().isequal(sg.bfs(A, 0).level)
    assert sg.pagerank(G).gather().isclose(sg.pagerank(A), rtol=1e-4)


def tell(line: str) -> None:
    """One line in one piece, whoever else writes."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(what: str) -> None:
    if what in ("communicator_alone", "store_alone"):
        begins_alone(what)
        return
    limited = what in ("never_comes", "goes_on_after_a_timeout")
    comm = MpiCommunicator(timeout=2 if limited else None)
    calls: dict[str, Callable[[], Any]] = {
        "raises": fails,
        "sys_exit": lambda: sys.exit(3),
        "returns": lambda: None,
        "os_exit": lambda: os._exit(3),
        "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
        "interrupted": interrupts,
        "thread": in_a_thread,
    }
    if what in calls:
        odd(comm, calls[what])
    else:
        globals()[what](comm)
    tell(f"process {comm.rank} is done;")


if __name__ == "__main__":
    main(sys.argv[1])
