"""What containers say to those who expect another library's names, keys and arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import spgraph as sg
from spgraph.errors import DimensionMismatch, DomainMismatch, IndexOutOfBound

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
    with pytest.raises(DomainMismatch, match=r"got csr_array; sg\.Vector\(x\) makes one"):
        sg.vxm(scipy.sparse.csr_array([[1]]), A)  # type: ignore[call-overload]


@pytest.mark.parametrize("lists", [[[1, 2], [3]], [[1], 2], [np.ones(2), np.ones(3)]])
def test_lists_of_several_lengths_are_told(lists: Any) -> None:
    for name, call in (("Matrix: x", sg.Matrix), ("Vector: x", sg.Vector)):
        with pytest.raises(DimensionMismatch, match=f"^{name}: expected .* the same length"):
            call(lists)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ((4, 0), "rows: expected -4 <= index < 4, got 4"),
        ((0, -5), "columns: expected -4 <= index < 4, got -5"),
        ((np.int8(0), np.int8(9)), "columns: expected -4 <= index < 4, got 9"),
    ],
)
def test_the_index_beyond_a_matrix_is_named(key: Any, message: str) -> None:
    with pytest.raises(IndexOutOfBound) as raised:
        _ = A[key]
    assert str(raised.value) == f"[]: {message}"


@pytest.mark.parametrize("k", [4, -5])
def test_the_index_beyond_a_vector_is_named(k: int) -> None:
    with pytest.raises(IndexOutOfBound) as raised:
        _ = v[k]
    assert str(raised.value) == f"[]: positions: expected -4 <= index < 4, got {k}"


def test_a_universal_function_of_numpy_is_told_how_it_is_applied() -> None:
    with pytest.raises(DomainMismatch, match=r"got <ufunc 'sqrt'>; np\.sqrt\(u\) applies"):
        sg.apply(A, np.sqrt)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("PageRank", "did you mean pagerank?"),
        ("connected_component", "did you mean connected_components?"),
        ("min_plus", "it is spgraph.semirings.min_plus"),
        ("louvain", "docs/names.md has the names"),
    ],
)
def test_names_that_the_package_lacks(name: str, hint: str) -> None:
    with pytest.raises(AttributeError) as raised:
        getattr(sg, name)
    assert hint in str(raised.value)


def test_names_that_a_matrix_lacks() -> None:
    for name in ("apply", "pagerank"):
        with pytest.raises(AttributeError, match=rf"it is a function, sg\.{name}\(A, \.\.\."):
            getattr(A, name)
    with pytest.raises(AttributeError, match=r"'get'; .* docs/names\.md lists what other"):
        _ = A.get  # type: ignore[attr-defined]
    assert not hasattr(A, "__array_struct__")


def test_a_container_is_told_from_its_mask() -> None:
    with pytest.raises(DomainMismatch, match=r"got a Matrix; A\.S is its structure, A\.V its"):
        sg.mxm(A, A, mask=A)  # type: ignore[call-overload]
