"""The power iteration over shards: the sums that a shard publishes."""

from __future__ import annotations

import numpy as np

# how many sums over its vertices: the change of the iterate, its dangling mass, its norm
SUMS = 3


def change(totals: np.ndarray) -> float:
    """The change of all shards, from their sums on the host."""
    return float(totals[::SUMS].sum())
