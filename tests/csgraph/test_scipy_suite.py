"""SciPy's own tests of scipy.sparse.csgraph, run against spgraph.csgraph: scipy_csgraph_plugin.py.

It leaves one test out, test_return_type; test_traversals.py and test_dense.py ask the same of
ours. The tests of test_pydata_sparse run where the package `sparse` is installed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import scipy

ROOT = Path(__file__).parents[2]
PATHS = os.pathsep.join([str(ROOT / "tests" / "helpers"), str(ROOT)])
# how many cases pass, in SciPy 1.17
FILES = {
    "test_connected_components": 8,
    "test_conversions": 3,
    "test_flow": 45,
    "test_graph_laplacian": 1126,
    "test_matching": 32,
    "test_reordering": 3,
    "test_shortest_path": 90,
    "test_spanning_tree": 1,
    "test_traversal": 8,
}
# what its cases call by name; the other functions have their cases beside this file
REACHED = (
    "connected_components laplacian shortest_path dijkstra bellman_ford johnson "
    "construct_dist_matrix breadth_first_tree minimum_spanning_tree csgraph_from_dense "
    "csgraph_to_dense"
).split()

pytestmark = pytest.mark.skipif(
    tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 17),
    reason="the cases are those of SciPy 1.17",
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest says in a process of its own, away from this project's settings."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "pytest.ini").write_text("[pytest]\n")
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-c", str(folder / "pytest.ini"), "-q"),
            *("-p", "scipy_csgraph_plugin", "-p", "no:cacheprovider", "-p", "no:xdist"),
            *("--pyargs", "scipy.sparse.csgraph.tests.test_pydata_sparse"),
            *(f"scipy.sparse.csgraph.tests.{file}" for file in FILES),
        ],
        cwd=folder,
        env={**ours, "PYTHONPATH": PATHS},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("file", FILES)
def test_file(file: str, report: str) -> None:
    found = re.search(rf"^passed {file}\.py (\d+)$", report, re.MULTILINE)
    assert found, f"nothing of {file} was run"
    assert int(found[1]) >= FILES[file]


def test_nothing_failed_and_little_was_left_out(report: str) -> None:
    summary = report.rstrip().splitlines()[-1]
    assert "failed" not in summary and "error" not in summary
    assert re.search(r"\b1 deselected", summary)


@pytest.mark.parametrize("name", REACHED)
def test_spgraph_was_called(name: str, report: str) -> None:
    found = re.search(rf"^called {name} (\d+)$", report, re.MULTILINE)
    assert found and int(found[1]) > 0


def test_the_plugin_notices_what_is_forwarded(tmp_path: Path) -> None:
    """A function that calls SciPy's own fails, by whichever name it gets there."""
    script = tmp_path / "test_forwarded.py"
    script.write_text(
        "import numpy, pytest, scipy.sparse.csgraph as theirs, spgraph.csgraph as ours\n"
        "from scipy.sparse.csgraph import _shortest_path, _tools\n"
        "G = numpy.eye(3)\n"
        "def test_private():\n"
        "    with pytest.raises(AssertionError, match='dijkstra was forwarded'):\n"
        "        _shortest_path.dijkstra(G)\n"
        "    with pytest.raises(AssertionError, match='csgraph_from_dense was forwarded'):\n"
        "        _tools.csgraph_from_dense(G)\n"
        "def test_public():\n"
        "    assert theirs.dijkstra.__wrapped__ is ours.dijkstra\n"
        "    assert theirs.yen(G, 0, 1, 1).size == 0\n"
        "def test_held(monkeypatch):\n"
        "    import scipy_csgraph_plugin as plugin\n"
        "    from spgraph.csgraph import paths\n"
        "    monkeypatch.setattr(paths, 'held', plugin.ORIGINALS['dijkstra'], raising=False)\n"
        "    assert 'spgraph.csgraph.paths.held' in plugin.holders()\n"
    )
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-c", os.devnull, "-q", str(script)),
            *("-p", "scipy_csgraph_plugin", "-p", "no:cacheprovider", "-p", "no:xdist"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": PATHS},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout[-3000:]
