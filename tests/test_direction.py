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
