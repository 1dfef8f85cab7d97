"""The rows of result files: what every benchmark writes down of one system at one task.

A row is a dictionary with

- all times, and of these the least, the quartiles and the median: over several sources (a list
  each) the median of the sources' medians;
- `first_ms`: the first call on this graph in this process, which compiles kernels or loads them
  from the disk, and makes what is kept with the graph;
- `held_bytes`, `peak_bytes`: memory before a warm call that is not timed, and the most during it.
  On the CPU it is what the process has resident, all graphs and peers in it included; on a GPU what
  is in use of CuPy's pool, of several GPUs on the one that uses most, and `allocations` how often
  the call asks the pool for some, on all of them. None where nobody tells;
- `conditions`: threads that the system may use, processors to which the process is bound (None: to
  none), load average (1, 5, 15 minutes) when the row was made, commit.

`incomplete` names the rows of a result that lack something.
"""

from __future__ import annotations

import os
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measuring import machine

Times = Sequence[float] | Sequence[Sequence[float]]
FIELDS = ("first_ms", "held_bytes", "peak_bytes", "conditions")
CONDITIONS = ("threads", "pinned", "load_average", "commit")
DIGITS = 5  # of milliseconds


class Untimed(NamedTuple):
    """What is seen of a system's calls that are not timed: a row's fields of these names."""

    first_ms: float | None = None
    held_bytes: int | None = None
    peak_bytes: int | None = None
    allocations: int | None = None


# --- what a row holds -----------------------------------------------------------------------------


