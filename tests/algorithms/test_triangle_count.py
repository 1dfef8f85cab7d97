"""Triangles on every device, against NetworkX and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from fixtures_device import device  # noqa: F401
from networkx_cases import TRIANGLES, triangular

import spgraph as sg
from spgraph.errors import DimensionMismatch
from spgraph.operations.structure import orient

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")


@pytest.mark.parametrize("name", TRIANGLES)
@pytest.mark.parametrize("loops", [False, True])
def test_equals_networkx(name: str, loops: bool, device: str) -> None:
    G, A = triangular(name, loops)
    assert sg.triangle_count(A.to(device)) == sum(nx.triangles(G).values()) // 3


def test_directions_and_values_do_not_matter(device: str) -> None:
    G = nx.gnp_random_graph(80, 0.15, seed=1, directed=True)
    A = sg.Matrix.from_networkx(G).to(device)
    both = G.to_undirected()
    assert sg.triangle_count(A) == sum(nx.triangles(both).values()) // 3
    heavy = A.dup(np.float32)
    heavy._values[:] = 0.0  # an entry of value zero is an edge all the same
    assert sg.triangle_count(heavy) == sg.triangle_count(A)


def test_kronecker_graph_against_scipy(device: str) -> None:
    A = sg.generators.kronecker(11, 16)
    L = scipy.sparse.tril(A.to_scipy().astype(np.int64), -1, format="csr")
    assert sg.triangle_count(A.to(device)) == int((L @ L.T).multiply(L).sum())


def test_bad_input() -> None:
    assert sg.triangle_count(sg.Matrix.empty(0, 0)) == 0
    with pytest.raises(DimensionMismatch, match="triangle_count: A: expected a square"):
        sg.triangle_count(sg.Matrix.empty(2, 3))


@pytest.mark.parametrize("skewed", [False, True])
def test_an_oriented_graph_has_each_edge_once_and_no_cycle(skewed: bool, device: str) -> None:
    """By number where degrees are alike, else by degree: then no row is long."""
    G = nx.barabasi_albert_graph(200, 3, seed=2) if skewed else nx.random_regular_graph(4, 60, 3)
    G.add_edge(5, 5)
    A = sg.Matrix.from_networkx(G).pattern()
    L = orient(A.to(device)).to("cpu")
    assert {frozenset(edge) for edge in zip(*L.to_coo()[:2], strict=True)} == {
        frozenset(edge) for edge in G.edges if edge[0] != edge[1]
    }
    assert L.nvals == G.number_of_edges() - 1 and L.iso
    H = nx.DiGraph(list(zip(*(ids.tolist() for ids in L.to_coo()[:2]), strict=True)))
    assert nx.is_directed_acyclic_graph(H)
    assert not skewed or int(L.row_degrees().to_numpy().max()) <= (2 * A.nvals) ** 0.5


@pytest.mark.fused
@pytest.mark.parametrize("hub", ["first", "middle", "last"])
def test_a_hub_at_an_end_is_no_reason_to_point_edges(
    hub: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one in the middle as many neighbours are looked at as its degree's square says."""
    from spgraph.backends.cpu.structure import triangles as rows

    monkeypatch.setattr(rows, "HUB", 50)
    n = 400
    centre = {"first": 0, "middle": 200, "last": n - 1}[hub]
    ends = np.delete(np.arange(n), centre)
    i = np.concatenate([np.full(n - 1, centre), ends[:-1]])
    j = np.concatenate([ends, ends[1:]])  # a wheel: a triangle at each edge of the rim
    A = sg.Matrix.from_coo(np.r_[i, j], np.r_[j, i], nrows=n, ncols=n, dup_op="any")
    A.symmetric = True
    assert (rows.triangles(A) is None) == (hub == "middle")
    assert sg.triangle_count(A) == n - 2


def test_longer_rows_are_taken_as_they_are_where_neighbours_are_near() -> None:
    """A band of 20 entries a row, and the same graph with its vertices in random order."""
    from spgraph.backends.cpu.structure import triangles as rows

    n = 20_000
    i = np.repeat(np.arange(n), 10)
    j = (i + np.tile(np.arange(1, 11), n)) % n
    counts = []
    for order in (np.arange(n), np.random.default_rng(7).permutation(n)):
        ends = order[i], order[j]
        A = sg.Matrix.from_coo(*(np.concatenate(p) for p in (ends, ends[::-1])), nrows=n, ncols=n)
        A = A.pattern()
        A.symmetric = True
        counts.append((rows.triangles(A), sg.triangle_count(A)))
    expected = n * 9 * 10 // 2  # of two of the 10 next vertices, all pairs are neighbours
    assert counts == [(expected, expected), (None, expected)]


@pytest.mark.parametrize("reach", [4, 62, 63, 64, 65])
def test_rows_of_near_neighbours(reach: int, device: str) -> None:
    """A lattice with some edges to anywhere: some rows are within a word."""
    n, rng = 300, np.random.default_rng(reach)
    i = np.repeat(np.arange(n), 5)
    j = (i + np.tile([1, 2, 3, reach - 1, reach], n)) % n
    j = np.where(rng.random(i.size) < 0.05, rng.integers(0, n, i.size), j)
    dense = np.zeros((n, n), np.int64)
    dense[i, j] = dense[j, i] = 1
    A = sg.Matrix.from_dense(dense).to(device)
    np.fill_diagonal(dense, 0)
    assert sg.triangle_count(A) == np.trace(dense @ dense @ dense) // 6


@pytest.mark.fused
@pytest.mark.parametrize("threads", [1, 3])
def test_all_forms_agree(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row by row, whatever the degrees, and along edges that point one way."""
    from spgraph import direction
    from spgraph.backends.cpu.runtime import pool

    monkeypatch.setattr(pool, "processors", lambda: 3)
    monkeypatch.setattr(pool, "threads_for", lambda work, *share: threads)
    pool.close()
    try:
        for loops in (False, True):
            for name in TRIANGLES:
                G, A = triangular(name, loops)
                expected = sum(nx.triangles(G).values()) // 3
                for short in (-1.0, 1e9):
                    for name_of_limit in ("CPU_SHORT_ROWS", "CPU_NEAR_ROWS"):
                        monkeypatch.setattr(direction, name_of_limit, short)
                    assert sg.triangle_count(A) == expected, (name, short)
        A = sg.generators.kronecker(9, 16)
        counts = set()
        for short in (-1.0, 1e9):
            for name_of_limit in ("CPU_SHORT_ROWS", "CPU_NEAR_ROWS"):
                monkeypatch.setattr(direction, name_of_limit, short)
            counts.add(sg.triangle_count(A.dup()))  # with A itself the choice is kept
        assert len(counts) == 1
    finally:
        pool.close()
