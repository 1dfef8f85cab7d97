"""The backends' operations on matrices against plain loops over dictionaries and against SciPy.

Every test runs on the CPU backend, on the CUDA backend as the shim runs it (see cuda_host_shim.py)
and, marked `gpu`, on a GPU.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import cuda_host_shim as shim
import numpy as np
import pytest

from spgraph.backends import cpu, cuda
from spgraph.backends.cpu.runtime import pool
from spgraph.backends.cuda.runtime import jit as cuda_jit
from spgraph.containers import Mask, Matrix, Vector
from spgraph.containers.storage.arrays import index_dtype
from spgraph.semirings import binary, indexunary, unary

INT32, INT64 = np.dtype("int32"), np.dtype("int64")
# one pair of types and mostly one operator: every other one has to be compiled
MINUS = binary.minus.resolve(INT32, INT64)
# types of (indptr, indices) of two operands
INDICES = [((INT32, INT32), (INT32, INT32)), ((INT32, INT64), (INT64, INT32))]
SHAPES = [(0, 0), (0, 4), (1, 1), (1, 20), (3, 0), (20, 1), (7, 5), (5, 7), (13, 13), (20, 20)]
MASKS = ["none", "S", "V", "~S", "~V"]

Entries = dict[tuple[int, int], Any]


class Place(NamedTuple):
    """A backend, and where its containers live."""

    module: ModuleType
    device: str
    shapes: list[tuple[int, int]]
    launcher: ModuleType

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The backend's function of that name, over containers that live on the CPU."""
        function = getattr(self.module, name)

        def call(*arguments: Any) -> Any:
            result = function(*(self.there(argument) for argument in arguments))
            return None if result is None else result.to("cpu")

        return call

    def there(self, argument: Any) -> Any:
        if isinstance(argument, Mask):
            return Mask(argument.parent.to(self.device), argument.structure, argument.complement)
        if isinstance(argument, Matrix | Vector):
            return argument.to(self.device)
        if isinstance(argument, np.ndarray) and self.device != "cpu":
            import cupy

            return cupy.asarray(argument)
        return argument


BACKENDS: dict[str, list[pytest.MarkDecorator]] = {
    "cpu-1": [],
    "cpu-2": [],
    "cpu-3": [],
    "shim": [pytest.mark.skipif(shim.COMPILER is None, reason="needs g++")],
    "cuda": [pytest.mark.gpu],
}


def over(types: list[Any], *, wide: bool = True) -> pytest.MarkDecorator:
    """Every backend over every one of `types`, the first of which are those of all other tests: the
    shim, which is slow to compile, runs them only under `full`, and the CPU backend the others if
    they are not `wide`, as tests/operations/test_matrices.py has all kernels over wide indices.
    """
    cases = [
        pytest.param(
            name,
            each,
            id=f"{name}-{k}",
            marks=[*marks, pytest.mark.full]
            if (name == "shim" and k == 0) or (name[:3] == "cpu" and k > 0 and not wide)
            else marks,
        )
        for name, marks in BACKENDS.items()
        for k, each in enumerate(types)
    ]
    return pytest.mark.parametrize(("backend", "types"), cases, indirect=["backend"])


@pytest.fixture(params=[pytest.param(name, marks=marks) for name, marks in BACKENDS.items()])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """The CPU backend with 1, 2 and 3 threads, the CUDA backend on the shim and on a GPU."""
    kind, _, threads = request.param.partition("-")
    if kind == "cpu":
        request.getfixturevalue("three_workers")
        monkeypatch.setattr(pool, "threads_for", lambda work, *share: int(threads))
    elif kind == "shim":
        shim.install(monkeypatch)
    # on the shim every block of a launch costs as much as one of these matrices on the CPU
    shapes = SHAPES[1::2] if kind == "shim" else SHAPES
    if kind == "cpu":
        yield Place(cpu, "cpu", shapes, pool)
    else:
        yield Place(cuda, "cuda" if kind == "cuda" else "cpu", shapes, cuda_jit)


