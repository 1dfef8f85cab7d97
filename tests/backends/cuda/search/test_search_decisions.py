"""What a search decides about the form of a level, in the kernels that run all levels and on the
host for those of rounds: the same for all totals.
"""

from __future__ import annotations

import itertools
import math

import cuda_host_shim
import numpy as np
import pytest

from spgraph import direction, semirings
from spgraph.backends.cuda.runtime.sources import whole
from spgraph.backends.cuda.search.search import DIRECTIONS, program
from spgraph.direction import CONVERT_EDGES, SEARCH_PUSH_STEP, SEARCH_PUSH_STEP_HUBS

KERNEL = """
extern "C" __global__ void forms(const i64* given, i64 number, i64* to) {
    for (i64 i = 0; i < number && thread_id() == 0; i++) {
        const i64* const x = given + 10 * i;
        s.m = x[0];
        s.words = x[9];
        s.t_indptr = s.indptr + !x[1]; // symmetric where both are one array
        const Form form = form_of_level((int)x[2], x[3], x[4], x[5], x[6], x[7], x[8]);
        to[i] = form.pull + 2 * form.small + 4 * pull_pays((int)x[2], x[3], x[6], x[7], x[8]);
    }
}
"""
INDEX = np.dtype("i4")
WORDS = 2**20
SUMS = semirings.plus_first.resolve(np.dtype("f8"), np.dtype(bool))
PARENTS = semirings.min_secondi.resolve(INDEX, np.dtype(bool), index=INDEX)


def totals() -> list[tuple[int, ...]]:
    """(edges of the graph, symmetric, direction, queued, tried, vertices, edges, left, open, words
    that a pull reads) of levels, among them those on both sides of each border of each rule.
    """
    found = set()
    for m, left, open_ in itertools.product(
        (0, 1, 100, 2**20, 2**40), (0, 1, 50, 2**14, 2**33), (0, 1, 99, 2**18, 2**40)
    ):
        borders = {0, 2**11, 2**12, 2**62}
        for step in (1.0, SEARCH_PUSH_STEP, SEARCH_PUSH_STEP_HUBS):
            borders |= {math.isqrt(int(left / step) * m), int(open_ / step), int(m / step)}
        borders |= {int(open_ * direction.ALL_EDGES), int(m * direction.ALL_EDGES)}
        borders |= {int(WORDS / SEARCH_PUSH_STEP), int(WORDS / SEARCH_PUSH_STEP_HUBS)}
        near = {b + d for b in borders for d in (-1, 0, 1)}
        near |= {b - CONVERT_EDGES for b in near}
        for edges in near:
            if edges >= 0:
                found.add((m, left, open_, edges))
    return [
        (m, symmetric, way, queued, tried, vertices, edges, left, open_, WORDS * (k // 4 % 2))
        for k, (m, left, open_, edges) in enumerate(sorted(found))
        for symmetric, queued in itertools.product((0, 1), (0, 1))
        for way, tried, vertices in [
            ((0, 1, 0, 2)[k % 4], k % 3 == 0, (1, 1024, 1025, 17)[k % 5 % 4])
        ]
    ]


@pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")
@pytest.mark.parametrize(
    ("semiring", "first"),
    [(None, False), (PARENTS, True), (SUMS, False)],
    ids=["levels", "parents", "sums"],
)
def test_kernels_and_host_decide_alike(
    semiring: semirings.TypedSemiring | None, first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids, values = np.dtype("i4"), np.dtype(bool)
    text = program(semiring, first, True, False, ids, ids, values, ids) + whole("common.cuh")
    library = cuda_host_shim.compiled("search_decisions", text + whole("search_state.cuh") + KERNEL)
    given = np.array(totals(), np.int64)
    made = np.zeros(len(given), np.int64)
    kernel = cuda_host_shim.HostKernel("search", library.launch_forms, False)
    kernel((1,), (32,), (given, len(given), made))
    enter, enter_edges = 2048 // 2, 4096  # SMALL / 2, ENTER_EDGES
    pulls = 0
    for row, form in zip(given.tolist(), made.tolist(), strict=True):
        m, symmetric, way, queued, tried, vertices, edges, left, open_, words = row
        pays = direction.search_pulls(
            edges,
            bool(queued),
            left,
            open_,
            m,
            bool(symmetric),
            semiring is not None,
            first or semiring is None,
        )
        work = edges + (0 if queued else CONVERT_EDGES)
        step = SEARCH_PUSH_STEP if semiring is not None else SEARCH_PUSH_STEP_HUBS
        pays = pays and work > words // int(step)
        if way != DIRECTIONS["auto"]:
            pays = way == DIRECTIONS["pull"]
        fits = (
            not tried and way != DIRECTIONS["pull"] and vertices <= enter and edges <= enter_edges
        )
        pull = pays and not (queued and fits)
        assert form == pull + 2 * (fits and not pull) + 4 * pays, row
        pulls += pays
    assert len(given) // 5 < pulls < 4 * len(given) // 5
