"""Where an algorithm runs: on one device, over several, over shards on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import spgraph as sg
from spgraph import distributed
from spgraph.cli import launch
from spgraph.containers.arrays import check_device
from spgraph.errors import FormatError

PARTITIONS = ("edges", "random", "biased", "metis")


def check(device: str | None, gpus: int | None, shards: int | None, partition: str | None) -> None:
    """ValueError where the four contradict each other, BackendUnavailable where there is no such
    device: found out before any work.
    """
    for name, number in (("--gpus", gpus), ("--shards", shards)):
        if number is not None and number < 1:
            raise ValueError(f"{name}: expected an integer >= 1, got {number}")
    if gpus is not None and shards is not None:
        raise ValueError("--shards: expected --gpus or --shards, got both")
    if gpus is not None and device not in (None, "cuda"):
        raise ValueError(
            f"--gpus: expected --device cuda or none, got --device {device}; leave out one of them"
        )
    if shards is not None and device not in (None, "cpu"):
        raise ValueError(
            f"--shards: expected --device cpu or none, got --device {device}; "
            "--gpus shares a graph out over GPUs"
        )
    if partition is not None and gpus is None and shards is None:
        raise ValueError(f"--partition: expected --gpus or --shards with it, got {partition} alone")
    processes = launch.processes()
    if processes > 1:
        _check_processes(processes, gpus, shards)
    if gpus is None:
        check_device(device or "cpu")
    else:  # the last of the GPUs is there if all are
        check_device(launch.own_gpu() if processes > 1 else f"cuda:{gpus - 1}")


def _check_processes(processes: int, gpus: int | None, shards: int | None) -> None:
    """ValueError where the numbers do not fit that of the processes, BackendUnavailable where they
    cannot talk to each other.
    """
    started = f"for MPI has started {processes} processes"
    if gpus is None and shards is None:
        raise ValueError(
            f"--shards: expected --shards {processes} or --gpus {processes}, {started}; "
            "leave out mpirun to run in one"
        )
    if gpus not in (None, processes):
        raise ValueError(f"--gpus: expected {processes}, one a process, {started}; got {gpus}")
    if shards is not None and shards % processes:
        raise ValueError(f"--shards: expected a multiple of {processes}, {started}; got {shards}")
    launch.world()


def read(
    file: Path,
    symmetric: bool | None,
    base: int | None,
    compact: bool,
    gpus: int | None,
    shards: int | None,
    partition: str | None,
) -> tuple[sg.Matrix, Any]:
    """The graph on the CPU; where MPI started several processes, in its place, of which each
    process reads its share only. And the ids of its vertices, if `compact`.
    """
    options: dict[str, Any] = {"symmetric": symmetric, "base": base, "compact": compact or None}
    if launch.processes() == 1 or (gpus is None and shards is None):
        found: Any = sg.read(file, **options)
    else:
        say = launch.communicator(gpus, shards)
        options |= {"partition": partition or "edges", "communicator": say}
        found = distributed.read(file, say.num_shards, **options)
    return found if compact else (found, None)


def placed(
    A: sg.Matrix, device: str | None, gpus: int | None, shards: int | None, partition: str | None
) -> Any:
    """A, as `read` gives it, on `device` (None: the CPU), over so many GPUs, or over so many shards
    on the CPU.
    """
    check(device, gpus, shards, partition)
    if isinstance(A, distributed.DistributedMatrix):
        return A
    if gpus is not None:
        return A.distribute(gpus, devices="cuda", partition=partition or "edges")
    if shards is not None:
        return A.distribute(shards, partition=partition or "edges")
    return A.to(device or "cpu")


def described(
    G: Any, gpus: int | None, shards: int | None, partition: str | None
) -> dict[str, Any]:
    """What to say of the place."""
    shared = gpus if gpus is not None else shards
    if shared is None:
        return {"device": G.device}
    device = "cpu" if gpus is None else "cuda"
    return {"device": device, "shards": shared, "partition": partition or "edges"}


def vector(path: str, A: Any) -> sg.Vector:
    """The Vector that `sg.save` wrote to `path`, where A is."""
    v = sg.load(path)
    if not isinstance(v, sg.Vector):
        raise FormatError(
            f"{path}: expected a Vector, as -o of another run writes one; got a Matrix"
        )
    return v.to(A.device)


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
