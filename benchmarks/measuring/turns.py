"""Systems that give the same answer, timed in turns on the CPU."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

from benchmarks.measuring import rows

PAUSE = 0.02  # seconds between turns: OpenMP's threads spin on for a while after their last work
# seconds of calls in a turn at least: after the pause and a collection of garbage, which looks at
# every object, the first calls find cold caches and take 20 to 60 us more than those that follow
WARM = 0.002


def timed(
    systems: dict[str, Callable[[], Any]],
    answer: Callable[[str, Any], Any],
    differs: Callable[[Any, Any], str],
    rounds: int,
    calls: int,
) -> dict[str, Any]:
    """The row of each system, or its error: what `differs(its answer, spgraph's)` says.

    `answer(system, result)` is made of the first calls. Then the systems take turns for so many
    rounds, each round begun by the next one; of each turn the fastest of the calls counts, of which
    there are more where they are short.
    """
    firsts = {name: rows.first(call) for name, call in systems.items()}
    answers = {name: answer(name, result) for name, (result, _) in firsts.items()}
    own = answers.pop("spgraph")
    faults = {"spgraph": ""} | {name: differs(found, own) for name, found in answers.items()}
    first_ms = {name: ms for name, (_, ms) in firsts.items()}
    del firsts, answers, own
    right = [name for name, fault in faults.items() if not fault]
    seen = {name: rows.untimed(systems[name], first_ms[name]) for name in right}
    times: dict[str, list[float]] = {name: [] for name in right}
    for turn in range(rounds):
        for name in right[turn % len(right) :] + right[: turn % len(right)]:
            times[name].append(milliseconds(systems[name], calls))
    wrong: dict[str, Any] = {name: {"error": fault} for name, fault in faults.items() if fault}
    return wrong | {name: rows.row(times[name], seen[name]) for name in right}


def milliseconds(call: Callable[[], Any], calls: int) -> float:
    """Those of the fastest of so many calls, or of all in WARM seconds, after a pause, without what
    frees their results.
    """
    time.sleep(PAUSE)
    gc.collect()
    gc.disable()
    try:
        best, made, spent = float("inf"), 0, 0.0
        while made < calls or spent < WARM:
            start = time.perf_counter()
            last = call()
            took = time.perf_counter() - start
            best, made, spent = min(best, took), made + 1, spent + took
            del last
    finally:
        gc.enable()
    return round(best * 1e3, 4)


def ratio_to_best_peer(systems: dict[str, Any]) -> dict[str, float]:
    """spgraph's median divided by the least of the others', under this function's name."""
    found = rows.ratios(systems)
    return {"ratio_to_best_peer": found["ratios"]["spgraph"]} if found else {}
