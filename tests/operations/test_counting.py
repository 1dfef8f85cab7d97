"""Counting with patterns and narrow types, by the textbook: triangles, wedges, paths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph import semirings
from spgraph.semirings import indexunary, monoid

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")

GRAPHS: dict[str, Any] = {
    "complete": lambda: nx.complete_graph(7),
    "random": lambda: nx.gnp_random_graph(60, 0.2, seed=3),
    "power law": lambda: nx.barabasi_albert_graph(300, 8, seed=4),
}
PATTERNS = ["iso", "bool", "int8", "uint8"]
FULL = pytest.mark.full


def graph(name: str, kind: str, device: str) -> tuple[nx.Graph, sg.Matrix]:
    """A graph and its pattern, as one value for all entries or as a value for each."""
    G = GRAPHS[name]()
    dense = nx.to_numpy_array(G, dtype=np.int64)
    rows, columns = np.nonzero(dense)
    values: Any = True if kind == "iso" else np.ones(rows.size, kind)
    A = sg.Matrix.from_coo(rows, columns, values, nrows=len(G), ncols=len(G))
    if kind != "iso":
        A = sg.Matrix._of(*A.shape, A.indptr, A.indices, np.ones(A.nvals, kind))
    assert A.iso == (kind == "iso")
    return G, A.to(device)


@pytest.mark.parametrize("kind", PATTERNS)
@pytest.mark.parametrize("name", GRAPHS)
def test_triangles_wedges_and_paths(name: str, kind: str, device: str) -> None:
    G, A = graph(name, kind, device)
    triangles, dense = sum(nx.triangles(G).values()), nx.to_numpy_array(G, dtype=np.int64)
    L = sg.select(A, indexunary.tril, -1)
    assert sg.reduce(sg.mxm(L, L.T, semirings.plus_pair, mask=L.S)) == triangles // 3
    assert sg.reduce(sg.mxm(A, A, semirings.plus_pair, mask=A.S)) == 2 * triangles
    wide = np.uint64 if kind == "uint8" else np.int64
    for axis, degree in enumerate((sg.reduce_rowwise(A), sg.reduce_columnwise(A))):
        assert degree.dtype == wide
        assert np.array_equal(degree.to_numpy(fill=0), dense.sum(1 - axis))
    assert sg.reduce(A) == dense.sum() and sg.reduce(A).dtype == wide
    if kind in ("iso", "bool"):
        paths = A @ A
        assert paths.dtype == np.int64
        assert np.array_equal(paths.to("cpu").to_scipy().toarray(), dense @ dense)
        ones = sg.Vector.filled(True, size=A.nrows, device=device)
        for way in ("push", "pull"):
            walks = sg.vxm(ones, A, direction=way)
            assert np.array_equal(walks.to_numpy(fill=0), dense.sum(0))
        two = sg.mxm(A, A, semirings.min_plus)
        assert set(two.to("cpu").to_coo()[2].tolist()) == {2}
        assert ones @ ones == A.nrows


def test_sums_of_narrow_types(device: str) -> None:
    for kind, most, wide in (("int8", 127, np.int64), ("uint8", 255, np.uint64)):
        values = np.full(1000, most, kind)
        v = sg.Vector.from_dense(values).to(device)
        A = sg.Matrix.from_dense(values.reshape(50, 20)).to(device)
        same = sg.Matrix.from_coo(*A.to("cpu").to_coo()[:2], np.dtype(kind).type(most)).to(device)
        assert same.iso
        for found in (sg.reduce(v), sg.reduce(A), sg.reduce(same)):
            assert found == 1000 * most and found.dtype == wide
        assert set(sg.reduce_rowwise(A).to_numpy().tolist()) == {20 * most}
        assert sg.reduce_columnwise(same, dtype=np.float32).dtype == np.float32
        wrapped = sg.reduce(v, dtype=kind)
        assert wrapped == values.sum(dtype=kind) and wrapped.dtype == kind
        assert sg.reduce(v, monoid.max).dtype == kind
        assert sg.reduce(sg.Vector.from_dense(values[:4]).to(device), monoid.times) == most**4
    single = sg.Vector.from_dense(np.full(9, 0.1, np.float32)).to(device)
    assert sg.reduce(single).dtype == np.float32
    assert sg.reduce(single, dtype=np.float64) == single.to_numpy().sum(dtype=np.float64)


def test_an_entry_counts_by_its_value(device: str) -> None:
    """As NumPy's sum: False adds nothing."""
    values = np.random.default_rng(1).random((40, 30)) < 0.4
    rows, columns = (ids.ravel() for ids in np.indices(values.shape))
    A = sg.Matrix.from_coo(rows, columns, values.ravel()).to(device)
    assert A.nvals == values.size and sg.reduce(A) == values.sum()
    assert np.array_equal(sg.reduce_rowwise(A).to_numpy(), values.sum(1))
    assert np.array_equal(sg.reduce_columnwise(A).to_numpy(), values.sum(0))
    half = sg.Vector.from_coo(np.arange(0, 40, 2), values[::2, 0], size=40).to(device)
    assert sg.reduce(half) == values[::2, 0].sum()
    assert sg.reduce(half.to_bitmap()) == values[::2, 0].sum()


