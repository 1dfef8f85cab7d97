"""Where an algorithm runs: on one device, over several, in shards on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import spgraph as sg
from spgraph import distributed
from spgraph.cli import launch
from spgraph.cli.names import aligned
from spgraph.cli.streams import STANDARD
from spgraph.containers.storage.arrays import check_device
from spgraph.distributed.communicators.checks import check_most
from spgraph.errors import FormatError
from spgraph.io.files import read_named
from spgraph.io.request import Request
from spgraph.io.saved import load_named, read_names

STANDARD_INPUT = Path("/dev/stdin")
PARTITIONS = ("edges", "random", "biased", "metis")


class Read(NamedTuple):
    """A graph, and what its vertices are called: the ids that --compact finds, names; or None."""

    A: Any
    numbers: np.ndarray | None
    ids: sg.Ids | None


class Place(NamedTuple):
    """Where the options say that an algorithm runs; None: not given."""

    device: str | None = None
    gpus: int | None = None
    shards: int | None = None
    partition: str | None = None

    @classmethod
    def of(cls, given: dict[str, Any]) -> Place:
        """Taken out of the options of a command, and checked."""
        place = cls(*(given.pop(name) for name in cls._fields))
        place.check()
        return place

    def check(self) -> None:
        """ValueError where the four contradict each other, BackendUnavailable where there is no
        such device: found out before any work.
        """
        device, gpus, shards, partition = self
        for name, number in (("--gpus", gpus), ("--shards", shards)):
            if number is not None and number < 1:
                raise ValueError(f"{name}: expected an integer >= 1, got {number}")
        if gpus is not None and shards is not None:
            raise ValueError("--shards: expected --gpus or --shards, got both")
        if gpus is not None and device not in (None, "cuda"):
            raise ValueError(
                f"--gpus: expected --device cuda or none, got --device {device}; leave out one"
            )
        if shards is not None and device not in (None, "cpu"):
            raise ValueError(
                f"--shards: expected --device cpu or none, got --device {device}; "
                "--gpus shares a graph out over GPUs"
            )
        if partition is not None and gpus is None and shards is None:
            raise ValueError(
                f"--partition: expected --gpus or --shards with it, got {partition} alone"
            )
        processes = launch.processes()
        check_most("--shards", shards or 1, processes)
        if processes > 1:
            self._check_processes(processes)
        if gpus is None:
            check_device(device or "cpu")
        else:  # the last of the GPUs is there if all are
            check_device(launch.own_gpu() if processes > 1 else f"cuda:{gpus - 1}")

    def _check_processes(self, processes: int) -> None:
        """ValueError where the numbers do not fit that of the processes, BackendUnavailable where
        they cannot talk to each other.
        """
        started = f"for MPI has started {processes} processes"
        if self.gpus is None and self.shards is None:
            raise ValueError(
                f"--shards: expected --shards {processes} or --gpus {processes}, {started}; "
                "leave out mpirun to run in one"
            )
        if self.gpus not in (None, processes):
            raise ValueError(
                f"--gpus: expected {processes}, one a process, {started}; got {self.gpus}"
            )
        if self.shards is not None and self.shards % processes:
            raise ValueError(
                f"--shards: expected a multiple of {processes}, {started}; got {self.shards}"
            )
        launch.world()

    def read(self, file: Path, **options: Any) -> Read:
        """What is in a file, as `sg.read` with these options reads it, on the CPU; where MPI
        started several processes, in its place, of which each process reads its share only.
        """
        if launch.processes() == 1 or (self.gpus is None and self.shards is None):
            return Read(*read_named(Request.of(file, names=True, **options)))
        between = launch.communicator(self.gpus, self.shards)
        options |= {"partition": self.partition or "edges", "communicator": between}
        found = distributed.read(file, between.num_shards, **options)
        A, numbers = found if options["compact"] else (found, None)
        return Read(A, numbers, read_names(file))

    def read_table(self, file: Path, columns: list[str], *, symmetric: bool) -> Read:
        """The graph of a table of edges with names of vertices, on the CPU. Of edges that are
        listed more than once the least weight counts, as in edge lists.
        """
        if launch.processes() > 1:
            raise ValueError(
                f"--columns: expected one process, got {launch.processes()}: write the graph with "
                "its names by spgraph convert FILE -o GRAPH.npz first"
            )
        A, ids = sg.from_edges(file, *columns, symmetric=symmetric, dup_op="min")
        return Read(A, None, ids)

    def place(self, A: sg.Matrix) -> Any:
        """A, as `read` gives it, on the device, over the GPUs, or in shards on the CPU."""
        if isinstance(A, distributed.DistributedMatrix):
            return A
        if self.gpus is not None:
            return A.distribute(self.gpus, devices="cuda", partition=self.partition or "edges")
        if self.shards is not None:
            return A.distribute(self.shards, partition=self.partition or "edges")
        return A.to(self.device or "cpu")

    def facts(self) -> dict[str, Any]:
        """What to say of the place."""
        shards = self.shards if self.gpus is None else self.gpus
        if shards is None:
            return {"device": self.device or "cpu"}
        device = "cpu" if self.gpus is None else "cuda"
        return {"device": device, "shards": shards, "partition": self.partition or "edges"}


def vector(path: Path, A: Any, ids: sg.Ids | None) -> sg.Vector:
    """The Vector that `sg.save` wrote to `path`, - being standard input, where A is; its entries
    are those of the vertices `ids` of the same names, if both have names.
    """
    v, own = load_named(STANDARD_INPUT if path == STANDARD else path)
    if not isinstance(v, sg.Vector):
        raise FormatError(
            f"{path}: expected a Vector, as -o of another run writes one; got a Matrix"
        )
    return aligned(v, own, ids, path).to(A.device)


def on_host(result: Any, name: str) -> dict[str, Any]:
    """The parts of a result by name, each as a whole on the CPU, which waits until the devices have
    finished. What is no tuple of names itself is called `name`.
    """
    parts = result._asdict() if hasattr(result, "_asdict") else {name: result}
    return {name: _whole(part) for name, part in parts.items() if part is not None}


def _whole(x: Any) -> Any:
    if hasattr(x, "gather"):  # it is shared out
        x = x.gather()
    return x.to("cpu") if hasattr(x, "to") else x


def is_root() -> bool:
    """Whether this process prints and writes: one of those that MPI started does."""
    return launch.rank() == 0
