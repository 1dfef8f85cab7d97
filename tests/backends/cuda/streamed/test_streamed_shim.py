"""Matrices in host memory without a GPU: the chunks, the order of copies and kernels, and the
results of kernels that run as C++ on the CPU (see cuda_host_shim.h).
"""

from __future__ import annotations

import ctypes
import importlib
import inspect
import itertools
import sys
import weakref
from typing import Any

import cuda_host_shim as shim
import numpy as np
import pytest
from shim_exchanges import launched

import spgraph as sg
from spgraph.backends import cpu, cuda
from spgraph.backends.cuda import streamed
from spgraph.backends.cuda.runtime import jit
from spgraph.backends.cuda.streamed import chunks, mapped_matrix
from spgraph.backends.loops import LevelSearch
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage import host_matrix
from spgraph.containers.storage.host_matrix import HostMatrix, StreamedTo
from spgraph.errors import BackendMismatch
from spgraph.iterations import search

streamed_search = importlib.import_module("spgraph.backends.cuda.streamed.search")
needs_compiler = pytest.mark.skipif(shim.COMPILER is None, reason="needs g++")
INT64 = np.dtype(np.int64)


class Pipe:
    """Copies into buffers at the latest time that the order of streams allows, or at once, and
    spoils a buffer as soon as it is free: a kernel that reads what has not come, or a copy that
    came too early, gives wrong sums.
    """

    late = True
    most = 0  # copies in flight or in use at a time

    def __init__(self, count: int) -> None:
        self.pending: list[list[tuple[int, int, int]]] = [[] for _ in range(count)]
        self.state = ["free"] * count

    def send(self, buffer: int, pieces: list[tuple[int, int, int]]) -> None:
        assert self.state[buffer] == "free", "a buffer is filled while it is read"
        self.state[buffer], self.pending[buffer] = "sent", pieces
        Pipe.most = max(Pipe.most, sum(state != "free" for state in self.state))
        if not self.late:
            self.copy(buffer)

    def copy(self, buffer: int) -> None:
        for target, source, nbytes in self.pending[buffer]:
            assert nbytes >= 0 and (target - source) % chunks.ALIGN == 0
            ctypes.memmove(target, source, nbytes)

    def arrive(self, buffer: int) -> None:
        assert self.state[buffer] == "sent"
        if self.late:
            self.copy(buffer)
        self.state[buffer] = "read"

    def free(self, buffer: int) -> None:
        assert self.state[buffer] == "read"
        for target, _, nbytes in self.pending[buffer]:
            ctypes.memset(target, 0x7F, nbytes)
        self.state[buffer] = "free"

    def close(self) -> None:
        pass


