"""Random and regular graphs, the same from the same seed on the CPU and on a GPU."""

from __future__ import annotations

import math
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from spgraph.containers import Matrix, memory
from spgraph.containers.storage.arrays import (
    Array,
    array_module,
    check_device,
    index_dtype,
    is_cuda,
    on_device,
)
from spgraph.containers.storage.numbers import flags, is_integer, is_real
from spgraph.containers.storage.selection import compress, distinct
from spgraph.process import lazy_imports
from spgraph.process.processors import usable
from spgraph.random_edges import (
    LARGEST,
    UNIT,
    WORD,
    GraphModel,
    generate_edges,
    numbers,
    state_of,
    vertex_labels,
)

__all__ = [
    "GraphModel",
    "grid",
    "kronecker",
    "kronecker_model",
    "random_geometric",
    "uniform_random",
]

EDGES, LABELS = 1, 2  # purposes of random numbers: independent streams of one seed


def kronecker(
    scale: int,
    edge_factor: float = 16,
    *,
    a: float = 0.57,
    b: float = 0.19,
    c: float = 0.19,
    d: float | None = None,
    noise: float = 0.0,
    seed: int = 1,
    permute: bool = True,
    symmetric: bool = True,
    self_loops: bool = False,
    device: str = "cpu",
) -> Matrix:
    """The R-MAT or Kronecker graph of Graph500: an iso pattern Matrix of 2**scale vertices.

    edge_factor * 2**scale edges are generated. For every bit of its ends, each edge chooses a
    quadrant of the matrix with the probabilities a, b, c and d. Without `symmetric` the graph is
    directed. Duplicate edges are stored once, so that there are fewer entries than generated edges.

    Parameters:
        scale: the graph has 2**scale vertices.
        edge_factor: edges generated per vertex.
        a: the probability of the upper left quadrant.
        b: that of the upper right.
        c: that of the lower left.
        d: that of the lower right; None: what is left to 1.
        noise: the probabilities change from level to level by a factor of 1 - noise to 1 + noise.
        seed: which random graph.
        permute: relabel the vertices at random.
        symmetric: store each edge in both directions.
        self_loops: keep edges from a vertex to itself; else they are dropped.
        device: where the graph is made: "cpu", "cuda" or "cuda:N".

    The defaults are Graph500's. GTgraph's R-MAT is permute=False, symmetric=False, noise=0.05:
    after each level every probability is multiplied by a random factor from 1 - noise to
    1 + noise, and the four are scaled to the sum 1. Unlike this function, GTgraph generates another
    edge instead of a self-loop, keeps duplicates, and its noise never lowers b.

    The graph depends on `seed` and the arguments before it, never on `device`. Raises ValueError
    for a scale outside of 0..30 (ids and their number must fit 31 bits), for probabilities that do
    not sum to 1, noise outside of [0, 0.25], an edge factor that is negative or not finite, a seed
    outside of 0..2**64 - 1.

    Source: Chakrabarti, Zhan, Faloutsos, "R-MAT: a recursive model for graph mining", SDM 2004;
    Murphy, Wheeler, Barrett, Ang, "Introducing the Graph 500", 2010; Bader, Madduri, "GTgraph",
    2006.

    >>> import spgraph as sg
    >>> A = sg.generators.kronecker(10, edge_factor=8)
    >>> A.shape, A.symmetric, A.nvals < 2 * 8 * 1024
    ((1024, 1024), True, True)
    """
    flags("kronecker", permute=permute, symmetric=symmetric, self_loops=self_loops)
    model = kronecker_model(
        scale, edge_factor, a, b, c, d, noise, seed, permute, symmetric, self_loops
    )
    return _generated(model, device)


