"""A Matrix where scipy.sparse.linalg and cupyx.scipy.sparse.linalg take a linear operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg as linalg

from spgraph.containers import Matrix
from spgraph.errors import BackendMismatch, DimensionMismatch, DomainMismatch


def symmetric(dtype: str = "float64", n: int = 60) -> scipy.sparse.csr_array:
    """A random symmetric matrix with a large diagonal."""
    S = scipy.sparse.random_array((n, n), density=0.1, rng=np.random.default_rng(3), format="csr")
    return (4 * (S + S.T) + scipy.sparse.diags_array(np.arange(1.0, n + 1))).tocsr().astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool"])
@pytest.mark.parametrize("shards", [1, 2])
def test_the_operator_of_a_matrix(dtype: str, shards: int) -> None:
    S = scipy.sparse.random_array((30, 20), density=0.2, rng=np.random.default_rng(1), format="csr")
    S = (S * 4).astype(dtype)
    A = Matrix.from_scipy(S)
    A = A if shards == 1 else A.distribute(shards)
    X, Y = np.random.default_rng(2).random((20, 3)), np.random.default_rng(2).random((30, 3))
    operator = linalg.aslinearoperator(A)
    assert (operator.shape, operator.dtype) == (S.shape, S.dtype) == (A.shape, A.dtype)
    assert A.ndim == 2
    for ours, theirs in (
        (operator.matvec(X[:, 0]), S @ X[:, 0]),
        (operator.matvec(X[:, :1]), S @ X[:, :1]),
        (operator.rmatvec(Y[:, 0]), S.T @ Y[:, 0]),
        (operator.rmatvec(Y[:, :1]), S.T @ Y[:, :1]),
        (operator.matmat(X), S @ X),
        (operator.rmatmat(Y), S.T @ Y),
        (A.matmat(X), S @ X),
        (A.matvec(X[:, 0].tolist()), S @ X[:, 0]),
        ((2 * operator.T) @ Y, 2 * (S.T @ Y)),
        (Y.T @ operator, Y.T @ S),
    ):
        assert ours.shape == theirs.shape and np.allclose(ours, theirs)


def test_what_is_no_operand() -> None:
    A = Matrix.from_scipy(symmetric())
    with pytest.raises(DomainMismatch, match="matvec: x: expected an array without a mask"):
        A.matvec(np.ma.masked_array(np.ones(60)))
    for name, argument, x in (("matmat", "X", np.ones((60, 2))), ("rmatvec", "x", np.ones(60))):
        with pytest.raises(DomainMismatch, match=f"^{name}: {argument}: dtype: .*complex128"):
            getattr(A, name)(x * 1j)


@pytest.mark.parametrize(
    ("name", "shape", "expected"),
    [
        ("matvec", (3,), r"x: expected an array of shape \(20,\) or \(20, 1\)"),
        ("matvec", (20, 2), r"x: expected an array of shape \(20,\) or \(20, 1\)"),
        ("matvec", (), r"x: expected an array of shape \(20,\)"),
        ("rmatvec", (20,), r"x: expected an array of shape \(30,\) or \(30, 1\)"),
        ("rmatvec", (30, 2), r"x: expected an array of shape \(30,\) or \(30, 1\)"),
        ("matmat", (20,), r"X: expected an array of shape \(20, k\)"),
        ("matmat", (30, 2), r"X: expected an array of shape \(20, k\)"),
        ("rmatmat", (20, 2), r"X: expected an array of shape \(30, k\)"),
        ("rmatmat", (30, 2, 2), r"X: expected an array of shape \(30, k\)"),
    ],
)
def test_shapes_that_do_not_fit(name: str, shape: tuple[int, ...], expected: str) -> None:
    for A in (Matrix.empty(30, 20), Matrix.empty(30, 20).distribute(2)):
        with pytest.raises(DimensionMismatch, match=f"^{name}: {expected}.* 30 x 20 .*, got "):
            getattr(A, name)(np.ones(shape))


START = np.linspace(1, 2, 60)
SPECTRA: dict[str, Callable[[Any], Any]] = {
    "eigsh": lambda A: linalg.eigsh(A, k=3, which="LA", v0=START)[0],
    "eigs": lambda A: np.sort(linalg.eigs(A, k=3, which="LR", v0=START)[0].real),
    "svds": lambda A: linalg.svds(A, k=3, v0=START)[1],
    "lobpcg": lambda A: linalg.lobpcg(A, np.eye(60, 3), largest=True, maxiter=200, tol=1e-6)[0],
}


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_eigenvalues(name: str, dtype: str) -> None:
    S = symmetric(dtype)
    assert np.allclose(SPECTRA[name](Matrix.from_scipy(S)), SPECTRA[name](S), rtol=1e-4)


@pytest.mark.parametrize("name", "cg bicg bicgstab gmres minres qmr lsqr lsmr".split())
def test_solvers(name: str) -> None:
    S = (symmetric() + 200 * scipy.sparse.eye_array(60)).tocsr()
    solved = getattr(linalg, name)(Matrix.from_scipy(S), START)[0]
    assert np.allclose(S @ solved, START, atol=1e-3)


@pytest.mark.gpu
def test_arrays_elsewhere() -> None:
    with pytest.raises(BackendMismatch, match=r"^matvec: x is an array on cpu, the Matrix on cuda"):
        Matrix.empty(3, 3).to("cuda").matvec(np.ones(3))


@pytest.mark.gpu
def test_cupyx() -> None:
    cupy = pytest.importorskip("cupy")
    from cupyx.scipy.sparse import linalg as there

    S = symmetric()
    A, b = Matrix.from_scipy(S).to("cuda"), cupy.asarray(START)
    operator = there.aslinearoperator(A)
    assert operator.shape == S.shape and operator.dtype == S.dtype
    assert np.allclose(operator.matvec(b).get(), S @ START)
    assert np.allclose(operator.rmatvec(b).get(), S.T @ START)
    X = np.random.default_rng(2).random((60, 3))
    assert np.allclose(operator.matmat(cupy.asarray(X)).get(), S @ X)
    largest = np.sort(np.linalg.eigvalsh(S.toarray()))[-3:]
    assert np.allclose(np.sort(there.eigsh(A, k=3, which="LA")[0].get()), largest)
    assert np.allclose(np.sort(there.svds(A, k=3)[1].get()), largest)
    found = there.lobpcg(A, cupy.asarray(np.eye(60, 3)), maxiter=200, tol=1e-6)[0]
    assert np.allclose(np.sort(found.get()), largest, rtol=1e-4)
    P = (S + 200 * scipy.sparse.eye_array(60)).tocsr()
    for name in ("cg", "gmres", "minres"):
        solved = getattr(there, name)(Matrix.from_scipy(P).to("cuda"), b)[0].get()
        assert np.allclose(P @ solved, START, atol=1e-3)