@pytest.fixture
def on_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices "on the GPU" are those of the CPU, those in host memory go through the streamed
    functions.
    """
    public = sg.steps.backend
    users = [m for m in sys.modules.values() if vars(m).get("backend") is public]
    shim.install(monkeypatch)
    monkeypatch.setattr(jit, "current_device", lambda: 0)
    monkeypatch.setattr(jit, "multiprocessors", lambda device: 2)

    def backend(device: Any) -> Any:
        return streamed if type(device) is StreamedTo else shim.backend(device)

    for module in users:
        monkeypatch.setattr(module, "backend", backend)
    monkeypatch.setattr(host_matrix, "_pinned", np.copy)
    monkeypatch.setattr(mapped_matrix, "at_its_address", lambda array, beside: array)
    monkeypatch.setattr(chunks, "Pipe", Pipe)
    monkeypatch.setattr(chunks, "CHUNK", 1 << 10)
    monkeypatch.setattr(Pipe, "late", True)
    monkeypatch.setattr(Pipe, "most", 0)


def graph(n: int = 300, degree: int = 6, seed: int = 3, dtype: Any = "int64") -> Matrix:
    """A directed graph of several components, one row longer than a chunk, and empty rows."""
    chance = np.random.default_rng(seed)
    rows = chance.integers(0, n // 2, n * degree)
    columns = chance.integers(0, n, n * degree)
    kept = rows % 7 != 3
    rows, columns = rows[kept], columns[kept]
    rows = np.concatenate((rows, np.full(n - 20, 11), [n - 2]))
    columns = np.concatenate((columns, np.arange(n - 20), [n - 1]))
    values = chance.integers(1, 9, rows.size).astype(dtype)
    return Matrix.from_coo(rows, columns, values, nrows=n, ncols=n, dup_op="min")


# --- chunks ---------------------------------------------------------------------------------------


def check_division(indptr: np.ndarray, most: int) -> chunks.Division:
    found = chunks.divide(indptr, most)
    rows, entries = found.rows.tolist(), found.entries.tolist()
    assert rows[0] == 0 and rows[-1] == indptr.size - 1
    assert entries == [int(indptr[row]) for row in rows]
    for k in range(found.rows.size - 1):
        assert rows[k] < rows[k + 1]
        size = entries[k + 1] - entries[k]
        assert size <= most or rows[k + 1] == rows[k] + 1
        if k + 2 < found.rows.size:  # the next row would not fit
            assert int(indptr[rows[k + 1] + 1]) - entries[k] > most
    return found


def test_rows_are_divided_into_chunks() -> None:
    """A last partial chunk, empty rows, rows longer than a chunk, one chunk, no rows."""
    assert check_division(np.array([0, 2, 4, 6, 7]), 4).rows.tolist() == [0, 2, 4]
    assert check_division(np.array([0, 0, 9, 9, 9, 10]), 3).rows.tolist() == [0, 1, 2, 5]
    assert check_division(np.array([0, 0, 0]), 3).rows.tolist() == [0, 2]
    assert check_division(np.array([0]), 3).rows.tolist() == [0]
    chance = np.random.default_rng(4)
    for most in (1, 7, 50, 10**6):
        check_division(np.cumsum(np.append(0, chance.integers(0, 20, 200))).astype("int32"), most)


def test_offsets_beyond_32_bits() -> None:
    """6 G entries, and offsets close to the end of 32 bits, whose sum with a chunk is beyond."""
    indptr = np.arange(7, dtype=np.int64) * 10**9
    assert check_division(indptr, 2_500_000_000).rows.tolist() == [0, 2, 4, 6]
    near = np.array([0, 2**30, 2**31 - 2, 2**31 - 1], np.int32)
    assert check_division(near, 2**31 - 2).rows.tolist() == [0, 2, 3]


@pytest.mark.usefixtures("on_host")
def test_two_buffers_in_turn() -> None:
    A = HostMatrix(graph(), "cpu")
    parts = chunks.division(A)
    assert parts.rows.size > 6
    seen = []
    for chunk in chunks.chunks(A):
        first, last = parts.entries[chunk.number : chunk.number + 2].tolist()
        at = int(chunk.arrays[1]) + first * A.index_dtype.itemsize
        found = (ctypes.c_int32 * (last - first)).from_address(at)
        assert list(found) == A._host._indices[first:last].tolist()
        seen.append(chunk.number)
    assert seen == list(range(parts.rows.size - 1)) and Pipe.most == 2
    assert A.bytes_streamed == A._host._indices.nbytes + A._host._values.nbytes


@pytest.mark.usefixtures("on_host")
def test_chunks_that_are_not_needed() -> None:
    A = HostMatrix(graph(), "cpu")
    counts = np.diff(chunks.division(A).entries)
    wanted = np.zeros_like(counts)
    wanted[[2, 4]] = 1
    assert [chunk.number for chunk in chunks.chunks(A, wanted)] == [2, 4]
    assert A.bytes_streamed == int(counts[[2, 4]].sum()) * (4 + 8)
    assert [*chunks.chunks(A, 0 * wanted)] == [] and Pipe.most == 2


@pytest.mark.usefixtures("on_host")
def test_what_is_read_in_place() -> None:
    """The bytes asked for, a line for each row and array, against a third of the chunks' bytes."""
    A = HostMatrix(graph(), "cpu")
    counts = np.diff(chunks.division(A).entries)
    entries = np.zeros_like(counts)
    k = int(counts.argmax())
    entries[k] = 3
    most = (int(counts[k]) * 12 - 1 - 3 * 3 * 12) // (3 * 2 * 32)
    assert most > 1
    for rows in (1, most):
        before = A.bytes_streamed
        assert chunks.pays_in_place(A, entries, rows)
        assert A.bytes_streamed - before == 3 * 12 + 2 * 32 * rows
    before = A.bytes_streamed
    assert not chunks.pays_in_place(A, entries, most + 1)
    assert not chunks.pays_in_place(A, counts, 1) and A.bytes_streamed == before
    flags = np.zeros(A.nrows, bool)
    flags[[0, 3, 11, 140]] = True
    lengths = np.diff(A._host._indptr)
    wanted, rows = chunks.needed(A, flags)
    assert wanted.sum() == lengths[flags].sum() and rows == np.count_nonzero(lengths[flags])
    parts = chunks.division(A).rows
    assert wanted.tolist() == np.add.reduceat(lengths * flags, parts[:-1]).tolist()