def kronecker_model(
    scale: int,
    edge_factor: float = 16,
    a: float = 0.57,
    b: float = 0.19,
    c: float = 0.19,
    d: float | None = None,
    noise: float = 0.0,
    seed: int = 1,
    permute: bool = True,
    symmetric: bool = True,
    self_loops: bool = False,
) -> GraphModel:
    """The model of the graph that `kronecker` makes from the same arguments (`scale`,
    `edge_factor`, `a`, `b`, `c`, `d`, `noise`, `seed`, `permute`, `symmetric`, `self_loops`), for
    `spgraph.distributed.from_model`; raises as `kronecker` does.

    >>> import spgraph as sg
    >>> model = sg.generators.kronecker_model(10, 8)
    >>> model.vertices, model.edges  # of which none is made yet
    (1024, 8192)
    """
    flags("kronecker_model", permute=permute, symmetric=symmetric, self_loops=self_loops)
    scale = _integer("scale", scale, 0, 30)
    a, b, c, d = _probabilities(a, b, c, d)
    strength = _real(noise)
    if not 0 <= strength <= 0.25:
        raise ValueError(f"noise: expected a number from 0 to 0.25, got {noise!r}")
    if strength:
        w = [int(p * UNIT) for p in (a, b, c)]
        parameters = (scale, *w, max(UNIT - sum(w), 0), round(strength * 2**24))
    else:
        sums = (a, a + b, a + b + c)
        parameters = (scale, *(min(int(t * 2.0**64), WORD) for t in sums))
    count = _edge_count(edge_factor, 1 << scale)
    kind = "noisy" if strength else "rmat"
    state, labels = _state(seed, EDGES), _state(seed, LABELS) if permute else None
    return GraphModel(kind, parameters, 1 << scale, count, state, labels, symmetric, self_loops)


def uniform_random(
    n: int,
    edge_factor: float,
    *,
    seed: int = 1,
    symmetric: bool = True,
    self_loops: bool = False,
    device: str = "cpu",
) -> Matrix:
    """A graph of n vertices and edge_factor * n edges with uniform, independent ends: an iso
    pattern Matrix.

    As in `kronecker`, duplicate edges are stored once, self-loops are dropped unless `self_loops`,
    `symmetric` stores each edge in both directions, and the graph is the same on every device.

    Parameters:
        n: the number of vertices.
        edge_factor: edges generated per vertex.
        seed: which random graph.
        symmetric: store each edge in both directions.
        self_loops: keep edges from a vertex to itself.
        device: where the graph is made: "cpu", "cuda" or "cuda:N".

    Raises ValueError for n outside of 0..2**31 - 1, an edge factor that is negative or not finite,
    a seed outside of 0..2**64 - 1.

    Source: Erdos, Renyi, "On random graphs", 1959: the model G(n, m), here with replacement.

    >>> import spgraph as sg
    >>> sg.generators.uniform_random(1000, 4).symmetric
    True
    """
    flags("uniform_random", symmetric=symmetric, self_loops=self_loops)
    n = _integer("n", n, 0, LARGEST)
    count = _edge_count(edge_factor, n)
    state = _state(seed, EDGES)
    return _generated(
        GraphModel("uniform", (n,), n, count, state, None, symmetric, self_loops), device
    )


