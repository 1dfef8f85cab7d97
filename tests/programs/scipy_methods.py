"""Random comparisons of what containers share with SciPy's sparse arrays and NumPy's arrays.

    .venv/bin/python tests/programs/scipy_methods.py --cases 18000 --seed 1

Each case is a Matrix and a Vector that follow from the seed and the case's number alone; every
check of CHECKS is made of them. The first difference of each check is printed, with what reproduces
it (--first NUMBER --cases 1). tests/containers/sparray/test_random.py runs a few.
"""

from __future__ import annotations

import argparse
import operator
import sys
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

sys.path += [str(Path(__file__).parents[2]), str(Path(__file__).parents[1] / "helpers" / "cases")]
from scipy_sparse_cases import assert_same, assert_same_outcome, outcome, random_coo, random_csr

import spgraph as sg

# few pairs of types, as products and comparisons compile for each
TYPES = ["bool", "int8", "uint8", "int64", "float32", "float64"]


class Case:
    """A Matrix A beside the csr_array S, a Vector v beside the coo_array T, and arrays that fit."""

    def __init__(self, seed: int, number: int, types: Sequence[str] = TYPES) -> None:
        self.rng = rng = np.random.default_rng([seed, number])
        self.dtype = str(rng.choice(types))
        self.shape = tuple(int(n) for n in rng.integers(0, 8, 2))
        density = float(rng.choice([0.0, 0.2, 0.5, 1.0]))
        self.S = random_csr(self.dtype, self.shape, density, int(rng.integers(1 << 30)))
        self.T = random_coo(self.dtype, self.shape[1], density, int(rng.integers(1 << 30)))
        if iso := rng.random() < 0.15:  # one value for all entries
            self.S.data[:] = 1
        self.A = sg.Matrix(self.S).pattern(self.dtype) if iso else sg.Matrix(self.S)
        if rng.random() < 0.3:
            self.A = sg.Matrix(self.S.T.tocsr()).T  # a view, whose arrays are not there
        self.v = sg.Vector(self.T)
        self.X = rng.integers(0, 5, (self.shape[1], 3)).astype(self.dtype)
        self.x = self.X[:, 0].copy()

    def finite(self) -> tuple[Any, Any]:
        """(Matrix, csr_array) with 1 for NaN and infinities."""
        S = self.S.copy()
        S.data[~np.isfinite(S.data.astype(float))] = 1
        return sg.Matrix(S), S


def reductions(c: Case) -> None:
    for name in ("sum", "mean", "max", "min", "argmax", "argmin"):
        axis = [None, 0, 1, -1][c.rng.integers(4)]
        assert_same_outcome(c.A, c.S, name, axis)
        if name not in ("sum", "mean"):
            assert_same_outcome(c.A, c.S, name, axis, explicit=True)
        assert_same_outcome(c.v, c.T, name, None)


def elements(c: Case) -> None:
    n = [2, -1, 0.5, True][c.rng.integers(4)]
    assert_same_outcome(c.A, c.S, "multiply", n)
    assert_same_outcome(c.A, c.S, "power", [2, 3, 0.5][c.rng.integers(3)])
    assert_same_outcome(c.A, c.S, "diagonal", int(c.rng.integers(-8, 8)))
    assert_same(c.A.nonzero(), c.S.nonzero())
    if c.shape[1]:
        assert_same_outcome(c.A, c.S, "multiply", c.x)
        assert_same_outcome(c.v, c.T, "multiply", c.x)
    A, S = c.finite()
    assert_same_outcome(A, S, "maximum", S[::-1])
    assert_same_outcome(A, S, "minimum", S[::-1].astype("int8"))
    assert_same_outcome(A, S, "setdiag", 3, int(c.rng.integers(-3, 3)))


def products(c: Case) -> None:
    A, S = c.finite()
    v = sg.Vector.from_dense(c.x, missing=0)
    dense = S.toarray()
    assert_same(A.dot(c.X), S.dot(c.X))
    assert_same(A.dot(c.x), S.dot(c.x))
    assert np.array_equal(v @ c.X, c.x.astype((v @ c.X).dtype) @ c.X)
    assert np.array_equal(c.X.T @ v, c.X.T @ c.x.astype((v @ c.X).dtype))
    if c.dtype != "bool":
        wide = np.result_type(dense.dtype, np.int64)
        assert np.allclose(A @ c.x, dense.astype(wide) @ c.x)
        assert np.allclose((A @ v).toarray(), dense.astype(wide) @ c.x)
        assert v @ c.x == c.x.astype(wide) @ c.x


OPERATORS = (operator.floordiv, operator.mod, operator.mul, operator.add, operator.sub)


