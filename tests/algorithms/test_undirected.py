"""What the algorithms on undirected graphs have in common: arguments, seeds, index types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401
from networkx_cases import case

import spgraph as sg
from spgraph.algorithms.core_number import core_number
from spgraph.algorithms.greedy_color import greedy_color
from spgraph.algorithms.label_propagation import label_propagation
from spgraph.algorithms.maximal_independent_set import maximal_independent_set
from spgraph.algorithms.minimum_spanning_tree import minimum_spanning_tree
from spgraph.errors import DimensionMismatch, DomainMismatch

SEEDED = (maximal_independent_set, greedy_color, label_propagation)

ALL = (core_number, minimum_spanning_tree, *SEEDED)


def test_a_seed_gives_one_result_and_another_seed_another(device: str) -> None:
    A = sg.generators.grid(20, 20)
    for call in SEEDED:
        first, again, other = (call(A.to(device), seed=seed) for seed in (1, 1, 2**64 - 1))
        assert first.isequal(again) and not first.isequal(other), call.__name__
        assert first.to("cpu").isequal(call(A, seed=1)), call.__name__
        assert not call(A).isequal(call(A)), call.__name__


@pytest.mark.parametrize("call", ALL, ids=lambda call: call.__name__)
def test_no_vertices_and_what_matrix_takes(call: Any, device: str) -> None:
    assert call(sg.Matrix.empty(0, 0, device=device)).nvals == 0
    seed = {"seed": 1} if call in SEEDED else {}
    S, _ = case("directed")
    assert call(S, **seed).isequal(call(sg.Matrix.from_scipy(S), **seed))


@pytest.mark.parametrize(
    "call",
    # every kernel anew: one by default
    [
        minimum_spanning_tree,
        *(pytest.param(f, marks=pytest.mark.full) for f in (core_number, *SEEDED)),
    ],
)
def test_indices_of_64_bits(call: Any, device: str) -> None:
    seed = {"seed": 1} if call in SEEDED else {}
    A = sg.Matrix.from_scipy(case("directed")[0])
    wide = sg.Matrix._of(*A.shape, A.indptr.astype(np.int64), A.indices.astype(np.int64), A.values)
    assert call(wide.to(device), **seed).to("cpu").isequal(call(A, **seed))


def test_the_value_of_all_edges_means_nothing(device: str) -> None:
    """Also where A is its own pattern, symmetric and of one value of bool: there False."""
    A = sg.generators.kronecker(5, 8)
    assert A.symmetric and A.iso and sg.triangle_count(A) > 0
    false = sg.Matrix._of(*A.shape, A.indptr, A.indices, np.zeros(1, bool), iso=True)
    false.symmetric = True
    for call in (core_number, sg.clustering, *SEEDED):
        seed = {"seed": 1} if call in SEEDED else {}
        assert call(false.to(device), **seed).to("cpu").isequal(call(A, **seed)), call.__name__
    assert sg.k_truss(false.to(device), 3).to("cpu").isequal(sg.k_truss(A, 3))
    assert sg.triangle_count(false.to(device)) == sg.triangle_count(A)


def test_bad_input() -> None:
    A = sg.generators.grid(2, 2)
    for call in ALL:
        name = call.__name__
        with pytest.raises(DimensionMismatch, match=f"{name}: A: expected a square matrix"):
            call(sg.Matrix.empty(2, 3))
        with pytest.raises(DomainMismatch):
            call("graph")
    for call in SEEDED[:2]:
        for seed in (1.5, True, "1"):
            with pytest.raises(DomainMismatch, match=f"{call.__name__}: seed: expected an integer"):
                call(A, seed=seed)
        with pytest.raises(ValueError, match="seed: expected an integer from 0 to"):
            call(A, seed=-1)