def grid(
    rows: int, columns: int, *, remove: float = 0.0, seed: int = 1, device: str = "cpu"
) -> Matrix:
    """The rows x columns grid, where every vertex has up to four neighbours: an iso, symmetric
    pattern Matrix.

    The vertex in row r and column c has the id r * columns + c. `remove` is the probability with
    which each undirected edge is omitted, independently of the others; with 0.1 to 0.4 the graph
    resembles a road network. The graph is the same on every device.

    Parameters:
        rows: the number of rows.
        columns: the number of columns.
        remove: the share of edges to leave out.
        seed: which random graph.
        device: where the graph is made: "cpu", "cuda" or "cuda:N".

    Raises ValueError for negative extents, more than 2**31 - 1 vertices, `remove` outside of
    [0, 1), a seed outside of 0..2**64 - 1.

    >>> import spgraph as sg
    >>> sg.generators.grid(2, 3).to_coo()[1].tolist()
    [1, 3, 0, 2, 4, 1, 5, 0, 4, 1, 3, 5, 2, 4]
    """
    rows, columns = _integer("rows", rows, 0, LARGEST), _integer("columns", columns, 0, LARGEST)
    n = rows * columns
    if n > LARGEST:
        raise ValueError(
            f"rows * columns: expected at most {LARGEST} vertices, got {rows} * {columns}"
        )
    share = _real(remove)
    if not 0 <= share < 1:
        raise ValueError(f"remove: expected a number from 0 to less than 1, got {remove!r}")
    state, device = _state(seed, EDGES), check_device(device)
    if device == "cpu":
        memory.require(48 * n, f"grid: {n:,} vertices: that")
    with on_device(device) as xp:
        vertex = xp.arange(n, dtype=np.uint64)
        threshold = np.uint64(int(share * 2.0**64))
        # random number 2 v decides on the edge from v to the right, 2 v + 1 on the one downwards
        right = numbers(state, vertex * np.uint64(2)) >= threshold
        right &= vertex % np.uint64(max(columns, 1)) != np.uint64(max(columns, 1) - 1)
        down = numbers(state, vertex * np.uint64(2) + np.uint64(1)) >= threshold
        down[n - columns :] = False
        present = xp.zeros((n, 4), bool)  # up, left, right, down: the ids in a row ascend
        present[columns:, 0] = down[: n - columns]
        present[1:, 1] = right[:-1]
        present[:, 2] = right
        present[:, 3] = down
        indptr = xp.zeros(n + 1, np.int64)
        xp.cumsum(present.sum(axis=1), out=indptr[1:])
        steps = xp.asarray([-columns, -1, 1, columns], np.int32)
        neighbours = vertex.astype(np.int32)[:, None] + steps
        return _pattern(n, indptr, compress(present.ravel(), neighbours.ravel()), symmetric=True)


def random_geometric(n: int, radius: float, *, seed: int = 1) -> Matrix:
    """A graph of n points, uniform in the unit square, with an edge between any two at a distance
    of at most `radius`: an iso, symmetric pattern Matrix on the CPU.

    Ids tell nothing of where points lie, and no edge has a weight.

    Parameters:
        n: the number of points.
        radius: points at most this far apart are joined.
        seed: which random graph.

    Raises ValueError for n outside of 0..2**31 - 1, a radius that is negative or not finite, a seed
    outside of 0..2**64 - 1.

    Source: Gilbert, "Random plane networks", 1961.

    >>> import spgraph as sg
    >>> sg.generators.random_geometric(100, 2.0).nvals
    9900
    """
    n = _integer("n", n, 0, LARGEST)
    distance = _real(radius)
    if not 0 <= distance < math.inf:
        raise ValueError(f"radius: expected a finite number >= 0, got {radius!r}")
    pairs_expected = int(n * n / 2 * min(1.0, np.pi * distance * distance))
    memory.require(
        32 * pairs_expected,
        f"random_geometric: about {pairs_expected:,} pairs of points: that",
    )
    with lazy_imports.whole():
        from scipy.spatial import cKDTree  # nothing else needs it

    random = numbers(_state(seed, EDGES), np.arange(2 * n, dtype=np.uint64))
    points = (random >> np.uint64(11)).reshape(n, 2) * 2.0**-53
    pairs = cKDTree(points).query_pairs(distance, output_type="ndarray").astype(np.int64)
    keys = np.empty(2 * len(pairs), np.int64)
    keys[: len(pairs)] = pairs[:, 0] << 32 | pairs[:, 1]
    return _from_keys(keys, n, symmetric=True)


# --- arguments ------------------------------------------------------------------------------------


def _integer(name: str, value: object, low: int, high: int) -> int:
    if not is_integer(value):
        raise ValueError(f"{name}: expected an integer, got {value!r}")
    if not low <= value <= high:
        raise ValueError(f"{name}: expected an integer from {low} to {high}, got {value!r}")
    return int(value)


def _real(value: object) -> float:
    """A number as a float: in a small type sums and products would overflow or be coarse. NaN for
    what is no number, and for an int beyond all floats.
    """
    try:
        return float(value) if is_real(value) else math.nan
    except OverflowError:
        return math.nan