def row(
    times: Times,
    untimed: Untimed,
    *,
    median: str = "median",
    threads: int | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A row of times in milliseconds, or in the unit that `median` says, and of `more` facts."""
    found = statistics(times)
    return {median: found.pop("median"), **found, **more, **_rest(untimed, threads)}


def row_of_kinds(kinds: dict[str, Times], untimed: Untimed, **more: Any) -> dict[str, Any]:
    """A row of several kinds of times of the same call, such as device and wall: their medians are
    `device_ms` and `wall_ms`.
    """
    found: dict[str, Any] = {}
    for kind, times in kinds.items():
        for name, value in statistics(times).items():
            found[f"{kind}_{'ms' if name == 'median' else name}"] = value
    return {**found, **more, **_rest(untimed, None)}


def between(few: dict[str, Any], many: dict[str, Any], steps: int) -> dict[str, Any]:
    """The row of one of the `steps` by which the calls of two rows of kinds differ, taken in pairs;
    what is not a time is that of the second.
    """
    kinds = [name[: -len("_times")] for name in many if name.endswith("_times")]
    times = {}
    for kind in kinds:
        pairs = (np.ravel(row[f"{kind}_times"]) for row in (many, few))
        times[kind] = ((np.subtract(*pairs)) / steps).tolist()
    found = row_of_kinds(times, Untimed())
    return found | {name: many[name] for name in FIELDS}


def statistics(times: Times) -> dict[str, Any]:
    """Median, least, quartiles, and all times."""
    every = [np.atleast_1d(each) for each in times]
    low, high = np.percentile(np.concatenate(every), (25, 75))
    return {
        "median": _rounded(np.median([np.median(each) for each in every])),
        "min": _rounded(min(each.min() for each in every)),
        "quartiles": [_rounded(low), _rounded(high)],
        "times": [
            [_rounded(t) for t in each] if np.ndim(given) else _rounded(each[0])
            for given, each in zip(times, every, strict=True)
        ],
    }


def _rest(untimed: Untimed, threads: int | None) -> dict[str, Any]:
    """The commit is filled in by `machine.write`, which knows that of the whole file."""
    first = untimed.first_ms
    conditions = {
        "threads": machine.threads() if threads is None else threads,
        "pinned": machine.pinned(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
    }
    found = {**untimed._asdict(), "first_ms": None if first is None else _rounded(first)}
    return {**found, "conditions": conditions}


def _rounded(ms: Any) -> float:
    return round(float(ms), DIGITS)


# --- calls ----------------------------------------------------------------------------------------


def first(call: Callable[[], Any], device: str = "cpu") -> tuple[Any, float]:
    """(the result, the milliseconds) of a call, as of the first one, which compiles."""
    settle(device)
    begin = time.perf_counter()
    result = call()
    settle(device)
    return result, (time.perf_counter() - begin) * 1e3


def timed(call: Callable[[], Any], count: int, device: str) -> list[float]:
    """The milliseconds of so many calls, each waited for."""
    return [first(call, device)[1] for _ in range(count)]


def untimed(call: Callable[[], Any], first_ms: float | None, device: str = "cpu") -> Untimed:
    """The memory of a warm call, which this makes, beside the time of the first one."""
    return Untimed(first_ms, *(_resident if device == "cpu" else _pooled)(call))


def of_the_process(first_ms: float | None, device: str) -> Untimed:
    """The most memory since this process began, where single calls cannot be watched."""
    if device == "cpu":
        return Untimed(first_ms, None, _status("VmHWM"))
    most = []
    for gpu in _gpus():
        with gpu:
            most.append(int(_pool().total_bytes()))
    return Untimed(first_ms, None, max(most))


def settle(device: str) -> None:
    """Wait until the GPUs have done all they were given."""
    if device != "cpu":
        for gpu in _gpus():
            gpu.synchronize()


def _resident(call: Callable[[], Any]) -> tuple[int | None, ...]:
    """(before, most during a call) of the memory that the process has resident, on Linux."""
    try:  # 5: forget how much it was at most
        pathlib.Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return None, None
    before = _status("VmRSS")
    call()
    most = _status("VmHWM")  # of threads' counts, some of which come late
    return before, None if before is None or most is None else max(before, most)


def _status(name: str) -> int | None:
    """Bytes, as the system says."""
    try:
        text = pathlib.Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return None
    found = [line.split() for line in text.splitlines() if line.startswith(name + ":")]
    return 1024 * int(found[0][1]) if found else None


def _pooled(call: Callable[[], Any]) -> tuple[int, ...]:
    """(before, most during a call) of what is in use of CuPy's pool, on the GPU on which that is
    most; how many allocations the call makes. What the pool holds is no measure: it keeps what it
    has once taken.
    """
    settle("cuda")
    cuda, pool, used = _cuda(), _pool(), {}
    from_pool = cuda.get_allocator()
    for gpu in _gpus():
        with gpu:
            used[gpu.id] = [int(pool.used_bytes())]

    def allocate(size: int) -> Any:
        memory = from_pool(size)
        used[cuda.runtime.getDevice()].append(int(pool.used_bytes()))
        return memory

    cuda.set_allocator(allocate)  # of all threads
    try:
        last = call()
        settle("cuda")
    finally:
        cuda.set_allocator(from_pool)
    del last
    most, held = max((max(found), found[0]) for found in used.values())
    return held, most, sum(len(found) - 1 for found in used.values())


def _gpus() -> list[Any]:
    cuda = _cuda()
    return [cuda.Device(number) for number in range(cuda.runtime.getDeviceCount())]


def _pool() -> Any:
    from spgraph.containers.storage.arrays import import_cupy

    return import_cupy().get_default_memory_pool()


def _cuda() -> Any:
    from spgraph.containers.storage.arrays import import_cupy

    return import_cupy().cuda


# --- several rows ---------------------------------------------------------------------------------


def ratios(systems: dict[str, Any]) -> dict[str, Any]:
    """The fastest peer, and each of spgraph's medians divided by its; a peer whose clock says 0 is
    none.
    """
    medians = {name: found["median"] for name, found in systems.items() if "median" in found}
    peers = {name: ms for name, ms in medians.items() if ms and not name.startswith("spgraph")}
    if not peers:
        return {}
    best = min(peers, key=lambda name: peers[name])
    own = {name: ms for name, ms in medians.items() if name.startswith("spgraph")}
    return {"best": best, "ratios": {n: round(ms / peers[best], 3) for n, ms in own.items()}}


def incomplete(result: dict[str, Any]) -> list[str]:
    """What rows lack, a line each; a row is what has times."""
    lines = []
    for number, found in enumerate(machine.dictionaries(result)):
        lists = [name for name, value in found.items() if isinstance(value, list)]
        kinds = [name[: -len("times")] for name in lists if name.endswith("times")]
        wanted = [kind + part for kind in kinds for part in ("min", "quartiles")]
        lacking = [name for name in (*wanted, *FIELDS) if name not in found] if kinds else []
        conditions = found.get("conditions", {}) if kinds else dict.fromkeys(CONDITIONS)
        lacking += [name for name in CONDITIONS if name not in conditions]
        lines += [f"row {number}, {list(found)[:4]}: {name}" for name in lacking]
    return lines
