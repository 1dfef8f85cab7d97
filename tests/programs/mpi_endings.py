"""Programs under mpiexec whose last process ends, or goes another way than the others: written as
the guide has it, without `with`.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import spgraph as sg
from spgraph.distributed import Communicator
from spgraph.distributed.communicators import MpiCommunicator, messages, timeouts
from spgraph.errors import CommunicationError

LONG = 3600.0  # seconds: whoever sleeps so long is ended by another


def collectives(say: MpiCommunicator) -> None:
    """Calls without end."""
    while True:
        say.all_reduce([np.ones(3)] * len(say.local), "sum")


def odd(say: MpiCommunicator, call: Callable[[], Any]) -> None:
    """The last process calls, the others make collectives until an error tells them not to."""
    collectives_of = [np.ones(3)] * len(say.local)
    for _ in range(5):
        say.all_reduce(collectives_of, "sum")
    if say.rank == say.processes - 1:
        call()
        return
    collectives(say)


def fails() -> None:
    raise ValueError("something of this process alone")


def in_a_thread() -> None:
    thread = threading.Thread(target=fails)
    thread.start()
    thread.join()


def interrupts() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(LONG)


def interrupted_while_it_waits(say: MpiCommunicator) -> None:
    """Ctrl-C in the last process, in the midst of a call to which another does not come."""
    if say.rank == say.processes - 1:
        threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
        collectives(say)
    time.sleep(LONG)


def raises_while_others_compute(say: MpiCommunicator) -> None:
    if say.rank == say.processes - 1:
        fails()
    time.sleep(LONG)


def ends_at_different_times(say: MpiCommunicator) -> None:
    """Nothing is wrong: process 0 has something to do for longer than the grace of an error."""
    assert say.agree(np.array([1]), "sum")[0] == say.processes
    if say.rank == 0:
        time.sleep(messages.GRACE + 2)


def another_order(say: MpiCommunicator) -> None:
    say.agree(np.array([1]), "sum")
    try:
        if say.rank == say.processes - 1:
            say.agree(np.array([1, 2]), "max")
        else:
            say.all_reduce([np.ones(3)] * len(say.local), "sum")
    except CommunicationError as error:
        tell(f"process {say.rank}: {error}")
        return
    tell("no error")


def another_graph(say: MpiCommunicator) -> None:
    """Of the same size, and with as many edges."""
    odd_one = say.rank == say.processes - 1
    rows = [0, 1, 2, 3, 4, 5, 6, 7]
    columns = [1, 2, 3, 4, 5, 6, 7, 1 if odd_one else 0]
    A = sg.Matrix.from_coo(rows, columns, nrows=8, ncols=8).distribute(
        say.num_shards, communicator=say
    )
    B = sg.Matrix.from_coo(columns, rows, nrows=8, ncols=8).distribute(
        say.num_shards, communicator=say
    )
    try:
        sg.bfs(A, 0)
    except CommunicationError as error:
        tell(f"process {say.rank}: {error}")
        return
    tell(f"no error {B!r}")


def another_of_two_graphs(say: MpiCommunicator) -> None:
    """All have both, and the last one takes the wrong one."""
    A, B = (
        sg.generators.kronecker(6, 4, seed=seed).distribute(
            say.num_shards, communicator=say, partition="random"
        )
        for seed in (1, 2)
    )
    sg.bfs(A, 0)
    sg.bfs(B, 0)
    try:
        sg.bfs(B if say.rank == say.processes - 1 else A, 0)
    except CommunicationError as error:
        tell(f"process {say.rank}: {error}")
        return
    tell("no error")


def comes_late(say: MpiCommunicator) -> None:
    """The log tells of the last process, which comes in the end."""
    logging.basicConfig(level=logging.WARNING, format="LOG %(name)s %(message)s")
    timeouts.WARN_AFTER = 0.5
    say.agree(np.array([1]), "sum")
    if say.rank == say.processes - 1:
        time.sleep(3)
    assert say.agree(np.array([1]), "sum")[0] == say.processes
    say.close()


def never_comes(say: MpiCommunicator) -> None:
    if say.rank == say.processes - 1:
        time.sleep(LONG)
    say.agree(np.array([1]), "sum")


def no_rows(say: MpiCommunicator) -> None:
    """The last shard has no rows, the others more than one."""
    searched(say)
    odd(say, fails)


def searched(say: Communicator) -> None:
    """A search and ranks, where the last shard of several has no rows."""
    A = sg.generators.kronecker(6, 4, seed=1)
    owner = np.arange(A.nrows) % max(1, say.num_shards - 1)
    G = A.distribute(say.num_shards, communicator=say, partition=owner)
    assert G.partition.sizes[-1] == 0 or say.num_shards == 1
    assert sg.bfs(G, 0).level.gather().isequal(sg.bfs(A, 0).level)
    assert sg.pagerank(G).gather().isclose(sg.pagerank(A), rtol=1e-4)


def tell(line: str) -> None:
    """One line in one piece, whoever else writes."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(what: str) -> None:
    say = MpiCommunicator(timeout=2 if what == "never_comes" else None)
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
        odd(say, calls[what])
    else:
        globals()[what](say)
    tell(f"process {say.rank} is done;")


if __name__ == "__main__":
    main(sys.argv[1])
