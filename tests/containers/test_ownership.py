"""Who owns the arrays of a container, and who may write them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import spgraph as sg
from spgraph import Matrix, Vector, semirings
from spgraph.backends.cpu.runtime import pool
from spgraph.containers.storage import compressed
from spgraph.containers.storage.device_memory import sent
from spgraph.errors import FormatError, NegativeWeight

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
    given = Matrix.from_dense(DENSE.astype(np.int64))  # whose kernels other tests have, too
    A = Matrix._of(4, 4, given.indptr, given.indices, given.values)  # from public views
    A = pickle.loads(pickle.dumps(A, protocol=5))
    sg.bfs(A, 0)
    sg.sssp(A, 0)
    sg.pagerank(A, weighted=True)
    sg.connected_components(A)
    sg.triangle_count(A | A.T)
    sg.betweenness_centrality(A)
    v = Vector.from_dense(np.ones(4, np.int64))._with_values(lambda x: x + 1)
    sg.vxm(v, A, out=v)
    (A @ A) + A.T
    assert sg.reduce(A) == 28 and not launched


@pytest.mark.parametrize("shards", [0, 2])
def test_functions_of_values_write_nothing(shards: int, launched: list[str]) -> None:
    def spread(container: Any) -> Any:
        return container.to(place) if shards else container

    A = Matrix.from_dense(DENSE)
    place = A.distribute(shards).device if shards else None
    A, v, w = (
        spread(A),
        spread(Vector.from_dense([1.0, 2, 3, 4])),
        spread(Vector.filled(5.0, size=4)),
    )

    def write(x: np.ndarray, *others: np.ndarray) -> np.ndarray:
        x[:] = 7
        return x

    for call in (v._with_values, v._total, A._where):
        with pytest.raises(ValueError, match="read-only"):
            call(write)
    # what a function gives back is never what it was given
    results = v._with_values(lambda x: x), v._with_values(lambda x, y: y, w)
    results += (v._with_values(lambda x: np.broadcast_to(5.0, x.shape)),)
    for made in results:
        sg.assign(made, 9.0, [0])
        sg.apply(made, semirings.unary.ainv)
        assert made.to_numpy()[0] == 9
    assert v.to_numpy().tolist() == [1, 2, 3, 4] and w.to_numpy().tolist() == [5] * 4
    assert not launched


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


# --- borrowed and copied arrays -------------------------------------------------------------------


def written(S: Any) -> None:
    """What an owner may do with a SciPy array: write values, ids and offsets."""
    S.data[:] = -7
    S.indices[:] = 0
    S.indptr[:] = 0


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
def test_who_changes_a_scipy_array_changes_no_matrix(format: str) -> None:
    S = scipy.sparse.csr_array(DENSE).asformat(format)
    A, v = Matrix.from_scipy(S), Vector.from_dense(np.ones(4))
    expected = Matrix.from_dense(DENSE)
    A.T.indices, A._value_range(), A.is_symmetric()
    if format == "csr":
        written(S)
    assert A.isequal(expected) and A.T.isequal(expected.T)
    for direction in ("push", "pull"):
        assert sg.vxm(v, A, direction=direction).isequal(sg.vxm(v, expected))
    back = A.to_scipy()
    written(back)
    written(A.pattern().to_scipy())
    assert A.isequal(expected) and A.pattern().isequal(expected.pattern())


def test_eliminated_zeros_leave_the_matrix() -> None:
    S = scipy.sparse.csr_array(DENSE)
    A = Matrix.from_scipy(S)
    S.data[1] = 0
    S.eliminate_zeros()
    assert A.isequal(Matrix.from_dense(DENSE)) and A.T.isequal(Matrix.from_dense(DENSE.T))


def test_algorithms_after_the_owner_wrote() -> None:
    S = scipy.sparse.csr_array(DENSE)
    A = Matrix.from_scipy(S)
    before = sg.sssp(A, 0).distance, sg.pagerank(A, weighted=True)
    S.data[:] = -S.data
    after = sg.sssp(A, 0).distance, sg.pagerank(A, weighted=True)
    assert before[0].isequal(after[0]) and before[1].isclose(after[1])
    with pytest.raises(NegativeWeight):  # made anew, of what S says now
        sg.sssp(S, 0)


def test_a_call_keeps_nothing_of_a_scipy_array() -> None:
    """What one call makes of a foreign object borrows; its results do not."""
    S, v = scipy.sparse.csr_array(DENSE), Vector.from_dense(np.ones(4))
    binary, unary, index = semirings.binary, semirings.unary, semirings.indexunary
    A, out = Matrix.from_dense(DENSE), Matrix.empty(4, 4)
    sg.assign(out, S, slice(None), slice(None))
    results = [
        out,
        sg.apply(S, unary.ainv),
        sg.apply(S, unary.identity),
        sg.apply(S, binary.plus, right=1.0),
        sg.select(S, index.tril, -9),
        sg.select(S, index.valuene, 99.0),
        sg.extract(S, slice(None), slice(None)),
        sg.extract(S, [0, 1, 2, 3], [0, 1, 2, 3]),
        sg.extract(S, 0),
        sg.transpose(S),
        sg.transpose(sg.transpose(S)),
        sg.mxm(S, S),
        sg.ewise_add(S, S, binary.plus),
        sg.ewise_add(S, Matrix.empty(4, 4), binary.plus),
        sg.ewise_mult(S, A.pattern(), binary.first),
        sg.ewise_union(S, A, binary.plus, left=0.0, right=0.0),
        sg.block_array([[S]]),
        sg.block_array([[S], [S]]),
        sg.kronecker(S, Matrix.from_dense([[1.0]])),
        sg.diag(S),
        sg.reduce_rowwise(S),
        sg.vxm(v, S),
        sg.bfs(S, 0).level,
        sg.sssp(S, 0).distance,
        sg.pagerank(S),
        sg.minimum_spanning_tree(S + S.T),
        *(sg.assign(Matrix.empty(4, 4, kind), S) for kind in ("float64", "float32")),
        sg.assign(Matrix.empty(4, 4, "float32"), S, mask=A.S, replace=True),
        Matrix.from_dense([[2.0]]).multiply(S),
    ]
    names = "_indptr", "_indices", "_values", "_bits"
    theirs = S.indptr, S.indices, S.data
    keeping = [
        k
        for k, result in enumerate(results)
        for ours in (getattr(result, name, None) for name in names)
        if ours is not None and any(np.shares_memory(ours, array) for array in theirs)
    ]
    assert not keeping
    assert len(results) == 30


def test_a_graph_that_one_call_reads_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    S, made = scipy.sparse.csr_array(DENSE), []
    plain = Matrix._of

    def noted(*arguments: Any, **options: Any) -> Matrix:
        A = plain(*arguments, **options)
        made.append(np.shares_memory(A._values, S.data))
        return A

    monkeypatch.setattr(Matrix, "_of", noted)
    sg.bfs(S, 0)
    sg.csgraph.dijkstra(S)
    assert any(made)


def test_a_copy_without_memory_names_the_way_without(monkeypatch: pytest.MonkeyPatch) -> None:
    class Huge(np.ndarray):
        def copy(self, order: Any = "C") -> Any:
            raise MemoryError

    S = scipy.sparse.csr_array(DENSE)
    A = Matrix.from_scipy(S)
    arrays = tuple(a.view(Huge) for a in (S.indptr, S.indices, S.data))
    monkeypatch.setattr("spgraph.containers.methods.conversions.checked", lambda *given: arrays)
    monkeypatch.setattr("spgraph.containers.methods.conversions.ascends", lambda *given: True)
    with pytest.raises(MemoryError, match=r"from_scipy: .* 104 bytes of S; copy=False borrows"):
        Matrix.from_scipy(S)
    assert Matrix.from_scipy(S, copy=False).nvals == 7
    A._values = A._values.view(Huge)
    with pytest.raises(MemoryError, match="to_scipy: .* copy=False borrows"):
        A.to_scipy()
    assert A.to_scipy(copy=False).nnz == 7


# --- nothing from outside is believed -------------------------------------------------------------


def broken(name: str) -> Any:
    S = scipy.sparse.csr_array(DENSE)
    if name == "ids too large":
        S.indices[2] = 4
    elif name == "ids below zero":
        S.indices[0] = -1
    elif name == "offsets fall":
        S.indptr[2] = 6
        S.indptr[1] = 7
    elif name == "offsets do not begin at 0":
        S.indptr[0] = 1
    elif name == "offsets far away":
        S.indptr[2] = 2**31 - 1
    elif name == "too few offsets":
        S.indptr = S.indptr[:-1]
    elif name == "too few ids":
        S.indices = S.indices[:-1]
    elif name == "too few values":
        S.data = S.data[:-1]
    elif name == "values in two dimensions":
        S.data = S.data.reshape(-1, 1)
    else:
        assert name == "ids are no integers"
        S.indices = S.indices.astype(float)
    return S


BROKEN = [
    "ids too large",
    "ids below zero",
    "offsets fall",
    "offsets do not begin at 0",
    "offsets far away",
    "too few offsets",
    "too few ids",
    "too few values",
    "values in two dimensions",
    "ids are no integers",
]


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("known", [False, True])
def test_broken_rows_are_refused(name: str, known: bool) -> None:
    S = broken(name)
    if known:  # SciPy keeps what it once found
        S.has_canonical_format = True
    for call in (
        Matrix.from_scipy,
        lambda S: Matrix.from_scipy(S, copy=False),
        lambda S: sg.bfs(S, 0),
        sg.csgraph.dijkstra,
        sg.csgraph.csgraph_to_dense,
        sg.csgraph.connected_components,
    ):
        with pytest.raises(FormatError, match=r"S\.(indptr|indices|data)"):
            call(S)


@pytest.mark.parametrize("format", ["csc", "bsr", "coo", "dia"])
def test_broken_arrays_of_other_formats_are_refused(format: str) -> None:
    S = scipy.sparse.csr_array(np.kron(DENSE, np.ones((2, 2)))).asformat(format)
    if format == "coo":
        S.row[3] = 1 << 20
    elif format == "dia":
        S.offsets = np.append(S.offsets, S.offsets)
    else:
        S.indices[1] = 1 << 20
    with pytest.raises(FormatError, match="from_scipy: "):
        Matrix.from_scipy(S)
    if format == "coo":
        S = scipy.sparse.coo_array(DENSE)
        S.coords = S.coords[0][:-1], S.coords[1]
        with pytest.raises(FormatError, match="one a value"):
            Matrix.from_scipy(S)


def test_a_flag_of_scipy_may_be_stale() -> None:
    S = scipy.sparse.csr_array(DENSE)
    assert S.has_canonical_format
    S.indices[:2] = S.indices[1::-1].copy()
    S.data[:2] = S.data[1::-1].copy()
    A = Matrix.from_scipy(S, copy=False)
    assert A.isequal(Matrix.from_dense(DENSE))
    S = scipy.sparse.csr_array(DENSE)
    assert S.has_canonical_format
    S.indices[1] = S.indices[0]
    assert list(Matrix.from_scipy(S))[:2] == [(0, 1, 3.0), (1, 0, 3.0)]
    assert S.nnz == 7, "the owner's array is left as it was"


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 1000])
def test_order_is_checked_across_pieces(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressed, "PIECE", piece)
    chance = np.random.default_rng(piece)
    verdicts = []
    for _ in range(300):
        lengths = chance.integers(0, 4, 6)
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        rows = [np.sort(chance.choice(9, n, replace=chance.random() < 0.3)) for n in lengths]
        indices = np.concatenate(rows).astype(np.int32)
        expected = all((np.diff(row) > 0).all() for row in rows)
        assert compressed.ascends(indptr, indices) == expected
        verdicts.append(expected)
    assert 50 < sum(verdicts) < 290


def test_ids_of_other_types_and_strides() -> None:
    S = scipy.sparse.csr_array(DENSE)
    S.indices, S.indptr = S.indices.astype(np.uint16), S.indptr.astype(">i4")
    S.data = np.repeat(S.data, 2)[::2]
    A = Matrix.from_scipy(S, copy=False)
    assert A.isequal(Matrix.from_dense(DENSE)) and A._values.flags.c_contiguous
    sg.bfs(A, 0)


def test_mapped_arrays_are_borrowed(tmp_path: Any, launched: list[str]) -> None:
    S = scipy.sparse.csr_array(DENSE)
    for name in ("indptr", "indices", "data"):
        np.save(tmp_path / f"{name}.npy", getattr(S, name))
        setattr(S, name, np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    A = Matrix.from_scipy(S, copy=False)
    assert np.shares_memory(A._values, S.data)
    assert sg.sssp(A, 0).distance.isequal(sg.sssp(Matrix.from_dense(DENSE), 0).distance)
    sg.csgraph.dijkstra(S)
    assert not launched


@pytest.mark.gpu
def test_cupyx_arrays_are_copied_or_borrowed() -> None:
    A = Matrix.from_dense(DENSE).to("cuda")
    S = A.to_cupyx()
    B, C = Matrix.from_cupyx(S), Matrix.from_cupyx(S, copy=False)
    assert C._values.data.ptr == S.data.data.ptr != B._values.data.ptr
    assert A.to_cupyx(copy=False).data.data.ptr == A._values.data.ptr != S.data.data.ptr
    S.data[:] = 7
    assert A.isequal(Matrix.from_dense(DENSE).to("cuda")) and A.isequal(B) and not A.isequal(C)
    S.indices[2] = 4
    for call in (Matrix.from_cupyx, lambda S: sg.bfs(S, 0), sg.csgraph.connected_components):
        with pytest.raises(FormatError, match="S.indices"):
            call(S)
    S = A.to_cupyx()
    assert S.has_canonical_format
    S.indices[:2] = S.indices[1::-1].copy()
    S.data[:2] = S.data[1::-1].copy()
    assert Matrix.from_cupyx(S, copy=False).isequal(A)


def test_nothing_is_sent_of_an_empty_array() -> None:
    """There is no byte whose address the driver could be given."""
    made = object()
    device: Any = SimpleNamespace(empty=lambda shape, dtype: made)
    assert sent(np.empty(0, np.int64), device) is made


@pytest.mark.gpu
@pytest.mark.parametrize("elements", [1, 8192])
def test_what_was_sent_may_be_overwritten(elements: int) -> None:
    """The driver has copied the bytes though the GPU is busy, in any stream."""
    import cupy

    text = """extern "C" __global__ void spin(long long cycles) {
        for (const long long end = clock64() + cycles; clock64() < end;);
    }"""
    spin = cupy.RawKernel(text, "spin")
    for stream in (cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True)):
        with stream:
            for cycles in (1, 200_000_000):  # the first compiles the kernel and takes the memory
                given = np.arange(5, 5 + elements)
                spin((1,), (1,), (cycles,))
                made = sent(given, cupy)
                given[:] = -1
                assert made.tolist() == list(range(5, 5 + elements)), cycles
                del made


@pytest.mark.gpu
def test_arrays_of_cuda_have_no_such_flag() -> None:
    A = Matrix.from_dense(DENSE).to("cuda")
    assert A.values is A._values and A.T.indices is A.T._indices
    v = Vector.from_coo([3, 50], [1.0, 2.0], size=99).to("cuda")
    assert v.indices is v._indices and v.bits is None
