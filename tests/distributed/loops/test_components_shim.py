"""Components in shards without GPUs: the kernels under the shim, shards in plain memory, exchanged
by the communicator of one process.
"""

from __future__ import annotations

import contextlib
import functools
import types
from typing import Any

import cuda_host_shim
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csgraph

import spgraph as sg
import tests.iterations.test_contract as graphs
from spgraph import direction as directions
from spgraph.backends import cuda
from spgraph.backends.cuda.runtime import jit
from spgraph.backends.loops import LevelSearch
from spgraph.containers.storage.arrays import pack_bits
from spgraph.distributed import DistributedVector, Placement
from spgraph.distributed.loops import components

pytestmark = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")


@pytest.fixture(autouse=True, scope="module")
def on_the_shim() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jit, "current_device", lambda: 0)
        cuda_host_shim.install(patch)
        patch.setattr(Placement, "kernels", cuda)
        patch.setattr(components.searches, "by_kernels", search)
        patch.setattr(components, "peer_memory", reachable)
        yield


def search(A: Any, T: Any, start: Any, asked: LevelSearch) -> tuple[Any, None, None]:
    """Breadth-first search by plain products, in shards."""
    S = A.gather().to_scipy().astype(bool)
    ids = start.gather().to_coo()[0]
    seen = np.zeros(A.nrows, bool)
    seen[ids] = True
    for _ in range(asked.max_depth):
        seen |= S.T @ seen
    shards = []
    for k in range(len(A.shards)):
        own = seen[A.device.shard_ids(k, A.nrows)]
        shards.append(sg.Vector._of(own.size, np.zeros(own.size, np.int32), bits=pack_bits(own)))
    return DistributedVector(A.nrows, shards, A.device), None, None


def reachable(placement: Any, size: int) -> tuple[list[np.ndarray], list[int]]:
    """As between GPUs that reach each other's memory."""
    made = [np.zeros(size, np.int64) for _ in placement.local]
    return made, [array.ctypes.data for array in made]


def spread(A: sg.Matrix, shards: int, relabelled: bool = False) -> Any:
    """In shards of unequal sizes that begin where no word does."""
    rng = np.random.default_rng(shards)
    owner = rng.integers(0, shards, A.nrows)
    G: Any = A.distribute(shards, partition=owner if relabelled else np.sort(owner))
    lock = contextlib.nullcontext()
    calls = {"barrier": lambda: None, "check": lambda: None}
    own = range(shards)
    G.device.peers = types.SimpleNamespace(lock=lock, local=own, devices=own, **calls)
    return G


def planned(G: Any) -> components.Plan:
    """The plan; the giant is looked for in any case."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(directions, "all_are_near", lambda *counts: True)
        return components.plan_of(G)


def check(A: sg.Matrix, found: Any) -> None:
    home = found.gather()
    assert home.storage == "full" and home.dtype == np.int32
    np.testing.assert_array_equal(home.to_numpy(), graphs.by_scipy(A))


def both_ways(n: int, pairs: np.ndarray) -> sg.Matrix:
    pairs = np.concatenate([pairs, pairs[:, ::-1]])
    return sg.Matrix.from_coo(pairs[:, 0], pairs[:, 1], nrows=n, ncols=n, symmetric=True)


@pytest.mark.parametrize("both", [False, True])
def test_forests(both: bool) -> None:
    for name in (*graphs.GRAPHS, *graphs.MORE):
        A = graphs.matrix(name, both=both, shuffle=1)
        if A.nvals:
            G = spread(A, 2 + both, relabelled=both)
            for sampled in {False, both}:
                check(A, components.by_forests(G, components.plan_of(G), sampled))


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(2, 90),
    pairs=st.lists(st.tuples(st.integers(0, 89), st.integers(0, 89)), min_size=1, max_size=120),
    shards=st.integers(1, 7),
    relabelled=st.booleans(),
    both=st.booleans(),
)
def test_random_graphs(
    n: int, pairs: list[tuple[int, int]], shards: int, relabelled: bool, both: bool
) -> None:
    ends = np.array(pairs) % n
    A = sg.Matrix.from_coo(ends[:, 0], ends[:, 1], nrows=n, ncols=n)
    A = both_ways(n, ends) if both else A
    G = spread(A, shards, relabelled)
    plan = planned(G)
    for sampled in {False, both}:
        check(A, components.by_forests(G, plan, sampled))
    if both:
        found = components.by_giant(G, plan)
        assert plan.giant
        start: Any = plan.giant.start
        hub = int(start.gather().to_coo()[0][0])
        assert np.diff(A.indptr)[hub] == np.diff(A.indptr).max()
        away = csgraph.shortest_path(A.to_scipy(), unweighted=True, indices=hub)
        assert (found is None) == (away[np.isfinite(away)].max() > components.MOST_LEVELS)
        if found is not None:
            check(A, found)


def hubs(n: int, each: int, between: int, more: np.ndarray) -> sg.Matrix:
    """Stars of `each` vertices on every third id, their centres on a path; and more edges."""
    ids = np.random.default_rng(5).permutation(np.arange(0, n, 3))
    centres = ids[::each]
    pairs = np.stack([np.repeat(centres, each)[: ids.size], ids], axis=1)
    path = np.stack([centres[:-1], centres[1:]], axis=1)
    return both_ways(n, np.concatenate([pairs, path[:between], more]))


@pytest.mark.parametrize("relabelled", [False, True])
def test_what_the_giant_leaves(relabelled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths, pairs, loops and isolated vertices."""
    n, k = 1500, np.arange(0, 1480, 9)
    apart = np.concatenate([np.stack([k + 1, k + 5], 1), np.stack([k[:9] + 5, k[1:10] + 1], 1)])
    for more in (apart, np.stack([k + 4, k + 4], 1), apart[:0]):
        A = hubs(n, 100, 9, more)
        G = spread(A, 3, relabelled)
        check(A, components.by_giant(G, planned(G)))
        monkeypatch.setattr(components, "by_forests", None)
        check(A, components.by_kernels(G, True))


