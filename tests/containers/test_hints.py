"""What containers say to those who expect another library's names, keys and arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import spgraph as sg
from spgraph.errors import DomainMismatch

A = sg.Matrix([[0, 4, 9, 0], [0, 0, 3, 0], [0, 0, 0, 1], [2, 0, 0, 0]])
v = sg.Vector.from_coo([1, 2], [1, 5], size=4)


@pytest.mark.parametrize("rows", [[2, 0], [1], []])
def test_crossed_indices_of_numpy_are_rows_and_columns(rows: list[int]) -> None:
    S, columns = A.toarray(), np.array([3, 1, 2])
    crossed = np.ix_(np.array(rows, np.int64), columns)
    assert A[crossed].toarray().tolist() == S[crossed].tolist()
    upright = crossed[0], columns
    assert A[upright].toarray().tolist() == S[upright].tolist()
    B = A.dup()
    B[crossed] = 7
    S[crossed] = 7
    assert B.toarray().tolist() == S.tolist()


def test_truth_values_crossed() -> None:
    S = A.toarray()
    crossed = np.ix_(S[0] > 0, S[:, 2] > 0)
    assert A[crossed].toarray().tolist() == S[crossed].tolist()


@pytest.mark.parametrize("key", [(np.zeros((2, 2), int), [0]), (np.zeros((1, 2), int), [[0]])])
def test_other_indices_of_two_dimensions_are_refused(key: Any) -> None:
    with pytest.raises(DomainMismatch, match="expected a slice or 1 dimension, got 2 dimensions"):
        _ = A[key]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_inverse_of_floats_tells_of_masks(kind: type) -> None:
    for x in (A.astype(kind), v.astype(kind)):
        with pytest.raises(DomainMismatch, match=r"^~: expected truth .* ~x\.S is the mask"):
            _ = ~x


def test_a_result_of_several_vectors_is_told_from_one() -> None:
    found = sg.sssp(A, 0)
    remedy = r"got SSSP; \.distance and \.parent of it are$"
    with pytest.raises(DomainMismatch, match=remedy):
        sg.vxm(found, A)  # type: ignore[call-overload]
    with pytest.raises(DomainMismatch, match=remedy):
        sg.apply(found, "ainv")  # type: ignore[call-overload]
    with pytest.raises(DomainMismatch, match=r"got BFS; \.level of it is$"):
        sg.ewise_add(sg.bfs(A, 0, parents=False), v)  # type: ignore[call-overload]


def test_what_holds_a_matrix_is_told_from_one() -> None:
    edges = sg.from_edges((["a", "b"], ["b", "a"]))
    remedy = r".* got Edges; \.matrix of it is a Matrix$"
    with pytest.raises(DomainMismatch, match=f"^bfs: A: {remedy}"):
        sg.bfs(edges, 0)  # type: ignore[call-overload]
    with pytest.raises(DomainMismatch, match=f"^connected_components: A: {remedy}"):
        sg.connected_components(edges)  # type: ignore[arg-type]
    with pytest.raises(DomainMismatch, match=f"^Matrix: x: {remedy}"):
        sg.Matrix(edges)  # type: ignore[arg-type]


def test_a_sparse_array_is_no_result() -> None:
    with pytest.raises(DomainMismatch, match="got csr_array; Vector.from_dense"):
        sg.vxm(scipy.sparse.csr_array([[1]]), A)  # type: ignore[call-overload]
