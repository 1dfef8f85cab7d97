"""Libraries that are imported at their first use: an interrupt or a fork meanwhile does no harm."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from spgraph.process.lazy_imports import whole

# (a module in the middle of a library, the call that imports it first, what the call gives)
FIRST_USES = [
    ("numba.core.types", "sg.bfs(A, 0).level.nvals", "3"),
    (
        "numba.core.types",
        "sg.csgraph.breadth_first_order(A.to_scipy(), 0)[0].tolist()",
        "[0, 1, 2]",
    ),
    (
        "numba.core.types",
        "sg.apply(A, sg.semirings.UnaryOp.define(double)).nvals",
        "4",
    ),
    ("pyarrow.csv", "sg.from_edges(([0, 1], [1, 2])).matrix.nvals", "2"),
    ("scipy.sparse._csr", "sg.read(path).nvals", "2"),
    ("scipy.sparse._csr", "A.to_scipy().nnz", "4"),
    ("scipy.sparse._csr", "sg.Vector.arange(3).tocoo().nnz", "3"),
    ("scipy.io._fast_matrix_market", "sg.read(matrix).nvals", "2"),
    ("scipy.spatial._kdtree", "sg.generators.random_geometric(9, 2.0, seed=1).nvals", "72"),
    (
        "scipy.sparse.csgraph._laplacian",
        "sg.csgraph.breadth_first_order(A.to_scipy(), 0)[0].tolist()",
        "[0, 1, 2]",
    ),
    ("spgraph.distributed.containers", "sg.bfs(A.distribute(2), 0).level.nvals", "3"),
]

PROGRAM = """
import faulthandler, os, signal, sys, threading, time
import numpy as np
import spgraph as sg

path, matrix = sys.argv[1:]
A = sg.Matrix._of(3, 3, np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1]), np.ones(4))


def double(x):
    return 2 * x


B = sg.Matrix._of(3, 3, np.array([0, 1, 2, 2]), np.array([1, 2]), np.ones(2))
begun = threading.Event()


class Finder:
    def find_spec(self, name, *rest):
        if name == {module!r} and not begun.is_set():
            begun.set()
            {then}


assert {module!r} not in sys.modules
sys.meta_path.insert(0, Finder())
"""

INTERRUPT = """
try:
    {call}
    print("no interrupt")
except KeyboardInterrupt:
    print(begun.is_set(), {call})
"""

FORK = """
other = threading.Thread(target=lambda: {call})
other.start()
begun.wait(100)
child = os.fork()
if child == 0:
    faulthandler.dump_traceback_later(100, exit=True)
    print({call}, flush=True)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
other.join()
"""

# the exit status of the child is the number of tables that were read before the fork
FORK_WHILE_READING = """
import pyarrow.csv

read_csv = pyarrow.csv.read_csv
tables = []


def slow(*given, **options):
    begun.set()
    time.sleep(0.2)
    tables.append(read_csv(*given, **options))
    return tables[-1]


pyarrow.csv.read_csv = slow
other = threading.Thread(target=lambda: {call})
other.start()
begun.wait(100)
child = os.fork()
if child == 0:
    os._exit(len(tables))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
other.join()
"""

# prints the modules that are imported outside of what a fork waits for
UNGUARDED = """
from numba.core.compiler_lock import global_compiler_lock
from spgraph.process.lazy_imports import forks_wait

guards = forks_wait, global_compiler_lock._lock


class Unguarded:
    def find_spec(self, name, *rest):
        if not any(guard._is_owned() for guard in guards):
            print(name)


sys.meta_path.insert(0, Unguarded())
sg.from_edges(([0, 1], [1, 2]))
sg.bfs(sg.read(matrix), 0)
sg.write(path + ".npz", A)
sg.read(path + ".npz")
sg.write(path + ".mtx", A)
sg.apply(A, sg.semirings.UnaryOp.define(double))
sg.connected_components(B, connection="strong")
sg.generators.random_geometric(9, 2.0, seed=1)
sg.bfs(A.distribute(2), 0)
sg.csgraph.laplacian(A.to_scipy())
sg.plot.draw(A)
"""


def run(program: str, folder: Path, **words: str) -> list[str]:
    """The lines that the program prints, in a process of its own."""
    (folder / "g.txt").write_text("0 1\n1 2\n")
    (folder / "g.mtx").write_text(
        "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n"
    )
    text = textwrap.dedent(PROGRAM + program).format(**words)
    (folder / "program.py").write_text(text)
    done = subprocess.run(
        [sys.executable, folder / "program.py", folder / "g.txt", folder / "g.mtx"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
        timeout=280,
    )
    print(done.stderr)  # of a child that was forked, too: pytest shows it if the test fails
    assert done.returncode == 0
    return done.stdout.splitlines()


@pytest.mark.skipif(sys.platform == "win32", reason="no signal to one's own process")
@pytest.mark.parametrize(("module", "call", "expected"), FIRST_USES)
def test_after_ctrl_c_the_next_call_is_right(
    module: str, call: str, expected: str, tmp_path: Path
) -> None:
    then = "os.kill(os.getpid(), signal.SIGINT); time.sleep(0.01)"
    assert run(INTERRUPT, tmp_path, module=module, call=call, then=then) == [f"True {expected}"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize(("module", "call", "expected"), FIRST_USES)
def test_a_child_forked_meanwhile_computes(
    module: str, call: str, expected: str, tmp_path: Path
) -> None:
    found = run(FORK, tmp_path, module=module, call=call, then="time.sleep(0.2)")
    assert found == [expected, "0"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_waits_while_pyarrow_reads(tmp_path: Path) -> None:
    call = f"sg.from_edges({str(tmp_path / 'edges.csv')!r})"
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    assert run(FORK_WHILE_READING, tmp_path, module="none", call=call, then="pass") == ["1"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_waits_for_every_import(tmp_path: Path) -> None:
    assert run(UNGUARDED, tmp_path, module="none", call="", then="") == []


def test_blocks_within_blocks() -> None:
    with whole(), whole():
        assert os.path.exists(os.curdir)
    if hasattr(os, "fork"):
        with whole():  # who forks holds the lock itself
            child = os.fork()
            if child == 0:
                with whole():
                    os._exit(3)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
