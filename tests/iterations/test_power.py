"""The power iteration on every device, against dense loops, and against its composed form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401
from search_cases import GRAPHS, matrix, weighted_graph

import spgraph as sg
from spgraph.iterations.power_iteration import Hop, Step, composed, power

NORMS = (None, 1, 2, "max")


def full(values: Any, where: str) -> sg.Vector:
    return sg.Vector.from_dense(np.asarray(values, float)).to(where)


def dense(x: np.ndarray, step: Step, norm: Any, count: int) -> np.ndarray:
    """`count` steps in plain NumPy."""

    def of(v: Any) -> Any:
        return v.to_numpy() if isinstance(v, sg.Vector) else v

    for _ in range(count):
        y = x
        for hop in step.hops:
            D = hop.A.to_scipy().toarray().astype(float)
            D = D if step.weighted else (D != 0).astype(float)
            y = (y if hop.scale is None else y * of(hop.scale)) @ D
        first = step.hops[0].scale
        mass = 0.0 if first is None else x[of(first) == 0].sum()
        x = (
            step.factor * y
            + step.keep * x
            + (step.teleport + step.dangling * mass) * of(step.restart)
        )
        sizes = {None: 1.0, 1: abs(x).sum(), 2: np.sqrt((x * x).sum()), "max": abs(x).max()}
        x = x / (sizes[norm] or 1.0)
    return x


def steps(A: sg.Matrix, where: str, weighted: bool) -> dict[str, Step]:
    """Steps that between them take every term."""
    rng = np.random.default_rng(5)
    n = A.nrows
    out = np.diff(A.to("cpu").indptr)
    share = full(np.where(out > 0, 1 / np.maximum(out, 1), 0), where)
    some, other, restart = (full(rng.random(n), where) for _ in range(3))
    return {
        "plain": Step((Hop(A),), factor=0.125, weighted=weighted),
        "shifted": Step((Hop(A),), keep=0.5, teleport=0.25, weighted=weighted),
        "leaking": Step(
            (Hop(A, share),),
            factor=0.85,
            teleport=0.15,
            dangling=0.85,
            restart=1 / n,
            weighted=weighted,
        ),
        "restarted": Step(
            (Hop(A, some),), factor=0.1, teleport=0.5, restart=restart, weighted=weighted
        ),
        "there and back": Step((Hop(A), Hop(A.T)), factor=0.01, weighted=weighted),
        "two scales": Step(
            (Hop(A, share), Hop(A.T, other)),
            factor=0.5,
            keep=0.25,
            teleport=0.125,
            dangling=0.5,
            restart=restart,
            weighted=weighted,
        ),
    }


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", list(steps(matrix("one"), "cpu", False)))
def test_equals_dense_loops_and_the_composed_form(
    name: str, weighted: bool, norm: Any, device: str
) -> None:
    A = weighted_graph(90, 700).to(device)
    step = steps(A, device, weighted)[name]
    x = np.random.default_rng(1).random(90)
    expected = dense(x, step, norm, 7)
    fast = power(full(x, device), step, norm=norm, tol=None, max_iter=7)
    slow = composed(full(x, device), step, norm=norm, tol=None, max_iter=7)
    assert fast.value.dtype == np.float64 and fast.value.storage == "full"
    assert fast.value.device == A.device and fast.converged and fast.iterations == 7
    np.testing.assert_allclose(fast.value.to_numpy(), expected, rtol=1e-12)
    np.testing.assert_allclose(slow.value.to_numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_of_every_shape(name: str, device: str) -> None:
    A = matrix(name).to(device)
    for step in steps(A, device, False).values():
        x = np.random.default_rng(2).random(A.nrows)
        for norm in (None, 2):
            found = power(full(x, device), step, norm=norm, tol=None, max_iter=3).value
            np.testing.assert_allclose(found.to_numpy(), dense(x, step, norm, 3), rtol=1e-12)


def test_hops_of_different_values(device: str) -> None:
    """One matrix has one value for all entries, or values of another type."""
    A, rng = weighted_graph(90, 700), np.random.default_rng(3)
    heavy = sg.Matrix._of(90, 90, A.indptr, A.indices, rng.random(A.nvals))
    same = sg.Matrix._of(90, 90, A.indptr, A.indices, np.full(1, 2.5), iso=True)
    x = rng.random(90)
    for pair in ((heavy, same), (same, heavy), (heavy.dup(np.float32), heavy), (A, heavy)):
        step = Step(tuple(Hop(M.to(device)) for M in pair), factor=0.01, weighted=True)
        found = power(full(x, device), step, tol=None, max_iter=2).value
        np.testing.assert_allclose(found.to_numpy(), dense(x, step, None, 2), rtol=1e-12)


def test_the_start_is_kept(device: str) -> None:
    x = full([1.0, 2.0], device)
    A = sg.Matrix.from_coo([0], [1], nrows=2, ncols=2).to(device)
    assert power(x, Step((Hop(A),)), tol=None, max_iter=2).value.to_numpy().tolist() == [0, 0]
    assert x.to_numpy().tolist() == [1, 2]


def test_tolerance(device: str) -> None:
    A = weighted_graph(90, 700).to(device)
    step, x = steps(A, device, False)["leaking"], full(np.full(90, 1 / 90), device)
    for tol in (1e-2, 1e-6, 1e-10):
        fast, slow = power(x, step, tol=tol), composed(x, step, tol=tol)
        assert fast.converged and 0 < fast.change <= tol
        assert fast.iterations == slow.iterations < 100
        before = power(x, step, tol=None, max_iter=fast.iterations - 1).value.to_numpy()
        assert abs(fast.value.to_numpy() - before).sum() == pytest.approx(fast.change, rel=1e-6)
    short = power(x, step, tol=1e-10, max_iter=5)
    assert not short.converged and short.iterations == 5 and short.change > 1e-10
    assert not power(x, step, tol=1e-10, max_iter=0).converged
    assert power(x, step, tol=None, max_iter=0).value.isequal(x)


def test_a_tolerance_does_not_change_the_iterates(device: str) -> None:
    """Without one, iterates between the first and the last one need not be stored."""
    A, x = sg.generators.kronecker(10, 16).to(device), np.random.default_rng(4).random(1024)
    for step in steps(A, device, False).values():
        for count in (1, 2, 5):
            asked = power(full(x, device), step, tol=1e-300, max_iter=count)
            unasked = power(full(x, device), step, tol=None, max_iter=count)
            assert asked.iterations == unasked.iterations == count
            assert unasked.change is None and asked.change > 0
            assert unasked.value.isequal(asked.value)


@pytest.mark.fused
def test_single_precision_of_what_is_gathered(device: str) -> None:
    A = sg.generators.kronecker(10, 16).to(device)
    step = steps(A, device, False)["leaking"]
    x = full(np.full(1024, 1 / 1024), device)
    exact = power(x, step, tol=None, max_iter=20).value.to_numpy()
    small: Any = np.int8(20)  # in which a product with the entries would overflow
    assert np.allclose(power(x, step, tol=None, max_iter=small).value.to_numpy(), exact)
    rounded = power(x, step, tol=None, max_iter=20, single=True).value.to_numpy()
    assert 0 < abs(exact - rounded).sum() < 1e-7


@pytest.mark.parametrize("norm", NORMS)
def test_the_result_does_not_depend_on_the_number_of_threads(
    norm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spgraph.backends.cpu.runtime import pool

    A = sg.generators.kronecker(12, 20)  # several chunks
    found = []
    monkeypatch.setattr(pool, "processors", lambda: 3)
    try:
        for threads in (1, 2, 3):
            monkeypatch.setattr(pool, "threads_for", lambda work, *share, threads=threads: threads)
            pool.close()
            for name in ("leaking", "two scales"):
                x = full(np.random.default_rng(3).random(A.nrows), "cpu")
                step = steps(A, "cpu", False)[name]
                result = power(x, step, norm=norm, tol=1e-300, max_iter=4)
                found.append((name, result.change, result.value.to_numpy()))
    finally:
        pool.close()
    for name, change, value in found[2:]:
        same = found[0] if name == found[0][0] else found[1]
        assert change == same[1] and (value == same[2]).all()


@pytest.mark.parametrize("single", [False, True])
def test_ends_of_rows_by_branches_give_the_same_bits(
    single: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where most rows are as long as the row before, or have 2 or 4 entries, as in a grid; here in
    any matrix, and none.
    """
    from spgraph.backends.cpu.power import power as module

    grid, skewed = sg.generators.grid(40, 50), sg.generators.kronecker(9, 5)
    assert module._evenness(grid) == (True, 4) and module._evenness(skewed) == (False, 0)
    for A in (grid, skewed):
        start = full(np.random.default_rng(3).random(A.nrows), "cpu")
        found = []
        # all rows are said to have two entries; as they are; only if all rows are of one length
        for uneven in (0, module.UNEVEN, 1 << 40):
            monkeypatch.setattr(module, "UNEVEN", uneven)
            # a copy: what a matrix is like is kept with it
            step = steps(A.dup(), "cpu", False)["leaking"]
            value = power(start, step, tol=None, max_iter=7, single=single).value
            found.append(value.to_numpy().tobytes())
        assert found[0] == found[1] == found[2]


