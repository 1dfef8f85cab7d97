"""The power iteration over shards: what a shard is given, and the sums that it publishes."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from spgraph.containers import Matrix, Vector
from spgraph.semirings import TypedSemiring

# the arguments of `power_shard`, in its order
Arguments: TypeAlias = tuple[
    Vector,  # x
    tuple[Matrix, ...],  # matrices
    tuple[Vector | None, ...],  # scales
    TypedSemiring,
    tuple[float, float, float, float],  # constants
    Vector | float,  # restart
    int | str | None,  # norm
    float | None,  # tol
    int,  # max_iter
    bool,  # single
]
# how many sums over its vertices: the change of the iterate, its dangling mass, its norm
SUMS = 3


def change(totals: np.ndarray) -> float:
    """The change of all shards, from their sums on the host."""
    return float(totals[::SUMS].sum())
