"""Real processes for tests: programs under mpiexec, and such that meet in a TcpStore."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from spgraph.distributed.communicators import TcpStore

# that of the MPI which is installed beside this Python, if there is one
MPIEXEC = shutil.which("mpiexec", path=Path(sys.executable).parent) or shutil.which("mpiexec")


# Open MPI's mpiexec refuses root, the usual user of a container, and more processes than cores,
# unless it is told; its versions 4 and 5 listen to different names. Others do not look at them.
LAUNCHER = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
# what a terminal takes for orders: CSI, OSC, and the short ones
ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])")


def environment() -> dict[str, str]:
    """What processes under a launcher are given: these files, and a thread each, as they share few
    cores.
    """
    return (
        os.environ
        | LAUNCHER
        | {
            "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
            "OMP_NUM_THREADS": "1",
            "SPGRAPH_NUM_THREADS": "1",
        }
    )


def plain(said: str) -> str:
    """What was said, without the orders to a terminal and the null bytes that launchers add."""
    return ESCAPE.sub("", said).replace("\0", "").replace("\r\n", "\n")


def launched(processes: int, *program: str, cwd: Path | None = None) -> subprocess.Popen[str]:
    """So many processes of a Python program, whose output, errors too, is to be read."""
    assert MPIEXEC is not None
    return subprocess.Popen(
        [MPIEXEC, "-n", str(processes), sys.executable, *program],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=cwd,
        env=environment(),
    )


def finished(
    processes: int, *program: str, cwd: Path | None = None, seconds: float = 280
) -> tuple[int, str]:
    """(exit code, output) of a program that ends within `seconds`."""
    with launched(processes, *program, cwd=cwd) as run:
        try:
            said, _ = run.communicate(timeout=seconds)
        finally:
            run.kill()
    return run.returncode, plain(said)


def met(count: int, program: str, what: str, **more: str) -> list[tuple[int, str, float]]:
    """The exit status, the words and the time of life of `count` processes, each called with
    "nccl", `what`, where they meet, its number and theirs.
    """
    token = {"SPGRAPH_TOKEN": "a word of the tests"}
    with TcpStore("127.0.0.1:0", 0, 1, token="find a port") as free:
        address = free.address
    command = [sys.executable, program, "nccl", what, address]
    paths = {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    started = time.monotonic()
    running = [
        subprocess.Popen(
            [*command, str(rank), str(count)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | token | paths | more,
        )
        for rank in range(count)
    ]

    def end_of(process: subprocess.Popen[str]) -> tuple[int, str, float]:
        words, _ = process.communicate(timeout=280)
        return process.returncode, words, time.monotonic() - started

    try:
        with ThreadPoolExecutor(count) as threads:
            return list(threads.map(end_of, running))
    finally:
        for process in running:
            process.kill()
