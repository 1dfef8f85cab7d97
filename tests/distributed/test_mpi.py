"""Containers in shards over real processes of MPI give what plain ones give; graphs come in shards;
a process that is killed takes the others along.
"""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import distributed_cases
import mpi_cases
import numpy as np
import pytest
from processes import finished, launched

import spgraph as sg

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize(
    ("processes", "runs"),
    [
        (2, "algorithms:2:edges inputs:2 operations:4:own few:4:random"),
        (4, "few:4:random inputs:4"),
        pytest.param(4, "operations:4:random", marks=pytest.mark.full),
    ],
)
def test_results(processes: int, runs: str, tmp_path: Path) -> None:
    A = distributed_cases.graph()
    sg.write(tmp_path / "graph.npz", A)
    rows, columns, values = A.to_coo()
    np.savetxt(tmp_path / "graph.wel", np.stack([rows, columns, values], axis=1), fmt="%d")
    dense = "\n".join(map(str, A.to_scipy().toarray().T.ravel()))
    head = f"%%MatrixMarket matrix array integer general\n{A.nrows} {A.ncols}\n"
    (tmp_path / "dense.mtx").write_text(head + dense + "\n")
    programs = [f"{run}:{tmp_path}" if "inputs" in run else run for run in runs.split()]
    code, said = finished(processes, mpi_cases.__file__, *programs)
    assert code == 0, said
    assert said.count("is done;") == processes, said


def test_a_killed_process_takes_the_others_along() -> None:
    with launched(3, mpi_cases.__file__, "searches:3") as run:
        try:
            assert run.stdout is not None
            said, ids = "", []
            while len(ids) < 3:
                line = run.stdout.readline()
                assert line, said
                said += line
                ids = [int(word) for word in re.findall(r"has the id (\d+);", said)]
            time.sleep(0.5)
            os.kill(ids[1], signal.SIGKILL)
            run.communicate(timeout=280)
            assert run.returncode != 0
            for other in ids:
                assert not Path(f"/proc/{other}").exists()
        finally:
            run.kill()
