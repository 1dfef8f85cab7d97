"""Containers in shards give what plain ones give: operations, loops, algorithms."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import distributed_cases as cases
import minimal_backend
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spgraph as sg
from spgraph import backends, distributed, errors
from spgraph.distributed import LocalCommunicator
from spgraph.semirings import binary, min_plus, monoid, plus_pair, plus_times, unary

BLOCKS = [1, 2, 3, 4, 7]


def divisions(*hows: str) -> list[Any]:
    """Every number of shards by every rule; by default each number and each rule, and the rule that
    leaves a shard empty with the most.
    """
    chosen = set(zip(itertools.cycle(hows), BLOCKS, strict=False)) | {(hows[-1], BLOCKS[-1])}
    return [
        pytest.param(how, shards, marks=() if (how, shards) in chosen else pytest.mark.full)
        for how, shards in itertools.product(hows, BLOCKS)
    ]


def partitions(n: int, shards: int) -> dict[str, Any]:
    """'own' leaves a shard empty where there are several."""
    own = np.random.default_rng(2).integers(0, max(1, shards - 1), n)
    return {"edges": "edges", "random": "random", "biased": "biased", "own": own}


def spread_like(G: Any) -> Any:
    return lambda container: container.to(G.device)


@pytest.mark.parametrize(("how", "shards"), divisions("edges", "random", "own"))
@pytest.mark.parametrize("case", cases.OPERATIONS)
def test_operations_and_loops(case: Any, how: str, shards: int) -> None:
    A = cases.graph()
    G = A.distribute(shards, partition=partitions(A.nrows, shards)[how])
    case(A, G, spread_like(G))


@pytest.mark.parametrize(("how", "shards"), divisions("edges", "biased", "own"))
def test_algorithms(how: str, shards: int) -> None:
    A, S = cases.graph(), cases.graph(symmetric=True)
    G, H = (X.distribute(shards, partition=partitions(X.nrows, shards)[how]) for X in (A, S))
    cases.check_algorithms(A, G, S, H)


def test_metis() -> None:
    pytest.importorskip("pymetis", reason="pymetis is not installed: extra 'partition'")
    S = cases.graph(symmetric=True)
    H = S.distribute(3, partition="metis")
    cases.check_loops(S, H, spread_like(H))
    assert H.partition.report().border.sum() <= S.nvals


@pytest.mark.parametrize("n", [0, 1, 3])
def test_more_shards_than_vertices(n: int) -> None:
    A = sg.Matrix.from_coo(range(n - 1), range(1, n), nrows=n, ncols=n)
    G = A.distribute(5)
    assert sum(G.partition.sizes) == n and len(G.partition.sizes) == 5
    cases.same(G.T, A.T)
    cases.same(sg.connected_components(G), sg.connected_components(A))
    cases.same(sg.pagerank(G), sg.pagerank(A), close=1e-6)
    if n:
        for shards, plain in zip(sg.bfs(G, 0), sg.bfs(A, 0), strict=True):
            cases.same(shards, plain)


def test_without_edges() -> None:
    A = sg.Matrix.empty(9, 9, np.int64)
    G = A.distribute(3)
    cases.same(sg.sssp(G, 4).distance, sg.sssp(A, 4).distance)
    cases.same(G @ G, A @ A)
    assert sg.reduce(G) == 0 and sg.triangle_count(G) == 0


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 40),
    seed=st.integers(0, 10**6),
    shards=st.integers(1, 9),
    density=st.floats(0, 0.3),
    data=st.data(),
)
def test_any_assignment(n: int, seed: int, shards: int, density: float, data: Any) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 9, (n, n)) * (rng.random((n, n)) < density)
    A = sg.Matrix.from_dense(weights)
    owner = data.draw(st.lists(st.integers(0, shards - 1), min_size=n, max_size=n))
    source = data.draw(st.integers(0, n - 1))
    G = A.distribute(shards, partition=np.array(owner))
    assert G.partition.sizes == tuple(np.bincount(owner, minlength=shards).tolist())
    for function in (sg.bfs, sg.sssp):
        for found, expected in zip(function(G, source), function(A, source), strict=True):
            cases.same(found, expected)
    cases.same(sg.connected_components(G), sg.connected_components(A))
    u = cases.vector(n, 0.5, seed=seed)
    for way in ("push", "pull"):
        cases.same(
            sg.vxm(u.to(G.device), G, plus_times, direction=way),
            sg.vxm(u, A, plus_times, direction=way),
        )


def test_a_rectangular_matrix() -> None:
    A = sg.Matrix.from_dense(np.arange(35).reshape(5, 7) % 4)
    G = A.distribute(3)
    u = cases.vector(7, 0.6)
    cases.same(sg.mxv(G, u.to(G.device), min_plus), sg.mxv(A, u, min_plus))
    cases.same(G @ G.T, A @ A.T)
    cases.same(G.T, A.T)


def test_containers_that_divide_their_rows_differently() -> None:
    """Both are on "2 shards on cpu": the message says that these are not the same."""
    G, other = (sg.generators.kronecker(4, 3, seed=seed).distribute(2) for seed in (1, 2))
    words = "on 2 shards on cpu, which divide it in another way,"
    with pytest.raises(
        errors.BackendMismatch, match=rf"B is {words} A on .* with \.to\(A\.device\)"
    ):
        sg.mxm(G, other)
    remedy = r"move out with \.to\(device of the operands\)"
    with pytest.raises(errors.BackendMismatch, match=rf"apply: out is {words} .*; {remedy}"):
        sg.apply(G, sg.semirings.unary.identity, out=other)
    assert sg.mxm(G, other.to(G.device)).nvals


def test_what_a_placement_refuses() -> None:
    A = cases.graph()
    G, H = A.distribute(2), A.distribute(2)
    with pytest.raises(
        errors.BackendMismatch,
        match=r"B is on 2 shards on cpu, which divide it in another way, A on",
    ):
        sg.mxm(G, H)
    cases.same(G @ H.to(G.device), A @ A)
    with pytest.raises(errors.BackendMismatch, match="move one with"):
        sg.vxm(cases.vector(A.nrows, 0.1), G)
    for shards in (0, -1, 2.0, True):
        with pytest.raises(ValueError, match="shards: expected an integer >= 1"):
            A.distribute(shards)
    for shards in (1025, 10**6, 10**20):
        said = f"distribute: shards: expected at most 1024 shards in a process, got {shards}"
        with pytest.raises(ValueError, match=said):
            A.distribute(shards)
        with pytest.raises(ValueError, match="LocalCommunicator: shards: expected at most 1024 sh"):
            LocalCommunicator(shards)
    with pytest.raises(errors.DimensionMismatch, match="devices: expected 2"):
        A.distribute(2, devices=["cpu"])
    with pytest.raises(ValueError, match="exchange: expected one of"):
        A.distribute(2, exchange="smoke signals")
    with pytest.raises(ValueError, match="takes a GPU of its own for each shard"):
        A.distribute(2, exchange="peer")
    with pytest.raises(AttributeError, match="gather"):
        _ = G.indptr
    with pytest.raises(TypeError, match="to_numpy"):
        np.asarray(sg.bfs(G, 5).level)
    with pytest.raises(TypeError, match="gather"):
        pickle.dumps(G)
    with pytest.raises(errors.IndexOutOfBound, match="0 <= source < 70"):
        sg.bfs(G, 70)
    with pytest.raises(errors.IndexOutOfBound, match="expected 0 <= index < 70"):
        sg.extract(sg.bfs(G, 5).level, [70])
    with pytest.raises(errors.NegativeWeight):
        sg.sssp(sg.apply(G, unary.ainv), 5)


def test_work_on_shards_takes_an_item_for_each() -> None:
    """With fewer, no shard is left out."""
    placement = cases.graph().distribute(3).device
    assert placement.map(lambda k, x, y: (k, x, y), "abc", [3, 4, 5])[2] == (2, "c", 5)
    for items in ([1, 2], [1, 2, 3, 4]):
        with pytest.raises(ValueError, match="zip"):
            placement.map(lambda k, item: item, items)


def test_a_failed_assign_leaves_everything_as_it_was() -> None:
    A = cases.graph()
    G = A.distribute(3)
    w = cases.vector(A.nrows, 0.5).to(G.device)
    before = w.gather()
    with pytest.raises(ValueError, match="more than once"):
        sg.assign(w, 1, [3, 3])
    with pytest.raises(errors.IndexOutOfBound):
        sg.assign(w, 1, [3, 70])
    assert w.gather().isequal(before)


def test_repr_says_where_it_is_and_asks_nobody() -> None:
    G = cases.graph().distribute(3)
    assert repr(G).startswith("Matrix 70x70, int64, 3 shards on cpu, ")
    assert repr(sg.bfs(G, 5).level.dup()).startswith("Vector 70, int32, 3 shards on cpu, ")
    assert "3 shards" in G._repr_html_() and "[" not in repr(G.partition.sizes)
    before = G.device.communicator.calls
    repr(G)
    assert G.device.communicator.calls == before


def test_report_counts_the_border() -> None:
    A = cases.graph()
    G = A.distribute(3, partition=np.arange(A.nrows) % 3)
    rows, columns, _ = A.to_coo()
    report = G.partition.report()
    for p in range(3):
        for q in range(3):
            across = columns[(rows % 3 == p) & (columns % 3 == q)]
            assert report.border[p, q] == (0 if p == q else np.unique(across).size)
    assert report.edges.sum() == A.nvals and tuple(report.vertices) == G.partition.sizes


def test_dense_frontiers_travel_as_bits_and_sparse_ones_as_pairs() -> None:
    A = sg.generators.kronecker(10, 16)
    G = A.distribute(4)
    comm = G.device.communicator

    def sent(u: Any) -> int:
        before = comm.bytes_sent
        sg.vxm(u.to(G.device), G, min_plus, direction="pull")
        return comm.bytes_sent - before

    few, many = cases.vector(A.nrows, 0.01), cases.vector(A.nrows, 0.9)
    # each entry goes to three other shards: 4 bytes of id and 8 of value, or 8 and a bit
    assert sent(few) == 3 * 12 * few.nvals
    assert 3 * 8 * A.nrows <= sent(many) <= 3 * (8 * A.nrows + A.nrows // 8 + 16)


def test_paths_that_float64_cannot_count() -> None:
    """A ladder of diamonds doubles the number of shortest paths 1100 times."""
    k = 1100
    top = 3 * np.arange(k)
    rows = np.concatenate([top, top, top + 1, top + 2])
    columns = np.concatenate([top + 1, top + 2, top + 3, top + 3])
    A = sg.Matrix.from_coo(rows, columns, nrows=3 * k + 1, ncols=3 * k + 1)
    found = sg.betweenness_centrality(A.distribute(2), sources=[0])
    cases.same(found, sg.betweenness_centrality(A, sources=[0]), close=1e-9)


def test_what_array_functions_may_give() -> None:
    A = cases.graph()
    for M in (A, A.distribute(3)):
        v = sg.Vector.arange(A.nrows, device=M.device)
        with pytest.raises(errors.DomainMismatch, match="one for each that it was given"):
            v._with_values(lambda x: x[:1])
        w = v._with_values(lambda x: x)
        sg.assign(w, 99, [0])
        assert v[0] == 0 and w[0] == 99
        assert M._where(lambda a: a & 1).nvals == int((A.values & 1).sum())
        few = cases.vector(A.nrows, 0.3).to(M.device)
        with pytest.raises(errors.DomainMismatch, match="expected full Vectors"):
            v._with_values(np.add, few)
        with pytest.raises(errors.DomainMismatch, match="expected full Vectors"):
            M._where(lambda a, x, y: x > y, few)
        with pytest.raises(errors.DomainMismatch, match="expected a full Vector"):
            few._total()
        with pytest.raises(errors.IndexOutOfBound, match="0 <= index < 4"):
            sg.Vector.unit(9, 1, size=4, dtype=int, device=M.device)
        with pytest.raises(ValueError, match="size: expected"):
            sg.Vector.arange(-1, device=M.device)


@pytest.mark.parametrize("other", [np.ones((3, 5)), np.ones((3, 4), np.float32)])
def test_processes_that_give_other_arrays_are_told(
    other: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both of them, before anything is gathered."""
    G: Any = sg.Matrix.from_coo([0, 1], [1, 2], [3.0, 4.0], nrows=3, ncols=3).distribute(2)
    comm, given = distributed.LocalCommunicator, []
    monkeypatch.setattr(comm, "processes", 2)
    monkeypatch.setattr(comm, "all_gather", None)
    # what each process gives: first of all to itself alone
    monkeypatch.setattr(comm, "all_reduce_host", lambda self, x, op: given.append(x) or x)
    arrays = np.ones((3, 4)), other
    for X in arrays:
        with pytest.raises(TypeError, match="not callable"):  # both are alike: it goes on
            G @ X
    monkeypatch.setattr(comm, "all_reduce_host", lambda self, x, op: np.maximum(*given))
    for X in arrays:
        with pytest.raises(errors.DimensionMismatch, match="the same array in every process, got"):
            G @ X


