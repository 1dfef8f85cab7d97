"""One container that several threads look at: what is derived is made once or twice, never torn."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import numpy as np
import pytest

import spgraph as sg
from spgraph import Matrix, Vector

SYMMETRIC = np.array([[0, 2, 0], [2, 5, 4], [0, 4, 0]])
DIRECTED = np.array([[0, 2, 0], [3, 5, 4], [0, 0, 0]])

FOLDERS = "/spgraph/containers/", "/spgraph/distributed/containers/"

QUESTIONS: dict[str, Callable[[Matrix], Any]] = {
    "symmetric": lambda A: A.is_symmetric(),
    "arrays": lambda A: [a.tolist() for a in (A.indptr, A.indices, A.values)],
    "entries": lambda A: (A.nvals, A.dtype, A.device, A.index_dtype, A.shape),
    "there and back": lambda A: A.T.T.nvals,
    "transpose": lambda A: A.T.to_dense().tolist(),
    "degrees": lambda A: A.row_degrees().to_numpy().tolist(),
    "extent": lambda A: (A._value_range(), A._sampled_mean()),
    "rows": lambda A: (A._nonempty_count(), A._nonempty_rows().tolist()),
}


def interrupted(call: Callable[[], Any], at: int, other: Callable[[], Any]) -> tuple[Any, bool]:
    """What `call` gives when at its line number `at` inside of the containers another thread runs
    `other` to its end, and whether it came so far.
    """
    line = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal line
        if not any(folder in frame.f_code.co_filename for folder in FOLDERS):
            return None
        if event == "line":
            line += 1
            if line == at:
                thread = threading.Thread(target=other)
                thread.start()
                thread.join()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return call(), line >= at
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("dense", [SYMMETRIC, DIRECTED], ids=["symmetric", "directed"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_another_thread_at_every_line(name: str, dense: np.ndarray) -> None:
    question = QUESTIONS[name]
    expected = question(Matrix.from_dense(dense.T))
    for other in QUESTIONS.values():
        for of in (lambda A: A, lambda A: A.T):
            at, more = 0, True
            while more:
                at += 1
                A = Matrix.from_dense(dense)
                view = A.T  # somebody holds it
                found, more = interrupted(
                    lambda view=view: question(view),
                    at,
                    lambda of=of, other=other, A=A: other(of(A)),
                )
                assert found == expected, (at, A.symmetric)
            assert at > 3


def test_a_count_that_another_thread_fetches() -> None:
    def bitmap() -> Vector:
        v = Vector.from_coo([1, 3], [1.0, 2.0], size=9)
        return Vector._of(9, v._values, bits=v._bits, nvals=lambda: 2)

    at, more = 0, True
    while more:
        at += 1
        v = bitmap()
        found, more = interrupted(lambda v=v: v.nvals, at, lambda v=v: v.nvals)
        assert found == 2
        v = bitmap()
        found, _ = interrupted(lambda v=v: v.to_sparse(), at, lambda v=v: v.nvals)
        assert found.nvals == 2


def test_eight_threads_over_one_matrix() -> None:
    chance = np.random.default_rng(7)
    dense = np.where(chance.random((60, 60)) < 0.1, chance.integers(1, 9, (60, 60)), 0)
    calls: list[Callable[[Matrix], Any]] = [
        lambda A: sg.bfs(A, 0).level,
        lambda A: sg.bfs(A, 5).level,
        lambda A: sg.sssp(A, 0).distance,
        lambda A: sg.pagerank(A),
        lambda A: sg.connected_components(A),
        lambda A: sg.vxm(Vector.from_dense(np.ones(60)), A, direction="pull"),
        lambda A: A @ A,
        lambda A: A.T @ A,
        lambda A: sg.reduce_columnwise(A),
    ]
    expected = [call(Matrix.from_dense(dense)) for call in calls]
    for repeat in range(3):
        A = Matrix.from_dense(dense)
        gate = threading.Barrier(8)

        def work(k: int, A: Matrix = A, gate: Any = gate, repeat: int = repeat) -> list[int]:
            gate.wait()
            order = np.random.default_rng((repeat, k)).permutation(len(calls))
            return [c for c in order if not calls[c](A).isclose(expected[c])]

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(work, range(8))) == [[]] * 8
