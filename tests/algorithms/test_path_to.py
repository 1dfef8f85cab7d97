"""Paths from the source of a search to one vertex, in the trees of its result."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph.errors import DomainMismatch, IndexOutOfBound

SEARCHES = (sg.bfs, sg.sssp, sg.widest_path, sg.most_reliable_path)
# what an edge adds to the value of a path
LENGTHENED: dict[Any, Any] = {
    sg.bfs: lambda value, weight: value + 1,
    sg.sssp: lambda value, weight: value + weight,
    sg.widest_path: min,
    sg.most_reliable_path: lambda value, weight: value * weight,
}


def random_graph(seed: int, n: int = 40) -> np.ndarray:
    chance = np.random.default_rng(seed)
    return np.where(chance.random((n, n)) < 0.05, chance.integers(1, 9, (n, n)) / 8, 0)


@pytest.mark.parametrize("shards", [None, 3])
@pytest.mark.parametrize("search", SEARCHES)
def test_paths_have_the_values_of_the_search(search: Any, shards: int | None, device: str) -> None:
    D = np.minimum(random_graph(1), 1)
    A = sg.Matrix(D).to(device)
    if shards is not None:
        A = A.distribute(shards, devices=[device] * shards)
    found = search(A, 0)
    values = found[0].to("cpu")
    for v in range(len(D)):
        path = found.path_to(v)
        if values[v] is None:
            assert path == []
            continue
        assert path[0] == 0 and path[-1] == v and all(type(each) is int for each in path)
        value = values[0]
        for edge in pairwise(path):
            assert D[edge] > 0
            value = LENGTHENED[search](value, D[edge])
        assert value == values[v]


def test_paths_are_as_long_as_those_of_networkx() -> None:
    D = random_graph(2)
    G = nx.from_numpy_array(D, create_using=nx.DiGraph)
    found, shortest = sg.sssp(sg.Matrix(D), 3), nx.single_source_dijkstra_path(G, 3)
    assert {v for v in range(len(D)) if found.path_to(v)} == shortest.keys()
    for v, path in shortest.items():
        assert nx.path_weight(G, found.path_to(v), "weight") == nx.path_weight(G, path, "weight")


def test_the_source_and_the_traced_search() -> None:
    A = sg.Matrix.from_coo([0, 1, 0], [1, 2, 2], nrows=4, ncols=4)
    found = sg.bfs(A, 0, trace=True)
    assert (found.path_to(0), found.path_to(np.int64(2)), found.path_to(3)) == ([0], [0, 2], [])


@pytest.mark.parametrize(
    ("v", "error", "message"),
    [
        (4, IndexOutOfBound, "BFS.path_to: v: expected 0 <= v < 4, got 4"),
        (-1, IndexOutOfBound, "BFS.path_to: v: expected 0 <= v < 4, got -1"),
        (1.0, DomainMismatch, "BFS.path_to: v: expected an integer, got 1.0"),
    ],
)
def test_what_is_no_vertex_is_refused(v: Any, error: type[Exception], message: str) -> None:
    found = sg.bfs(sg.Matrix.from_coo([0, 1], [1, 2], nrows=4, ncols=4), 0)
    with pytest.raises(error) as caught:
        found.path_to(v)
    assert str(caught.value) == message


def test_parents_are_needed() -> None:
    A = sg.Matrix.from_coo([0, 1], [1, 2], nrows=4, ncols=4)
    for search, name in zip(
        SEARCHES, ("BFS", "SSSP", "WidestPath", "MostReliablePath"), strict=True
    ):
        with pytest.raises(
            ValueError, match=f"^{name}.path_to: expected a result of parents=True, got"
        ):
            search(A, 0, parents=False).path_to(1)


def test_a_name_is_told_where_its_position_is() -> None:
    A = sg.Matrix.from_coo([0, 1], [1, 2], nrows=4, ncols=4)
    hint = r"; a name's position is ids\[name\]"
    with pytest.raises(DomainMismatch, match=f"^bfs: source: expected an integer, got 'Ulm'{hint}"):
        sg.bfs(A, "Ulm")  # type: ignore[call-overload]
    with pytest.raises(DomainMismatch, match=rf"got \['Ulm'\]{hint}"):
        sg.multi_source_bfs(A, ["Ulm"])  # type: ignore[list-item]


@pytest.mark.parametrize(("parents", "wrong"), [([1, 2, 1], 1), ([0, 3, 1], 3), ([0, -1, 1], -1)])
def test_parents_that_are_no_tree_are_an_error(parents: list[int], wrong: int) -> None:
    """They went round for ever, or to vertices from behind."""
    for parent in (sg.Vector(parents), sg.Vector.from_coo([0, 1, 2], parents, size=3)):
        words = rf"^BFS\.path_to: parent: expected a tree, got {wrong} before .* from 2 to a"
        with pytest.raises(ValueError, match=words):
            sg.BFS(sg.Vector([0, 1, 2]), parent).path_to(2)


@pytest.mark.parametrize("form", ["full", "bitmap", "sparse"])
def test_parents_of_every_storage_have_paths(form: str) -> None:
    n = 100
    parent = sg.Vector.arange(n - 1).to_numpy().tolist()
    ids = np.arange(n) if form == "full" else np.arange(n)[:-3]
    found = sg.Vector.from_coo(ids, np.array([0, *parent])[ids], size=n)
    found = found.to_sparse() if form == "sparse" else found.to_bitmap()
    assert form in (found.storage, "full")
    tree = sg.SSSP(found, found)
    assert tree.path_to(np.int8(70)) == list(range(71))
    assert tree.path_to(99) == (list(range(100)) if form == "full" else [])
