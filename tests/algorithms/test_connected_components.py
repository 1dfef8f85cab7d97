"""Connected components, weak and strong, on every device, against NetworkX and SciPy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from drawn_graphs import drawn_graphs
from fixtures_device import device  # noqa: F401
from hypothesis import given, settings
from networkx_cases import directed_of
from search_cases import GRAPHS, matrix

import spgraph as sg
from spgraph.algorithms.connected_components import (
    connected_components,
    forward_backward,
)
from spgraph.errors import DimensionMismatch, DomainMismatch
from tests.iterations.test_contract import by_scipy

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")

# the package may name its function as its module is called
MODULE = sys.modules["spgraph.algorithms.connected_components"]


def by_networkx(A: sg.Matrix, connection: str) -> np.ndarray:
    """The least vertex of each vertex's component."""
    find = (
        nx.weakly_connected_components if connection == "weak" else nx.strongly_connected_components
    )
    label = np.full(A.nrows, -1)
    for component in find(directed_of(A)):
        label[list(component)] = min(component)
    return label


def directed(name: str, n: int = 2000) -> sg.Matrix:
    """Graphs that are hard for strong components."""
    rng = np.random.default_rng(sum(map(ord, name)))
    i, name_of = np.arange(n - 1), rng.permutation(n)
    if name == "path":
        rows, columns = i, i + 1
    elif name == "path back":
        rows, columns = i + 1, i
    elif name == "path shuffled":
        rows, columns = name_of[i], name_of[i + 1]
    elif name == "path from both ends":  # where the least vertex splits off nothing but itself
        order = np.concatenate([np.arange(0, n, 2), np.arange(1, n, 2)[::-1]])
        rows, columns = order[:-1], order[1:]
    elif name == "cycle":
        rows, columns = name_of, name_of[(np.arange(n) + 1) % n]
    elif name == "cycles":
        k = np.arange(n // 20 * 20)
        rows, columns = name_of[k], name_of[k // 20 * 20 + (k + 1) % 20]
    elif name == "chain of triangles":
        k = np.arange(n // 3 * 3)
        rows = name_of[np.concatenate([k, k[:-3:3]])]
        columns = name_of[np.concatenate([k // 3 * 3 + (k + 1) % 3, k[3::3]])]
    elif name == "dense and acyclic":
        n = 300
        rows, columns = np.sort(rng.integers(0, n, (2, 9000)), axis=0)
    elif name == "two of a kind":  # components of one size, one after the other
        k = np.arange(n)
        rows = np.concatenate([k, [5]])
        columns = np.concatenate([k // 1000 * 1000 + (k + 1) % 1000, [1500]])
    elif name == "grid":
        rows, columns, _ = sg.generators.grid(40, 50).to_coo()
        turned = rng.random(rows.size) < 0.55
        rows, columns = rows[turned], columns[turned]
    else:
        return sg.generators.kronecker(11, float(name), symmetric=False)
    return sg.Matrix.from_coo(rows, columns, nrows=n, ncols=n)


DIRECTED = (
    "path", "path back", "path shuffled", "path from both ends", "cycle", "cycles",
    "chain of triangles", "dense and acyclic", "two of a kind", "grid", "0.7", "1.5", "8",
)  # fmt: skip


@pytest.mark.parametrize("connection", ["weak", "strong"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_labels_equal_networkx(graph: str, connection: str, device: str) -> None:
    A = matrix(graph)
    label = connected_components(A.to(device), connection=connection)
    assert label.storage == "full" and label.dtype == np.int32
    assert label.device == A.to(device).device
    np.testing.assert_array_equal(label.to_numpy(), by_networkx(A, connection))


# of a thousand components or levels, one after the other
LONG = ("path back", "path shuffled", "path from both ends", "chain of triangles", "two of a kind")
SEARCHED = [pytest.param(g, marks=[pytest.mark.long] if g in LONG else []) for g in DIRECTED]


@pytest.mark.parametrize("graph", [*GRAPHS, *SEARCHED])
def test_forward_backward(graph: str, device: str) -> None:
    A = matrix(graph) if graph in GRAPHS else directed(graph)
    label = forward_backward(A.to(device))
    assert label.storage == "full" and label.dtype == np.int32
    np.testing.assert_array_equal(label.to_numpy(), by_scipy(A, "strong"))


@pytest.mark.parametrize("graph", DIRECTED)
def test_depth_first(graph: str, device: str) -> None:
    A = directed(graph)
    label = connected_components(A.to(device), connection="strong")
    assert label.dtype == np.int32
    np.testing.assert_array_equal(label.to_numpy(), by_networkx(A, "strong"))


@pytest.mark.parametrize("graph", DIRECTED)
def test_rounds_are_few(graph: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither long paths nor many small components take a round for each."""
    rounds, products = [], []
    first, mxv = MODULE._first, MODULE.mxv
    monkeypatch.setattr(MODULE, "_first", lambda *args: rounds.append(1) or first(*args))
    monkeypatch.setattr(
        MODULE, "mxv", lambda *args, **rest: products.append(1) or mxv(*args, **rest)
    )
    forward_backward(directed(graph))
    assert len(rounds) <= 2 * 20 and len(products) <= 1500


@settings(max_examples=60)
@given(A=drawn_graphs(vertices=40, edges=120))
def test_random_graphs(A: sg.Matrix) -> None:
    expected = by_networkx(A, "strong")
    np.testing.assert_array_equal(connected_components(A, connection="strong").to_numpy(), expected)
    np.testing.assert_array_equal(forward_backward(A).to_numpy(), expected)
    expected = by_networkx(A, "weak")
    np.testing.assert_array_equal(connected_components(A).to_numpy(), expected)


@pytest.mark.parametrize("connection", ["weak", "strong"])
def test_symmetric_graphs_have_one_kind(connection: str, device: str) -> None:
    A = sg.generators.grid(30, 30, remove=0.5, device=device)
    label = connected_components(A, connection=connection)
    np.testing.assert_array_equal(label.to_numpy(), by_scipy(A.to("cpu")))
    unknown = sg.Matrix._of(*A.shape, A.indptr, A.indices, A.values, iso=A.iso)
    assert connected_components(unknown, connection=connection).isequal(label)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_index_types(index: type, device: str) -> None:
    A = directed("1.5")
    wide = (A.indptr.astype(index), A.indices.astype(index), A.values)
    B = sg.Matrix._of(*A.shape, *wide, iso=A.iso).to(device)
    label = connected_components(B, connection="strong")
    assert label.dtype == np.int32
    np.testing.assert_array_equal(label.to_numpy(), by_scipy(A, "strong"))


@pytest.mark.parametrize("connection", ["weak", "strong"])
def test_what_a_matrix_can_be_made_from(connection: str) -> None:
    S = scipy.sparse.coo_array(([np.nan, 0.0, 1.0], ([0, 1, 3], [1, 0, 2])), shape=(4, 4))
    expected = [0, 0, 2, 2] if connection == "weak" else [0, 0, 2, 3]
    assert connected_components(S, connection=connection).to_numpy().tolist() == expected
    G = nx.path_graph(3)
    assert connected_components(G, connection=connection).to_numpy().tolist() == [0, 0, 0]
    assert connected_components(sg.Matrix.empty(0, 0), connection=connection).size == 0
    none = connected_components(sg.Matrix.empty(3, 3), connection=connection)
    assert none.to_numpy().tolist() == [0, 1, 2]


def test_the_matrix_stays_as_it_is(device: str) -> None:
    A = directed("8").to(device)
    before = A.dup()
    for find in (connected_components, forward_backward):
        find(A)._values[:] = 0
    assert A.isequal(before) and A.symmetric is None


def test_epinions(device: str, shared_data: Path) -> None:
    A = sg.read(shared_data / "soc-Epinions1.txt.gz")
    for connection in ("weak", "strong"):
        label = connected_components(A.to(device), connection=connection).to_numpy()
        np.testing.assert_array_equal(label, by_scipy(A, connection))
    np.testing.assert_array_equal(forward_backward(A.to(device)).to_numpy(), label)


@pytest.mark.parametrize(
    ("A", "options", "error", "message"),
    [
        (sg.Matrix.empty(2, 3), {}, DimensionMismatch, "expected a square matrix, got 2 x 3"),
        ("edges", {}, DomainMismatch, "A: expected a Matrix"),
        (
            sg.Matrix.empty(2, 2),
            {"connection": "Weak"},
            ValueError,
            "connected_components: connection: expected 'weak' or 'strong', got 'Weak'",
        ),
    ],
)
def test_bad_input(A: Any, options: dict[str, str], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        connected_components(A, **options)
