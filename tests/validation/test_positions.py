"""Where the entry of a row and a column stands."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import move
from spgraph.validation import positions


def some_positions(n: int) -> tuple[Matrix, np.ndarray, np.ndarray]:
    """A graph, a column for each row, some of them not there, and where it stands."""
    rng = np.random.default_rng(n)
    dense = rng.random((n, n)) < 0.3
    dense[n // 2] = False
    A = Matrix.from_dense(dense, missing=False)
    columns = rng.integers(-1, n, n)
    expected = np.full(n, -1)
    for row, column in enumerate(columns.tolist()):
        if column >= 0 and dense[row, column]:
            expected[row] = A.indptr[row] + dense[row, :column].sum()
    return A, columns, expected


@pytest.mark.parametrize("n", [1, 2, 17, 60])
def test_positions(n: int) -> None:
    A, columns, expected = some_positions(n)
    np.testing.assert_array_equal(positions.positions(A, columns), expected)


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
def test_positions_by_the_text_of_gpus(tmp_path: Path) -> None:
    """The loop over i is CuPy's."""
    text = f"""extern "C" void run(long long n, const long long* columns, const int* indptr,
                                  const int* indices, long long* places) {{
        for (long long i = 0; i < n; i++) {{
            const long long column = columns[i];
            long long& place = places[i];
            {positions.CUDA_TEXT}
        }}
    }}"""
    (tmp_path / "run.cpp").write_text(text)
    library = str(tmp_path / "run.so")
    command = ["g++", "-shared", "-fPIC", "-O0", "-Wall", "-Werror", "-o", library]
    subprocess.run([*command, str(tmp_path / "run.cpp")], check=True)
    run = ctypes.CDLL(library).run
    for n in (1, 2, 17, 60):
        A, columns, expected = some_positions(n)
        places = np.full(n, -9)
        indptr, indices = A.indptr.copy(), A.indices.copy()
        assert indptr.dtype == indices.dtype == np.int32
        arrays = (columns, indptr, indices, places)
        run(ctypes.c_longlong(n), *(ctypes.c_void_p(array.ctypes.data) for array in arrays))
        np.testing.assert_array_equal(places, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("n", [1, 60])
def test_positions_on_a_gpu(n: int) -> None:
    A, columns, expected = some_positions(n)
    found = positions.positions(A.to("cuda"), move(columns, "cuda:0"))
    np.testing.assert_array_equal(found.get(), expected)
