"""The loop contract and its composed form, on every device and on the shim, against SciPy."""

from __future__ import annotations

import functools
from pathlib import Path

import cuda_host_shim
import numpy as np
import pytest
import scipy.sparse
from drawn_graphs import drawn_graphs
from fixtures_device import device  # noqa: F401
from hypothesis import given, settings
from scipy.sparse import csgraph
from search_cases import GRAPHS, edges_of

import spgraph as sg
from spgraph.backends import cuda
from spgraph.errors import DimensionMismatch, DomainMismatch
from spgraph.iterations import contraction as contracts
from spgraph.iterations.contraction import composed, contract

# beside the graphs of the searches, those that make deep trees, several giants or long rows
MORE = (
    "path upwards", "path downwards", "path shuffled", "star of the last", "two stars",
    "hub of far ends", "equal halves", "chain of cliques", "triples", "grid", "kronecker",
)  # fmt: skip


@functools.cache
def edges(name: str) -> tuple[int, np.ndarray]:
    """(vertices, directed edges as pairs)."""
    if name in GRAPHS:
        return edges_of(name)[:2]
    rng = np.random.default_rng(sum(map(ord, name)))
    n = 3000
    order = np.arange(n)
    if name == "path downwards":
        order = order[::-1]
    elif name == "path shuffled":
        order = rng.permutation(n)
    if name.startswith("path"):
        return n, np.stack([order[:-1], order[1:]], axis=1)
    if name == "star of the last":
        return n, np.stack([np.full(n - 1, n - 1), order[:-1]], axis=1)
    if name == "two stars":  # each longer than the pieces that rows are cut into
        tails = np.where(order < 2500, 2999, 2998)
        pairs = np.stack([tails, order], axis=1)[:2998]
        return 6000, np.concatenate([pairs, pairs + 3000, [[2999, 2998]]])
    if name == "hub of far ends":  # pairs that only the hub's long row joins
        k = np.arange(2500)
        ends = np.stack([k, k + 2500], axis=1)
        return 6001, np.concatenate([ends, np.stack([k + 3500, np.full(2500, 6000)], axis=1)])
    if name == "equal halves":
        return n, np.concatenate(
            [rng.integers(0, 1500, (4000, 2)), rng.integers(1500, n, (4000, 2))]
        )
    if name == "chain of cliques":
        k = np.arange(0, n, 10)
        cliques = [np.stack([k + i, k + j], axis=1) for i in range(10) for j in range(10)]
        return n, rng.permutation(n)[np.concatenate([*cliques, np.stack([k[:-1] + 9, k[1:]], 1)])]
    if name == "triples":
        return n, np.stack([order, order // 3 * 3 + (order + 1) % 3], axis=1)
    A = (
        sg.generators.grid(40, 60, remove=0.45)
        if name == "grid"
        else sg.generators.kronecker(10, 4)
    )
    return A.nrows, np.stack(A.to_coo()[:2], axis=1)


def matrix(name: str, *, both: bool, shuffle: int = 0) -> sg.Matrix:
    """The graph, its edges stored `both` ways, its vertices renamed by the seed `shuffle`."""
    n, pairs = edges(name)
    if shuffle:
        pairs = np.random.default_rng(shuffle).permutation(n)[pairs]
    if both:
        pairs = np.concatenate([pairs, pairs[:, ::-1]])
    A = sg.Matrix.from_coo(pairs[:, 0], pairs[:, 1], nrows=n, ncols=n)
    A.symmetric = True if both else None
    return A


def by_scipy(A: sg.Matrix, connection: str = "weak") -> np.ndarray:
    """The least vertex of each vertex's component."""
    pattern = scipy.sparse.csr_array((np.ones(A.nvals), A.indices, A.indptr), shape=A.shape)
    count, component = csgraph.connected_components(pattern, connection=connection)
    least = np.full(count, A.nrows)
    np.minimum.at(least, component, np.arange(A.nrows))
    return least[component]


def check(A: sg.Matrix, device: str = "cpu") -> None:
    label = contract(A.to(device))
    assert label.storage == "full" and label.size == A.nrows and label.dtype == np.int32
    assert label.device == A.to(device).device
    np.testing.assert_array_equal(label.to_numpy(), by_scipy(A))


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("graph", [*GRAPHS, *MORE])
def test_labels_equal_scipy(graph: str, both: bool, device: str) -> None:
    check(matrix(graph, both=both), device)


@pytest.mark.long
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("graph", MORE)
def test_labels_do_not_depend_on_names(graph: str, both: bool, device: str) -> None:
    for shuffle in (1, 2, 3):
        check(matrix(graph, both=both, shuffle=shuffle), device)


@pytest.mark.fused
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("graph", [*GRAPHS, "path shuffled", "triples", "grid", "kronecker"])
def test_fused_equals_composed(graph: str, both: bool, device: str) -> None:
    A = matrix(graph, both=both).to(device)
    assert contract(A).isequal(composed(A), check_dtype=True)


@pytest.mark.parametrize(("components", "launches"), [(1, 1), (4, 2)])
def test_more_threads_follow_many_edges_outside_of_the_giant(
    components: int, launches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One thread begins; of complete graphs that are as large as each other none is the giant."""
    from spgraph.backends.cpu.contract import contract as module

    pool, launched = module.pool, []
    A = sg.Matrix(scipy.sparse.block_diag([np.ones((12, 12), bool)] * components, "csr"))
    few, launch = module.STEPS * A.nrows, pool.launch
    monkeypatch.setattr(pool, "processors", lambda: 2)
    monkeypatch.setattr(pool, "threads_for", lambda work, *share: 1 if work == few else 2)
    monkeypatch.setattr(
        pool,
        "launch",
        lambda kernel, threads, *a: launched.append(threads) or launch(kernel, threads, *a),
    )
    monkeypatch.setattr(module, "MANY", 12 * 12)
    pool.close()
    try:
        found = module.contract(A, True)
    finally:
        pool.close()
    assert launched == [1, 2][:launches]
    assert found.to_numpy().tolist() == [v // 12 * 12 for v in range(12 * components)]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_thread_counts_agree(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small graphs run on one thread; here they are made to share."""
    from spgraph.backends.cpu.runtime import pool

    monkeypatch.setattr(pool, "processors", lambda: 3)
    monkeypatch.setattr(pool, "threads_for", lambda work, *share: threads)
    pool.close()
    try:
        for graph in (*GRAPHS, *MORE):
            for both in (False, True):
                A = matrix(graph, both=both, shuffle=4)
                check(A)
                assert A.T.indptr.size == A.nrows + 1  # makes the transpose, if it has none
                assert A.has_transpose
                check(A)
    finally:
        pool.close()


@pytest.mark.parametrize("columns", [np.int32, np.int64])
@pytest.mark.parametrize("offsets", [np.int32, np.int64])
def test_index_types(offsets: type, columns: type, device: str) -> None:
    for both in (False, True):
        A = matrix("kronecker", both=both)
        B = sg.Matrix._of(
            *A.shape,
            A.indptr.astype(offsets),
            A.indices.astype(columns),
            A.values,
            iso=A.iso,
            symmetric=A.symmetric,
        )
        check(B, device)


@settings(max_examples=60)
@given(A=drawn_graphs(vertices=70, edges=90, symmetric=None))
def test_random_graphs(A: sg.Matrix) -> None:
    A.symmetric = A.is_symmetric() or None
    check(A)
    np.testing.assert_array_equal(composed(A).to_numpy(), by_scipy(A))


@pytest.mark.fused
@pytest.mark.parametrize("both", [False, True])
def test_more_threads_than_samples(both: bool, device: str) -> None:
    """Large enough for all threads, for every piece of a row, and for a vote over a sample."""
    A = sg.generators.kronecker(15, 8, seed=3, symmetric=both)
    check(A, device)
    check(sg.generators.grid(300, 300, remove=0.4), device)


def test_no_vertices(device: str) -> None:
    for loop in (contract, composed):
        label = loop(sg.Matrix.empty(0, 0).to(device))
        assert label.size == 0 and label.nvals == 0


def test_values_are_not_looked_at(device: str) -> None:
    S = scipy.sparse.csr_array(([0.0, np.nan], ([3, 2], [1, 2])), shape=(4, 4))
    assert contract(sg.Matrix.from_scipy(S).to(device)).to_numpy().tolist() == [0, 1, 2, 1]


def test_takes_what_a_matrix_can_be_made_from() -> None:
    S = scipy.sparse.coo_array(([1, 1], ([4, 0], [2, 1])), shape=(5, 5))
    assert contract(S).to_numpy().tolist() == [0, 0, 2, 3, 2]


def test_the_matrix_stays_as_it_is(device: str) -> None:
    A = matrix("kronecker", both=True).to(device)
    before = A.dup()
    first, second = contract(A), contract(A)
    first._values[:] = 0
    assert A.isequal(before) and A.symmetric and not second.isequal(first)


def test_bad_input() -> None:
    for loop in (contract, composed):
        with pytest.raises(
            DimensionMismatch, match="contract: A: expected a square matrix, got 2 x 3"
        ):
            loop(sg.Matrix.empty(2, 3))
        with pytest.raises(DomainMismatch, match="contract: A: expected a Matrix"):
            loop("edges")


@pytest.mark.parametrize(
    "name", ["usa-road-NY.gr.xz", "usa-road-BAY.mtx.gz", "soc-Epinions1.txt.gz"]
)
def test_real_graphs(name: str, device: str, shared_data: Path) -> None:
    A = sg.read(shared_data / name)
    check(A, device)
    if A.symmetric:  # as if nobody knew
        check(sg.Matrix._of(*A.shape, A.indptr, A.indices, A.values, iso=A.iso), device)


# --- the CUDA kernels without a GPU ---------------------------------------------------------------


@pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")
@pytest.mark.parametrize("both", [False, True])
def test_labels_on_the_shim(both: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    cuda_host_shim.install(monkeypatch)
    monkeypatch.setattr(contracts, "backend", lambda device: cuda)
    for graph in (*GRAPHS, *MORE):
        check(matrix(graph, both=both))
        check(matrix(graph, both=both, shuffle=1))
    check(sg.Matrix.empty(0, 0))
    A = matrix("grid", both=both)
    wide = (A.indptr.astype(np.int64), A.indices.astype(np.int64), A.values)
    check(sg.Matrix._of(*A.shape, *wide, iso=A.iso, symmetric=A.symmetric))


@pytest.mark.parametrize("threads", [1, 2])
def test_edges_that_leave_the_giant_are_followed_from_either_end(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most vertices are in one tree after two edges of each; then one edge leads out of it, and
    one into it, where only a look at all edges of the hub, or backward, finds them.
    """
    from spgraph.backends.cpu.runtime import pool

    monkeypatch.setattr(pool, "processors", lambda: 2)
    monkeypatch.setattr(pool, "threads_for", lambda work, *share: threads)
    pool.close()
    try:
        n, far = 300, 320
        leaves = np.arange(1, n)
        # hub 0 -> all leaves and then n; n -> n + 1; n + 2 -> two others, and then the last leaf
        rows = np.concatenate([np.zeros(n, int), [n, n + 2, n + 2, n + 2]])
        columns = np.concatenate([leaves, [n], [n + 1, n + 3, n + 4, n - 1]])
        for k in range(n + 5, far):
            rows, columns = np.append(rows, k), np.append(columns, k - 1 if k > n + 5 else k)
        A = sg.Matrix.from_coo(rows, columns, nrows=far, ncols=far)
        check(A)
        assert A.T.indptr.size == far + 1
        check(A)
    finally:
        pool.close()
