"""Who owns the arrays of a container, and who may write them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import spgraph as sg
from spgraph import Matrix, Vector
from spgraph.backends.cpu import pool

DENSE = np.array([[0.0, 2, 0, 1], [3, 0, 4, 0], [0, 0, 0, 5], [6, 0, 7, 0]])


def arrays_of(given: Any) -> Iterator[np.ndarray]:
    for each in given:
        if isinstance(each, tuple):
            yield from arrays_of(each)
        elif isinstance(each, np.ndarray):
            yield each


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the kernels that were given an array that is marked read-only."""
    refused: list[str] = []
    launch = pool.launch

    def watched(kernel: Callable[..., Any], threads: int, *arguments: Any) -> None:
        if not all(array.flags.writeable for array in arrays_of(arguments)):
            refused.append(repr(kernel))
        launch(kernel, threads, *arguments)

    monkeypatch.setattr(pool, "launch", watched)
    return refused


def test_public_arrays_are_read_only_views() -> None:
    A, sparse = Matrix.from_dense(DENSE), Vector.from_coo([3, 50], [1.0, 2.0], size=99)
    bitmap, full = Vector.from_coo([1], [2.0], size=3), Vector.from_dense([1.0, 2.0])
    assert [v.storage for v in (sparse, bitmap, full)] == ["sparse", "bitmap", "full"]
    views = [A.indptr, A.indices, A.values, A.T.indices, A.pattern().values]
    views += [sparse.indices, sparse.values, bitmap.bits, bitmap.values, full.values]
    for view in views:
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 1
    assert np.shares_memory(A.values, A._values) and A._values.flags.writeable
    assert sparse.bits is None and bitmap.indices is None and full.bits is None
    with pytest.raises(AttributeError):
        A.values = np.zeros(7)  # type: ignore[misc]


def test_kernels_see_no_read_only_array(launched: list[str]) -> None:
    """Numba would compile each of them once more."""
    given = Matrix.from_dense(DENSE)
    A = Matrix(4, 4, given.indptr, given.indices, given.values)  # from public views
    A = pickle.loads(pickle.dumps(A, protocol=5))
    sg.bfs(A, 0)
    sg.sssp(A, 0)
    sg.pagerank(A, weighted=True)
    sg.connected_components(A)
    sg.triangle_count(A | A.T)
    sg.betweenness_centrality(A)
    v = Vector.from_dense(np.ones(4)).with_values(lambda x: x + 1)
    sg.vxm(v, A, out=v)
    (A @ A) + A.T
    assert sg.reduce(A) == 28 and not launched


def test_read_only_buffers_of_a_pickle(launched: list[str]) -> None:
    """As joblib hands them to other processes: mapped files and shared memory."""
    A, v = Matrix.from_dense(DENSE), Vector.from_dense(np.ones(4))
    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps((A, v), protocol=5, buffer_callback=buffers.append)
    held = [bytes(buffer) for buffer in buffers]
    B, w = pickle.loads(text, buffers=held)
    assert len(held) == 4 and B.isequal(A)
    sg.vxm(w, B, out=w)  # a Vector is written in place, and has its own copy
    assert w.isequal(sg.vxm(v, A)) and not launched
    assert pickle.loads(text, buffers=held)[1].isequal(v)


@pytest.mark.gpu
def test_arrays_of_cuda_have_no_such_flag() -> None:
    A = Matrix.from_dense(DENSE).to("cuda")
    assert A.values is A._values and A.T.indices is A.T._indices
    v = Vector.from_coo([3, 50], [1.0, 2.0], size=99).to("cuda")
    assert v.indices is v._indices and v.bits is None
