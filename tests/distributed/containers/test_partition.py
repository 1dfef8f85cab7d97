"""Partitions against their definitions, by loops and by NetworkX; reports by counting in Python."""

from __future__ import annotations

import copy
import importlib.util
import pickle
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spgraph import Matrix, generators
from spgraph.distributed.containers.partition import Partition
from spgraph.distributed.containers.partitioners import partition, partition_by_counts
from spgraph.distributed.containers.report import Report, border
from spgraph.errors import BackendUnavailable, DimensionMismatch, DomainMismatch

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")

HOWS = ["edges", "random", "biased", "metis"]


def check(P: Partition, size: int, shards: int) -> np.ndarray:
    """What every partition promises; the owner of each vertex."""
    assert P.size == size == sum(P.sizes) and P.num_shards == shards == len(P.sizes)
    assert P.offsets.dtype == np.int64 and P.offsets[0] == 0 and P.offsets[-1] == size
    everyone = np.arange(size)
    inside = P.to_internal(everyone)
    assert np.sort(inside).tolist() == everyone.tolist()
    owner = np.empty(size, np.int64)
    for p in range(shards):
        ids = P.shard_ids(p, "cpu")
        assert (np.diff(ids) > 0).all() and len(ids) == P.sizes[p]
        assert P.to_internal(ids).tolist() == everyone[P.slice(p)].tolist()
        owner[ids] = p
    assert P.owner(inside).tolist() == owner.tolist()
    if P.ids is not None:
        assert P.ids.dtype == P.internal_ids.dtype == np.int32
        assert (np.diff(owner) < 0).any(), "ranges need no ids"
        assert not P.ids.flags.writeable and not P.internal_ids.flags.writeable
    assert not P.offsets.flags.writeable
    return owner


@given(st.lists(st.integers(0, 6), max_size=40), st.integers(7, 9))
def test_own_assignment(owner: list[int], shards: int) -> None:
    P = Partition.from_owner(owner, shards)
    assert check(P, len(owner), shards).tolist() == owner
    assert Partition.from_owner(np.array(owner, np.uint8), shards, len(owner)) == P
    assert P == pickle.loads(pickle.dumps(P)) == copy.deepcopy(P)
    assert hash(P) == hash(pickle.loads(pickle.dumps(P)))


def test_equality() -> None:
    P = Partition.from_owner([0, 1, 0, 1], 2)
    assert Partition.from_owner([1, 0, 0, 1], 2) != P
    assert P != Partition.from_owner([0, 0, 1, 1], 2) == Partition.even(4, 2)
    assert Partition.even(4, 2) != Partition.even(4, 4) and P != "edges"
    assert repr(P) == "Partition of 4 vertices in 2 shards (any vertices)"
    assert repr(Partition.even(4, 2)) == "Partition of 4 vertices in 2 shards (ranges)"
    with pytest.raises(AttributeError):
        P.offsets = P.offsets  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        P.offsets[0] = 1


@given(st.integers(0, 50), st.integers(1, 60))
def test_even(size: int, shards: int) -> None:
    P = Partition.even(size, shards)
    check(P, size, shards)
    assert P.ids is None and max(P.sizes) - min(P.sizes) <= 1


@given(st.lists(st.integers(0, 30), max_size=60), st.integers(1, 9))
def test_by_edges(degrees: list[int], shards: int) -> None:
    """No shard is further from its share than half of the heaviest row."""
    indptr = np.concatenate([[0], np.cumsum(np.array(degrees, int))])
    P = Partition.by_edges(indptr, shards)
    check(P, len(degrees), shards)
    weights = np.array(degrees, int) + 1
    heaviest = weights.max(initial=0)
    for p in range(shards):
        assert abs(weights[P.slice(p)].sum() - weights.sum() / shards) <= heaviest + 1
    assert partition_by_counts(np.array(degrees, np.int64), shards) == P


def test_by_edges_shares_empty_rows() -> None:
    indptr = np.zeros(1_000_001, np.int64)
    indptr[1:] = 10
    assert max(Partition.by_edges(indptr, 4).sizes) < 251_000


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("shards", [1, 2, 3, 7])
def test_partition(how: str, shards: int) -> None:
    if how == "metis":
        pytest.importorskip("pymetis")
    for A in (
        generators.kronecker(9, 4),
        generators.kronecker(8, 4, symmetric=False),
        generators.grid(20, 30),
        generators.grid(1, 3),
        Matrix.empty(5, 5, bool),
        Matrix.empty(0, 0, bool),
    ):
        P = partition(A, shards, how)
        owner = check(P, A.nrows, shards)
        assert partition(A, shards, how) == P
        if A.nrows > 200:
            degrees = np.diff(A.indptr) + 1
            shares = np.bincount(owner, degrees, shards)
            most = (1.5 if how == "random" else 1.1) * shares.mean()
            assert shares.max() < most + degrees.max()
        if how == "random":
            assert max(P.sizes) - min(P.sizes) <= 1


