"""A benchmark over graphs by name: the file is written anew after each of them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from benchmarks.measuring import graphs, machine

Entry = dict[str, Any]


def write(
    benchmark: str,
    options: argparse.Namespace,
    measure: Callable[[str, argparse.Namespace], Entry],
    table: Callable[[str, Entry], str],
    **more: Any,
) -> None:
    """Measure what `options.graphs` names, one after another, print a table of each, and write the
    facts about the machine, `more`, and what was measured, beside what is in the file already; a
    graph that is missing is said to be.
    """
    found: Entry = {
        "benchmark": benchmark,
        **machine.facts(options.commit),
        "threads": machine.threads(),
        "unit": "ms",
        **more,
        "graphs": {},
    }
    result = machine.begun(options.output, found) | more
    for name in options.graphs.split(","):
        reason = graphs.missing(name, options.data)
        result["graphs"][name] = {"missing": reason} if reason else measure(name, options)
        print(table(name, result["graphs"][name]), flush=True)
        machine.write(options.output, result)
    print(f"written: {options.output.name}")