@pytest.mark.parametrize("relabelled", [False, True])
def test_when_the_giant_does_not_do(relabelled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path of hubs that is too long, several giants, none at all."""
    monkeypatch.setattr(components, "LEAST_CAPACITY", 100)
    n = 1500
    pairs = np.arange(1, n - 1, 3)
    for A in (
        hubs(n, 10, n, np.empty((0, 2), int)),
        hubs(n, 20, 0, np.empty((0, 2), int)),
        hubs(n, 250, 0, np.stack([pairs, pairs + 1], 1)),
    ):
        G = spread(A, 3, relabelled)
        plan = planned(G)
        check(A, components.by_kernels(G, True))
        assert not plan.giant, "the next call does not try"
        check(A, components.by_kernels(G, True))


def test_without_edges() -> None:
    for n in (0, 5):
        A = sg.Matrix.empty(n, n)
        check(A, components.by_kernels(spread(A, 3), True))


def test_two_giants_and_a_hidden_edge() -> None:
    """Each shard has a giant of its own, and no sample holds the one edge between them."""
    n = 300
    k = np.arange(4, n)
    hidden = np.array([[n - 2, n - 1]])
    pairs = [np.stack([k, k % 2], 1), np.stack([k, k % 2 + 2], 1), hidden]
    A = both_ways(n, np.concatenate(pairs))
    G: Any = A.distribute(2, partition=np.arange(n) % 2)
    check(A, components.by_forests(G, components.plan_of(G), True))


def test_lists_grow() -> None:
    A = graphs.matrix("triples", both=True, shuffle=1)
    G = spread(A, 3)
    plan = components.plan_of(G)
    assert not plan.giant, "far too few edges"
    plan.capacity = 4
    check(A, components.by_forests(G, plan, True))
    assert 500 < plan.capacity <= 4096
    grown = plan.capacity
    check(A, components.by_forests(G, plan, True))
    assert plan.capacity == grown


def test_which_way() -> None:
    """Kronecker graphs are small worlds; roads, grids and rings of hubs are not."""
    near = functools.partial(directions.all_are_near, levels=components.NEAR)
    assert near(2**25, 2**30, 10**6) and near(10**6, 4 * 10**6, 2000) and near(4, 12, 3)
    assert not near(10**6, 4 * 10**6, 4) and not near(4 * 10**6, 10**7, 9) and not near(3, 2, 1)
    assert directions.a_sample_pays(2**25, 2**30)
    assert not directions.a_sample_pays(10**6, 4 * 10**6)


def test_index_types() -> None:
    A = graphs.matrix("kronecker", both=True, shuffle=1)
    wide = (A.indptr.astype(np.int64), A.indices.astype(np.int64), A.values)
    B = sg.Matrix._of(*A.shape, *wide, iso=A.iso, symmetric=True)
    G = spread(B, 2)
    check(A, components.by_giant(G, planned(G)))
    check(A, components.by_forests(G, components.plan_of(G), True))
