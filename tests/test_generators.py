"""The graphs of generators against slow re-computations of what they promise, and the GPU's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.spatial.distance

from spgraph import generators, random_edges
from spgraph.containers import Matrix
from spgraph.generators import (
    grid,
    kronecker,
    kronecker_model,
    random_geometric,
    uniform_random,
)
from tests.test_random_edges import splitmix64


def pairs(A: Matrix) -> list[tuple[int, int]]:
    """The entries row by row, and a check of what every generator promises."""
    assert A.iso and A.dtype == bool and A.values.tolist() == [True]
    assert A.indptr.dtype == A.indices.dtype == np.int32
    assert A.indptr[0] == 0 and A.indptr[-1] == A.indices.size
    found = []
    for i in range(A.nrows):
        row = A.indices[A.indptr[i] : A.indptr[i + 1]].tolist()
        assert row == sorted(set(row)) and all(0 <= j < A.ncols for j in row)
        found += [(i, j) for j in row]
    return found


# --- the graphs -----------------------------------------------------------------------------------

GRAPHS: list[Callable[..., Matrix]] = [
    lambda **k: kronecker(7, 5, **k),
    lambda **k: kronecker(7, 5, a=0.25, b=0.25, c=0.25, **k),
    lambda **k: kronecker(7, 5, noise=0.05, permute=False, **k),
    lambda **k: uniform_random(100, 5, **k),
]


@pytest.mark.parametrize("make", GRAPHS)
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("self_loops", [True, False])
def test_what_random_graphs_promise(
    make: Callable[..., Matrix], symmetric: bool, self_loops: bool
) -> None:
    A = make(symmetric=symmetric, self_loops=self_loops)
    found = pairs(A)
    assert A.symmetric is (True if symmetric else None)
    assert A.isequal(make(symmetric=symmetric, self_loops=self_loops, seed=1))
    assert not A.isequal(make(symmetric=symmetric, self_loops=self_loops, seed=2))
    directed = pairs(make(symmetric=False, self_loops=True))
    expected = {(i, j) for i, j in directed if self_loops or i != j}
    if symmetric:
        expected |= {(j, i) for i, j in expected}
    assert set(found) == expected


@pytest.mark.parametrize("seed", [1, 2, 2**64 - 1])
def test_labels_are_a_permutation(seed: int) -> None:
    drawn_so = kronecker(6, 3, permute=False, symmetric=False, self_loops=True, seed=seed)
    relabelled = kronecker(6, 3, symmetric=False, self_loops=True, seed=seed)
    order = splitmix64(random_edges.state_of(seed, generators.LABELS), 64)
    labels = sorted(range(64), key=order.__getitem__)
    assert sorted(labels) == list(range(64)) and labels != list(range(64))
    assert {(labels[i], labels[j]) for i, j in pairs(drawn_so)} == set(pairs(relabelled))


def test_edge_factors() -> None:
    for A in (kronecker(3, 0), uniform_random(8, 0)):
        assert A.nvals == 0 and A.indptr.tolist() == [0] * 9
    assert kronecker(0, 16).shape == (1, 1) and kronecker(0, 16).nvals == 0
    assert kronecker(0, 16, self_loops=True).nvals == 1
    assert uniform_random(0, 3).shape == (0, 0)
    sparse = kronecker(20, 2**-12, symmetric=False, self_loops=True)  # 256 edges, few the same
    assert 200 < sparse.nvals <= 256
    assert kronecker(4, 1000).nvals <= 16 * 15
    assert kronecker(8, np.float32(4)).isequal(kronecker(np.int32(8), 4))  # type: ignore[arg-type]
    only_a = kronecker(5, 4, a=1, b=0, c=0, permute=False, self_loops=True)
    assert pairs(only_a) == [(0, 0)]
    only_d = kronecker(5, 4, a=0, b=0, c=0, d=1, permute=False, self_loops=True)
    assert pairs(only_d) == [(31, 31)]


@pytest.mark.parametrize("factor", [np.int8(100), np.uint8(100), np.float16(100)])
def test_edge_factors_of_small_types(factor: Any) -> None:
    for made, expected in (
        (kronecker(10, factor), kronecker(10, 100)),
        (uniform_random(1000, factor), uniform_random(1000, 100)),
    ):
        assert made.isequal(expected)


def test_grid() -> None:
    for rows in range(5):
        for columns in range(5):
            A = grid(rows, columns)
            expected = set()
            for r in range(rows):
                for c in range(columns):
                    for s, d in ((r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)):
                        if 0 <= s < rows and 0 <= d < columns:
                            expected.add((r * columns + c, s * columns + d))
            assert A.shape == (rows * columns,) * 2 and A.symmetric is True
            assert set(pairs(A)) == expected


def test_grid_with_edges_removed() -> None:
    whole, A = grid(60, 70), grid(60, 70, remove=0.3, seed=5)
    found = set(pairs(A))
    assert found < set(pairs(whole)) and found == {(j, i) for i, j in found}
    edges = 59 * 70 + 60 * 69
    assert abs(len(found) / 2 - 0.7 * edges) < 5 * (edges * 0.3 * 0.7) ** 0.5
    vertical = sum(abs(i - j) == 70 for i, j in found) / 2  # neither direction suffers more
    assert abs(vertical - 0.7 * 59 * 70) < 5 * (59 * 70 * 0.21) ** 0.5
    assert A.isequal(grid(60, 70, remove=0.3, seed=5))
    assert not A.isequal(grid(60, 70, remove=0.3, seed=6))


def test_random_geometric() -> None:
    n, radius = 200, 0.11
    A = random_geometric(n, radius, seed=3)
    numbers = splitmix64(random_edges.state_of(3, generators.EDGES), 2 * n)
    points = np.array([x >> 11 for x in numbers]).reshape(n, 2) / 2**53
    close = scipy.spatial.distance.cdist(points, points) <= radius
    np.fill_diagonal(close, False)
    assert A.symmetric is True and set(pairs(A)) == set(map(tuple, np.argwhere(close).tolist()))
    assert random_geometric(1, 1.0).nvals == 0 and random_geometric(0, 1.0).shape == (0, 0)
    assert random_geometric(20, 0).nvals == 0


def test_chunks_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = kronecker(8, 4), kronecker(8, 4, noise=0.1), uniform_random(300, 5)
    monkeypatch.setattr(random_edges, "CHUNK", 37)
    made = kronecker(8, 4), kronecker(8, 4, noise=0.1), uniform_random(300, 5)
    assert all(A.isequal(B) for A, B in zip(made, expected, strict=True))


def test_sort_in_parts() -> None:
    keys = np.random.default_rng(0).integers(0, 1 << 40, (1 << 16) + 5)
    expected = np.array(sorted(keys.tolist()))
    generators._sort(keys)
    assert np.array_equal(keys, expected)


def test_kronecker_has_hubs() -> None:
    A = kronecker(12, 16)
    degrees = np.sort(np.diff(A.indptr))[::-1]
    assert degrees[0] > 20 * degrees.mean()
    assert 0.1 < np.mean(degrees == 0) < 0.5  # Graph500 graphs have many vertices without edges
    # hubs stand anywhere once vertices are relabelled
    hubs = np.argsort(np.diff(A.indptr))[-40:]
    assert 0.25 * 4096 < hubs.mean() < 0.75 * 4096
    unpermuted = np.diff(kronecker(12, 16, permute=False).indptr)
    assert np.argmax(unpermuted) == 0
    assert np.array_equal(np.sort(unpermuted)[::-1], degrees)


# --- bad arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kronecker(-1), "scale: expected an integer from 0 to 30, got -1"),
        (lambda: kronecker(31), "scale: expected an integer from 0 to 30, got 31"),
        (lambda: kronecker(3.0), "scale: expected an integer, got 3.0"),  # type: ignore[arg-type]
        (lambda: kronecker(True), "scale: expected an integer, got True"),
        (lambda: kronecker(5, -1), "edge_factor: expected a finite number >= 0, got -1"),
        (lambda: kronecker(5, float("nan")), "edge_factor"),
        (lambda: kronecker(5, a=0.9), "a, b, c, d: expected probabilities of sum 1"),
        (lambda: kronecker(5, a=0.5, d=0.5), "a, b, c, d"),
        (lambda: kronecker(5, a=-0.1, b=0.9, c=0.1), "a, b, c, d"),
        (lambda: kronecker(5, a=float("nan")), "a, b, c, d"),
        (lambda: kronecker(5, noise=-0.1), "noise: expected a number from 0 to 0.25"),
        (lambda: kronecker(5, noise=0.3), "noise"),
        (lambda: kronecker(5, seed=-1), "seed: expected an integer from 0 to 18446744073709551615"),
        (lambda: kronecker(5, seed=2**64), "seed"),
        (lambda: kronecker(5, seed=1.5), "seed"),  # type: ignore[arg-type]
        (lambda: kronecker(5, device="gpu"), "device: expected 'cpu', 'cuda'"),
        (lambda: uniform_random(-1, 3), "n: expected an integer from 0"),
        (lambda: uniform_random(2**31, 3), "n: expected an integer from 0"),
        (lambda: uniform_random(10, -3), "edge_factor"),
        (lambda: grid(-1, 3), "rows: expected"),
        (lambda: grid(3, -1), "columns: expected"),
        (lambda: grid(2**16, 2**15), "at most 2147483647 vertices, got 65536 . 32768"),
        (lambda: grid(3, 3, remove=1), "remove: expected a number from 0 to less than 1, got 1"),
        (lambda: grid(3, 3, remove=-0.1), "remove"),
        (lambda: random_geometric(5, -1), "radius: expected a finite number >= 0, got -1"),
        (lambda: random_geometric(5, float("inf")), "radius"),
        (lambda: random_geometric(-5, 1), "n: expected"),
    ],
)
def test_bad_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


NO_NUMBERS = [
    "0.1",
    None,
    0.1j,
    [0.1],
    np.array([0.1, 0.1]),
    np.array(["x"]),
    np.timedelta64(1, "s"),
]
NUMBERS = [
    (kronecker, {"scale": 4}, ("scale", "edge_factor", "a", "b", "c", "d", "noise", "seed")),
    (kronecker_model, {"scale": 4}, ("scale", "edge_factor", "a", "b", "c", "d", "noise", "seed")),
    (uniform_random, {"n": 5, "edge_factor": 2}, ("n", "edge_factor", "seed")),
    (grid, {"rows": 3, "columns": 3}, ("rows", "columns", "remove", "seed")),
    (random_geometric, {"n": 5, "radius": 0.5}, ("n", "radius", "seed")),
]


@pytest.mark.parametrize(
    ("make", "given", "argument"),
    [(make, given, name) for make, given, names in NUMBERS for name in names],
)
def test_what_is_no_number_is_named(
    make: Callable[..., Any], given: dict[str, Any], argument: str
) -> None:
    for wrong in [*NO_NUMBERS, math.nan, 10**400]:
        if wrong is None and argument == "d":
            continue
        said = "a, b, c, d" if argument in "abcd" else argument
        with pytest.raises(ValueError, match=f"^{said}: expected"):
            make(**given | {argument: wrong})


def test_a_device_that_is_no_word() -> None:
    for make, given in ((kronecker, (4,)), (uniform_random, (5, 2)), (grid, (3, 3))):
        for wrong in (np.array(["cpu", "cpu"]), None, "cuda:²"):
            with pytest.raises(ValueError, match="^device: expected 'cpu'"):
                make(*given, device=wrong)  # type: ignore[operator]


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.longdouble, np.array])
def test_numbers_of_every_type(kind: Callable[[float], Any]) -> None:
    """They count as their values, and none is taken for what its type makes of a product."""
    half, quarter = kind(0.5), kind(0.25)
    exact = kronecker(6, a=0.5, b=0.25, c=0.25, noise=0.25)
    assert kronecker(6, a=half, b=quarter, c=quarter, noise=quarter).isequal(exact)
    exact = kronecker(6, 0.5, a=0.5, b=0.25, c=0.25, d=0)
    assert kronecker(6, half, a=half, b=quarter, c=quarter, d=kind(0)).isequal(exact)
    assert grid(9, 9, remove=half).isequal(grid(9, 9, remove=0.5))
    assert random_geometric(300, quarter).isequal(random_geometric(300, 0.25))
    assert random_geometric(9, kind(300)).nvals == 72  # whose square is infinite in float16


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_probabilities_are_as_exact_as_their_type(kind: type[np.floating]) -> None:
    a, b, c, d = (kind(p) for p in (0.57, 0.19, 0.19, 0.05))
    for noise in (0.0, 0.1):
        options: dict[str, Any] = {"a": a, "b": b, "c": c, "d": d, "noise": noise}
        assert kronecker(8, **options).nvals > 0
    with pytest.raises(ValueError, match="sum 1"):
        kronecker(4, a=a, b=b, c=c, d=kind(0.06))


# --- CUDA -----------------------------------------------------------------------------------------

CUDA_CASES: list[Callable[..., Matrix]] = [
    *(lambda s=s, **k: kronecker(s, 8, seed=s, **k) for s in (0, 1, 5, 12, 17)),
    lambda **k: kronecker(11, 0, **k),
    lambda **k: kronecker(11, 16, noise=0.05, permute=False, **k),
    lambda **k: kronecker(11, 16, symmetric=False, seed=2**64 - 1, **k),
    lambda **k: kronecker(11, 16, symmetric=False, self_loops=True, a=0.1, b=0.2, c=0.3, **k),
    lambda **k: uniform_random(100_003, 9, seed=7, **k),
    lambda **k: uniform_random(0, 9, **k),
    lambda **k: grid(1, 1, **k),
    lambda **k: grid(0, 7, **k),
    lambda **k: grid(300, 211, **k),
    lambda **k: grid(211, 300, remove=0.37, seed=12, **k),
]


@pytest.mark.gpu
@pytest.mark.parametrize("make", CUDA_CASES)
def test_the_same_graph_on_the_gpu(make: Callable[..., Matrix]) -> None:
    A, B = make(device="cpu"), make(device="cuda")
    assert B.device == "cuda:0"
    B = B.to("cpu")
    assert A.shape == B.shape and A.symmetric is B.symmetric and A.iso and B.iso
    for x, y in zip((A.indptr, A.indices, A.values), (B.indptr, B.indices, B.values), strict=True):
        assert x.dtype == y.dtype and np.array_equal(x, y)
