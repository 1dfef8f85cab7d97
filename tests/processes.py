"""Real processes for tests: programs under mpiexec, and such that meet in a TcpStore."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from spgraph.distributed.communicators import TcpStore

# that of the MPI which is installed beside this Python, if there is one
MPIEXEC = shutil.which("mpiexec", path=Path(sys.executable).parent) or shutil.which("mpiexec")


def launched(processes: int, *program: str, cwd: Path | None = None) -> subprocess.Popen[str]:
    """So many processes of a Python program, whose output, errors too, is to be read."""
    assert MPIEXEC is not None
    # the processes share few cores: a thread each
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
        "OMP_NUM_THREADS": "1",
        "SPGRAPH_NUM_THREADS": "1",
    }
    return subprocess.Popen(
        [MPIEXEC, "-n", str(processes), sys.executable, *program],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=cwd,
        env=environment,
    )


def finished(
    processes: int, *program: str, cwd: Path | None = None, seconds: float = 100
) -> tuple[int, str]:
    """(exit code, output) of a program that ends within `seconds`."""
    with launched(processes, *program, cwd=cwd) as run:
        try:
            said, _ = run.communicate(timeout=seconds)
        finally:
            run.kill()
    return run.returncode, said


def met(count: int, program: str, what: str, **environment: str) -> list[tuple[int, str, float]]:
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
            env=os.environ | token | paths | environment,
        )
        for rank in range(count)
    ]

    def end_of(process: subprocess.Popen[str]) -> tuple[int, str, float]:
        words, _ = process.communicate(timeout=200)
        return process.returncode, words, time.monotonic() - started

    try:
        with ThreadPoolExecutor(count) as threads:
            return list(threads.map(end_of, running))
    finally:
        for process in running:
            process.kill()