def test_storages_share_nothing() -> None:
    A = cases.graph()
    v = cases.vector(A.nrows, 0.5).to(A.distribute(3).device)
    before = v.gather()
    for other in (v.to_sparse(), v.to_bitmap(), v._conform()):
        sg.assign(other, 77, list(range(A.nrows)))
    assert v.gather().isequal(before)


def test_shards_of_shards_and_indices_in_shards() -> None:
    A = cases.graph()
    G = A.distribute(2)
    cases.same(G.distribute(4), A)
    J = sg.Vector.from_dense(np.array([4, 1, 9]))
    C, D = A.dup(), A.to(G.device)
    sg.assign(C, 5, J, [0, 2])
    sg.assign(D, 5, J.to(G.device), [0, 2])
    cases.same(D, C)
    nan = sg.Matrix.from_dense([[0, np.nan], [np.nan, 0]])
    assert nan.is_symmetric() == nan.distribute(2).is_symmetric()
    T = G.T
    assert not T._has_arrays
    cases.same(T.row_degrees(), A.T.row_degrees())
    assert not T._has_arrays  # degrees do not take the transpose


class Lost(distributed.LocalCommunicator):
    """Two shards whose collectives end, and then turn out to have been broken off."""

    def synchronize(self) -> None:
        raise errors.CommunicationError("synchronize: process 1 was lost")


