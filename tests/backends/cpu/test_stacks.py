"""What threads work off in any order, on any number of them: cores and strong components, against
a loop over the vertices and SciPy.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse import csgraph

import spgraph as sg
from spgraph.algorithms.connected_components import connected_components
from spgraph.algorithms.core_number import core_number
from spgraph.backends.cpu.traversals import strong_components as components


def drawn(seed: int) -> scipy.sparse.csr_array:
    """A random graph of up to 3000 vertices with loops, hubs and vertices without edges."""
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 3000 if seed % 3 == 0 else 60))
    m = int(n * random.choice([0, 0.5, 1, 2, 4, 16]))
    heads = (n * random.random(m) ** random.choice([1, 3])).astype(int)
    tails = random.integers(0, n, m)
    near = random.random(m) < random.choice([0, 0.9])
    tails[near] = np.minimum(heads[near] + 1, n - 1)
    # no vertex is beside those that it has edges with
    name = random.permutation(n) if seed % 2 else np.arange(n)
    S = scipy.sparse.coo_array((np.ones(m), (name[heads], name[tails])), shape=(n, n)).tocsr()
    S.data[:] = 1
    return S


def cores(S: scipy.sparse.csr_array) -> list[int]:
    """The core numbers, by taking away one vertex of the least degree after the other."""
    both = ((S + S.T) != 0).tolil()
    both.setdiag(False)
    near = [set(np.flatnonzero(row).tolist()) for row in both.toarray()]
    left, core, least = set(range(len(near))), [0] * len(near), 0
    degree = [len(row) for row in near]
    buckets: list[set[int]] = [set() for _ in range(len(near) + 1)]
    for v, d in enumerate(degree):
        buckets[d].add(v)
    while left:
        d = next(d for d, bucket in enumerate(buckets) if bucket)
        v = buckets[d].pop()
        least = max(least, d)
        core[v] = least
        left.remove(v)
        for u in near[v] & left:
            buckets[degree[u]].remove(u)
            degree[u] -= 1
            buckets[degree[u]].add(u)
    return core


@pytest.mark.parametrize("seed", range(12))
def test_cores(seed: int, threads: int) -> None:
    S = drawn(seed)
    assert core_number(sg.Matrix.from_scipy(S)).to_numpy().tolist() == cores(S)


@pytest.mark.parametrize("seed", range(24))
def test_strong_components(seed: int, threads: int) -> None:
    S = drawn(seed)
    _, number = csgraph.connected_components(S, connection="strong")
    least = np.full(S.shape[0], S.shape[0])
    np.minimum.at(least, number, np.arange(S.shape[0]))
    A = sg.Matrix.from_scipy(S)
    for _ in range(2):  # by one thread, then with the transpose
        label = connected_components(A, connection="strong").to_numpy()
        np.testing.assert_array_equal(label, least[number])
        assert A.T.indptr.size


def test_what_the_threads_find(threads: int) -> None:
    """Vertices on no cycle and the giant component are left to no search; other cycles are."""
    n = 1200
    k = np.arange(n)
    # a path of 400 vertices into a cycle of 600 and out of it by 100, and a cycle of 100 beside it
    tails = np.concatenate([k[1:1000], [400], k[1001:1100], [1000], k[1101:], [1100]])
    heads = np.concatenate([k[:999], [999], k[1000:1099], [600], k[1100:1199], [1199]])
    name = np.random.default_rng(1).permutation(n)
    A = sg.Matrix.from_coo(name[heads], name[tails], nrows=n, ncols=n)
    label = np.empty(n, np.int32)
    left = components._giant_component(A, threads, label)
    assert left == 100 and set(np.flatnonzero(label == n)) == set(name[1100:])
    assert (label[name[400:1000]] == name[400:1000].min()).all()
    alone = np.concatenate([name[:400], name[1000:1100]])
    assert (label[alone] == alone).all()
