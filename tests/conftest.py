"""What tests share: the markers' meaning, hypothesis's profile, the graphs beside the checkout."""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
import signal
import tempfile
from functools import cache
from pathlib import Path

# Before NumPy comes: where they find more processors, OpenBLAS and the OpenMP of other libraries
# let a thread on each wait busily for small matrices, which took most of the time of some tests.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import hypothesis  # noqa: E402
import pytest  # noqa: E402
from processes import MPIEXEC  # noqa: E402

# Kernels compile inside the first example, so that no example has a time limit; CI draws the same
# examples every time, a person new ones.
hypothesis.settings.register_profile(
    "spgraph", deadline=None, derandomize="CI" in os.environ, print_blob=True
)
hypothesis.settings.load_profile("spgraph")

# Processes side by side that each use all cores would wait for each other at their barriers.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("SPGRAPH_NUM_THREADS", "2")

# A shell lets its background jobs, and what they start, ignore Ctrl-C, which tests send.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The modules of soak are imported where the libraries are installed that they compare with. Looking
# for doctests in programs, which have none, would run typed_user.py in every worker: its kernels
# take a minute to compile, before the first test.
collect_ignore = ["soak", "programs"]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """-n auto: a worker for each processor that this process may use, not for each there is."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None  # as xdist has it
    from spgraph.process.processors import usable

    return usable()


def pytest_configure(config: pytest.Config) -> None:
    """Let all processes of a run share the programs that the shim of CUDA kernels compiles, and
    remove them at its end, unless the environment names a folder that keeps them.
    """
    if "SPGRAPH_SHIM_CACHE" not in os.environ:  # as it is for xdist's workers
        folder = tempfile.mkdtemp(prefix="spgraph-shim-")
        os.environ["SPGRAPH_SHIM_CACHE"] = folder
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


# before the marks are compared with what -m asks for
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out `full` unless -m names it; skip `gpu` and `mpi` where they cannot run, with why.

    On the minimal backend `long` means `full`.
    """
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        if item.get_closest_marker("long") and parameters.get("device") == "minimal":
            item.add_marker(pytest.mark.full)
    if "full" not in config.option.markexpr:
        left_out = [item for item in items if item.get_closest_marker("full")]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if not item.get_closest_marker("full")]
    for item in items:
        for marker, missing in (("gpu", no_gpu), ("mpi", no_mpi)):
            if item.get_closest_marker(marker) and missing():
                item.add_marker(pytest.mark.skip(reason=missing()))


def pytest_collection_finish() -> None:
    """Spare the collector what lives until the end: modules, and thousands of tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _spared() -> None:
    """The same for what earlier files have left, Numba's types and machine code above all: a worker
    holds a gigabyte at last, which a test that collects a hundred times would go through each time.
    """
    gc.collect()
    gc.freeze()


@cache
def no_gpu() -> str:
    """Why the gpu tests cannot run; empty if they can."""
    if importlib.util.find_spec("cupy") is None:
        return "gpu: CuPy is not installed (pip install 'spgraph[cuda13]')"
    import cupy

    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"gpu: {error}"
    return "" if count else "gpu: no device is visible"


@cache
def no_mpi() -> str:
    """Why the mpi tests cannot run; empty if they can."""
    if importlib.util.find_spec("mpi4py") is None:
        return "mpi: mpi4py is not installed (pip install 'spgraph[mpi]')"
    return "" if MPIEXEC else "mpi: there is no mpiexec (pip install mpich)"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real graphs beside the checkout (see benchmarks/README.md)."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"shared: {folder.parent.name}/{folder.name} is not beside the checkout")
    return folder
