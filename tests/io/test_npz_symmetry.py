"""What an archive says of its symmetry is tested, and what is known is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from spgraph.containers import Matrix, Vector
from spgraph.io import load, read, save, symmetry, write


def claiming(path: Path, A: Matrix, claim: int) -> Matrix:
    """What is read of A where the file claims something."""
    np.savez(
        path,
        format=b"csr",
        shape=A.shape,
        indptr=A.indptr,
        indices=A.indices,
        data=A.values,
        iso=np.array(A.iso),
        symmetric=np.array(claim),
    )
    return read(path)


def some(seed: int, dtype: Any, *, symmetric: bool) -> Matrix:
    """A random matrix, made symmetric or not, small enough to be asymmetric in a single value."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    D = rng.integers(1, 5, (n, n)) * (rng.random((n, n)) < 0.2)
    if symmetric:
        D = np.triu(D) + np.triu(D, 1).T
    return Matrix.from_scipy(scipy.sparse.csr_array(D.astype(dtype)))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "float64"])
def test_claims_of_symmetry_are_tested(
    tmp_path: Path, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(symmetry, "STEP", 7)  # many parts
    for seed in range(20):
        for symmetric in (True, False):
            A = some(seed, dtype, symmetric=symmetric)
            D = A.to_scipy().toarray()
            truth = bool((D == D.T).all())
            assert claiming(tmp_path / "g.npz", A, 1).symmetric is (True if truth else None)
            assert claiming(tmp_path / "g.npz", A, 0).symmetric is (None if truth else False)
            assert claiming(tmp_path / "g.npz", A, -1).symmetric is None
            P = A.pattern()
            truth = bool(((D != 0) == (D != 0).T).all())
            assert claiming(tmp_path / "g.npz", P, 1).symmetric is (True if truth else None)


def test_one_entry_or_one_value_makes_the_difference(tmp_path: Path) -> None:
    A = some(1, "float64", symmetric=True)
    assert claiming(tmp_path / "g.npz", A, 1).symmetric is True
    rows, columns, values = A.to_coo()
    k = int(np.flatnonzero(rows != columns)[0])
    for changed in (np.nextafter(values[k], 9), -values[k], np.inf, np.nan):
        other = values.copy()
        other[k] = changed
        B = Matrix._of(A.nrows, A.ncols, A.indptr, A.indices, other)
        assert claiming(tmp_path / "g.npz", B, 1).symmetric is None
    S = scipy.sparse.coo_array(
        (np.delete(values, k), (np.delete(rows, k), np.delete(columns, k))), A.shape
    )
    assert claiming(tmp_path / "g.npz", Matrix.from_scipy(S), 1).symmetric is None


def test_zeros_of_either_sign_do_not_confirm_symmetry(tmp_path: Path) -> None:
    A = Matrix.from_coo([0, 1], [1, 0], [0.0, -0.0])
    assert claiming(tmp_path / "g.npz", A, 1).symmetric is None
    B = Matrix.from_coo([0, 1], [1, 0], [-0.0, -0.0])
    assert claiming(tmp_path / "g.npz", B, 1).symmetric is True


def test_a_directed_cycle_that_claims_to_be_undirected(tmp_path: Path) -> None:
    """Degrees and sums of ids are the same in both directions; the graph is not."""
    for n in (3, 1000):
        ids = np.arange(n)
        A = Matrix.from_coo(ids, (ids + 1) % n, nrows=n, ncols=n)
        B = claiming(tmp_path / "g.npz", A, 1)
        assert B.symmetric is None and not B.is_symmetric()


def test_what_is_known_survives(tmp_path: Path) -> None:
    A = some(3, "int64", symmetric=True)
    assert A.is_symmetric()
    for written in (write, save):
        written(tmp_path / "g.npz", A)
        assert read(tmp_path / "g.npz").symmetric is True
        assert load(tmp_path / "g.npz").symmetric is True
    v = Vector.from_coo([1, 3], [0.5, 1.5], size=9)
    save(tmp_path / "v.npz", v)
    assert list(load(tmp_path / "v.npz")) == list(v)
