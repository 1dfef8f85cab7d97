"""Distances between all vertices for spgraph.csgraph on a GPU, where its searches from single
vertices are closures.
"""

from __future__ import annotations

import numpy as np

from spgraph.backends.cuda.runtime import jit, preamble
from spgraph.containers.storage.arrays import Array, array_module

# the side of a tile: as many threads as a block may have
TILE = 32


@jit.on_device
def floyd_warshall(distance: Array, parents: Array | None) -> None:
    """Turn `distance`, the lengths of edges, into distances, in place, and `parents`, where given,
    into the vertex before the last of each path. Three launches for every TILE vertices, nothing is
    read back.
    """
    n = distance.shape[0]
    blocks = -(-n // TILE)
    text = preamble.constants(TILE=TILE)
    grids = {"diagonal": 1, "cross": 2 * blocks, "floyd_warshall": blocks * blocks}
    kernels = [(jit.kernel("floyd_warshall", name, text), grid) for name, grid in grids.items()]
    arrays = distance, jit.NULL if parents is None else parents
    for b in range(blocks):
        for kernel, grid in kernels:
            kernel((grid,), (TILE * TILE,), (*arrays, n, b))


@jit.on_device
def path_lengths(graph: Array, parents: Array, missing: float) -> tuple[Array, Array]:
    """(distances along `parents` between all vertices, 1 where these form a cycle or leave the
    graph): see kernels/path_lengths.cu. One launch.
    """
    xp, n = array_module(graph), graph.shape[0]
    distance, failed = xp.empty((n, n)), xp.zeros(1, np.uint8)
    kernel = jit.kernel("path_lengths", "path_lengths", "")
    jit.sweep(kernel, n * n, graph, parents, n, np.float64(missing), distance, failed)
    return distance, failed
