"""Kernels load and store nothing beside the arrays that they are given: g++'s AddressSanitizer
watches them on a machine without a GPU, NVIDIA's tools on one with a GPU (programs/sanitizers.py).
"""

from __future__ import annotations

import cuda_host_shim
import pytest

pytestmark = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")

SEARCHES = "tests/backends/cuda/search"
SHIMS = sorted(
    str(path.relative_to(cuda_host_shim.ROOT))
    for path in cuda_host_shim.ROOT.glob("tests/**/test_*shim.py")
)


@pytest.mark.parametrize(
    "tests",
    [
        f"{SEARCHES}/test_search_peers_shim.py::test_in_edges_that_begin_and_end_anywhere[0]",
        *(pytest.param(shim, marks=pytest.mark.full) for shim in SHIMS),
    ],
)
def test_no_access_beside_arrays(tests: str) -> None:
    done = cuda_host_shim.under_address_sanitizer(tests)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert " passed" in done.stdout
