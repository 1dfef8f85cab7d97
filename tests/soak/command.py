"""The command: pools of cases in processes side by side, and the report of what they found."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from soak.single import KINDS, Place, Seed, peer_is_there, reproduce
from soak.worker import work

ROOT = Path(__file__).resolve().parents[2]
SHARES = {"operations": 0.86, "algorithms": 0.1, "files": 0.04}
POOL = 25_000  # cases of a pool of operations; others have as many as their shares say
STILL = 600  # seconds without a new case after which a process is taken to hang


def main(words: list[str] | None = None) -> int:
    """0 where no case failed, 1 where one did."""
    asked = _parser().parse_args(words)
    place = Place(asked.device, asked.shards)
    if asked.reproduce:
        return int(reproduce(Seed.read(asked.reproduce), place).fault is not None)
    if asked.worker:
        kind, pool, cases, until, progress = asked.worker
        work(kind, int(pool), int(cases), float(until), place, Path(progress))
        return 0
    return Soak(asked, place).run()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python tests/soak", description="Random cases of spgraph against other libraries."
    )
    add = parser.add_argument
    add("--cases", type=int, default=1_000_000, help="how many cases (default 1000000)")
    add("--minutes", type=float, default=0, help="stop after so many minutes (default: never)")
    add("--seed", type=int, default=1, help="the first pool of cases (default 1)")
    add("--device", default="cpu", choices=["cpu", "cuda"])
    add("--shards", type=int, default=3, help="shards of every eighth case, 0 for none (default 3)")
    add("--jobs", type=int, default=2, help="processes side by side (default 2)")
    add("--pool-cases", type=int, default=POOL, help="cases that share kernels (default 25000)")
    add("--only", choices=KINDS, help="one kind of cases alone")
    add("--output", type=Path, help="the file for the report, as JSON")
    add("--commit", help="where the tree has no git history: which commit it is")
    add("--reproduce", metavar="SEED", help="run the case of a seed and print both answers")
    add("--worker", nargs=5, help=argparse.SUPPRESS)
    return parser


class Soak:
    """A run: what is counted, what failed."""

    def __init__(self, asked: argparse.Namespace, place: Place) -> None:
        self.asked, self.place = asked, place
        self.counts: Counter[str] = Counter()
        self.failures: list[dict[str, Any]] = []
        self.begun = time.time()
        self.until = self.begun + asked.minutes * 60 if asked.minutes else float("inf")
        self.lock = threading.Lock()
        self.pools: set[int] = set()

    def run(self) -> int:
        """All pools; the report is written after each."""
        with ThreadPoolExecutor(self.asked.jobs) as threads:
            list(threads.map(lambda task: self._pool(*task), self._tasks()))
        self._write()
        done = self._done()
        print(f"{done} cases, {self.counts['failures']} failures", flush=True)
        return int(self.counts["failures"] > 0)

    def _tasks(self) -> list[tuple[str, int, int]]:
        """(kind, pool, cases) until there are enough cases."""
        only, size = self.asked.only, min(self.asked.pool_cases, self.asked.cases)
        shares = {only: 1.0} if only else SHARES
        scale = size / max(shares.values())
        tasks, left, pool = [], self.asked.cases, self.asked.seed
        while left > 0:
            for kind, share in shares.items():
                cases = min(left, max(1, round(scale * share)))
                tasks.append((kind, pool, cases))
                left -= cases
                if left <= 0:
                    break
            pool += 1
        return tasks

    def _done(self) -> int:
        return sum(self.counts[name] for name in self.counts if name.partition(" ")[0] in KINDS)

    def _pool(self, kind: str, pool: int, cases: int) -> None:
        if time.time() > self.until:
            return
        with tempfile.NamedTemporaryFile() as progress:
            progress.write(np.zeros(1, np.int64).tobytes())
            progress.flush()
            place = ["--device", self.place.device, "--shards", str(self.place.shards)]
            words = [kind, str(pool), str(cases), str(self.until), progress.name]
            command = [sys.executable, str(Path(__file__).parent), *place, "--worker", *words]
            code, output, errors = _watched(command, Path(progress.name))
            number = int(np.fromfile(progress.name, np.int64)[0])
        with self.lock:
            self.pools.add(pool)
            if code:
                self.counts["failures"] += 1
                fault = f"the process ended with {code}: {errors[-1500:]}"
                self.failures.append({"seed": f"{kind}-{pool}-{number}", "fault": fault})
                self.counts[f"{kind} before a crash"] += number
            else:
                found = json.loads(output)
                self.counts.update(found["counts"])
                self.failures += found["failures"]
            self._write()
            failed = self.counts["failures"]
            spent = time.time() - self.begun
            print(f"{spent:7.0f} s  {self._done()} cases, {failed} failures", flush=True)

    def _write(self) -> None:
        if self.asked.output is None:
            return
        sys.path.insert(0, str(ROOT))
        from benchmarks.measuring import machine

        place = {"device": self.place.device, "shards": self.place.shards}
        peer = self.place.device == "cpu" or peer_is_there()
        report = {
            "benchmark": "soak",
            **machine.facts(self.asked.commit),
            "command": machine.command().replace("-m __main__", "tests/soak"),
            "seconds": round(time.time() - self.begun),
            **place,
            "operations_against": "python-graphblas" if peer else "spgraph on the CPU",
            "cases": self._done(),
            "failures": self.counts["failures"],
            "left_out": self.counts["left out"],
            "cases_in_shards": self.counts["in shards"],
            "pools": [min(self.pools), max(self.pools)] if self.pools else [],
            "by_kind": {
                k: v for k, v in sorted(self.counts.items()) if " " in k and k not in OTHER
            },
            "failed": self.failures[:200],
        }
        machine.write(self.asked.output, report)


OTHER = ("left out", "in shards")


def _watched(command: list[str], progress: Path) -> tuple[int, str, str]:
    """(exit status, stdout, stderr) of a process, which is ended where it hangs."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    last, since = b"", time.monotonic()
    while True:
        try:
            output, errors = process.communicate(timeout=10)
            return process.returncode, output, errors
        except subprocess.TimeoutExpired:
            now = progress.read_bytes()
            if now != last:
                last, since = now, time.monotonic()
            elif time.monotonic() - since > STILL:
                process.kill()
                process.communicate()
                return -9, "", f"no new case for {STILL} seconds"
