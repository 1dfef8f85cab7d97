"""Operators and indexing of containers, iteration, pickles and copies."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph.errors import DomainMismatch, FormatError, IndexOutOfBound
from spgraph.semirings import binary


def A(device: str = "cpu") -> sg.Matrix:
    return sg.Matrix.from_coo([0, 0, 1, 2], [0, 2, 1, 0], [1, -2, 3, 4], nrows=3, ncols=3).to(
        device
    )


def B(device: str = "cpu") -> sg.Matrix:
    return sg.Matrix.from_coo([0, 1, 2], [0, 0, 2], [10, 20, 30], nrows=3, ncols=3).to(device)


def u(device: str = "cpu") -> sg.Vector:
    return sg.Vector.from_coo([0, 2], [5, 7], size=3).to(device)


def w(device: str = "cpu") -> sg.Vector:
    return sg.Vector.from_coo([1, 2], [1, 2], size=3).to(device)


def test_arithmetic_of_matrices(device: str) -> None:
    x, y = A(device), B(device)
    assert list(x + y) == [(0, 0, 11), (0, 2, -2), (1, 0, 20), (1, 1, 3), (2, 0, 4), (2, 2, 30)]
    assert list(x - y) == [(0, 0, -9), (0, 2, -2), (1, 0, -20), (1, 1, 3), (2, 0, 4), (2, 2, -30)]
    assert list(x * y) == [(0, 0, 10)]
    assert list(x / y) == [(0, 0, 0.1)]
    assert list(2 * x) == list(x * 2) == [(0, 0, 2), (0, 2, -4), (1, 1, 6), (2, 0, 8)]
    assert list(1 - x) == [(0, 0, 0), (0, 2, 3), (1, 1, -2), (2, 0, -3)]
    assert list(x**2) == [(0, 0, 1), (0, 2, 4), (1, 1, 9), (2, 0, 16)]
    assert list(1 / (x * 2)) == [(0, 0, 0.5), (0, 2, -0.25), (1, 1, 1 / 6), (2, 0, 0.125)]
    assert list(-x)[1] == (0, 2, 2) and list(abs(x))[1] == (0, 2, 2)


def test_arithmetic_of_vectors(device: str) -> None:
    x, y = u(device), w(device)
    assert list(x + y) == [(0, 5), (1, 1), (2, 9)]
    assert list(x - y) == [(0, 5), (1, -1), (2, 5)]
    assert list(x * y) == [(2, 14)]
    assert list(x + 1) == [(0, 6), (2, 8)]
    assert x @ y == 14
    assert list(np.float64(2) * x) == [(0, 10.0), (2, 14.0)]
    assert list((x > 5) | (y < 2)) == [(0, False), (1, True), (2, True)]
    assert list((x > 5) & (y < 2)) == [(2, False)]


def test_comparisons_are_masks(device: str) -> None:
    x, y = A(device), B(device)
    small = x < 2
    assert small.dtype == np.bool_
    assert list(small) == [(0, 0, True), (0, 2, True), (1, 1, False), (2, 0, False)]
    assert list(x[small.V]) == [(0, 0, 1), (0, 2, -2)]
    assert list(x[~small.V]) == [(1, 1, 3), (2, 0, 4)]
    assert list(x == y) == [(0, 0, False)] and list(x != y) == [(0, 0, True)]
    x[small.V] = 0
    assert list(x) == [(0, 0, 0), (0, 2, 0), (1, 1, 3), (2, 0, 4)]
    v = u(device)
    v[(v >= 6).V] = -1
    assert list(v) == [(0, 5), (2, -1)]


def test_products(device: str) -> None:
    x, y, v = A(device), B(device), u(device)
    dense = A().to_scipy().toarray(), B().to_scipy().toarray(), u().to_numpy(fill=0)
    assert (x @ y).to_scipy().toarray().tolist() == (dense[0] @ dense[1]).tolist()
    assert (x @ v).to_numpy(fill=0).tolist() == (dense[0] @ dense[2]).tolist()
    assert (v @ x).to_numpy(fill=0).tolist() == (dense[2] @ dense[0]).tolist()
    assert (x.T @ v).to_numpy(fill=0).tolist() == (dense[0].T @ dense[2]).tolist()


def test_products_with_foreign_matrices() -> None:
    S = scipy.sparse.csr_array(B().to_scipy())
    assert (A() @ S).isequal(A() @ B())
    assert (A() + S).isequal(A() + B())
    for call in (
        lambda: u() @ [1, 2, 3],
        lambda: A() @ 3,
    ):
        with pytest.raises(DomainMismatch, match="expected a Matrix or a Vector, got .*sg.Vector"):
            call()
    with pytest.raises(TypeError):
        A() + "1"


def test_reading_entries(device: str) -> None:
    x, v = A(device), u(device)
    assert x[0, 2] == -2 and x[1, 0] is None and x[-1, 0] == 4 and x[2, -3] == 4
    assert v[2] == 7 and v[1] is None and v[-1] == 7
    assert isinstance(x[0, 2], np.int64) and isinstance(v[0], np.int64)
    assert list(x[0]) == [(0, 1), (2, -2)] == list(x[0, :])
    assert list(x[:, 0]) == [(0, 1), (2, 4)]
    assert list(x[1:, ::2]) == [(1, 0, 4)]
    assert list(x[[2, 0, 2], [0, 0]]) == [
        (0, 0, 4), (0, 1, 4), (1, 0, 1), (1, 1, 1), (2, 0, 4), (2, 1, 4),
    ]  # fmt: skip
    assert list(v[[2, 2, 1]]) == [(0, 7), (1, 7)] and list(v[::-1]) == [(0, 7), (2, 5)]
    assert list(x.T[:, 0]) == list(x[0])
    for call in (lambda: x[3, 0], lambda: x[0, 3], lambda: x[0, -4], lambda: v[3], lambda: v[-4]):
        with pytest.raises(IndexOutOfBound):
            call()
    with pytest.raises(DomainMismatch, match="expected rows and columns, got 3"):
        x[0, 1, 2]


def test_writing_entries(device: str) -> None:
    x, v = A(device), u(device)
    x[1, 2] = 9
    x[0, 0] = -1
    assert list(x) == [(0, 0, -1), (0, 2, -2), (1, 1, 3), (1, 2, 9), (2, 0, 4)]
    x[2] = v
    assert list(x[2]) == [(0, 5), (2, 7)]
    x[:, 1] = v
    assert list(x[:, 1]) == [(0, 5), (2, 7)]
    x[[0, 2], [0, 2]] = sg.Matrix.from_dense([[0, 1], [0, 0]]).to(device)
    assert x[0, 2] == 1 and x[0, 0] is None and x[2, 0] is None and x[2, 2] is None
    v[1] = 8
    v[[0, 2]] = 0
    assert list(v) == [(0, 0), (1, 8), (2, 0)]
    v[:2] = sg.Vector.from_coo([1], [6], size=2).to(device)
    assert list(v) == [(1, 6), (2, 0)]
    y = A(device)
    T = y.T
    y += y
    assert list(y) == [(0, 0, 2), (0, 2, -4), (1, 1, 6), (2, 0, 8)] and T.isequal(A(device).T)


def test_a_transpose_is_a_view(device: str) -> None:
    x = A(device)
    view = x.T
    assert not x.has_transpose and view.T is x and x.T is view
    assert (view.shape, view.nvals, view.dtype, view.device) == (x.shape, 4, x.dtype, x.device)
    x[0, 0] = 50  # the view stays what it was
    assert view[0, 0] == 1 and view.T[0, 0] == 1 and x.T[0, 0] == 50 and x[0, 0] == 50
    assert view.isequal(A(device).T) and pickle.loads(pickle.dumps(A(device).T)).isequal(view)
    made = A(device)
    before = made.T
    assert next(iter(before)) == (0, 0, 1) and made.has_transpose
    made[0, 2] = 7
    assert before[2, 0] == -2 and made.T[2, 0] == 7
    with pytest.raises(AttributeError, match="no attribute 'rows'"):
        _ = made.rows


def symmetric() -> sg.Matrix:
    return sg.Matrix.from_coo([0, 1, 1, 2], [1, 0, 2, 1], [1, 1, 2, 2])


def write_element(T: sg.Matrix) -> None:
    T[0, 1] = 9


WRITES: dict[str, Any] = {
    "element": write_element,
    "assign": lambda T: sg.assign(T, 9, [0], [1]),
    "out": lambda T: sg.mxm(T, T, out=T),
    "apply": lambda T: sg.apply(T, "ainv", out=T),
    "under a mask": lambda T: sg.assign(T, 7, mask=T.S),
    "transpose": lambda T: sg.transpose(T, out=T),
}


@pytest.mark.parametrize("shards", [0, 2])
@pytest.mark.parametrize("known", ["nothing", "symmetry", "arrays", "written"])
@pytest.mark.parametrize("write", WRITES)
def test_a_view_is_only_read(write: str, known: str, shards: int) -> None:
    """Whatever is known of the Matrix: what is written into a view would be there or lost."""
    x: Any = symmetric().distribute(shards) if shards else symmetric()
    if known == "symmetry":
        assert x.is_symmetric()
    elif known == "arrays":
        list(x.T.gather() if shards else x.T)
    view = x.T if known == "written" else None
    if known == "written":
        x.is_symmetric()
        x[0, 0] = 4
    before = x.dup()
    with pytest.raises(TypeError, match=r"only read; A\[j, i\] = x writes"):
        WRITES[write](x.T if view is None else view)
    assert x.isequal(before) and (view is None or view.nvals == 4)


def test_what_is_made_of_a_view_may_be_written() -> None:
    for x in (symmetric(), sg.Matrix([[0, 2], [0, 0]])):
        for made in (
            x.T.dup(),
            x.T.astype(float),
            -x.T,
            x.T + x,
            sg.Matrix(x.T),
            x.transpose(copy=True),
        ):
            back = made.T
            made[0, 1] = 9
            assert made[0, 1] == 9 and x.T[0, 1] != 9 and back[1, 0] != 9
            with pytest.raises(TypeError, match="only read"):
                back[0, 1] = 8
            with pytest.raises(TypeError, match="only read"):
                made.T[0, 1] = 8
    shards = sg.Matrix([[0, 2], [0, 0]]).distribute(2)
    whole = shards.T.gather()
    whole[0, 1] = 5
    assert whole[0, 1] == 5 and shards.T.gather()[0, 1] is None


def test_iteration_is_over_entries() -> None:
    assert list(u()) == [(0, 5), (2, 7)]
    assert list(sg.Matrix.from_coo([1], [0])) == [(1, 0, True)]
    assert len(u()) == 3 and dict(u()) == {0: 5, 2: 7}


def test_containers_have_no_hash() -> None:
    for container in (A(), u()):
        with pytest.raises(TypeError, match="unhashable"):
            hash(container)
        with pytest.raises(TypeError, match="truth value"):
            bool(container == container)


@pytest.mark.parametrize("storage", ["sparse", "bitmap", "full"])
def test_pickle_and_copy_of_vectors(storage: str, device: str) -> None:
    v = sg.Vector.from_dense([3.0, 1.0]) if storage == "full" else u()
    v = (v.to_sparse() if storage == "sparse" else v.to_bitmap()).to(device)
    for made in (pickle.loads(pickle.dumps(v)), copy.copy(v), copy.deepcopy(v), v.dup()):
        assert made.isequal(v, check_dtype=True) and made.storage == v.storage
    before = list(v)
    for other in (copy.deepcopy(v), copy.copy(v)):  # written in place, neither changes the other
        other[0] = 100
        other[1] = 7
        assert list(v) == before and v.nvals == len(before)
    other, before = copy.copy(v), list(v)
    v[1] = 9
    assert list(other) == before and other.nvals == len(before)


def test_copies_of_containers_in_shards() -> None:
    G = A().distribute(2)
    v = u().to(G.device)
    vectors, matrices = ([copy.copy(x), copy.deepcopy(x)] for x in (v, G))
    v[1], G[1, 1] = 9, 9
    assert all(list(other.gather()) == list(u()) for other in vectors)
    assert all(other.gather().isequal(A()) and other.device is G.device for other in matrices)


def test_pickle_and_copy_of_matrices(device: str) -> None:
    iso = sg.Matrix.from_coo([0, 1], [1, 0], symmetric=True).to(device)
    for x in (A(device), iso):
        assert x.T.nvals  # what is kept beside a matrix is no part of it
        text = pickle.dumps(x)
        for made in (pickle.loads(text), copy.deepcopy(x), x.dup()):
            assert made.isequal(x, check_dtype=True)
            assert (made.iso, made.symmetric) == (x.iso, x.symmetric)
        assert len(text) < 2000
    assert A(device).dup(np.float32).dtype == np.float32
    assert u(device).dup(np.int8).dtype == np.int8


def test_isclose(device: str) -> None:
    x = A(device).dup(np.float64)
    y = x * (1 + 1e-9)
    assert not x.isequal(y) and x.isclose(y) and not x.isclose(y * 1.1)
    assert not x.isclose(B(device).dup(np.float64))


def test_wide_indices_survive_files(tmp_path) -> None:  # type: ignore[no-untyped-def]
    wide = sg.Matrix.from_coo([0, 2], [3, 2**40], [1.5, 2.5], nrows=3, ncols=2**40 + 1)
    assert wide.indices.dtype == np.int64
    sg.write(tmp_path / "wide.npz", wide)
    back = sg.read(tmp_path / "wide.npz")
    assert back.isequal(wide, check_dtype=True) and back.indices.dtype == np.int64
    assert back[2, 2**40] == 2.5
    bound = pickle.loads(pickle.dumps(wide))
    assert bound.isequal(wide) and sg.apply(wide, binary.plus, right=1)[0, 3] == 2.5


@pytest.mark.parametrize("storage", ["sparse", "bitmap", "full"])
def test_save_and_load(storage: str, device: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    v = sg.Vector.from_dense([3.0, 1.0]) if storage == "full" else u()
    v = (v.to_sparse() if storage == "sparse" else v.to_bitmap()).to(device)
    for x in (v, sg.Vector.empty(7, np.int8), A(device), sg.Matrix.from_coo([0], [1])):
        sg.save(tmp_path / "x.npz", x)
        back = sg.load(tmp_path / "x.npz")
        assert type(back) is type(x) and back.isequal(x.to("cpu"), check_dtype=True)
    wide = sg.Vector.from_coo([5, 2**40], [1, 2], size=2**40 + 1)
    sg.save(tmp_path / "wide.npz", wide)
    assert sg.load(tmp_path / "wide.npz").isequal(wide, check_dtype=True)
    with pytest.raises(FormatError, match=r"holds a Vector; spgraph\.load"):
        sg.read(tmp_path / "wide.npz")
    with pytest.raises(FormatError, match=r"ends with \.npz"):
        sg.save(tmp_path / "x.npy", v)
    with pytest.raises(FileNotFoundError):
        sg.load(tmp_path / "none.npz")
    for broken in (
        {"shape": [3], "indices": [0, 3], "data": [1, 2]},
        {"shape": [3], "indices": [1, 0], "data": [1, 2]},
        {"shape": [3], "indices": [1], "data": [1, 2]},
        {"shape": [3, 3], "indices": [1], "data": [1]},
    ):
        np.savez(tmp_path / "broken.npz", format=np.array(b"vector"), **broken)
        with pytest.raises(FormatError, match=r"broken\.npz"):
            sg.load(tmp_path / "broken.npz")
