"""No call of ours ends in a warning, of development mode neither."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import tempfile
import numpy as np
import spgraph as sg

A = sg.generators.kronecker(7, seed=1)
W = sg.Matrix._of(A.nrows, A.ncols, A.indptr, A.indices, np.arange(1.0, A.nvals + 1))
sg.bfs(A, 0), sg.sssp(W, 0), sg.pagerank(W, weighted=True), A @ A, sg.triangle_count(A)
with tempfile.TemporaryDirectory() as folder:
    for suffix in ("npz", "mtx", "mtx.gz", "mtx.bz2", "mtx.xz", "mtx.zst"):
        sg.write(f"{folder}/g.{suffix}", W)
        assert sg.read(f"{folder}/g.{suffix}").isclose(W)
    with open(f"{folder}/e.txt", "w") as file:
        file.write("0 1\\n1 2\\n")
    assert sg.read(f"{folder}/e.txt").nvals == 2
    sg.save(f"{folder}/v.npz", sg.bfs(A, 0).level)
    sg.load(f"{folder}/v.npz")
sg.csgraph.dijkstra(W.to_scipy(), indices=0)
sg.bfs(A.distribute(2), 0).level.gather()
print("done")
"""


def test_development_mode_has_nothing_to_say() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=280,
    )
    # what is raised in a destructor does not end a process, but is written
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
