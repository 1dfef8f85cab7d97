"""How many processors this process may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath


def usable(root: Path = Path("/")) -> int:
    """How many processors the process may run on, at most those whose time its control groups give
    it, rounded up: two in a container with a limit of two, however many the machine has. More
    threads would only use up that time sooner, and then all wait for the next period.

    `root` is where the system's files are.
    """
    if hasattr(os, "sched_getaffinity"):
        here = len(os.sched_getaffinity(0))
    else:
        here = os.cpu_count() or 1
    return max(1, min([here, *_limits(root)]))


def _limits(root: Path) -> Iterator[int]:
    """The limits of the process's control groups and of those that these are part of (Linux: the
    files of versions 1 and 2).
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    mounted = root / "sys/fs/cgroup"
    for line in lines:
        _, controllers, group = (*line.split(":", 2), "", "")[:3]
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = mounted / controllers if controllers else mounted
        # a container may see the path that its group has outside, of which only the top is there
        for part in (relative := PurePosixPath(group.lstrip("/")), *relative.parents):
            limit = _limit(top / part)
            if limit is not None:
                yield limit


def _limit(group: Path) -> int | None:
    """The processors whose time a group gets; None without a limit."""
    try:
        if (group / "cpu.max").exists():
            quota, period = (group / "cpu.max").read_text().split()
        else:
            quota = (group / "cpu.cfs_quota_us").read_text()
            period = (group / "cpu.cfs_period_us").read_text()
        return -(-int(quota) // int(period)) if int(quota) > 0 else None
    except (OSError, ValueError):  # not there; "max"
        return None