def test_nothing_is_handed_out_before_the_communicator_was_asked() -> None:
    comm = Lost(2)
    G = sg.generators.kronecker(6, 4, seed=1).distribute(2, communicator=comm)
    level = sg.bfs(G, 0).level
    for hand_out in (level.gather, level.to_numpy, level.to_coo, G.gather, G.to_scipy):
        with pytest.raises(errors.CommunicationError, match="process 1 was lost"):
            hand_out()
    for value in (lambda: level.to("cpu"), lambda: list(level), lambda: G.T.gather()):
        with pytest.raises(errors.CommunicationError, match="process 1 was lost"):
            value()


def test_a_search_of_peers_that_failed_gives_nothing_away() -> None:
    """Whatever is asked of it, and of what is made of it; kernels may go on with it meanwhile."""
    G = sg.generators.kronecker(6, 4, seed=1).distribute(2)

    def reached() -> int:
        raise errors.CommunicationError("search by peer writes: device 1 did not come")

    def shard(size: int) -> sg.Vector:
        return sg.Vector._of(
            size, np.ones(size), bits=np.zeros(size // 32 + 1, np.uint32), nvals=reached
        )

    shards = [shard(size) for size in G.partition.sizes]
    v = distributed.DistributedVector(G.nrows, shards, G.device, in_flight=True)
    assert v.unchecked is shards and v.dtype == np.float64 and "Vector 64" in repr(v)
    full = sg.Vector.filled(1.0, size=64, device=G.device)
    for use in (
        lambda: v.nvals,
        lambda: v.shards,
        lambda: v.gather(),
        lambda: v.dup(),
        lambda: v.isequal(full),
        lambda: sg.apply(v, unary.ainv),
        lambda: sg.apply(full, unary.ainv, mask=v.S),
        lambda: sg.ewise_mult(full, v, binary.times),
        lambda: sg.mxv(G, v, plus_times, direction="pull"),
        lambda: sg.reduce(v, monoid.min),
    ):
        with pytest.raises(errors.CommunicationError, match="device 1 did not come"):
            use()


def test_shards_on_the_minimal_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops and products over shards do without what a backend need not have. Ranks are gathered in
    single precision by the fused form alone.
    """
    A = sg.generators.kronecker(6, 4, seed=2, symmetric=True)
    loops = (
        lambda A: sg.bfs(A, 1).parent,
        lambda A: sg.connected_components(A),
        lambda A: sg.pagerank(A),
        lambda A: sg.hits(A)[0],
        lambda A: sg.betweenness_centrality(A, sources=[1, 2]),
        lambda A: sg.mxm(A, A, plus_pair, mask=A.S),
        lambda A: sg.mxm(A, sg.Matrix.from_dense(np.ones((64, 3))), plus_times),
    )
    expected = [loop(A) for loop in loops]
    monkeypatch.setattr(backends, "module_of", lambda device: minimal_backend)
    B = A.distribute(2).prepare()
    for loop, one in zip(loops[:-1], expected, strict=False):
        assert loop(B).gather().isclose(one, rtol=1e-6)
    X = sg.Matrix.from_dense(np.ones((64, 3))).to(B.device)
    assert sg.mxm(B, X, plus_times).gather().isclose(expected[-1])


@pytest.mark.parametrize("call", ["map", "total", "largest"])
def test_a_function_for_one_shard_asks_nothing_of_all(call: str) -> None:
    """Threads of several GPUs would ask more often in one process than in another."""
    placement: Any = sg.Matrix.from_coo([0], [1], nrows=4, ncols=4).distribute(2).device
    calls = {
        "map": lambda k: placement.map(lambda k: k),
        "total": lambda k: placement.total([1]),
        "largest": lambda k: placement.largest(1),
    }
    with pytest.raises(RuntimeError, match=f"{call}: the function for one shard called {call}"):
        placement.map(calls[call])
    assert placement.total([1, 1]) == 2


@pytest.mark.parametrize("partition", ["edges", "random"])
def test_ids_keep_their_type(partition: str) -> None:
    """Of a matrix of 64-bit ids parents and other positions are int64, shared out or not."""
    A = cases.graph()
    wide = [each.astype(np.int64) for each in (A._indptr, A._indices)]
    A = sg.Matrix._of(A.nrows, A.ncols, *wide, A._values, iso=A.iso)
    assert A.index_dtype == np.int64
    G = A.distribute(3, partition=partition)
    for one, other in ((A, G), (A.T, G.T)):
        assert one.index_dtype == other.index_dtype
        for find in (sg.bfs, sg.sssp, sg.widest_path):
            assert find(one, 0).parent.dtype == find(other, 0).parent.dtype == one.index_dtype
        x = sg.Vector.filled(1, size=A.nrows)
        found = sg.vxm(x, one, "min_secondi"), sg.vxm(x.to(other.device), other, "min_secondi")
        assert found[0].dtype == found[1].dtype and found[0].isequal(found[1].gather())
