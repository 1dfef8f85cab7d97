"""The triangles of each edge on every device, against NetworkX and the masked product."""

from __future__ import annotations

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401
from networkx_cases import TRIANGLES, triangular

import spgraph as sg
from spgraph.algorithms.triangle_count import undirected
from spgraph.backends.cpu.runtime import pool
from spgraph.operations.triangles import support

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")


@pytest.mark.parametrize("name", TRIANGLES)
def test_support_equals_networkx(name: str, device: str) -> None:
    G, A = triangular(name, False)
    found = support(undirected("test", A).to(device)).to("cpu")
    expected = {
        (i, j): len(set(G[i]) & set(G[j])) for edge in G.edges for i, j in (edge, edge[::-1])
    }
    rows, columns, values = (array.tolist() for array in found.to_coo())
    assert dict(zip(zip(rows, columns, strict=True), values, strict=True)) == expected
    assert found.dtype == np.int64 and found.symmetric
    assert int(sg.reduce(found)) == 2 * sum(nx.triangles(G).values())


@pytest.mark.fused
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("kind", ["by degree", "by number"])
def test_threads_share_the_triangles_of_an_edge(
    kind: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What several threads add to one edge is all there."""
    from spgraph.backends.cpu.structure import orient

    monkeypatch.setattr(pool, "threads_for", lambda work, share=0: threads)
    monkeypatch.setenv("SPGRAPH_NUM_THREADS", str(threads))
    pool.close()
    pool.processors.cache_clear()
    try:
        kronecker = kind == "by degree"
        A = sg.generators.kronecker(10, 16, seed=3) if kronecker else sg.generators.grid(40, 40)
        A = undirected("test", sg.mxm(A, A, "any_pair") if not kronecker else A)
        assert orient.by_degree(A) == kronecker
        expected = sg.mxm(A, A, "plus_pair", mask=A.S)
        found = sg.select(support(A), "valuene", 0)
        assert found.isequal(expected) and found.nvals
    finally:
        pool.close()
        pool.processors.cache_clear()


@pytest.mark.fused
def test_a_loop_is_in_no_triangle() -> None:
    A = sg.Matrix.from_dense(np.ones((3, 3), bool))
    A.symmetric = True
    assert support(A).to_dense().tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]


def test_support_of_nothing(device: str) -> None:
    for n in (0, 3):
        A = sg.Matrix.empty(n, n, dtype=bool, device=device)
        A.symmetric = True
        assert support(A).nvals == 0 and support(A).shape == (n, n)