def operators(c: Case) -> None:
    """On stored entries: what NumPy gives for their values."""
    f = OPERATORS[c.rng.integers(len(OPERATORS))]
    n = [2, 3, np.float32(2.5)][c.rng.integers(3)]
    for u, values in ((c.A, c.S.data), (c.v, c.T.data)):
        for one, other in ((f(u, n), f(values, n)), (f(n, u), f(n, values))):
            if f in (operator.floordiv, operator.mod):  # the others have the types of GraphBLAS
                assert one.dtype == other.dtype, (f, one.dtype, other.dtype)
            found = one.to_coo()[-1]
            if c.dtype != "bool":
                assert np.allclose(found, other, equal_nan=True), (f, n)
        for unary in (operator.neg, abs, round, operator.pos):
            expected = outcome(unary, values)
            found = outcome(unary, u)
            if unary is round or (c.dtype == "bool" and unary is operator.neg):
                continue
            if isinstance(expected, np.ndarray):
                assert np.array_equal(found.to_coo()[-1], expected, equal_nan=c.dtype[0] == "f")
        if c.dtype[0] != "f":
            assert np.array_equal((~u).to_coo()[-1], ~values)
        assert [x for *_, x in u] == [x for *_, x in zip(*u.to_coo(), strict=True)] or (
            values != values
        ).any()
    quotient, rest = divmod(c.A, 3)
    assert quotient.isequal(c.A // 3) and rest.isequal(c.A % 3)


def key(c: Case, size: int) -> Any:
    """What stands between brackets for `size` positions."""
    ids = c.rng.integers(0, size, c.rng.integers(0, 5)) if size else np.empty(0, int)
    flags = c.rng.random(size) < 0.5
    first, last = sorted(int(k) for k in c.rng.integers(0, size + 1, 2))
    some = [ids, ids.tolist(), ids.astype(object), flags, slice(first, last), slice(None, None, -1)]
    some += [..., ids.astype(np.uint8), range(first, last)]
    return some[c.rng.integers(len(some))]


def as_numpy(k: Any) -> Any:
    if isinstance(k, range):
        return list(k)
    return k.astype(int) if isinstance(k, np.ndarray) and k.dtype.kind == "O" else k


def reading(c: Case) -> None:
    dense, k = c.T.toarray(), key(c, c.shape[1])
    assert np.array_equal(c.v[k].toarray(), dense[as_numpy(k)], equal_nan=c.dtype[0] == "f")
    i = key(c, c.shape[0])
    S = c.S.toarray()
    assert np.array_equal(c.A[i].toarray(), S[as_numpy(i)], equal_nan=c.dtype[0] == "f")
    assert np.array_equal(
        c.A[..., k].toarray(),
        S[..., as_numpy(k)] if k is not ... else S,
        equal_nan=c.dtype[0] == "f",
    )
    if c.shape[1]:
        at = int(c.rng.integers(-c.shape[1], c.shape[1]))
        one = c.v[np.array(at)]
        assert one is None or np.array_equal(one, dense[at], equal_nan=c.dtype[0] == "f")
        assert one is not None or not dense[at]


def writing(c: Case) -> None:
    v, dense = c.v.dup(), c.T.toarray()
    k = key(c, c.shape[1])
    at = np.arange(c.shape[1])[as_numpy(k)]
    if np.unique(at).size != at.size:
        return
    values = c.rng.integers(0, 3, at.size).astype(c.dtype)
    given: list[Any] = [
        values,
        values.tolist(),
        scipy.sparse.coo_array(values),
        tuple(values.tolist()),
    ]
    value = given[c.rng.integers(len(given))]
    v[k], dense[at] = value, values
    assert np.array_equal(v.toarray(), dense, equal_nan=c.dtype[0] == "f")
    if c.shape[0]:
        A, S = c.A.dup(), c.S.toarray()
        row = int(c.rng.integers(c.shape[0]))
        A[row], S[row] = scipy.sparse.coo_array(c.x), c.x
        assert np.array_equal(A.toarray(), S, equal_nan=c.dtype[0] == "f")


def other_libraries(c: Case) -> None:
    """Out and in again, as far as the libraries are installed."""
    loaded = set(sys.modules)
    if "graphblas" in loaded:
        assert sg.Matrix(c.A.to_graphblas()).isequal(c.A, check_dtype=True)
        assert sg.Vector(c.v.to_graphblas()).isequal(c.v, check_dtype=True)
    if "networkx" in loaded and c.shape[0] == c.shape[1]:
        assert sg.Matrix(c.A.to_networkx()).isequal(c.A)
    if "igraph" in loaded and c.shape[0] == c.shape[1]:
        assert sg.Matrix(c.A.to_igraph()).isequal(c.A)
    if "torch" in loaded:
        import torch

        assert sg.Matrix(c.A.to_torch()).isequal(c.A, check_dtype=True)
        coo = c.A.to_torch().to_sparse_coo()
        assert sg.Matrix(coo).isequal(c.A, check_dtype=True)
        assert np.array_equal((c.A @ torch.asarray(c.X)).numpy(), c.A @ c.X, equal_nan=True)
        full = sg.Vector(torch.asarray(c.x))
        assert torch.from_dlpack(full).tolist() == c.x.tolist()
    full = sg.Vector(c.x)
    assert np.from_dlpack(full).tolist() == c.x.tolist() == np.array(full, copy=False).tolist()


CHECKS = (reductions, elements, products, operators, reading, writing, other_libraries)


def run(seed: int, first: int, cases: int, types: Sequence[str] = TYPES) -> list[str]:
    """The checks that differ, each once, with the case and the error."""
    failed: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(first, first + cases):
            for check in CHECKS:
                try:
                    check(Case(seed, number, types))
                except Exception:
                    where = f"{check.__name__}: --seed {seed} --first {number} --cases 1"
                    failed.setdefault(check.__name__, f"{where}\n{traceback.format_exc()}")
    return list(failed.values())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int, default=1000)
    asked = parser.parse_args()
    for library in ("graphblas", "networkx", "igraph", "torch"):
        try:
            __import__(library)
        except ImportError:
            print(f"{library} is not installed")
    failed = run(asked.seed, asked.first, asked.cases)
    print(*failed, f"{asked.cases} cases, {len(failed)} checks that differ", sep="\n")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
