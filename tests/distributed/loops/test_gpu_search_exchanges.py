"""Searches over any semiring on one GPU, on several that write into each other's memory, through
NCCL, and in shards on one.
"""

from __future__ import annotations

from typing import Any

import gpus
import pytest
from search_cases import CASES, check_search

pytestmark = pytest.mark.gpu

EXCHANGES = {
    "one": (1, ""),
    "3 shards on one": (1, "auto"),
    "2 peers": (2, "peer"),
    "4 peers": (4, "peer"),
    "2 by NCCL": (2, "nccl"),
    "4 by NCCL": (4, "nccl"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_all_semirings(exchange: str, case: str) -> None:
    """Integers, min and max equal plain loops in all bits, whoever adds the products."""
    count, how = EXCHANGES[exchange]
    devices = gpus.names(count)

    def place(A: Any) -> Any:
        if not how:
            return A.to(devices[0])
        named = devices * 3 if how == "auto" else devices
        return A.distribute(len(named), devices=named, exchange=how)

    for name in ("skewed both", "sparse directed", "dense directed"):
        for direction in ("auto", "push", "pull"):
            check_search(name, case, place, direction)