@pytest.fixture(scope="module")
def three_workers() -> Iterator[None]:
    """Workers for launches of three threads, which wait for each other, on any machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "processors", lambda: 3)
        pool.close()
        yield
        pool.close()


# --- matrices as dictionaries ---------------------------------------------------------------------


def draw(
    chance: np.random.Generator,
    shape: tuple[int, int],
    dtype: np.dtype = INT64,
    types: tuple[np.dtype, np.dtype] = (INT32, INT32),
    *,
    iso: bool = False,
) -> Matrix:
    """A random matrix; values are 0 to 3, so that some are false."""
    # the share of entries differs from row to row: some are empty, some complete
    share = chance.choice([0.0, 0.1, 0.5, 1.0], (shape[0], 1))
    present = chance.random(shape) < share
    rows, columns = np.nonzero(present)
    indptr = np.concatenate(([0], np.cumsum(present.sum(axis=1)))).astype(types[0])
    values = chance.integers(0, 4, 1 if iso else rows.size).astype(dtype)
    return Matrix._of(*shape, indptr, columns.astype(types[1]), values, iso=iso)


def entries(A: Matrix) -> Entries:
    """The entries by position, after a look at what every result has to be."""
    A = A.to("cpu")
    assert A.indptr.size == A.nrows + 1 and A.indptr[0] == 0 and A.indptr[-1] == A.indices.size
    assert A.values.size == (1 if A.iso else A.nvals)
    for i in range(A.nrows):
        row = A.indices[A.indptr[i] : A.indptr[i + 1]].astype(np.int64)
        assert (np.diff(row) > 0).all(), "columns ascend, each once"
        assert row.size == 0 or (row[0] >= 0 and row[-1] < A.ncols)
    rows, columns, values = (part.tolist() for part in A.to_coo())
    return dict(zip(zip(rows, columns, strict=True), values, strict=True))


def equal(got: Matrix, expected: Entries, dtype: np.dtype, *, own: bool = True) -> None:
    """The entries, their type and, where the index arrays are the result's own, the smallest index
    types.
    """
    assert got.dtype == dtype
    assert entries(got) == {at: dtype.type(value) for at, value in expected.items()}
    if own:
        assert got.indptr.dtype == index_dtype(got.nvals)
        assert got.indices.dtype == index_dtype(max(got.shape))


# --- element by element ---------------------------------------------------------------------------


@over(INDICES)
@pytest.mark.parametrize("how", ["union", "intersection", "both scalars"])
def test_ewise(backend: Place, how: str, types: Any) -> None:
    scalars = (np.int32(50), np.int64(70)) if how == "both scalars" else ()
    chance = np.random.default_rng(1)
    for shape, (iso, other_iso) in itertools.product(
        backend.shapes, [(0, 0), (1, 0), (0, 1), (1, 1)]
    ):
        A = draw(chance, shape, INT32, types[0], iso=bool(iso))
        B = draw(chance, shape, INT64, types[1], iso=bool(other_iso))
        a, b = entries(A), entries(B)
        expected = {at: a[at] - b[at] for at in a.keys() & b.keys()}
        if how == "union":
            expected |= {at: a[at] for at in a.keys() - b.keys()}
            expected |= {at: b[at] for at in b.keys() - a.keys()}
        elif how == "both scalars":
            expected |= {at: a[at] - 70 for at in a.keys() - b.keys()}
            expected |= {at: 50 - b[at] for at in b.keys() - a.keys()}
        C = backend.ewise_matrix(A, B, MINUS, how != "intersection", *scalars)
        equal(C, expected, INT64)
        assert C.iso or not (iso and other_iso and how == "intersection")


def test_ewise_positions(backend: Place) -> None:
    """An operator that looks at positions; both operands hold an entry at the same one."""
    chance = np.random.default_rng(2)
    op = binary.secondj.resolve(INT32, INT64, index=INT64)
    for shape, iso in itertools.product(backend.shapes, (False, True)):
        A, B = draw(chance, shape, INT32, iso=iso), draw(chance, shape, INT64, iso=iso)
        a, b = entries(A), entries(B)
        expected = {at: at[1] for at in a.keys() & b.keys()}
        equal(backend.ewise_matrix(A, B, op, False), expected, INT64)
        expected |= {at: a[at] for at in a.keys() - b.keys()}
        expected |= {at: b[at] for at in b.keys() - a.keys()}
        equal(backend.ewise_matrix(A, B, op, True), expected, INT64)


def test_union_of_one_value_is_iso(backend: Place) -> None:
    """2 - 1 wherever there is an entry."""
    chance = np.random.default_rng(3)
    A, B = draw(chance, (9, 9), INT32, iso=True), draw(chance, (9, 9), INT64, iso=True)
    A._values[0], B._values[0] = 2, 1
    C = backend.ewise_matrix(A, B, MINUS, True, np.int32(2), np.int64(1))
    assert C.iso and entries(C) == dict.fromkeys(entries(A) | entries(B), 1)


def uneven(seed: int, dtype: np.dtype = INT32) -> Matrix:
    """Rows of very different lengths: what is short in one is long in another."""
    chance = np.random.default_rng(seed)
    lengths = chance.permutation([0, 1, 2, 3, 17, 33, 64, 200, 1000, 2999, 3000] * 3)
    columns = [np.sort(chance.choice(3000, length, replace=False)) for length in lengths]
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    values = chance.integers(1, 9, int(indptr[-1])).astype(dtype)
    return Matrix._of(lengths.size, 3000, indptr, np.concatenate(columns).astype(np.int32), values)


def test_uneven_rows(backend: Place) -> None:
    A, B = uneven(1), uneven(2, INT64)
    a, b = entries(A), entries(B)
    common = {at: a[at] - b[at] for at in a.keys() & b.keys()}
    equal(backend.ewise_matrix(A, B, MINUS, False), common, INT64)
    equal(backend.ewise_matrix(A, B, MINUS, True), a | b | common, INT64)
    equal(backend.transpose(A), {(j, i): value for (i, j), value in a.items()}, INT32)
    for mask, there in ((A.S, True), (~A.S, False)):
        got = written(backend, Matrix.empty(*A.shape, INT32), B, mask, None, True)
        expected = {at: value for at, value in b.items() if (at in a) == there}
        equal(got, expected, INT32)


# --- apply and select -----------------------------------------------------------------------------


@over([both[0] for both in INDICES])
def test_apply(backend: Place, types: Any) -> None:
    cases: list[tuple[Any, str, Any, Callable[[int, int, int], Any]]] = [
        (unary.ainv.resolve(INT32), "unary", np.False_, lambda x, i, j: -x),
        (binary.minus.resolve(INT64, INT32), "left", np.int64(9), lambda x, i, j: 9 - x),
        (MINUS, "right", np.int64(9), lambda x, i, j: x - 9),
        (binary.firsti.resolve(INT32, INT64), "right", np.int64(9), lambda x, i, j: i),
        (
            indexunary.diagindex.resolve(INT32, INT64),
            "index",
            np.int64(9),
            lambda x, i, j: j - i + 9,
        ),
    ]
    chance = np.random.default_rng(4)
    for (op, kind, scalar, rule), iso in itertools.product(cases, (False, True)):
        looks = kind == "index" or op.name == "firsti"
        for shape in backend.shapes:
            A = draw(chance, shape, INT32, types, iso=iso)
            C = backend.apply_matrix(A, op, kind, scalar)
            equal(
                C, {(i, j): rule(x, i, j) for (i, j), x in entries(A).items()}, op.result, own=False
            )
            assert C.iso == (iso and not looks)


@over([both[0] for both in INDICES])
def test_select(backend: Place, types: Any) -> None:
    cases: list[tuple[Any, Any, Callable[[int, int, int], bool]]] = [
        (indexunary.tril.resolve(INT32, INT64), np.int64(1), lambda x, i, j: j <= i + 1),
        (indexunary.valuegt.resolve(INT32, INT32), np.int32(1), lambda x, i, j: x > 1),
        (indexunary.valuegt.resolve(INT32, INT32), np.int32(-1), lambda x, i, j: True),
    ]
    chance = np.random.default_rng(5)
    for (op, thunk, rule), iso in itertools.product(cases, (False, True)):
        for shape in backend.shapes:
            A = draw(chance, shape, INT32, types, iso=iso)
            C = backend.select_matrix(A, op, thunk)
            equal(C, {(i, j): x for (i, j), x in entries(A).items() if rule(x, i, j)}, INT32)
            assert C.iso == iso


# --- write ----------------------------------------------------------------------------------------


def mask_of(M: Matrix, kind: str) -> Mask | None:
    if kind == "none":
        return None
    mask = M.S if kind[-1] == "S" else M.V
    return ~mask if kind[0] == "~" else mask


def allowed_by(M: Matrix, kind: str) -> Callable[[tuple[int, int]], bool]:
    m = entries(M)
    if kind == "none":
        return lambda at: True
    stored = set(m) if kind[-1] == "S" else {at for at, value in m.items() if value}
    return lambda at: (at in stored) != (kind[0] == "~")


def written(
    backend: Place, out: Matrix, t: Matrix, mask: Mask | None, accum: Any, replace: bool
) -> Matrix:
    """What `out` is afterwards; t is given away."""
    there = out.dup().to(backend.device)
    assert backend.write_matrix(there, t.dup(), mask, accum, replace) is None
    return there.to("cpu")


@over(INDICES, wide=False)
@pytest.mark.parametrize("kind", MASKS)
def test_write(backend: Place, kind: str, types: Any) -> None:
    chance = np.random.default_rng(6)
    for shape, accum, replace in itertools.product(backend.shapes, (None, MINUS), (False, True)):
        out_iso, t_iso, m_iso = (bool(flag) for flag in chance.integers(0, 2, 3))
        out = draw(chance, shape, INT32, types[0], iso=out_iso)
        t = draw(chance, shape, INT64, types[1], iso=t_iso)
        M = draw(chance, shape, INT32, types[0], iso=m_iso)
        c, new, allowed = entries(out), entries(t), allowed_by(M, kind)
        z = dict(new)
        if accum is not None:
            z = c | {at: c[at] - value if at in c else value for at, value in new.items()}
        expected = {at: value for at, value in z.items() if allowed(at)}
        if not replace:
            expected |= {at: value for at, value in c.items() if not allowed(at)}
        got = written(backend, out, t, mask_of(M, kind), accum, replace)
        equal(got, expected, INT32, own=False)


@pytest.mark.parametrize("kind", MASKS[1:])
def test_write_under_its_own_mask(backend: Place, kind: str) -> None:
    chance = np.random.default_rng(7)
    for shape in backend.shapes:
        out, t = draw(chance, shape, INT32), draw(chance, shape, INT64)
        c, allowed = entries(out), allowed_by(out, kind)
        expected = {at: value for at, value in entries(t).items() if allowed(at)}
        expected |= {at: value for at, value in c.items() if not allowed(at)}
        there = out.dup().to(backend.device)
        mask = mask_of(there, kind)
        backend.write_matrix(there, t.dup(), mask, None, False)
        equal(there.to("cpu"), expected, INT32, own=False)


def test_failed_write_changes_nothing(backend: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever launch fails, `out` keeps its arrays and what they hold."""
    chance = np.random.default_rng(16)
    out, t = draw(chance, (13, 13), INT32), draw(chance, (13, 13), INT64)
    M = draw(chance, (13, 13), INT32)
    before, launch = entries(out), backend.launcher.launch
    there = out.to(backend.device)
    arrays = there._indptr, there._indices, there._values
    left = 0

    def failing(*arguments: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise MemoryError
        launch(*arguments)

    monkeypatch.setattr(backend.launcher, "launch", failing)
    for launches in range(20):
        left = launches
        try:
            backend.write_matrix(there, t.dup(), M.V, MINUS, True)
            break
        except MemoryError:
            now = there._indptr, there._indices, there._values
            assert all(x is y for x, y in zip(now, arrays, strict=True))
            assert entries(there) == before
    assert launches >= 2 and entries(there) != before


def test_write_forgets_what_was_derived(backend: Place) -> None:
    out = Matrix.from_dense(np.array([[0, 1], [1, 0]])).to(backend.device)
    assert out.is_symmetric() and out._nonempty_count() == 2
    backend.write_matrix(out, Matrix.from_dense(np.array([[0, 5], [0, 0]])), None, None, False)
    assert not out.is_symmetric() and out._nonempty_count() == 1
    assert entries(out.T) == {(1, 0): 5}


def test_other_values_may_be_symmetric(backend: Place) -> None:
    """That A is known to differ from its transpose says nothing of a function of its values."""
    A = Matrix.from_dense(np.array([[0, 1], [1 + 2**32, 0]]))
    assert not A.is_symmetric()
    assert backend.apply_matrix(A, unary.one.resolve(INT64), "unary", np.False_).is_symmetric()
    assert written(backend, Matrix.empty(2, 2, INT32), A, None, None, False).is_symmetric()


# --- vectors --------------------------------------------------------------------------------------


def draw_vector(chance: np.random.Generator, size: int, share: float, dtype: np.dtype) -> Vector:
    ids = np.flatnonzero(chance.random(size) < share)
    values = chance.integers(0, 4, ids.size).astype(dtype)
    return Vector._of(size, values, indices=ids.astype(np.int32))._conform()


def vector_entries(v: Vector) -> dict[int, Any]:
    ids, values = (part.tolist() for part in v.to_coo())
    return dict(zip(ids, values, strict=True))


SHARES = [0.0, 0.02, 0.5, 1.1]


def test_vector_union_with_scalars(backend: Place) -> None:
    chance = np.random.default_rng(14)
    for size, share, other in itertools.product((0, 32, 777), SHARES, SHARES):
        u = draw_vector(chance, size, share, INT32)
        v = draw_vector(chance, size, other, INT64)
        a, b = vector_entries(u), vector_entries(v)
        expected = {i: a.get(i, 50) - b.get(i, 70) for i in a.keys() | b.keys()}
        got = backend.ewise(u, v, MINUS, True, np.int32(50), np.int64(70))
        assert got.dtype == INT64 and vector_entries(got) == expected


def test_scatter(backend: Place) -> None:
    """Repeated positions, in order: minus tells the order of the first two apart."""
    chance = np.random.default_rng(15)
    for size, share, count in itertools.product((1, 32, 777), SHARES, (0, 1, 2000)):
        w = draw_vector(chance, size, share, INT32)
        before = vector_entries(w)
        ids = chance.integers(0, size, count).astype(np.int32 if count else np.int64)
        values = chance.integers(-9, 9, count)
        expected = dict(before)
        for i, value in zip(ids.tolist(), values.tolist(), strict=True):
            expected[i] = expected[i] - value if i in expected else value
        z = backend.scatter(w, ids, values, MINUS)
        assert z.dtype == INT32 and vector_entries(z) == expected
        assert vector_entries(w) == before
