"""Time to the first result of a process: what compilation costs, cold and from the disk.

usage: python -m benchmarks.measuring.first_call cpu|cuda levels|parents   (prints a line of JSON)

`measure` runs this twice in processes of their own, first over empty caches, then over those that
the first run has filled.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from benchmarks.measuring.arguments import ROOT

# on the CPU the first call imports Numba: part of its time, and said apart as well
FIELDS = ("import_s", "numba_import_s", "first_call_s", "second_call_s")


def measure(device: str) -> dict[str, dict[str, Any]]:
    """{"levels" | "parents": {"cold" | "disk": seconds}} on the device 'cpu' or 'cuda'.

    The caches are spgraph's own and CuPy's; Numba and CuPy lie on the disk compiled, as ever.
    """
    found: dict[str, dict[str, Any]] = {}
    for result in ("levels", "parents"):
        with tempfile.TemporaryDirectory() as folder:
            found[result] = {
                cache: _measure_once(device, result, folder) for cache in ("cold", "disk")
            }
    return found


def table(found: dict[str, dict[str, Any]]) -> str:
    """What `measure` found, for a person."""
    lines = []
    for result, caches in found.items():
        seen = []
        for cache, times in caches.items():
            seen.append(f"{cache} {times.get('error') or times['first_call_s']} s")
            if times.get("numba_import_s"):
                seen[-1] += f" ({times['numba_import_s']} of it import numba)"
        lines.append(f"first call in a process, {result}: {', '.join(seen)}")
    return "\n".join(lines)


def _measure_once(device: str, result: str, folder: str) -> dict[str, Any]:
    environment = dict(os.environ, SPGRAPH_CACHE_DIR=folder, CUPY_CACHE_DIR=f"{folder}/cupy")
    done = subprocess.run(
        [sys.executable, "-m", __spec__.name, device, result],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout)


def main() -> None:
    """The times of this process, as a line of JSON."""
    device, result = sys.argv[1:]
    start = time.perf_counter()
    import spgraph as sg

    imported = time.perf_counter()
    import numpy as np
    import scipy.sparse

    # a path and random chords, made without spgraph, so that nothing of it is compiled before
    n = 1 << 15
    random = np.random.default_rng(1)
    tail = np.concatenate([np.arange(n - 1), random.integers(0, n, 8 * n)])
    head = np.concatenate([np.arange(1, n), random.integers(0, n, 8 * n)])
    S = scipy.sparse.coo_array((np.ones(tail.size, np.int8), (tail, head)), shape=(n, n)).tocsr()
    S = (S + S.T).tocsr()
    S.sort_indices()
    A = sg.Matrix.from_scipy(S, symmetric=True).pattern().to(device)
    wait(device)
    times = [imported - start]
    start = time.perf_counter()
    if device == "cpu":
        import numba  # noqa: F401
    times.append(time.perf_counter() - start)
    for _ in range(2):
        sg.bfs(A, 0, parents=result == "parents")
        wait(device)
        times.append(time.perf_counter() - start)
        start = time.perf_counter()
    print(json.dumps(dict(zip(FIELDS, (round(t, 5) for t in times), strict=True))))


def wait(device: str) -> None:
    """Return when the device has done all it was given."""
    if device != "cpu":
        import cupy

        cupy.cuda.Device().synchronize()


if __name__ == "__main__":
    main()
