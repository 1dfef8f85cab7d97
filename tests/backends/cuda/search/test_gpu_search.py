"""What only a GPU shows of a search on one GPU: rows that all warps of the grid share, and hundreds
of levels of one thread block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import spgraph as sg
from spgraph.containers.storage.arrays import move
from spgraph.iterations import search
from spgraph.semirings import any_pair, any_secondi, min_plus, min_secondi, plus_first

pytestmark = pytest.mark.gpu

# in-edges of the hubs: far more than the 8192 that one warp looks at
WIDTH = 300_000
SEMIRINGS = (any_pair, any_secondi, min_secondi, plus_first, min_plus)


def long_rows(hubs: int) -> sg.Matrix:
    """Vertex 0, its WIDTH neighbours, and hubs with an edge from each of those."""
    leaves = np.arange(1, WIDTH + 1)
    rows = np.concatenate([0 * leaves, np.tile(leaves, hubs)])
    columns = np.concatenate([leaves, WIDTH + 1 + np.repeat(np.arange(hubs), WIDTH)])
    weights = np.random.default_rng(5).integers(1, 10**6, rows.size)
    n = 1 + WIDTH + hubs
    return sg.Matrix.from_coo(rows, columns, weights, nrows=n, ncols=n)


def expected(semiring: Any, A: sg.Matrix, hub: int) -> Any:
    """The value of a hub in a search from vertex 0 with the value 1."""
    weights = A.values
    first = weights[:WIDTH]
    # rows of A are the leaves', each with its edges to the hubs in order
    second = weights[WIDTH:].reshape(WIDTH, -1)[:, hub]
    return {
        min_secondi: 1,
        plus_first: WIDTH,
        min_plus: 1 + int((first + second).min()),
    }[semiring]


@pytest.mark.parametrize("semiring", SEMIRINGS, ids=repr)
def test_rows_longer_than_a_warp_takes(semiring: Any) -> None:
    """Ten times, since what goes wrong between blocks does not go wrong always."""
    hubs = 5
    A = long_rows(hubs)
    G = A.to("cuda")
    start = sg.Vector.unit(0, 1, size=A.nrows, dtype=np.int64).to("cuda")
    # the last leaf alone: a hub's first hit is its row's last edge
    late = sg.Vector.unit(WIDTH, 1, size=A.nrows, dtype=np.int64).to("cuda")
    for _ in range(10):
        found: Any = search(G, start, semiring, direction="pull")
        level = found.level.to("cpu").to_numpy(fill=-1)
        assert level[0] == 0 and (level[1 : WIDTH + 1] == 1).all() and (level[-hubs:] == 2).all()
        if semiring is any_secondi:
            values = found.value.to("cpu").to_numpy(fill=-1)[-hubs:]
            assert ((values >= 1) & (values <= WIDTH)).all()
        elif semiring is not any_pair:
            values = found.value.to("cpu").to_numpy(fill=-1)[-hubs:]
            assert values.tolist() == [expected(semiring, A, hub) for hub in range(hubs)]
        found = search(G, late, semiring, direction="pull")
        positions, levels = found.level.to("cpu").to_coo()
        assert positions.tolist() == [WIDTH, *range(WIDTH + 1, A.nrows)]
        assert levels.tolist() == [0] + [1] * hubs
        if semiring in (min_secondi, any_secondi):
            assert move(found.value.to_coo()[1], "cpu").tolist() == [1] + [WIDTH] * hubs


def test_many_small_levels() -> None:
    """Levels of up to some hundred vertices, by all warps of a block: as on the CPU."""
    A = sg.generators.grid(300, 300, remove=0.2)
    G, source = A.to("cuda"), 150 * 300 + 7
    on_cpu, found = sg.bfs(A, source), sg.bfs(G, source)
    assert found.level.to("cpu").isequal(on_cpu.level)
    assert found.parent.to("cpu").isequal(on_cpu.parent)
    assert sg.bfs(G, source, parents=False).level.to("cpu").isequal(on_cpu.level)
    one, other = (sg.betweenness_centrality(M, sources=[source]).to_numpy() for M in (A, G))
    np.testing.assert_allclose(other, one, rtol=1e-9)
