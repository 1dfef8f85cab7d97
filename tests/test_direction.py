"""Push or pull: pure functions of counts, in Python, under Numba, and as CUDA C++."""

from __future__ import annotations

import itertools

import numba
import pytest

from spgraph import direction

COUNTS = [
    (1, 10, 40, 100),
    (50, 10, 40, 100),
    (50, 90, 40, 100),
    (100, 1, 1, 100),
    (2**40, 2**33, 2**40, 2**41),
    (0, 0, 0, 1),
    (2**62, 2**62, 2**62, 2**62),
]


def test_first_hit_pulls_when_the_frontier_is_dense() -> None:
    assert not direction.pull_pays(10, 1000, 8_000, 10_000)
    assert direction.pull_pays(9_000, 1000, 9_500, 10_000)
    assert direction.pull_pays(1, 0, 0, 10_000), "nothing is left to visit: pulling is free"


def test_first_hit_pulls_when_few_edges_are_left() -> None:
    assert direction.pull_pays(10, 1000, 9, 10_000), "rows this short are looked through sooner"
    assert not direction.pull_pays(10, 1000, 11, 10_000)


def test_all_edges_pulls_when_fewer_edges_are_left() -> None:
    assert direction.pull_pays_all(1000, 10)
    assert not direction.pull_pays_all(10, 1000)


def test_counts_never_overflow() -> None:
    big = 2**62
    assert direction.pull_pays(big, 1, big, big)
    assert not direction.pull_pays(1, big, big, big)
    assert direction.choose(big // 2, big, big, big, big, False) in ("push", "pull")


@pytest.mark.parametrize("name", ["pull_pays", "pull_pays_all"])
def test_numba_compiles_the_same_function(name: str) -> None:
    plain = getattr(direction, name)
    compiled = numba.njit(plain)
    for counts in COUNTS:
        arguments = counts[: plain.__code__.co_argcount]
        assert compiled(*map(float, arguments)) == plain(*map(float, arguments))


@pytest.mark.parametrize("name", ["pull_pays", "pull_pays_all"])
def test_translates_to_cuda(name: str) -> None:
    import numpy as np

    from spgraph.semirings.translate import cuda_function

    plain = getattr(direction, name)
    arguments = (np.dtype("float64"),) * plain.__code__.co_argcount
    text = cuda_function(plain, name, arguments, np.dtype("bool"))
    assert f"bool {name}(" in text


def test_a_product_pulls_over_a_dense_vector_and_pushes_a_sparse_one() -> None:
    size, edges = 1 << 20, 1 << 24
    for first_hit in (False, True):
        assert direction.choose(size, size, edges, size, size, first_hit) == "pull"
        assert direction.choose(10, size, edges, size, size, first_hit) == "push"
    assert direction.choose(0, 0, 0, 0, 0, False) == "push"


def test_denser_vectors_never_turn_pull_into_push() -> None:
    size, edges = 1 << 16, 1 << 20
    for first_hit, allowed in itertools.product((False, True), (1, size // 2, size)):
        ways = [
            direction.choose(n, size, edges, size, allowed, first_hit) for n in range(1, size, 97)
        ]
        assert ways == sorted(ways, reverse=True), "first push, then pull"


def test_a_narrow_mask_pulls() -> None:
    size, edges = 1 << 16, 1 << 20
    assert direction.choose(size // 8, size, edges, size, size, False) == "push"
    assert direction.choose(size // 8, size, edges, size, 10, False) == "pull"


# --- other choices between methods ----------------------------------------------------------------


def test_dot_products_where_a_mask_leaves_few() -> None:
    assert direction.dots_pay(100, 100, 0) and not direction.dots_pay(1000, 100, 0)
    # the transpose that one of both forms needs first counts for the other
    assert not direction.dots_pay(100, 100, 50) and direction.dots_pay(1000, 100, -200)
    assert direction.dots_pay(0, 0, 0)


def test_the_order_by_degree_is_for_skewed_graphs() -> None:
    n = 1000
    assert not direction.degree_order_pays(squares=n * 8**2, entries=n * 8, rows=n)
    star = (n - 1) ** 2 + (n - 1)
    assert direction.degree_order_pays(squares=star, entries=2 * (n - 1), rows=n)


def test_near_vertices_are_those_of_skewed_graphs() -> None:
    # 4 * 2**4 vertices in the fifth level, if each has twice as many as the one before
    assert direction.all_are_near(vertices=64, edges=128, most=4, levels=5)
    assert not direction.all_are_near(vertices=65, edges=130, most=4, levels=5)
    assert not direction.all_are_near(vertices=264_346, edges=730_100, most=8, levels=8)
    assert direction.all_are_near(vertices=1 << 24, edges=1 << 29, most=10_000, levels=8)


def test_one_gpu_is_for_many_small_levels() -> None:
    roads, kron = (264_346, 730_100), (1 << 24, 1 << 29)
    # as on a grid: 2 * sqrt(n) levels, of which a Kronecker graph has fewer
    assert direction.expected_levels(1_000_000, 4_000_000) == pytest.approx(2000.0)
    assert direction.expected_levels(*kron) < 100 < direction.expected_levels(*roads)
    for peers in (False, True):
        assert direction.one_device_pays(*roads, 2, peers)
        assert not direction.one_device_pays(*kron, 4, peers)
    # between them a round costs less than the edges, if no host drives it
    middle = 1 << 21, 1 << 26
    assert direction.one_device_pays(*middle, 4, False)
    assert not direction.one_device_pays(*middle, 4, True)


def test_a_sample_of_the_edges_is_for_many_edges_a_vertex() -> None:
    assert direction.a_sample_pays(1000, 16_000) and not direction.a_sample_pays(1000, 3_000)
