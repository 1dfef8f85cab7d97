"""What a Matrix derives and keeps: its transpose, its symmetry."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from fixtures_device import device  # noqa: F401

from spgraph.containers import Matrix
from spgraph.errors import DimensionMismatch

DENSE = np.array([[0, 2, 0, 3], [0, 0, 0, 0], [5, 0, 6, 7]])


def test_transpose_is_kept_and_shared() -> None:
    A = Matrix.from_dense(DENSE)
    assert not A.has_transpose
    T = A.T
    assert A.T is T and T.T is A and not A.has_transpose
    assert T.indices.size == A.nvals and A.has_transpose
    assert np.array_equal(T.to_scipy().toarray(), DENSE.T)
    assert Matrix.from_coo([0, 1], [1, 2]).T.iso


def test_a_new_view_has_what_was_made_for_the_one_before() -> None:
    A = Matrix.from_dense(DENSE)
    before = A.T
    indices, bits = before._indices, before._nonempty_rows()
    was = weakref.ref(before)
    del before
    assert was() is None and A.has_transpose and A.T._has_arrays
    assert A.T._indices is indices and A.T._nonempty_rows() is bits
    view = A.T
    A._become(Matrix.from_dense(DENSE))  # the view stays that of what was there
    assert view.T is not A and A.T is not view and view._indices is indices


@pytest.mark.parametrize("shards", [0, 3])
def test_memory_is_free_with_the_last_reference(shards: int) -> None:
    def arrays(A: Matrix) -> list[Any]:
        held = A.shards if shards else [A]  # type: ignore[attr-defined]
        return [weakref.ref(array) for each in held for array in (each._indptr, each._indices)]

    def alive(references: list[Any]) -> bool:
        return any(reference() is not None for reference in references)

    def graph(dense: np.ndarray) -> Matrix:
        A = Matrix.from_dense(dense)
        return A.distribute(shards) if shards else A

    square = DENSE[:, :3]

    def home(A: Any) -> Matrix:
        return A.gather() if shards else A

    gc.collect()
    gc.disable()
    try:
        A = graph(square)
        held = arrays(A) + arrays(A.T)
        assert alive(held)
        del A
        assert not alive(held)
        A = graph(square)
        view, own = A.T, arrays(A)
        made = arrays(view)
        del A
        # the view holds its source
        assert alive(own) and home(view.T).isequal(Matrix.from_dense(square))
        source = view.T
        del view
        assert alive(made) and home(source.T).isequal(Matrix.from_dense(square.T))
        source._become(graph(square.T))
        assert not alive(own + made)
        A = graph(square + square.T)
        own, made = arrays(A), arrays(A.T)
        assert A.is_symmetric() and alive(own) and not alive(made)
        A = graph(square + square.T)
        view, made = A.T, arrays(A.T)
        assert alive(made) and view.is_symmetric() and A.T is view and view.T is A
        del view
        assert not alive(made)
        own = arrays(A)
        del A
        assert not alive(own)
    finally:
        gc.enable()


def test_symmetry_is_tested_once() -> None:
    A = Matrix.from_dense(DENSE[:, :3] + DENSE[:, :3].T)
    assert A.symmetric is None and A.is_symmetric() and A.symmetric
    assert A._T is A and A.T is not A and A.T._indices is A._indices and A.T._derived is A._derived
    B = Matrix.from_dense([[0, 1], [2, 0]])
    assert not B.is_symmetric() and B.symmetric is False and B.T is not B
    assert Matrix.from_dense(DENSE).is_symmetric() is False
    word = Matrix.from_coo([0, 1], [1, 0], symmetric=True)
    assert word.symmetric and word.T.indices.size == 2 and word.has_transpose, "the caller's word"
    assert Matrix.from_coo([0, 0], [0, 1], symmetric=True).shape == (2, 2)
    with pytest.raises(DimensionMismatch, match="symmetric: expected a square matrix, got 1 x 2"):
        Matrix.from_coo([0], [1], nrows=1, symmetric=True)


def test_symmetry_and_transpose_from_several_threads() -> None:
    A = Matrix.from_scipy(sp.random_array((300, 300), density=0.05, rng=np.random.default_rng(0)))
    seen: list[int] = []
    threads = [
        threading.Thread(target=lambda: seen.append(A.T.nvals + A.is_symmetric())) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [A.nvals] * 4