# --- operations -----------------------------------------------------------------------------------


@needs_compiler
@pytest.mark.usefixtures("on_host")
@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("semiring", ["plus_times", "min_secondi"])
@pytest.mark.parametrize("direction", ["pull", "push"])
def test_products(
    direction: str, semiring: str, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full vector, a sparse one, under a mask; over positions as well as over values."""
    monkeypatch.setattr(Pipe, "late", late)
    A = graph()
    S = HostMatrix(A, "cpu")
    chance = np.random.default_rng(8)
    mask = Vector.from_coo(np.arange(60, 90), True, size=A.nrows)
    few = Vector.from_coo([0, 1, 11, 140], [3, 1, 4, 1], size=A.nrows)
    one = Vector.from_coo([0], [3], size=A.nrows)
    full = Vector.from_dense(chance.integers(0, 9, A.nrows))
    form, oracle = getattr(streamed, direction), getattr(cpu, direction)
    cases = list(itertools.product((full, few, one), (None, mask.S, ~mask.S, one.S)))
    if semiring == "min_secondi":  # what is its own: the numbers of rows; each form is compiled
        cases = [(few, ~mask.S), (one, mask.S), (few, one.S)]
    for u, m in cases:
        typed = getattr(sg.semirings, semiring).resolve(INT64, INT64, index=A.index_dtype)
        got = form(S, u, typed, m, False)
        assert got.isequal(oracle(A, u, typed, m, False), check_dtype=True)


@needs_compiler
@pytest.mark.usefixtures("on_host")
def test_public_operations_and_views() -> None:
    A = graph()
    S = HostMatrix(A, "cpu")
    x = np.arange(A.nrows)
    assert np.array_equal(S @ x, A @ x) and np.array_equal(x @ S, x @ A)
    X = np.random.default_rng(1).integers(0, 9, (A.nrows, 3))
    assert np.array_equal(S @ X, A @ X) and np.array_equal(X.T @ S, X.T @ A)
    u = Vector.from_dense(x)
    assert (S @ u).isequal(A @ u) and sg.vxm(u, S).isequal(sg.vxm(u, A))
    assert S.T.T is S and S.T.nvals == A.nvals and S.is_symmetric() is False
    assert S.T.row_degrees().isequal(A.T.row_degrees())
    assert S.to("cpu").isequal(A) and S.T.to("cpu").isequal(A.T)
    assert "from host memory" in repr(S) and S.shape == A.shape and S.dtype == A.dtype


@needs_compiler
@pytest.mark.parametrize("symmetric", [False, True])
def test_algorithms(symmetric: bool, request: pytest.FixtureRequest) -> None:
    """bfs, pagerank and components: as on the CPU; and distances, as all that products give."""
    A = graph()
    if symmetric:
        A = sg.ewise_add(A, A.T, "plus").pattern()
        assert A.is_symmetric()
    expected_distance = sg.sssp(A, 5, parents=False).distance
    request.getfixturevalue("on_host")
    S = HostMatrix(A, "cpu")
    for direction in ("auto", "pull"):
        level, parent = sg.bfs(S, 5, direction=direction)
        expected = cpu_bfs(A, 5)
        assert np.array_equal(level.to_numpy(fill=-1), expected)
        assert parent is not None and parent.nvals == level.nvals
    found = sg.connected_components(S).to_numpy()
    assert np.array_equal(found, components(A))
    if not symmetric:
        before = S.bytes_streamed
        sg.connected_components(S)
        # each entry once, and a line of each row before
        rows = np.count_nonzero(np.diff(A.indptr))
        assert S.bytes_streamed - before == A.nvals * (4 + 8) + 32 * rows
    if symmetric:
        assert sg.sssp(S, 5, parents=False).distance.isequal(expected_distance)
    ranks = sg.pagerank(S, max_iter=5, tol=None).to_numpy()
    assert np.allclose(ranks, pagerank(A, 5), rtol=1e-12)


@needs_compiler
@pytest.mark.parametrize("symmetric", [False, True])
def test_a_search_is_one_launch_where_a_first_hit_decides(
    symmetric: bool, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads columns where they lie, and chooses leading neighbours once. Without a transpose, or
    where all edges of a level count, and for index types of two kinds it is made of products.
    """
    A = graph()
    if symmetric:
        A = sg.ewise_add(A, A.T, "plus").pattern()
        assert A.is_symmetric()
    start = Vector.unit(5, 5, size=A.nrows, dtype=A.index_dtype)
    expected = {name: search(A, start, name) for name in ("any_pair", "min_secondi")}
    paths = search(A, Vector.unit(5, 1, size=A.nrows, dtype="int64"), "plus_first")
    request.getfixturevalue("on_host")
    S, stems = HostMatrix(A, "cpu"), launched(monkeypatch)

    def check(name: str, stem: str, direction: Any = "auto") -> None:
        stems.clear()
        found = search(S, start, name, direction=direction)
        assert ("search" if "search" in stems else "push" if "push" in stems else "pull") == stem
        assert found.level.isequal(expected[name].level)
        theirs = expected[name].value
        assert theirs is None or (found.value is not None and found.value.isequal(theirs))

    check("any_pair", "search" if symmetric else "push")
    check("min_secondi", "push", "push")
    check("min_secondi", "search", "pull")  # makes the transpose
    check("min_secondi", "search")
    assert "leading_neighbours" not in stems
    stems.clear()
    counted = search(S, Vector.unit(5, 1, size=A.nrows, dtype="int64"), "plus_first")
    assert "search" not in stems and "push" in stems
    assert counted.value is not None and paths.value is not None
    assert counted.value.isequal(paths.value)
    if not symmetric:
        T = S.T  # held, for a view's arrays are
        wide = HostMatrix(T.to("cpu"), "cpu")
        wide._host._indices = wide._host._indices.astype(np.int64)
        assert streamed.search(S, wide, start, LevelSearch(9)) is None


def test_a_level_must_not_outlast_the_wait_of_other_blocks(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    request.getfixturevalue("on_host")
    S = HostMatrix(sg.generators.grid(3, 3), "cpu")
    start = Vector.unit(0, 0, size=9, dtype="int64")
    monkeypatch.setattr(streamed_search, "MOST", S.nbytes - 1)
    assert streamed.search(S, S, start, LevelSearch(9)) is None
    found = search(S, start, "any_pair")
    assert found.level.to_numpy().tolist() == [0, 1, 2, 1, 2, 3, 2, 3, 4]


def cpu_bfs(A: Matrix, source: int) -> np.ndarray:
    dense = A.to_scipy().astype(bool).toarray()
    level = np.full(A.nrows, -1)
    level[source], depth, frontier = 0, 0, np.arange(A.nrows) == source
    while frontier.any():
        depth += 1
        frontier = dense[frontier].any(axis=0) & (level < 0)
        level[frontier] = depth
    return level


def components(A: Matrix) -> np.ndarray:
    import scipy.sparse.csgraph

    _, label = scipy.sparse.csgraph.connected_components(A.to_scipy(), connection="weak")
    least = np.full(label.max() + 1, A.nrows)
    np.minimum.at(least, label, np.arange(A.nrows))
    return least[label]


def pagerank(A: Matrix, steps: int) -> np.ndarray:
    dense = A.to_scipy().astype(bool).toarray().astype(float)
    degree = dense.sum(axis=1)
    x = np.full(A.nrows, 1 / A.nrows)
    for _ in range(steps):
        lost = x[degree == 0].sum()
        shares = x / np.maximum(degree, 1)
        x = 0.85 * shares @ dense + (0.15 + 0.85 * lost) / A.nrows
    return x / x.sum()


@pytest.mark.usefixtures("on_host")
def test_what_has_no_streamed_form_says_so() -> None:
    """Nothing copies the whole of it unasked."""
    S = HostMatrix(graph(), "cpu")
    for operation in (
        lambda: sg.mxm(S, S),
        lambda: sg.ewise_add(S, S),
        lambda: sg.apply(S, "ainv"),
        lambda: sg.select(S, "valuegt", 3),
        lambda: sg.extract(S, [0], [1]),
        lambda: sg.kronecker(S, S),
        lambda: S.to_dense(),
        lambda: S.indices,
        lambda: S.astype("float32"),
        lambda: sg.triangle_count(S),
    ):
        with pytest.raises(BackendMismatch, match=r"host memory.*\.to\("):
            operation()
    with pytest.raises(TypeError, match="pickle"):
        S.__getstate__()


@pytest.mark.usefixtures("on_host")
def test_memory_is_given_back_when_the_gpu_has_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the last holder of its arrays goes, they live until the GPU has done its work."""
    waited: list[bool] = []
    monkeypatch.setattr(
        host_matrix, "_wait_for", lambda device: waited.append(indices() is not None)
    )
    S = HostMatrix(graph(), "cpu")
    indices = weakref.ref(S._host._indices)
    del S  # no cycle holds it
    assert waited == [True] and indices() is None
    i = np.arange(9)
    both = np.append(i, (i + 1) % 9)
    semiring = sg.Matrix.from_coo(both, np.roll(both, 9), nrows=9, ncols=9)
    S = HostMatrix(semiring, "cpu")
    T = S.T
    indices = weakref.ref(T._host._indices)
    assert S.is_symmetric() and S.T is T and T._host is S._host
    assert waited == [True, True] and indices() is None


def test_storage_is_checked() -> None:
    A = graph()
    with pytest.raises(ValueError, match="to: storage: expected 'host'"):
        A.to("cuda", storage="disk")
    with pytest.raises(ValueError, match="to: storage: 'host' streams a Matrix to a GPU"):
        A.to("cpu", storage="host")


def test_streamed_functions_are_those_of_the_backend() -> None:
    """What both have under one name is the same function, or takes a Matrix."""
    of_matrices = {"contract", "pull", "push", "transpose", "kronecker"}
    of_matrices |= {"multiply_array", "multiply_rows", "search"}
    functions = {name for name, each in vars(streamed).items() if inspect.isfunction(each)}
    assert of_matrices < functions
    for name in functions - of_matrices:
        if not name.endswith("_matrix"):
            assert getattr(streamed, name) is getattr(cuda, name)
