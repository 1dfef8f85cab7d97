"""Every kernel under NVIDIA's compute-sanitizer: memcheck, racecheck, initcheck and synccheck.

usage: python tests/sanitizers.py record ENTERED.json [pytest arguments]
       python tests/sanitizers.py check ENTERED.json --output RESULT.json [--tools memcheck ...]

`record` runs the gpu tests as they are and writes down which test entered which kernel. `check`
chooses the fewest tests that enter every kernel as often as MEETINGS says, runs them again under
each tool, and keeps the reports about our kernels; those of CuPy and of NCCL are left out by name.
It fails where a report is left, where a test fails, or where a kernel was never entered.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
MEETINGS = 2  # different tests that enter a kernel, where there are so many
# processes of their own would not be seen by the tool, and large graphs take too long under it
LEFT_OUT = ("processes", "large", "memory", "real_graphs", "notebooks", "docs")
FOREIGN = re.compile(r"cupy_|cub::|nccl|thrust|cusparse|void at_cuda|memset|memcpy", re.IGNORECASE)
OURS = re.compile(r'extern "C" __global__ void[^(]*(?:__launch_bounds__\([^)]*\)\s*)?\s(\w+)\(')


def kernels() -> set[str]:
    """'stem name' of every kernel of the package, read from the texts."""
    from spgraph.backends.cuda.sources import stems, whole

    return {f"{stem} {name}" for stem in stems() for name in OURS.findall(whole(f"{stem}.cu"))}


class Recorder:
    """A plugin of pytest that notes which kernels each test launches."""

    def __init__(self, path: str, pool: bool) -> None:
        self.path = path
        self.pool = pool
        self.entered: dict[str, list[str]] = {}
        self.seconds: dict[str, float] = {}
        self.now: set[str] = set()

    def pytest_sessionstart(self) -> None:
        """Every kernel that is asked for from here on says when it is launched."""
        import cupy

        if not self.pool:  # what is past the end of an array is then nobody's
            cupy.cuda.set_allocator(None)
        from spgraph.backends.cuda import jit

        get = jit._kernel
        known: dict[Any, Any] = {}

        def kernel(stem: str, name: str, *rest: Any) -> Any:
            made = get(stem, name, *rest)
            return known.setdefault(made, Launched(made, f"{stem} {name}", self))

        jit._kernel = kernel  # type: ignore[assignment]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """The kernels of one test."""
        self.now, start = set(), time.perf_counter()
        yield
        if self.now:
            self.entered[item.nodeid] = sorted(self.now)
            self.seconds[item.nodeid] = round(time.perf_counter() - start, 3)

    def pytest_sessionfinish(self) -> None:
        """Write down what was seen."""
        found = {"entered": self.entered, "seconds": self.seconds}
        pathlib.Path(self.path).write_text(json.dumps(found, indent=1))


class Launched:
    """A kernel of CuPy's that tells the Recorder of each launch."""

    def __init__(self, made: Any, name: str, recorder: Recorder) -> None:
        self.made, self.name, self.recorder = made, name, recorder

    def __call__(self, *arguments: Any, **options: Any) -> None:
        self.recorder.now.add(self.name)
        self.made(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.made, name)


def run_tests(path: str, arguments: list[str], pool: bool) -> int:
    """pytest in this process, with a Recorder and CuPy's memory pool or not; its exit code."""
    options = ["-p", "no:cacheprovider", "-m", "gpu", "-q", *arguments]
    return int(pytest.main(options, plugins=[Recorder(path, pool)]))


def chosen(entered: dict[str, list[str]], seconds: dict[str, float]) -> list[str]:
    """Tests that enter every kernel MEETINGS times, or as often as there are tests: the next one is
    always that which adds most for its time.
    """
    usable = {
        test: set(names)
        for test, names in entered.items()
        if not any(word in test for word in LEFT_OUT)
    }
    there = collections.Counter(name for names in usable.values() for name in names)
    missing = {name: min(MEETINGS, count) for name, count in there.items()}
    picked: list[str] = []
    while any(missing.values()):

        def gain(test: str) -> float:
            return sum(missing[name] > 0 for name in usable[test]) / (seconds[test] + 0.05)

        best = max(usable, key=gain)
        for name in usable.pop(best):
            missing[name] = max(0, missing[name] - 1)
        picked.append(best)
    return sorted(picked)


def reports(text: str) -> list[str]:
    """The reports of compute-sanitizer about our kernels, a block of lines each."""
    found: list[list[str]] = []
    for line in text.splitlines():
        if not line.startswith("========="):
            continue
        line = line.removeprefix("=========").rstrip()
        if re.match(r" (Error|Warning|Invalid|Uninitialized|Barrier|Race|Program hit|Fatal)", line):
            found.append([line.strip()])
        elif found and line.startswith("     "):
            found[-1].append(line.strip())
    blocks = ["\n".join(lines[:12]) for lines in found]
    return [block for block in blocks if not FOREIGN.search(block)]


def check(path: str, output: str, tools: list[str], seconds: float) -> int:
    """Run the chosen tests under each tool and write the result; 0 where nothing was found."""
    from benchmarks import machine

    record = json.loads(pathlib.Path(path).read_text())
    tests = chosen(record["entered"], record["seconds"])
    seen = {name for test in tests for name in record["entered"][test]}
    never = sorted(kernels() - seen)
    program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    result: dict[str, Any] = {**machine.facts(), "tests": tests, "kernels": len(seen)}
    result |= {"never_entered": never, "tools": {}}
    for tool in tools:
        options = ["--tool", tool, "--target-processes", "application-only", "--print-limit", "200"]
        command = [program, *options, sys.executable, __file__, "run", f"{output}.{tool}", *tests]
        start = time.perf_counter()
        try:
            done = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, timeout=seconds / len(tools)
            )
            text, code = done.stdout + done.stderr, done.returncode
        except subprocess.TimeoutExpired as error:
            text, code = str(error.stdout or b"", "utf-8", "replace"), 124
        pathlib.Path(f"{output}.{tool}.log").write_text(text)
        summary = re.findall(r"\d+ (?:passed|failed|skipped|error)[^=\n]*", text)
        result["tools"][tool] = {
            "exit": code,
            "seconds": round(time.perf_counter() - start, 1),
            "tests": summary[-1].strip() if summary else "",
            "reports": collections.Counter(reports(text)).most_common(20),
        }
        print(tool, json.dumps(result["tools"][tool], indent=1)[:3000], flush=True)
    machine.write(pathlib.Path(output), result)
    print(f"{len(tests)} tests enter {len(seen)} kernels; never entered: {never}")
    bad = [tool for tool, found in result["tools"].items() if found["exit"] or found["reports"]]
    return 1 if bad or never else 0


def main() -> int:
    """See the usage above."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["record", "check", "run"])
    parser.add_argument("entered")
    parser.add_argument("--output", default="sanitizers.json")
    parser.add_argument("--tools", nargs="+", default=list(TOOLS), choices=TOOLS)
    parser.add_argument("--seconds", type=float, default=3600)
    given, rest = parser.parse_known_args()
    sys.path.insert(0, str(ROOT))
    os.chdir(ROOT)
    if given.what == "check":
        return check(given.entered, given.output, given.tools, given.seconds)
    return run_tests(given.entered, rest, pool=given.what == "record")


if __name__ == "__main__":
    sys.exit(main())