# each is compiled: by default each array is wide once and narrow once
@pytest.mark.parametrize(
    ("offset", "index"),
    [
        pytest.param(np.int32, np.int32, marks=pytest.mark.full),
        (np.int32, np.int64),
        (np.int64, np.int32),
        pytest.param(np.int64, np.int64, marks=pytest.mark.full),
    ],
)
def test_index_types(index: Any, offset: Any, device: str) -> None:
    A = weighted_graph(60, 400)
    B = sg.Matrix._of(60, 60, A.indptr.astype(offset), A.indices.astype(index), A.values)
    x = full(np.full(60, 1 / 60), "cpu")
    for name in ("leaking", "two scales"):
        expected = power(x, steps(A, "cpu", True)[name], tol=None, max_iter=5).value
        found = power(
            x.to(device), steps(B.to(device), device, True)[name], tol=None, max_iter=5
        ).value
        np.testing.assert_allclose(found.to_numpy(), expected.to_numpy(), rtol=1e-12)


@pytest.mark.parametrize("two", [False, True])
def test_rows_of_every_length(two: bool, device: str) -> None:
    """0 to 13 entries a row, which are summed four by four, the last few together; one hop or two,
    and a matrix without an entry.
    """
    n = 14
    ids = np.arange(n)
    D = (ids[:, None] + ids < n - 1).astype(float)[:, np.random.default_rng(2).permutation(n)]
    for A in (sg.Matrix.from_dense(D), sg.Matrix.from_coo([], [], [], nrows=n, ncols=n)):
        A = A.pattern().to(device)
        step = Step((Hop(A), Hop(A.T)) if two else (Hop(A),), factor=0.25, keep=0.5)
        x = power(full(1.0 + ids, device), step, tol=None, max_iter=2)
        expected = dense(1.0 + ids, step, None, 2)
        np.testing.assert_allclose(x.value.to_numpy(), expected, rtol=1e-13)


