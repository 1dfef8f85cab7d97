"""Every kernel under NVIDIA's compute-sanitizer: memcheck, racecheck, initcheck and synccheck.

usage: SPGRAPH_KERNELS=FOLDER PYTHONPATH=tests/programs pytest -p sanitizers -m gpu
       python tests/programs/sanitizers.py FOLDER --output RESULT.json [--tools memcheck ...]
                                           [--parts P] [--seconds S]

The first runs the gpu tests as they are, and writes down which test launched which kernel: a file
of FOLDER for each process of pytest. The second chooses the fewest tests that launch every kernel
TIMES times, runs them again under each tool, side by side, and keeps the reports about our kernels;
those of CuPy and of NCCL are left out by name. A tool uses one processor, most of it for compiling:
--parts shares its tests among as many processes. It fails where a report is left, where a test
fails, or where a kernel was never launched.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
TIMES = 2  # different tests that launch a kernel, where there are so many
# processes of their own would not be seen by the tool
LEFT_OUT = ("processes", "memory", "real_graphs", "notebooks", "docs")
# a call of nearly every algorithm: the programs of 60 kernels, each under many preambles, take more
# than the 440 s that a tool had for them. Every one of these kernels has tests of its own
LEFT_OUT += ("test_gpu_distributed.py::test_algorithms",)
# minutes under racecheck, for the same kernels as other tests launch
LEFT_OUT += ("test_gpu_tiles.py::test_pagerank", "test_path_counts_beyond_float64")
LEFT_OUT += ("test_operations_and_loops",)
# initcheck does not know what NCCL has written: its report of NCCL's own kernels overflows
BY_NCCL = "test_gpu_components.py"
# kernels of CuPy, CUB and NCCL are not looked at: a tool slows each one down by two orders
NOT_OURS = ("cupy", "cub", "thrust", "nccl", "cusparse")
FOREIGN = re.compile(r"\bcupy_|\bcub::|nccl|thrust::|cusparse", re.IGNORECASE)
# what racecheck warns of without cause: __syncwarp() leaves no instruction where the compiler knows
# that the lanes of a warp are together
WARP_SYNCHRONOUS = re.compile(r"Warning: Race reported between Write access at pull_phases\+")
# racecheck takes copies by cp.async.bulk for races with loads that barriers or counts in shared
# memory keep apart from them: it gets the form of older devices, in which all threads copy
BULK_COPIES = "__CUDA_ARCH__ >= 900"
OURS = re.compile(r'extern "C" __global__ void[^(]*(?:__launch_bounds__\([^)]*\)\s*)?\s(\w+)\(')


def kernels() -> set[str]:
    """'stem name' of every kernel of the package, read from the texts."""
    from spgraph.backends.cuda.runtime.sources import stems, whole

    return {f"{stem} {name}" for stem in stems() for name in OURS.findall(whole(f"{stem}.cu"))}


def pytest_configure(config: pytest.Config) -> None:
    """As a plugin of pytest: note what is launched, where there is a folder to write it to."""
    folder, worker = os.environ.get("SPGRAPH_KERNELS"), os.environ.get("PYTEST_XDIST_WORKER")
    if folder and (worker or not config.getoption("numprocesses", None)):
        config.pluginmanager.register(Recorder(pathlib.Path(folder), worker or "alone"))


class Recorder:
    """A plugin of pytest that notes which kernels each test launches."""

    def __init__(self, folder: pathlib.Path, name: str) -> None:
        self.path = folder / f"{name}.json"
        self.launched: dict[str, list[str]] = {}
        self.seconds: dict[str, float] = {}
        self.now: set[str] = set()

    def pytest_sessionstart(self) -> None:
        """Every kernel that is asked for from here on says when it is launched."""
        import cupy

        if "SPGRAPH_NO_POOL" in os.environ:  # what is past the end of an array is then nobody's
            cupy.cuda.set_allocator(in_words)
        from spgraph.backends.cuda.runtime import jit

        if "SPGRAPH_NO_BULK_COPIES" in os.environ:
            text = jit.source
            jit.source = lambda *given: text(*given).replace(BULK_COPIES, "0")  # type: ignore
        get = jit._kernel
        known: dict[Any, Any] = {}

        def kernel(stem: str, name: str, *rest: Any) -> Any:
            made = get(stem, name, *rest)
            return known.setdefault(made, Launched(made, f"{stem} {name}", self))

        kernel.cache_clear = get.cache_clear  # type: ignore[attr-defined]
        jit._kernel = kernel  # type: ignore[assignment]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """The kernels of one test."""
        self.now, start = set(), time.perf_counter()
        yield
        if self.now:
            self.launched[item.nodeid] = sorted(self.now)
            self.seconds[item.nodeid] = round(time.perf_counter() - start, 3)

    def pytest_sessionfinish(self) -> None:
        """Write down what was seen."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        found = {"launched": self.launched, "seconds": self.seconds}
        self.path.write_text(json.dumps(found, indent=1))


