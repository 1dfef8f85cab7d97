"""Processes of one host that map each other's memory, without GPUs: kernels run under the shim, in
memory of files. On GPUs: test_gpu_processes.py.
"""

from __future__ import annotations

from pathlib import Path

import cuda_host_shim
import mapped_cases
import pytest
from processes import finished

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler"),
]


def test_mapped(tmp_path: Path) -> None:
    runs = "refused results freed ending absent alone".split()
    code, said = finished(3, mapped_cases.__file__, *runs, cwd=tmp_path)
    assert code == 0, said
    assert said.count("is done;") == 3, said
