"""Interrupts at random moments: no crash, no hang, the next call right, `out` whole.

usage: python tests/programs/interrupts.py [COUNT] [--seed N] [--threads 1,2,3,8]

Another process sends SIGINT while this one calls operations and algorithms on so many threads, one
after the other, each warm. What was interrupted is called again and compared with what it gave
before. A call that does not end within a minute ends the program, with the stacks of its threads.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import spgraph as sg
from spgraph.backends.cpu.runtime import pool
from spgraph.semirings import binary, plus_times, unary

# a process that sends a signal some time after it is told to, and says when it did
SENDER = """
import os, signal, sys, time
for line in sys.stdin:
    time.sleep(float(line))
    os.kill(os.getppid(), signal.SIGINT)
    print(time.monotonic(), flush=True)
"""


def calls() -> dict[str, Callable[[], Any]]:
    """What is interrupted: each gives arrays that are always the same."""
    A = sg.generators.kronecker(14, 12, seed=3)
    S = A.to_scipy().astype(float)
    S.data = np.random.default_rng(1).random(A.nvals)
    W = sg.Matrix.from_scipy(S)
    few = sg.generators.kronecker(9, 8, seed=3)
    x = sg.Vector.from_dense(np.random.default_rng(2).random(1 << 20))
    sources = np.arange(8)
    return {
        "bfs": lambda: sg.bfs(A, 1).level.to_numpy(fill=-1),
        "sssp": lambda: sg.sssp(W, 1).distance.to_numpy(fill=-1),
        "pagerank": lambda: sg.pagerank(A).to_numpy(),
        "components": lambda: sg.connected_components(A).to_numpy(),
        "betweenness": lambda: sg.betweenness_centrality(A, sources=sources).to_numpy(),
        "triangles": lambda: np.array([sg.triangle_count(A)]),
        "mxm": lambda: sg.mxm(few, few, plus_times).to_scipy().toarray(),
        "transpose": lambda: sg.transpose(W.dup())._values,
        "apply": lambda: sg.apply(x, unary.sqrt).to_numpy(),
        "union": lambda: sg.ewise_add(x, x, binary.plus).to_numpy(),
    }


class Counter:
    """A Vector that calls add one to, in place: it holds the same number everywhere."""

    def __init__(self) -> None:
        self.ones = sg.Vector.from_dense(np.ones(1 << 18, np.int64))
        self.total = sg.Vector.from_dense(np.zeros(1 << 18, np.int64))

    def add(self) -> None:
        sg.apply(self.ones, unary.identity, accum=binary.plus, out=self.total)

    def check(self) -> None:
        found = np.unique(self.total.to_numpy())
        assert found.size == 1 and self.total.nvals == 1 << 18, found


def interrupted(call: Callable[[], Any], sender: Any, delay: float) -> float:
    """Call again and again until the signal comes; the seconds from there to the exception."""
    with contextlib.suppress(KeyboardInterrupt):
        print(delay, file=sender.stdin, flush=True)
        while True:
            call()
    now = time.monotonic()
    return now - float(sender.stdout.readline())


def main() -> None:
    """Interrupt so many times; the last line says how it went."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int, nargs="?", default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", default="1,2,3,4,5,6,7,8")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    numbers = [int(word) for word in options.threads.split(",")]
    many = 1
    pool.processors = lambda: max(numbers)  # type: ignore[assignment]
    pool.threads_for = lambda work, *share: many if work > 1000 else 1  # type: ignore[assignment]
    given, counter = calls(), Counter()
    right = {}
    for many in numbers:  # noqa: B007
        right = {name: call() for name, call in given.items()}
        counter.add()
    command = [sys.executable, "-c", SENDER]
    longest, tally = 0.0, dict.fromkeys([*given, "in place"], 0)
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=os.setsid if hasattr(os, "setsid") else None,
    ) as sender:
        for _ in range(options.count):
            many, name = chance.choice(numbers), chance.choice([*given, "in place"])
            faulthandler.dump_traceback_later(60, exit=True)
            call = given.get(name, counter.add)
            longest = max(longest, interrupted(call, sender, chance.random() * 0.03))
            if name in given:
                assert np.allclose(given[name](), right[name]), (name, many)
            counter.check()
            faulthandler.cancel_dump_traceback_later()
            tally[name] += 1
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sender.stdin.close()  # type: ignore[union-attr]
    print(tally)
    print(f"{options.count} interrupts, the longest {longest * 1000:.0f} ms")


if __name__ == "__main__":
    main()