def test_neighbours_stay_together() -> None:
    """Of a grid with shuffled names, as NetworkX counts the edges between shards."""
    G = nx.grid_2d_graph(40, 40)
    nodes = np.random.default_rng(3).permutation(1600)
    G = nx.relabel_nodes(G, dict(zip(G, nodes.tolist(), strict=True)))
    A = Matrix.from_networkx(G, nodelist=range(1600))
    hows = ["random", "biased"]
    if importlib.util.find_spec("pymetis"):
        hows.append("metis")
    cuts = []
    for how in hows:
        owner = check(partition(A, 4, how), 1600, 4)
        cuts.append(sum(owner[u] != owner[v] for u, v in G.edges) / G.number_of_edges())
    assert 0.7 < cuts[0] < 0.8 and cuts[1] < 0.65
    assert all(cut < 0.1 for cut in cuts[2:])


def test_more_shards_than_vertices() -> None:
    A = generators.grid(1, 2)
    for how in ("edges", "random", "biased", [6, 2]):
        owner = check(partition(A, 7, how), 2, 7)
        assert len(set(owner)) == 2 or how == "biased"


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ([0, 1], DimensionMismatch, r"an array of length 4, got shape \(2,\)"),
        (np.zeros((2, 2), int), DimensionMismatch, r"got shape \(2, 2\)"),
        ([0.0, 1.0, np.nan, 0.0], DomainMismatch, r"integers.*0 to 1, got float64"),
        ([True, False, True, False], DomainMismatch, "got bool"),
        ([0, 1, 2, 0], ValueError, "from 0 to 1 for 2 shards, got 2 for vertex 2"),
        ([0, 1, 0, -1], ValueError, "got -1 for vertex 3"),
        ("best", ValueError, "'metis' or an array of shard numbers, got 'best'"),
    ],
)
def test_bad_partitions(how: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"partition: .*{message}"):
        partition(generators.grid(2, 2), 2, how)
    if not isinstance(how, str):
        with pytest.raises(error, match=f"partition: .*{message}"):
            partition_by_counts(np.ones(4, np.int64), 2, how)


def test_bad_arguments() -> None:
    A = generators.grid(2, 2)
    for shards in (0, -1, 1.5, True, "2"):
        with pytest.raises(ValueError, match="shards: expected an integer >= 1, got"):
            partition(A, shards)  # type: ignore[arg-type]
    with pytest.raises(DimensionMismatch, match="not square, 2 x 3, got 'random'"):
        partition(Matrix.empty(2, 3), 2, "random")
    for how in ("metis", "biased"):
        with pytest.raises(ValueError, match=f"got '{how}', which needs the whole graph"):
            partition_by_counts(np.ones(4, np.int64), 2, how)
    with pytest.raises(DimensionMismatch, match="4 vertices in 2 shards, got Partition of 5"):
        partition_by_counts(np.ones(4, np.int64), 2, Partition.even(5, 2))


def test_without_pymetis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(BackendUnavailable, match=r"pip install 'spgraph\[partition\]'"):
        partition(generators.grid(2, 2), 2, "metis")


@pytest.mark.parametrize("shards", [1, 3, 12])
def test_report(shards: int) -> None:
    A = generators.kronecker(6, 3, symmetric=False)
    owner = np.random.default_rng(shards).integers(0, shards, A.nrows)
    P = Partition.from_owner(owner, shards)
    rows, columns, _ = A.to_coo()
    inside = P.to_internal(columns)
    borders = [border(inside[owner[rows] == p], P, p) for p in range(shards)]
    edges = np.bincount(owner[rows], minlength=shards)
    R = Report(np.array(P.sizes), edges, 8 * edges, np.array(borders, np.int64))

    seen = {(int(owner[u]), int(owner[v]), v) for u, v in zip(rows.tolist(), columns, strict=True)}
    for p in range(shards):
        for q in range(shards):
            across = sum(1 for a, b, _ in seen if (a, b) == (p, q)) if p != q else 0
            assert R.border[p, q] == across
    assert R.border.dtype == np.int64 and R.vertices.tolist() == list(P.sizes)
    assert R.edge_imbalance == pytest.approx(max(edges) * shards / A.nvals)
    assert R.vertex_imbalance == pytest.approx(max(P.sizes) * shards / A.nrows)
    text = repr(R)
    assert text.startswith(f"Partition in {shards} shards, 64 vertices, {A.nvals} edges, border ")
    assert ("... 4 more" in text) == (shards == 12) and ("to 0" in text) == (shards < 12)
    assert R._repr_html_().count("<tr>") == min(shards, 8) + (1 if shards < 12 else 2)


def test_report_of_nothing() -> None:
    P = Partition.even(0, 2)
    none, borders = np.zeros(2, np.int64), [border(np.empty(0, np.int32), P, p) for p in range(2)]
    R = Report(none, none, none, np.array(borders))
    assert R.edge_imbalance == R.vertex_imbalance == 1 and not R.border.any()
    assert "Partition in 2 shards, 0 vertices" in repr(R)