def test_nothing_gives_the_identity_in_the_type_of_the_result(device: str) -> None:
    for empty in (sg.Vector.empty(5, np.int8), sg.Matrix.empty(3, 4, np.int8)):
        given = empty.to(device)
        for op, value, kind in (
            (monoid.plus, 0, np.int64),
            (monoid.times, 1, np.int64),
            (monoid.min, 127, np.int8),
            (monoid.max, -128, np.int8),
        ):
            found = sg.reduce(given, op)
            assert found == value and found.dtype == kind
        assert sg.reduce(given, monoid.min, dtype=np.float32) == np.inf
        with pytest.raises(ValueError, match=r"reduce: u: .* monoid.any has no identity"):
            sg.reduce(given, monoid.any)


# every semiring and every type once by default: the others are the same over values of other width
SEMIRINGS = (semirings.any_pair, semirings.lor_pair, semirings.land_pair)
KINDS = (bool, np.int8, np.float64)


@pytest.mark.parametrize(
    ("semiring", "kind"),
    [
        pytest.param(
            semiring, kind, marks=pytest.mark.full if SEMIRINGS.index(semiring) != k else ()
        )
        for semiring in SEMIRINGS
        for k, kind in enumerate(KINDS)
    ],
)
def test_reached_is_a_truth_value(semiring: Any, kind: Any, device: str) -> None:
    A = sg.Matrix.from_dense(np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], kind)).to(device)
    start = sg.Vector.from_coo([0], np.ones(1, kind), size=3).to(device)
    for way in ("push", "pull"):
        found = sg.vxm(start, A, semiring, direction=way)
        assert found.dtype == np.bool_ and found.nvals == 2
    assert sg.mxm(A, A, semiring).dtype == np.bool_


@pytest.mark.parametrize("way", ["mxv", "vxm", "mxm", "reduce_mxm", "array"])
def test_sums_of_positions_are_counted_in_64_bits(way: str, device: str) -> None:
    """One row with more positions than int32 holds the sum of."""
    n = 70_000
    row = sg.Matrix.from_coo(np.zeros(n, int), np.arange(n), nrows=1, ncols=n, device=device)
    ones = sg.Vector.filled(True, size=n, device=device)
    found: Any = {
        "mxv": lambda: sg.mxv(row, ones, "plus_firstj")[0],
        "vxm": lambda: sg.vxm(ones, row.T, "plus_secondi")[0],
        "mxm": lambda: sg.mxm(row, row.T, "plus_firstj")[0, 0],
        "reduce_mxm": lambda: sg.reduce_mxm(row, row.T, "plus_secondi"),
        "array": lambda: sg.mxv(row, ones.values, "plus_secondi")[0],
    }[way]()
    assert found.dtype == np.int64 and int(found) == n * (n - 1) // 2
