"""CuPy's kernels on disk: in a private folder, or in memory alone."""

from __future__ import annotations

import errno
import os
import pathlib
import stat
import sys
import tempfile
import types
import warnings
from collections.abc import Iterator

import pytest

from spgraph.backends.cuda.runtime import jit as cuda_jit
from spgraph.process import cache_folder


@pytest.fixture
def cupy_folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """CuPy's folder of kernels, which CuPy would make; CuPy is not imported yet."""
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "cupy"))
    monkeypatch.setenv("CUPY_CACHE_IN_MEMORY", "")
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    cache_folder.warn.cache_clear()
    yield tmp_path / "cupy"
    cache_folder.warn.cache_clear()


def test_cupy_keeps_kernels_in_a_private_folder(cupy_folder: pathlib.Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache_folder.check_cupy.__wrapped__()
    assert stat.S_IMODE(cupy_folder.stat().st_mode) == 0o700 and not list(cupy_folder.iterdir())
    assert os.environ["CUPY_CACHE_IN_MEMORY"] == ""
    assert os.environ["CUPY_CACHE_DIR"] == str(cupy_folder)


@pytest.mark.parametrize("case", ["others write", "cannot be made", "full"])
def test_cupy_keeps_kernels_in_memory(
    cupy_folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    if case == "others write":
        cupy_folder.mkdir()
        cupy_folder.chmod(0o777)
    elif case == "cannot be made":
        cupy_folder.write_text("a file")
    else:

        def full(**given: str) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.warns(RuntimeWarning, match="CUPY_CACHE_DIR") as told:
        for _ in range(2):
            cache_folder.check_cupy.__wrapped__()
    assert len(told) == 1 and str(cupy_folder) in str(told[0].message)
    assert os.environ["CUPY_CACHE_IN_MEMORY"] == "1"
    assert os.environ["CUPY_CACHE_DIR"] == tempfile.gettempdir(), "importing CuPy makes the folder"


def test_a_disk_that_becomes_full_is_no_error_of_cuda(
    cupy_folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Module:
        def get_function(self, name: str) -> types.SimpleNamespace:
            if os.environ["CUPY_CACHE_IN_MEMORY"] != "1":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return types.SimpleNamespace(kernel=name)

    monkeypatch.setattr(cuda_jit, "_module", lambda *given: Module())
    monkeypatch.setattr(cuda_jit, "enter_context", lambda: None)
    with pytest.warns(RuntimeWarning, match="No space left"):
        assert cuda_jit._kernel.__wrapped__("stem", "name", "", False, 0).kernel == "name"