def _probabilities(
    a: float, b: float, c: float, d: float | None
) -> tuple[float, float, float, float]:
    given: tuple[Any, ...] = (a, b, c) if d is None else (a, b, c, d)
    numbers = [_real(p) for p in given]
    if d is None:
        numbers.append(max(1 - sum(numbers), 0.0))
    # float16 and float32 hold each to half a unit in its last place
    units = [float(np.finfo(type(p)).eps) for p in given if isinstance(p, np.floating)]
    exact = max([1e-9, *units])
    if not all(0 <= p <= 1 for p in numbers) or abs(sum(numbers) - 1) > exact:
        raise ValueError(
            f"a, b, c, d: expected probabilities of sum 1 (d=None: what is left), "
            f"got {a!r}, {b!r}, {c!r}, {d!r}"
        )
    return numbers[0], numbers[1], numbers[2], numbers[3]


def _edge_count(edge_factor: float, n: int) -> int:
    factor = int(edge_factor) if is_integer(edge_factor) else _real(edge_factor)
    if not 0 <= factor < math.inf:
        raise ValueError(f"edge_factor: expected a finite number >= 0, got {edge_factor!r}")
    if factor * n >= 2.0**62:
        raise ValueError(f"edge_factor: expected fewer than 2**62 edges, got {edge_factor!r} * {n}")
    return round(factor * n)


def _state(seed: int, purpose: int) -> int:
    return state_of(_integer("seed", seed, 0, WORD), purpose)


# --- edges and arrays to a Matrix -----------------------------------------------------------------


def _generated(model: GraphModel, device: str) -> Matrix:
    """The Matrix of the graph of a model."""
    n, count, symmetric = model.vertices, model.edges, model.symmetric
    size, device = 2 * count if symmetric else count, check_device(device)
    if device == "cpu":
        memory.require(
            8 * size + 24 * n, f"{n:,} vertices and {count:,} edges, duplicates included: that"
        )
    with on_device(device) as xp:
        labels = vertex_labels(model, xp)
        keys = xp.empty(size, np.int64)
        generate_edges(keys[:count], model, labels)
        del labels
        return _from_keys(keys, n, symmetric)


def _from_keys(keys: Array, n: int, symmetric: bool) -> Matrix:
    """The Matrix of the keys row << 32 | column, LOOP left out; `keys` is used up.

    If `symmetric`, the first half holds the edges and the second gets their mirror images.
    """
    xp = array_module(keys)
    if symmetric:
        half, step = keys.size // 2, 1 << 24  # in steps, so that the shifted copies stay small
        for first in range(0, half, step):
            part = keys[first : min(first + step, half)]
            keys[half + first : half + first + part.size] = part << 32 | part >> 32
    _sort(keys)
    keys = distinct(keys)
    indptr = xp.zeros(n + 1, np.int64)
    if keys.size:  # where each row begins; LOOP lies behind the last
        indptr = xp.searchsorted(keys, xp.arange(n + 1, dtype=np.int64) << 32)
    columns = keys.view(np.int32)[0 if sys.byteorder == "little" else 1 :: 2]
    return _pattern(n, indptr, columns[: int(indptr[-1])].copy(), symmetric)


def _sort(keys: Array) -> None:
    """Sorts in place; on a CPU several threads sort one part each, which timsort then merges."""
    if is_cuda(keys) or keys.size < 1 << 16:
        keys.sort()
        return
    cores = usable()
    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(np.ndarray.sort, np.array_split(keys, cores)))
    keys.sort(kind="stable")


def _pattern(n: int, indptr: Array, indices: Array, symmetric: bool) -> Matrix:
    xp = array_module(indices)
    indptr = indptr.astype(index_dtype(indices.size), copy=False)
    known = True if symmetric else None
    return Matrix._of(n, n, indptr, indices, xp.ones(1, bool), iso=True, symmetric=known)


def __dir__() -> list[str]:
    return sorted(__all__)
