"""The arrays of kernels/stacks.py."""

from __future__ import annotations

import numpy as np

from spgraph.containers.storage.arrays import index_dtype

# vertices of a block, as in the text
BLOCK = 64


def stacks(n: int, pushes: int, threads: int) -> tuple[np.ndarray, ...]:
    """(stacks, blocks, ready, shared) for n vertices and so many pushes in all."""
    kind, most = index_dtype(n), pushes // BLOCK + 1
    # of a thread its size and two blocks, and the rest of the last cache line
    own = np.zeros((threads, 2 * BLOCK + 16), kind)
    return own, np.empty(most * BLOCK, kind), np.zeros(most, bool), np.zeros(24, np.int64)
