"""How the vertices of a graph are divided among shards: by ranges, at random, by METIS."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse

from spgraph.containers import Matrix
from spgraph.containers.storage.arrays import INT32_MAX, Array, array_module
from spgraph.distributed.containers.partition import Partition, check_shards
from spgraph.errors import BackendUnavailable, DimensionMismatch
from spgraph.process import lazy_imports

BIAS = 0.75  # the probability that a choice of the biased partition follows the neighbours
SEED = 1  # of random partitions
SLACK = 1.05  # the biased partition gives a shard at most so many times its share of the entries


def partition(A: Matrix, shards: int, how: str | Sequence[int] | Array = "edges") -> Partition:
    """The partition of the rows of the Matrix A into `shards` shards.

    'edges'   contiguous ranges of ids with equal shares of the entries
    'random'  equal numbers of random vertices
    'biased'  random, but most vertices go to the shard that already holds most of their
              neighbours; a shard takes no more than 5 % beyond its share of the entries
    'metis'   few edges between shards, by METIS (pip install 'spgraph[partition]')
    an array  vertex v goes to shard how[v]

    Random partitions are the same in every run. Raises DimensionMismatch for an array of another
    length, and for a matrix that is not square, whose rows are no vertices, unless `how` is 'edges'
    or an array; DomainMismatch and ValueError for what is in it, for another word, or less than one
    shard; BackendUnavailable without pymetis.

    Pan, Wang, Wu, Yang, Owens, "Multi-GPU graph analytics", IPDPS 2017; Karypis, Kumar, "A fast and
    high quality multilevel scheme for partitioning irregular graphs", SIAM J. Sci. Comput., 1998.
    """
    shards = check_shards(shards)
    if not isinstance(how, str):
        return Partition.from_owner(how, shards, A.nrows)
    if A.nrows != A.ncols and how != "edges":
        raise DimensionMismatch(
            f"distribute: partition: expected 'edges' or an array for a matrix that is not square, "
            f"{A.nrows} x {A.ncols}, got {how!r}"
        )
    if how == "edges":
        return Partition.by_edges(A._indptr, shards)
    if how == "random":
        return Partition.from_owner(_random(A.nrows, shards), shards)
    if how == "biased":
        return Partition.from_owner(_biased(*_undirected(A), shards), shards)
    if how == "metis":
        return Partition.from_owner(_metis(A, shards), shards)
    raise ValueError(
        "partition: expected 'edges', 'random', 'biased', 'metis' or an array of shard numbers, "
        f"got {how!r}"
    )


def partition_by_counts(
    counts: Array, shards: int, how: str | Sequence[int] | Array | Partition = "edges"
) -> Partition:
    """The same for a graph of which only the number of entries in each row is known: `how` is
    'edges', 'random', an array or a Partition; ValueError for what needs the edges.
    """
    if isinstance(how, Partition):
        if (how.size, how.num_shards) != (counts.size, shards):
            raise DimensionMismatch(
                f"partition: expected {counts.size} vertices in {shards} shards, got {how}"
            )
        return how
    if not isinstance(how, str):
        return Partition.from_owner(how, shards, counts.size)
    if how == "edges":
        xp = array_module(counts)
        indptr = xp.zeros(counts.size + 1, np.int64)
        xp.cumsum(counts, out=indptr[1:])
        return Partition.by_edges(indptr, shards)
    if how == "random":
        return Partition.from_owner(_random(counts.size, shards), shards)
    raise ValueError(
        "partition: of a graph that is generated or read in shards, expected 'edges', 'random' or "
        f"an array of shard numbers, got {how!r}, which needs the whole graph; make it on one "
        "device and distribute it"
    )


# --- who owns a vertex ----------------------------------------------------------------------------


def _random(n: int, shards: int) -> np.ndarray:
    return np.random.default_rng(SEED).permutation(_equal(n, shards))


def _equal(n: int, shards: int) -> np.ndarray:
    """The owner of each vertex where shards are ranges of equal sizes."""
    numbers = np.arange(shards, dtype=np.min_scalar_type(shards))
    return numbers.repeat(Partition.even(n, shards).sizes)


def _undirected(A: Matrix, loops: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """(indptr, indices) of A | A.T on the CPU; without `loops`, of what is off the diagonal."""
    S = A.pattern().to("cpu").to_scipy(copy=False)
    if not A.symmetric:
        S = S + S.T
    if not loops:
        S = scipy.sparse.triu(S, 1, "csr") + scipy.sparse.tril(S, -1, "csr")
    return S.indptr, S.indices


def _biased(indptr: np.ndarray, indices: np.ndarray, shards: int) -> np.ndarray:
    """The owner of each vertex. Vertices choose a shard in random order, in batches; a vertex most
    often follows the majority of its neighbours in earlier batches.
    """
    n = indptr.size - 1
    rng = np.random.default_rng(SEED)
    order = rng.permutation(n)
    owner = np.full(n, shards, np.int64)  # `shards`: none yet
    weights = np.diff(indptr) + 1.0
    capacity = np.full(shards, SLACK * weights.sum() / shards)
    first = 0
    while first < n:
        batch = order[first : first + max(64, first // 4)]
        first += batch.size
        degrees = indptr[batch + 1] - indptr[batch]
        row = np.arange(batch.size).repeat(degrees)
        entry = np.arange(row.size) + (indptr[batch] - (degrees.cumsum() - degrees))[row]
        held = np.bincount(
            row * (shards + 1) + owner[indices[entry]], minlength=batch.size * (shards + 1)
        ).reshape(batch.size, shards + 1)[:, :shards]
        choice = rng.integers(shards, size=batch.size)
        follows = (rng.random(batch.size) < BIAS) & held.any(axis=1)
        choice[follows] = held[follows].argmax(axis=1)
        owner[batch] = _within(capacity, choice, weights[batch], rng)
        capacity -= np.bincount(owner[batch], weights[batch], shards)
    return owner


def _within(
    capacity: np.ndarray, choice: np.ndarray, weights: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """The choices, but vertices beyond the capacity of a shard go to random others, with
    probabilities in proportion to their free capacity.
    """
    order = choice.argsort(kind="stable")
    wanted = np.bincount(choice, weights, capacity.size)
    before = wanted.cumsum() - wanted
    late = order[weights[order].cumsum() - before[choice[order]] > capacity[choice[order]]]
    free = np.maximum(capacity - wanted, 0)
    if late.size and free.any():
        choice[late] = rng.choice(capacity.size, late.size, p=free / free.sum())
    return choice


def _metis(A: Matrix, shards: int) -> np.ndarray:
    """The owner of each vertex by METIS, for A | A.T without self-loops; a vertex has the weight
    degree + 1.
    """
    try:
        with lazy_imports.whole():
            import pymetis
    except ImportError as error:
        raise BackendUnavailable(
            "partition 'metis' needs pymetis, which is not installed: "
            "pip install 'spgraph[partition]'; or take 'biased'"
        ) from error
    if shards == 1 or A.nrows <= shards:  # METIS wants more vertices than shards
        return _equal(A.nrows, shards)
    indptr, indices = _undirected(A, loops=False)
    if indices.size + A.nrows > INT32_MAX:  # the sum of all weights
        raise ValueError(
            f"partition: METIS takes at most {INT32_MAX} vertices and edge ends, "
            f"got {A.nrows} + {indices.size}; take 'biased' or 'edges'"
        )
    found = pymetis.part_graph(
        shards,
        pymetis.CSRAdjacency(indptr.astype(np.int32), indices.astype(np.int32)),
        vweights=np.diff(indptr) + 1,
        options=pymetis.Options(seed=SEED),
    )
    return np.asarray(found[1])
