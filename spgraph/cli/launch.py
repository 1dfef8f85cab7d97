"""The processes of one run that a launcher of MPI started: who they are, and how they end."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from typing import Any, NamedTuple

import click
import numpy as np

from spgraph.cli import streams
from spgraph.distributed import Communicator, MpiCommunicator, NcclCommunicator, TcpStore
from spgraph.errors import BackendUnavailable
from spgraph.process.processors import usable

# where launchers tell a process (how many there are, its number): MPICH and others, and Open MPI
LAUNCHERS = (
    ("PMI_SIZE", "PMI_RANK"),
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
)
GRACE = 8.0  # seconds in which the others may come to an end, too


class World(NamedTuple):
    """Communicators of mpi4py: of all processes, of those on this host, and of all of them again,
    for `leave` alone; and spgraph's own communicators that were made.
    """

    all: Any
    host: Any
    at_exit: Any
    made: list[MpiCommunicator | NcclCommunicator]


def processes() -> int:
    """How many processes the launcher started; 1 without one."""
    return _sizes()[0]


def rank() -> int:
    """The number of this process among them."""
    return _sizes()[1]


def _sizes() -> tuple[int, int]:
    for names in LAUNCHERS:
        size, rank = (os.environ.get(name, "") for name in names)
        if size.isdigit() and rank.isdigit():
            return int(size), int(rank)
    return 1, 0


@functools.cache
def world() -> World:
    """The processes of the launcher; MPI begins with the first call.

    BackendUnavailable without mpi4py, or where its MPI is another than the launcher's.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # no mpi4py, or no library of MPI for it
        raise BackendUnavailable(
            f"MPI started {processes()} processes, which need mpi4py and a library of MPI "
            f"({error}): pip install 'spgraph[mpi]'"
        ) from error
    found = MPI.COMM_WORLD
    if found.Get_size() != processes():
        raise BackendUnavailable(
            f"a launcher started {processes()} processes, but the MPI of mpi4py knows of "
            f"{found.Get_size()}: it is another MPI than the launcher's; take the mpiexec beside it"
        )
    # the watchdog of a communicator may end such a process
    os.environ["SPGRAPH_LAUNCHED"] = "1"
    made = World(found, found.Split_type(MPI.COMM_TYPE_SHARED), found.Dup(), [])
    # processes that may use the same processors share them out
    own = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    threads = usable() // made.host.allgather(own).count(own)
    os.environ.setdefault("SPGRAPH_NUM_THREADS", str(max(1, threads)))
    return made


def own_gpu() -> str:
    """The GPU of this process; those of one host have a GPU each."""
    return f"cuda:{world().host.Get_rank()}"


def communicator(gpus: int | None, shards: int | None) -> Communicator:
    """Between the processes: a GPU each, or so many shards on the CPU in all."""
    made: MpiCommunicator | NcclCommunicator
    if gpus is None:
        made = MpiCommunicator(world().all, shards=shards)
    else:
        made = NcclCommunicator.for_process(own_gpu(), TcpStore.over_mpi(world().all))
    world().made.append(made)
    return made


def leave(code: int, message: str = "", *, own: bool = False) -> int:
    """The exit code of this process, the same for all processes that call this; one of them prints
    `message`. `own`: the error is not one that another process caused.

    A process that ends with an error tells the others, so that they end, too. If they do not within
    GRACE seconds, it aborts them.
    """
    together = False
    if processes() > 1:
        with contextlib.suppress(BackendUnavailable):  # said already, if somebody needed it
            together = bool(world())
    if not together:
        _say(message, rank() == 0)
        return code
    for communicator in world().made if code else ():
        communicator.leave(f"process {rank()} ends with exit code {code}")
    all_of_them = np.empty((processes(), 2), np.int64)
    at_exit = world().at_exit
    request = at_exit.Iallgather(np.array([code, own], np.int64), all_of_them)
    deadline = time.monotonic() + GRACE
    while not request.Test():
        if code and time.monotonic() > deadline:
            _say(message, True)
            at_exit.Abort(code)
        time.sleep(0.005)
    codes, owns = all_of_them.T
    # the first with an error of its own, else the first with an error
    speaker = int(np.argmax(2 * (owns > 0) + (codes > 0)))
    _say(message, rank() == speaker)
    return int(codes[speaker])


def _say(message: str, aloud: bool) -> None:
    if message and aloud:
        try:
            click.echo(message, err=True)
            sys.stderr.flush()
        except OSError:  # full, or nobody reads it: the exit code is left to say it
            streams.give_up(sys.stderr)
