"""What `write` writes, `read` and SciPy read back."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from spgraph import generators
from spgraph.containers import Matrix
from spgraph.io import read, source, write
from spgraph.io.formats import matrix_market

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("written")


def same_arrays(A: Matrix, B: Matrix) -> bool:
    return (
        A.shape == B.shape
        and A.iso == B.iso
        and all(
            x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind == "f")
            for x, y in zip(
                (A.indptr, A.indices, A.values), (B.indptr, B.indices, B.values), strict=True
            )
        )
    )


@st.composite
def matrices(draw: st.DrawFn) -> Matrix:
    """Matrices of any shape, type and pattern, stored zeros, NaN and iso ones included."""
    nrows, ncols = draw(st.integers(0, 6)), draw(st.integers(0, 6))
    present = draw(hnp.arrays(bool, (nrows, ncols)))
    rows, columns = np.nonzero(present)
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    iso = draw(st.booleans())
    count = 1 if iso else rows.size
    values = draw(hnp.arrays(dtype, count, elements=hnp.from_dtype(dtype)))
    index = draw(st.sampled_from([np.int32, np.int64]))
    indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(index)
    return Matrix._of(nrows, ncols, indptr, columns.astype(index), values, iso=iso)


@given(matrices(), st.sampled_from([True, None, False]))
def test_npz_round_trip(folder: Path, A: Matrix, symmetric: bool | None) -> None:
    if A.nrows == A.ncols:
        A.symmetric = symmetric
    write(folder / "g.npz", A)
    B = read(folder / "g.npz")
    D = np.zeros(A.shape, A.dtype)
    rows, columns, values = A.to_coo()
    D[rows, columns] = values
    assert same_arrays(A, B) and B.symmetric in (A.symmetric, None)
    if (
        A.symmetric
        and np.array_equal(D, D.T)
        and set(zip(rows, columns, strict=True)) == set(zip(columns, rows, strict=True))
    ):
        assert B.symmetric
    if not A.iso:
        S = scipy.sparse.load_npz(folder / "g.npz")
        assert S.shape == A.shape and np.array_equal(S.indices, A.indices)
        assert np.array_equal(S.data, A.values, equal_nan=A.dtype.kind == "f")


@given(matrices())
def test_matrix_market_round_trip(folder: Path, A: Matrix) -> None:
    write(folder / "g.mtx", A)
    B = read(folder / "g.mtx")
    if A.shape == (0, 0) or A.nvals == 0:
        assert B.shape == A.shape and B.nvals == 0
        return
    assert np.array_equal(A.indptr, B.indptr) and np.array_equal(A.indices, B.indices)
    x, y = A.expanded_values(), B.expanded_values()
    kinds = {"uint32": "uint64", "uint64": "uint64", "float32": "float64", "float64": "float64"}
    pattern = A.dtype == bool and x.all()
    expected = "bool" if pattern else kinds.get(A.dtype.name, "int64")
    assert y.dtype == expected
    assert np.array_equal(x.astype(y.dtype), y, equal_nan=A.dtype.kind == "f")
    T = scipy.io.mmread(folder / "g.mtx", spmatrix=False).tocsr()
    assert T.shape == A.shape and np.array_equal(T.indices, A.indices)


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zst"])
def test_symmetric_matrix_market(tmp_path: Path, suffix: str) -> None:
    S = scipy.sparse.random_array((40, 40), density=0.1, rng=2).tocsr()
    A = Matrix.from_scipy((S + S.T).tocsr(), symmetric=True)
    path = tmp_path / ("g.mtx" + suffix)
    write(path, A)
    B = read(path)
    assert B.symmetric is True and same_arrays(A, B)
    P = Matrix._of(40, 40, A.indptr, A.indices, np.ones(1, bool), iso=True, symmetric=True)
    write(path, P)
    B = read(path)
    assert B.symmetric is True and same_arrays(P, B)
    if not suffix:
        assert path.read_text().startswith("%%MatrixMarket matrix coordinate pattern symmetric")


def test_wide_indices_survive(tmp_path: Path) -> None:
    far = 2**40
    A = Matrix._of(2, far + 1, np.array([0, 1, 2]), np.array([far, 5]), np.ones(1, bool), iso=True)
    write(tmp_path / "g.npz", A)
    assert same_arrays(A, read(tmp_path / "g.npz"))


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("compressed", [True, False])
def test_npz_of_scipy(tmp_path: Path, layout: str, compressed: bool) -> None:
    S = scipy.sparse.random_array((20, 30), density=0.2, rng=7).asformat(layout)
    scipy.sparse.save_npz(tmp_path / "g.npz", S, compressed=compressed)
    A = read(tmp_path / "g.npz")
    assert A.symmetric is False and A.dtype == np.float64
    assert np.array_equal(A.to_scipy().toarray(), S.toarray())
    if layout != "dia":  # dia stores zeros
        assert A.nvals == S.nnz
    scipy.sparse.save_npz(tmp_path / "m.npz", scipy.sparse.csr_matrix(S))
    assert read(tmp_path / "m.npz").isequal(read(tmp_path / "g.npz"))


def test_npz_in_any_order_and_with_duplicates(tmp_path: Path) -> None:
    S = scipy.sparse.csr_array(
        (np.array([1.0, 2, 4, 8]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])), shape=(2, 3)
    )
    scipy.sparse.save_npz(tmp_path / "g.npz", S)
    A = read(tmp_path / "g.npz")
    assert A.indices.tolist() == [0, 2, 1] and A.values.tolist() == [2.0, 5.0, 8.0]
    with pytest.raises(ValueError, match="square"):
        read(tmp_path / "g.npz", symmetric=True)


def test_npz_made_symmetric(tmp_path: Path) -> None:
    path = tmp_path / "g.npz"
    write(path, Matrix.from_scipy(scipy.sparse.csr_array([[1, 7], [3, 0]])))
    A = read(path, symmetric=True)
    assert A.symmetric and A.to_scipy().toarray().tolist() == [[1, 3], [3, 0]]
    iso = Matrix._of(2, 2, np.array([0, 1, 1]), np.array([1]), np.array([2.5]), iso=True)
    write(path, iso)
    A = read(path, symmetric=True)
    assert A.iso and A.values.tolist() == [2.5] and A.indices.tolist() == [1, 0]


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_compressed_npz_reads(tmp_path: Path, suffix: str) -> None:
    write(tmp_path / "g.npz", scipy.sparse.eye_array(9).tocsr())
    path = tmp_path / f"h.npz{suffix}"
    with source.open_compressed(str(path), suffix, "wb") as stream:
        stream.write((tmp_path / "g.npz").read_bytes())
    assert read(path).isequal(read(tmp_path / "g.npz"))


@pytest.mark.parametrize("make", [lambda S: S, lambda S: S.toarray(), lambda S: S.tocoo()])
def test_write_takes_what_a_matrix_is_made_from(tmp_path: Path, make: Any) -> None:
    S = scipy.sparse.eye_array(3).tocsr()
    write(os.fspath(tmp_path / "g.npz"), make(S))
    assert np.array_equal(read(tmp_path / "g.npz").to_scipy().toarray(), np.eye(3))


def test_the_file_is_an_ordinary_one(tmp_path: Path) -> None:
    """Permissions as any new file has, a link still a link, no leftovers."""
    (tmp_path / "plain").touch()
    S = scipy.sparse.eye_array(3).tocsr()
    write(tmp_path / "g.npz", S)
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "g.npz")}
    assert len(modes) == 1
    (tmp_path / "link.npz").symlink_to("g.npz")
    write(tmp_path / "link.npz", 2 * S)
    assert (tmp_path / "link.npz").is_symlink()
    assert read(tmp_path / "g.npz").values.tolist() == [2.0, 2.0, 2.0]
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "float64"])
@pytest.mark.parametrize("symmetric", [False, True])
def test_matrix_market_is_written_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str, symmetric: bool
) -> None:
    """Between them Ctrl-C is noticed; together they are what SciPy writes at once."""
    monkeypatch.setattr(matrix_market, "STEP", 7)
    given, mmwrite = list[int](), scipy.io.mmwrite

    def recorded(target: Any, a: Any, **how: Any) -> None:
        given.append(a.nnz)
        mmwrite(target, a, **how)

    monkeypatch.setattr(scipy.io, "mmwrite", recorded)
    A = generators.grid(5, 5) if symmetric else generators.kronecker(5, 3, symmetric=False)
    if not symmetric:
        S = A.to_scipy()
        A = Matrix(type(S)((np.arange(S.nnz) / 3, S.indices, S.indptr), shape=S.shape))
    A = A.astype(dtype)
    write(tmp_path / "parts.mtx", A)
    assert max(given) == 7 and len(given) > 3
    whole, kind = A.to_scipy().tocoo(), "symmetric" if A.symmetric else "general"
    exact = whole.astype({"bool": "i1", "float32": "f8"}.get(dtype, dtype))
    field = "pattern" if dtype == "bool" and symmetric else None
    mmwrite(tmp_path / "whole.mtx", exact, field=field, symmetry=kind)
    assert (tmp_path / "parts.mtx").read_bytes() == (tmp_path / "whole.mtx").read_bytes()
