"""Real processes for tests: programs under mpiexec."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

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