def in_words(size: int) -> Any:
    """Memory of a device, not of a pool, in whole words: atomics on values of one or two bytes read
    the aligned word around them, and no allocation ends inside one. What fills such a word is zero,
    so that initcheck does not take it for values that nobody wrote.
    """
    import cupy

    whole = -(-size // 4) * 4
    memory = cupy.cuda.MemoryPointer(cupy.cuda.Memory(whole), 0)
    if size < whole:
        cupy.cuda.runtime.memset(memory.ptr + whole - 4, 0, 4)
    return memory


class Launched:
    """A kernel of CuPy's that tells the Recorder of each launch."""

    def __init__(self, made: Any, name: str, recorder: Recorder) -> None:
        vars(self).update(made=made, name=name, recorder=recorder)

    def __call__(self, *arguments: Any, **options: Any) -> None:
        self.recorder.now.add(self.name)
        self.made(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.made, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.made, name, value)  # max_dynamic_shared_size_bytes


def chosen(launched: dict[str, list[str]], seconds: dict[str, float]) -> list[str]:
    """Tests that launch every kernel TIMES times, or as often as there are tests: the next one is
    always that which adds most for its time.
    """
    usable = {
        test: set(names)
        for test, names in launched.items()
        if not any(word in test for word in LEFT_OUT)
    }
    there = collections.Counter(name for names in usable.values() for name in names)
    missing = {name: min(TIMES, count) for name, count in there.items()}
    picked: list[str] = []
    while any(missing.values()):

        def gain(test: str) -> float:
            return sum(missing[name] > 0 for name in usable[test]) / (seconds[test] + 0.05)

        best = max(usable, key=gain)
        for name in usable.pop(best):
            missing[name] = max(0, missing[name] - 1)
        picked.append(best)
    return sorted(picked)


def counted(blocks: Iterable[str]) -> list[tuple[str, int]]:
    """Each report once, with how many times it was made; without what differs from run to run."""
    plain = (
        re.sub(r"_ZN\d+_INTERNAL_\w+?_cubin_cu_|\[\d+ hazards\]", "", block) for block in blocks
    )
    return collections.Counter(plain).most_common(30)


def reports(text: str) -> list[str]:
    """The reports of compute-sanitizer about our kernels, a block of lines each."""
    found: list[list[str]] = []
    for line in text.splitlines():
        _, mark, line = line.partition("=========")  # pytest's dots may stand before it
        if not mark:
            continue
        if re.match(r" (Error|Warning|Invalid|Uninitialized|Barrier|Race|Program hit|Fatal)", line):
            found.append([line.strip()])
        elif found and line.startswith("    "):
            found[-1].append(line.strip())
    blocks = ["\n".join(lines[:12]) for lines in found]
    return [block for block in blocks if not FOREIGN.search(block)]


def rotated(first: int) -> list[int]:
    """The numbers of all GPUs, from another one on for each tool: most tests run on the first."""
    import cupy

    count = cupy.cuda.runtime.getDeviceCount()
    return [(first + k) % count for k in range(count)]


def run(tool: str, tests: list[str], path: str, seconds: float) -> tuple[int, str, list[str]]:
    """One process under a tool: its exit status, pytest's last line, the reports. The whole output
    is left in `path`.log.
    """
    program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    # of kernels alone: buffers are copied whole, and CuPy asks for peers that it has already
    options = ["--tool", tool, "--target-processes", "application-only", "--print-limit", "10000"]
    options += ["--show-backtrace", "no"]
    if tool != "initcheck":  # which has to know what they wrote
        options += [word for name in NOT_OURS for word in ("--kernel-name-exclude", f"kns={name}")]
    if tool in ("memcheck", "initcheck"):
        options += ["--check-api-memory-access", "no"]
    if tool == "memcheck":
        options += ["--report-api-errors", "no"]
    pytest_options = ["-v", "-p", "sanitizers", "-p", "no:cacheprovider", "-m", "gpu"]
    pytest_options += ["--durations", "20"]
    command = [program, *options, sys.executable, "-m", "pytest", *pytest_options, *tests]
    paths = [str(ROOT), str(ROOT / "tests" / "programs"), os.environ.get("PYTHONPATH", "")]
    settings = {"PYTHONPATH": os.pathsep.join(paths), "SPGRAPH_NO_POOL": "1"}
    if tool == "racecheck":
        settings["SPGRAPH_NO_BULK_COPIES"] = "1"
    settings["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, rotated(TOOLS.index(tool))))
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **settings, "SPGRAPH_KERNELS": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        text, code = process.communicate(timeout=seconds)[0], process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the tool, and the Python that it runs
        text, code = process.communicate()[0], 124
    pathlib.Path(f"{path}.log").write_text(text)
    summary = re.findall(r"\d+ (?:passed|failed|skipped|error)[^=\n]*", text)
    return code, summary[-1].strip() if summary else "ran out of time", reports(text)


def tests_of(tool: str, tests: list[str]) -> list[str]:
    """The tests that a tool can judge."""
    return [test for test in tests if tool != "initcheck" or BY_NCCL not in test]


def under(tool: str, tests: list[str], parts: int, path: str, seconds: float) -> dict[str, Any]:
    """What a tool said of the tests, run in so many processes."""
    start, parts = time.perf_counter(), min(parts, len(tests))  # no tests would mean all of them
    with ThreadPoolExecutor(parts) as pool:
        runs = [
            pool.submit(run, tool, tests[part::parts], f"{path}.{part}", seconds)
            for part in range(parts)
        ]
        codes, summaries, found = zip(*(one.result() for one in runs), strict=True)
    blocks = [block for some in found for block in some]
    return {
        "exit": max(codes),
        "seconds": round(time.perf_counter() - start, 1),
        "tests": list(summaries),
        "reports": counted(block for block in blocks if not WARP_SYNCHRONOUS.match(block)),
        "excepted": counted(block for block in blocks if WARP_SYNCHRONOUS.match(block)),
    }


def check(
    folder: pathlib.Path,
    output: str,
    tools: list[str],
    parts: int,
    seconds: float,
    commit: str | None,
) -> int:
    """Run the chosen tests under each tool and write the result; 0 where nothing was found."""
    from benchmarks.measuring import machine

    launched: dict[str, list[str]] = {}
    times: dict[str, float] = {}
    for path in folder.glob("*.json"):
        record = json.loads(path.read_text())
        launched |= record["launched"]
        times |= record["seconds"]
    tests = chosen(launched, times)
    seen = {name for test in tests for name in launched[test]}
    never = sorted(kernels() - seen)
    result: dict[str, Any] = {**machine.facts(commit), "tests": tests, "kernels": len(seen)}
    result["never_launched"] = never
    with ThreadPoolExecutor(len(tools)) as pool:
        results = pool.map(
            lambda tool: under(tool, tests_of(tool, tests), parts, f"{output}.{tool}", seconds),
            tools,
        )
        result["tools"] = dict(zip(tools, results, strict=True))
    for tool, found in result["tools"].items():
        by = {name for test in tests_of(tool, tests) for name in launched[test]}
        found["not_looked_at"] = sorted(seen - by)
    machine.write(pathlib.Path(output), result)
    print(json.dumps(result["tools"], indent=1)[:8000])
    print(f"{len(tests)} tests launch {len(seen)} kernels; never launched: {never}")
    bad = [tool for tool, found in result["tools"].items() if found["exit"] or found["reports"]]
    return 1 if bad or never else 0


def main() -> int:
    """See the usage above."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--output", default="sanitizers.json")
    parser.add_argument("--tools", nargs="+", default=list(TOOLS), choices=TOOLS)
    parser.add_argument("--parts", type=int, default=1, help="processes of a tool")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--commit", help="where the tree has no git history: which commit it is")
    given = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    return check(given.folder, given.output, given.tools, given.parts, given.seconds, given.commit)


if __name__ == "__main__":
    sys.exit(main())
