"""maximum and minimum beside those of SciPy's sparse arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy_sparse_cases import TYPES, assert_same, random_coo, random_csr

import spgraph as sg
from spgraph.errors import DimensionMismatch, DomainMismatch


def finite(S: Any) -> Any:
    S.data[~np.isfinite(S.data.astype(float))] = 1
    return S


@pytest.mark.parametrize("name", ["maximum", "minimum"])
@pytest.mark.parametrize("dtype", TYPES)
def test_as_in_scipy(dtype: str, name: str) -> None:
    for other in (dtype, "int8"):
        S, T = finite(random_csr(dtype, (5, 4), 0.6, 1)), finite(random_csr(other, (5, 4), 0.6, 2))
        expected = getattr(S, name)(T)
        for given in (T, sg.Matrix(T), sg.Matrix(T.T.tocsr()).T):
            assert_same(getattr(sg.Matrix(S), name)(given), expected)
        u, v = finite(random_coo(dtype, 9, 0.6, 1)), finite(random_coo(other, 9, 0.6, 2))
        assert_same(getattr(sg.Vector(u), name)(sg.Vector(v)), getattr(u, name)(v))


def test_a_graph_is_made_undirected() -> None:
    S = abs(finite(random_csr("int64", (7, 7), 0.3, 3)))
    A = sg.Matrix(S)
    made = A.maximum(A.T)
    assert made.is_symmetric() and made.toarray().tolist() == S.maximum(S.T).toarray().tolist()
    D = A.distribute(2)
    assert D.maximum(D.T).gather().isequal(made)


def test_a_number_beats_nan() -> None:
    u, v = sg.Vector([1.0, np.nan, np.nan]), sg.Vector([np.nan, -2.0, np.nan])
    for name in ("maximum", "minimum"):
        found = getattr(u, name)(v).to_numpy()
        assert found[:2].tolist() == [1, -2] and np.isnan(found[2])


@pytest.mark.parametrize("other", [0, 2.5, np.ones((2, 2)), [[1, 2], [3, 4]]])
def test_numbers_and_arrays_are_refused(other: Any) -> None:
    with pytest.raises(
        DomainMismatch, match=r"^maximum: other: expected a container .*np\.maximum"
    ):
        sg.Matrix([[1, 2], [3, 4]]).maximum(other)


def test_other_shapes_are_refused() -> None:
    with pytest.raises(
        DimensionMismatch, match=r"minimum: the shapes \(1, 2\) and \(2, 2\) differ"
    ):
        sg.Matrix([[1, 2]]).minimum(sg.Matrix([[1, 2], [3, 4]]))
