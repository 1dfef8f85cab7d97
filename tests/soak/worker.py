"""A process that runs the cases of one pool: its number of cases done, and what failed.

One process a pool, so that compiled kernels are given back and a crash takes no other cases along.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from soak import rules
from soak.pools import Pool
from soak.single import Place, Seed, run

KEPT = 20  # failures of a pool that are described


def work(kind: str, pool: int, cases: int, until: float, place: Place, progress: Path) -> None:
    """Run cases 0, 1, ... of a pool until there are enough or time is up; the result goes to stdout
    as JSON, the number of the case at work into the file `progress`.
    """
    at = np.memmap(progress, np.int64, "r+", shape=(1,))
    made = Pool(pool)
    counts: Counter[str] = Counter()
    failures: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(cases):
            if time.time() > until:
                break
            at[0] = number
            seed = Seed(kind, pool, number)
            outcome = run(seed, made, place, Path(folder), rules.PENDING)
            what = f"{kind} {outcome.case.what}"
            what = what.rpartition(".")[0] if what.count(".") > 1 else what  # no compression
            if outcome.left_out:
                counts["left out"] += 1
                continue
            counts[what] += 1
            counts["in shards"] += bool(kind != "files" and place.shards_of(seed))
            if outcome.fault is not None:
                counts["failures"] += 1
                if len(failures) < KEPT:
                    fault = outcome.fault[:300]
                    failures.append({"seed": str(seed), "what": what, "fault": fault})
    json.dump({"counts": counts, "failures": failures}, sys.stdout)
