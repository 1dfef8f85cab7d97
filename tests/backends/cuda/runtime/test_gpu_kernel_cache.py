"""CuPy's folder of compiled kernels: damaged, open to others, impossible."""

from __future__ import annotations

import os
import pathlib

import pytest

from tests.backends.test_kernel_cache import RIGHT, run

pytestmark = pytest.mark.gpu

PROGRAM = """
from spgraph import operations
from spgraph.containers import Matrix, Vector
A = Matrix.from_coo([0, 1, 1], [1, 0, 2], [2, 3, 4], nrows=3, ncols=3).to("cuda")
u = Vector.from_dense([1, 10, 100]).to("cuda")
print(operations.mxv(A, u).to_numpy(fill=-1).tolist())
"""


def compute(folder: pathlib.Path) -> str:
    """What a process warns of whose CuPy keeps kernels in `folder`; its answer is right."""
    printed, told = run(PROGRAM, CUPY_CACHE_DIR=str(folder), CUPY_CACHE_IN_MEMORY="0")
    assert printed == [RIGHT]
    return told


def test_damaged_kernels_heal(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "cupy"
    assert "CUPY_CACHE_DIR" not in compute(folder)
    kept = {path: path.read_bytes() for path in folder.glob("*.cubin")}
    assert kept
    for number, (path, whole) in enumerate(kept.items()):
        half = len(whole) // 2
        path.write_bytes(
            (whole[:half], bytes(len(whole)), whole[:half] + bytes(8) + whole[half + 8 :], b"")[
                number % 4
            ]
        )
        assert path.read_bytes() != whole
    compute(folder)
    assert {path: path.read_bytes() for path in folder.glob("*.cubin")} == kept


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no modes on this system")
def test_a_folder_that_others_may_write_is_left_alone(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "cupy"
    folder.mkdir()
    folder.chmod(0o777)
    told = compute(folder)
    assert told.count("Set CUPY_CACHE_DIR") == 1 and "other users may write" in told
    assert not list(folder.iterdir())


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    told = compute(tmp_path / "file" / "cupy")
    assert told.count("Set CUPY_CACHE_DIR") == 1
