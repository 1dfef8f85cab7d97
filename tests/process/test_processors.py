"""How many processors a process may use: its own, and those that its control groups pay for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spgraph import generators
from spgraph.backends.cpu.runtime import pool
from spgraph.process import processors


def system(root: Path, groups: str, files: dict[str, str]) -> Path:
    """`root`, with the control groups of a process and with their files."""
    for name, text in {"proc/self/cgroup": groups, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


CPU = "sys/fs/cgroup"
SYSTEMS = {
    "no control groups": (None, {}, 8),
    "no limit": ("0::/\n", {f"{CPU}/cpu.max": "max 100000\n"}, 8),
    "two": ("0::/\n", {f"{CPU}/cpu.max": "200000 100000\n"}, 2),
    "one and a half": ("0::/\n", {f"{CPU}/cpu.max": "150000 100000\n"}, 2),
    "half of one": ("0::/\n", {f"{CPU}/cpu.max": "50000 100000\n"}, 1),
    "more than there are": ("0::/\n", {f"{CPU}/cpu.max": "6400000 100000\n"}, 8),
    "of the group": ("0::/a/b\n", {f"{CPU}/a/b/cpu.max": "300000 100000\n"}, 3),
    "of a group around it": (
        "0::/a/b\n",
        {f"{CPU}/a/cpu.max": "300000 100000\n", f"{CPU}/a/b/cpu.max": "500000 100000\n"},
        3,
    ),
    "a path of the host": ("0::/docker/1f\n", {f"{CPU}/cpu.max": "400000 100000\n"}, 4),
    "version 1": (
        "5:memory:/a\n4:cpu,cpuacct:/a\n",
        {
            f"{CPU}/cpu,cpuacct/a/cpu.cfs_quota_us": "300000\n",
            f"{CPU}/cpu,cpuacct/a/cpu.cfs_period_us": "100000\n",
            f"{CPU}/memory/a/cpu.max": "100000 100000\n",
        },
        3,
    ),
    "version 1, no limit": (
        "4:cpu,cpuacct:/\n",
        {
            f"{CPU}/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
            f"{CPU}/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        },
        8,
    ),
    "damaged": ("0::/\nnonsense\n", {f"{CPU}/cpu.max": "x\n"}, 8),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_limits(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than the process may run on, and than its groups are given the time of."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    groups, files, expected = SYSTEMS[name]
    root = tmp_path if groups is None else system(tmp_path, groups, files)
    assert processors.usable(root) == expected


def test_kernels_and_generators_keep_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel's threads, and those that generators start themselves."""
    monkeypatch.delenv("SPGRAPH_NUM_THREADS", raising=False)
    monkeypatch.setattr(pool, "usable", lambda: 3)
    pool.processors.cache_clear()
    try:
        assert pool.processors() == 3
    finally:
        pool.processors.cache_clear()
    asked = []
    monkeypatch.setattr(generators, "usable", lambda: asked.append(1) or 1)
    generators.uniform_random(1 << 13, 8)
    assert asked


def test_long_steps_are_worth_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread for little work, then a thread for each share."""
    monkeypatch.setattr(pool, "processors", lambda: 16)
    assert pool.threads_for(399_999) == pool.threads_for(399_999, pool.LONG_STEPS) == 1
    assert [pool.threads_for(800_000, share) for share in (200_000, pool.LONG_STEPS)] == [4, 16]
