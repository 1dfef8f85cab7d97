"""Matrices in host memory on a GPU: real copies, streams and memory beside what
test_streamed_shim.py shows without one.
"""

from __future__ import annotations

import gc

import numpy as np
import pytest

import spgraph as sg
from spgraph.backends.cuda.streamed import chunks
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import import_cupy

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many chunks of small graphs."""
    monkeypatch.setattr(chunks, "CHUNK", 1 << 18)


def graph(directed: bool = False, weighted: bool = False) -> Matrix:
    """1 M entries; the longest rows are longer than a piece of a row, and one than a chunk."""
    A = sg.generators.kronecker(15, 16, seed=5)
    rows, columns, _ = A.to_coo()
    if directed:
        kept = np.random.default_rng(2).random(rows.size) < 0.5
        rows, columns = rows[kept], columns[kept]
        hub = np.arange(0, A.nrows, dtype=rows.dtype) * 0 + 77
        rows = np.concatenate((rows, hub))
        columns = np.concatenate((columns, np.arange(A.nrows, dtype=rows.dtype)))
    values = np.random.default_rng(1).integers(1, 9, rows.size).astype(np.float64)
    return Matrix.from_coo(
        *(rows, columns, values if weighted else True),
        nrows=A.nrows,
        ncols=A.nrows,
        dup_op="min",
        symmetric=None if directed or weighted else True,
    )


@pytest.mark.parametrize("directed", [False, True])
def test_algorithms(directed: bool) -> None:
    A = graph(directed)
    G, S = A.to("cuda"), A.to("cuda", storage="host")
    assert chunks.division(S).rows.size > 5  # type: ignore[arg-type]
    for direction in ("auto", "push", "pull"):
        ours, theirs = sg.bfs(S, 1, direction=direction), sg.bfs(G, 1)
        assert ours.level.device == "cuda:0"
        assert ours.level.isequal(theirs.level)
        assert ours.parent is not None and ours.parent.isequal(theirs.parent)
    assert sg.connected_components(S).isequal(sg.connected_components(G))
    ranks = [sg.pagerank(each, tol=1e-9).to_numpy() for each in (S, A)]
    assert np.abs(ranks[0] - ranks[1]).sum() < 1e-7


@pytest.mark.parametrize("index", ["int32", "int64"])
def test_products(index: str) -> None:
    """Sums of integers in float64, which are exact: full, sparse and masked operands."""
    A = graph(directed=True, weighted=True)
    A = Matrix._of(*A.shape, A.indptr.astype(index), A.indices.astype(index), A.values)
    G, S = A.to("cuda"), A.to("cuda", storage="host")
    chance = np.random.default_rng(3)
    full = Vector.from_dense(chance.integers(1, 9, A.nrows).astype(float)).to("cuda")
    some = Vector.from_coo(np.arange(5, 900, 7), 2.0, size=A.nrows).to("cuda")
    for u in (full, some):
        for mask in (None, some.S, ~some.S):
            for direction in ("pull", "push"):
                for each in (
                    lambda M, u, **how: sg.mxv(M, u, **how),
                    lambda M, u, **how: sg.vxm(u, M, **how),
                ):
                    how = {"mask": mask, "direction": direction}
                    assert each(S, u, **how).isequal(each(G, u, **how))
    x = full.to_cupy()
    assert ((S @ x) == (G @ x)).all() and ((x @ S) == (x @ G)).all()
    X = import_cupy().asarray(chance.integers(1, 9, (A.ncols, 8)).astype(float))
    assert ((S @ X) == (G @ X)).all()


def test_a_stream_of_the_user_and_a_matrix_that_goes_at_once() -> None:
    cupy = import_cupy()
    A = graph(directed=True, weighted=True)
    u = Vector.filled(1.0, size=A.nrows)
    expected = (A @ u).to_numpy(fill=0)
    with cupy.cuda.Stream(non_blocking=True):
        for _ in range(5):  # nothing waits between the product and the end of the Matrix
            found = A.to("cuda", storage="host") @ u.to("cuda")
            gc.collect()
            assert np.array_equal(found.to_numpy(fill=0), expected)


def test_device_memory_does_not_hold_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """256 MB of entries over 16,384 rows: two buffers and vectors are on the GPU, no more."""
    monkeypatch.setattr(chunks, "CHUNK", 1 << 22)
    cupy = import_cupy()
    n, degree = 1 << 14, 1 << 12
    columns = np.tile(np.arange(0, n, n // degree, dtype=np.int32), n)
    indptr = np.arange(n + 1, dtype=np.int32) * np.int32(degree)
    A = Matrix._of(n, n, indptr, columns, np.ones(1, bool), iso=True)
    pool = cupy.get_default_memory_pool()
    gc.collect()
    pool.free_all_blocks()
    before = pool.total_bytes()  # of this process; a GPU's free memory depends on others
    S = A.to("cuda", storage="host")
    assert (S @ cupy.ones(n)).tolist() == [degree] * n
    sg.connected_components(S)
    sg.bfs(S, 0, direction="push")
    cupy.cuda.Device().synchronize()
    used = pool.total_bytes() - before
    assert used < A.nbytes // 3, f"{used} bytes"
    assert S.bytes_streamed >= A.nbytes  # type: ignore[attr-defined]


def test_every_gpu_streams() -> None:
    cupy = import_cupy()
    last = cupy.cuda.runtime.getDeviceCount() - 1
    A = graph(directed=True, weighted=True)
    S = A.to(f"cuda:{last}", storage="host")
    found = S @ Vector.filled(1.0, size=A.nrows).to(S.device)
    assert found.device == f"cuda:{last}"
    assert np.array_equal(
        found.to_numpy(fill=0), (A @ Vector.filled(1.0, size=A.nrows)).to_numpy(fill=0)
    )


def test_a_search_keeps_no_more_than_leading_neighbours() -> None:
    """256 MB of entries over 16,384 rows: levels and parents equal those of the Matrix on the GPU,
    of which vectors and four ids a row are there.
    """
    cupy = import_cupy()
    n, degree = 1 << 14, 1 << 12
    columns = np.tile(np.arange(0, n, n // degree, dtype=np.int32), n)
    indptr = np.arange(n + 1, dtype=np.int32) * np.int32(degree)
    A = Matrix._of(n, n, indptr, columns, np.ones(1, bool), iso=True)
    pool = cupy.get_default_memory_pool()
    S = A.to("cuda", storage="host")
    S.T.row_degrees()  # as it is not symmetric
    gc.collect()
    pool.free_all_blocks()
    before = pool.total_bytes()
    found = sg.bfs(S, 1), sg.bfs(S, 1, parents=False)
    assert (found[0].level.nvals, found[1].level.nvals) == (degree + 1, degree + 1)
    used = pool.total_bytes() - before
    assert used < A.nbytes // 3, f"{used} bytes"
    G = A.to("cuda")
    expected = sg.bfs(G, 1)
    assert found[0].level.isequal(expected.level) and found[1].level.isequal(expected.level)
    assert found[0].parent is not None and expected.parent is not None
    assert found[0].parent.isequal(expected.parent)
    assert S.bytes_streamed == 0  # type: ignore[attr-defined]


def test_a_search_of_a_matrix_that_goes_at_once() -> None:
    """Nothing waits between the launch, which reads pinned memory, and the end of the Matrix."""
    A = graph()
    expected = sg.bfs(A, 1, parents=False).level.to_numpy(fill=-1)
    for _ in range(5):
        level = sg.bfs(A.to("cuda", storage="host"), 1, parents=False).level
        gc.collect()
        assert np.array_equal(level.to_numpy(fill=-1), expected)