def test_no_vertex(device: str) -> None:
    A = sg.Matrix.empty(0, 0, device=device)
    found = power(full([], device), Step((Hop(A),)))
    assert found.value.size == 0 and found.converged and found.change == 0


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"x": sg.Vector.from_dense([1, 2])}, TypeError, "x: expected a full Vector of float64"),
        ({"x": sg.Vector.empty(2)}, TypeError, "got one of float64 with 0 entries of 2"),
        ({"x": full([1], "cpu")}, ValueError, r"step.hops\[0\].A.nrows 2 != x.size 1"),
        ({"norm": 3}, ValueError, "norm: expected None, 1, 2 or 'max', got 3"),
        ({"tol": 0.0}, ValueError, "tol: expected a number > 0 or None, got 0.0"),
        ({"tol": float("nan")}, ValueError, "got nan"),
        ({"tol": "small"}, ValueError, "got 'small'"),
        ({"max_iter": -1}, ValueError, "max_iter: expected an integer >= 0, got -1"),
        ({"max_iter": 1.5}, ValueError, "max_iter"),
        ({"step": Step(())}, ValueError, "step.hops: expected 1 or 2 of them, got 0"),
        ({"step": 3}, TypeError, "step: expected a Step, got int"),
        ({"step": Step((), "1")}, TypeError, "step.factor: expected a number, got '1'"),
        ({"step": Step((), keep=1j)}, TypeError, "step.keep: expected a number, got 1j"),
        ({"step": Step((), restart=None)}, TypeError, "step.restart: expected a number"),
    ],
)
def test_bad_input(change: dict[str, Any], error: type[Exception], message: str) -> None:
    A = sg.Matrix.from_coo([0], [1], nrows=2, ncols=2)
    arguments = {"x": full([1, 2], "cpu"), "step": Step((Hop(A),))} | change
    with pytest.raises(error, match=message):
        power(**arguments)
    with pytest.raises(ValueError, match="scale.size 3 != x.size 2"):
        power(full([1, 2], "cpu"), Step((Hop(A, full([1, 2, 3], "cpu")),)))
    with pytest.raises(ValueError, match="expected a square matrix, got 2 x 3"):
        power(full([1, 2], "cpu"), Step((Hop(sg.Matrix.empty(2, 3)),)))
