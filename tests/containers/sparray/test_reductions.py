"""sum, mean, max, min, argmax, argmin beside those of SciPy's sparse arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy_sparse_cases import (
    TYPES,
    assert_same,
    assert_same_outcome,
    random_coo,
    random_csr,
)

import spgraph as sg

EXTREMES = ("max", "min", "argmax", "argmin")
AXES: tuple[Any, ...] = (None, 0, 1, -1, -2, (0, 1), (1,))
SHAPES = ((1, 6), (6, 1), (3, 0), (0, 3), (0, 0))
# every type, and every shape of a few
CASES = [(dtype, (7, 5)) for dtype in TYPES]
CASES += [(dtype, shape) for dtype in ("bool", "uint8", "float64") for shape in SHAPES]


@pytest.mark.parametrize(("dtype", "shape"), CASES)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_of_a_matrix(dtype: str, shape: tuple[int, int]) -> None:
    for seed, density in enumerate((0.0, 0.3, 0.8, 1.0)):
        S = random_csr(dtype, shape, density, seed)
        for A in (sg.Matrix(S), sg.Matrix(S.T.tocsr()).T):  # a view, whose arrays are not there
            for axis in AXES:
                for name in ("sum", "mean"):
                    assert_same_outcome(A, S, name, axis)
                for name in EXTREMES:
                    for explicit in (False, True):
                        assert_same_outcome(A, S, name, axis, explicit=explicit)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_of_a_vector(dtype: str) -> None:
    for seed, (density, size) in enumerate(((0.0, 5), (0.1, 60), (0.5, 9), (1.0, 4), (0.0, 0))):
        S = random_coo(dtype, size, density, seed)
        v = sg.Vector(S)
        for axis in (None, 0, -1, (0,)):
            for name in ("sum", "mean"):
                assert_same_outcome(v, S, name, axis)
            for name in EXTREMES:
                for explicit in (False, True):
                    assert_same_outcome(v, S, name, axis, explicit=explicit)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float32", "float64"])
@pytest.mark.parametrize("to", ["bool", "int8", "int64", "float32", "float64", "complex128"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")
def test_types_that_are_asked_for(dtype: str, to: str) -> None:
    S = random_csr(dtype, (6, 4), 0.5, 1)
    S.data[~np.isfinite(S.data)] = 2
    A = sg.Matrix(S)
    for axis in (None, 0, 1):
        for name in ("sum", "mean"):
            assert_same(getattr(A, name)(axis, dtype=to), getattr(S, name)(axis, dtype=to))
    v = sg.Vector(random_coo("int8", 9, 0.5, 1))
    assert_same(v.sum(dtype=to), random_coo("int8", 9, 0.5, 1).sum(dtype=to))


def test_iso_values_count_once_for_each_entry() -> None:
    A = sg.Matrix.from_coo([0, 0, 2], [0, 1, 1], 3, nrows=4, ncols=3)
    S = A.tocsr()
    assert A.iso
    for axis in (None, 0, 1):
        for name in ("sum", "mean", *EXTREMES):
            assert_same(getattr(A, name)(axis), getattr(S, name)(axis))
    assert int(sg.Matrix.empty(3, 3).max()) == 0
    assert int(A.pattern().sum()) == 3 and A.pattern().sum(axis=1).tolist() == [2, 0, 1, 0]


def test_the_functions_of_numpy_call_them() -> None:
    A = sg.Matrix([[1, 2, 0], [0, 0, -4]])
    for name in ("sum", "mean", "max", "min", "argmax", "argmin"):
        ours: Any = getattr(np, name)(A)
        assert ours == pytest.approx(getattr(np, name)(A.toarray())), name
    assert np.sum(A, axis=0).tolist() == [1, 2, -4]


def test_results_are_written_to_out() -> None:
    A, out = sg.Matrix([[1, 2, 0], [0, 0, 4]]), np.zeros(3)
    assert A.sum(axis=0, out=out) is out and out.tolist() == [1, 2, 4]
    assert A.mean(axis=0, out=out) is out and out.tolist() == [0.5, 1, 2]
    with pytest.raises(ValueError, match=r"sum: out: expected the shape \(2,\), got \(3,\)"):
        A.sum(axis=1, out=out)
    small = np.zeros(3, np.int8)
    assert A.sum(axis=0, out=small).tolist() == [1, 2, 4]
    for method, by in (("mean", 1), ("sum", 0.5)):
        with pytest.raises(TypeError, match=f"{method}: out: expected a type that takes float64"):
            getattr(A * by, method)(axis=0, out=small)
    with pytest.raises(ValueError, match="sum: out: expected numbers that int8 holds, got 200"):
        (A * 50).sum(axis=0, out=small)
    assert small.tolist() == [1, 2, 4]
    assert (A * 3).mean(axis=0, dtype=int, out=small).tolist() == [1, 3, 6]
    with pytest.raises(ValueError, match="max: out: expected None, got ndarray"):
        A.max(axis=0, out=out)  # type: ignore[arg-type]


@pytest.mark.parametrize("axis", [2, -3, (), (0, 0), (0, -2), "a", [0]])
def test_axes_that_there_are_not(axis: Any) -> None:
    S = random_csr("int64", (3, 4), 0.5, 0)
    for name in ("sum", "mean", *EXTREMES):
        with pytest.raises((ValueError, TypeError), match=f"^{name}: axis: expected ") as ours:
            getattr(sg.Matrix(S), name)(axis=axis)
        with pytest.raises((ValueError, TypeError)) as theirs:
            getattr(S, name)(axis=axis)
        assert ours.type is theirs.type


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_in_shards() -> None:
    """By operations, as on a GPU; of one type, as each compiles kernels."""
    dtype = "float64"
    S = random_csr(dtype, (7, 5), 0.5, 5)
    assert np.isnan(S.data).any()
    A = sg.Matrix(S).distribute(2)
    for axis in (None, 0, 1):
        for name in ("sum", "mean"):
            assert_same(getattr(A, name)(axis), getattr(S, name)(axis))
        for explicit in (False, True):
            for name in ("max", "min"):
                found = getattr(A, name)(axis, explicit=explicit)
                assert axis is None or found.device is A.device
                plain = found if axis is None else found.gather()
                assert_same(plain, getattr(S, name)(axis, explicit=explicit))
            for name in ("argmax", "argmin"):
                assert_same(
                    getattr(A, name)(axis, explicit=explicit),
                    getattr(S, name)(axis, explicit=explicit),
                )
    assert_same(A.sum(dtype="float32"), S.sum(dtype="float32"))
    T = random_coo(dtype, 40, 0.5, 5)
    v = sg.Vector(T).to(A.device)
    for name in ("sum", "mean", *EXTREMES):
        assert_same(getattr(v, name)(), getattr(T, name)())


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", TYPES)
def test_on_a_gpu(dtype: str) -> None:
    import cupy

    S = random_csr(dtype, (7, 5), 0.5, 5)
    A = sg.Matrix(S).to("cuda")
    v, T = sg.Vector(random_coo(dtype, 40, 0.5, 5)).to("cuda"), random_coo(dtype, 40, 0.5, 5)
    for axis in (None, 0, 1):
        for name in ("sum", "mean"):
            found = getattr(A, name)(axis)
            assert axis is None or isinstance(found, cupy.ndarray)
            assert_same(found if axis is None else found.get(), getattr(S, name)(axis))
        for explicit in (False, True):
            for name in EXTREMES:
                found = getattr(A, name)(axis, explicit=explicit)
                if axis is not None:
                    found = found.get() if name[0] == "a" else found.to("cpu")
                assert_same(found, getattr(S, name)(axis, explicit=explicit))
    for name in ("sum", "mean", *EXTREMES):
        assert_same(getattr(v, name)(), getattr(T, name)())
