"""What the values of a closure may be: their types and limits, NaN, bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from closure_cases import check_nan, entries, path_graph
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph.iterations.closure_buckets import composed_closure
from spgraph.iterations.fixed_point import closure, composed
from spgraph.iterations.shortest_path_dag import dag_edges, parents
from spgraph.semirings import (
    BinaryOp,
    Monoid,
    Semiring,
    any_first,
    binary,
    lor_land,
    max_min,
    max_times,
    min_first,
    min_plus,
    plus_times,
)


def least_or_nan(x: float, y: float) -> float:
    return x if x != x or x < y else y


def test_lengths_below_the_normal_numbers(device: str) -> None:
    """A GPU may take them for zero, as CuPy compiles with -ftz=true; buckets of their width end."""
    kind = np.finfo(np.float32)
    least = kind.smallest_subnormal
    A, v = path_graph(np.array([3, 2, 1], np.float32) * least, device)
    expected = np.array([0, 3, 5, 6], np.float32) * least
    for delta in (None, float(least), 1e-323):
        found = closure(A, v, min_plus, delta=delta).to_numpy()
        np.testing.assert_allclose(found, expected, 0, 0 if device == "cpu" else kind.tiny)


def test_huge_integers(device: str) -> None:
    """A sum beyond int64 is an error only where it is the best one."""
    top = np.iinfo(np.int64).max
    A, v = path_graph([top - 5, 3], device)
    assert closure(A, v, min_plus).to_numpy().tolist() == [0, top - 5, top - 2]
    for weights in ([top - 5, 5], [top], [top, 0, 0]):
        found = closure(*path_graph(weights, device), min_plus)
        assert found.to_numpy().tolist() == [0, *np.cumsum(weights).tolist()]
    for weights in ([top - 5, 6], [top, 0, 1], [2**62, 2**62, 0], [2**62, 2**62, 2**62]):
        with pytest.raises(OverflowError, match="float64"):
            closure(*path_graph(weights, device), min_plus)
    detour = sg.Matrix.from_coo([0, 1, 0], [1, 2, 2], [2**62, 2**62, 2**62 + 7], nrows=3, ncols=3)
    start = sg.Vector.from_coo([0], [0], size=3, device=device)
    found = closure(detour.to(device), start, min_plus)
    assert found.to_numpy().tolist() == [0, 2**62, 2**62 + 7]
    assert composed(detour.to(device), start, min_plus).isequal(found)


# of uint8, sums have the same wider type as of int8
@pytest.mark.parametrize("kind", ["int8", pytest.param("uint8", marks=pytest.mark.full), "uint64"])
def test_an_integer_type_is_refused_where_a_value_does_not_fit(kind: str, device: str) -> None:
    """And nowhere else, whatever sums along other walks would come to."""
    top = int(np.iinfo(kind).max)
    start = sg.Vector.from_coo([0], np.zeros(1, kind), size=4, device=device)
    for last in (1, 3, 6, 7, 40):
        weights = np.array([top - 27, 20, last], kind)
        A, _ = path_graph(weights, device)
        for loop in (closure, composed):
            if last <= 7:
                found = loop(A, start, min_plus)
                assert found.dtype == kind
                assert found.to_numpy().tolist() == [0, top - 27, top - 7, top - 7 + last]
            else:
                with pytest.raises(OverflowError, match=f"^closure: A: .* that {kind} holds"):
                    loop(A, start, min_plus)
    back = sg.Matrix.from_coo([0, 1, 1], [1, 0, 1], np.array([top - 1, 9, top], kind), nrows=4,
                              ncols=4)  # fmt: skip
    assert closure(back.to(device), start, min_plus).to_numpy(fill=0).tolist() == [0, top - 1, 0, 0]


@pytest.mark.parametrize("kind", [pytest.param(np.float32, marks=pytest.mark.full), np.float64])
def test_reals_near_the_limit(kind: Any, device: str) -> None:
    """Sums that leave the type become inf, which is a value: the vertex is reached."""
    big = np.finfo(kind).max
    A, v = path_graph(np.array([big, big / 4, 1, 0], kind), device)
    found = closure(A, v, min_plus)
    assert found.dtype == kind and found.nvals == 5
    assert found.to_numpy().tolist() == [0, big, np.inf, np.inf, np.inf]
    assert found.isequal(composed(A, v, min_plus))
    A, v = path_graph(np.array([np.inf, 1], kind), device)
    assert closure(A, v, min_plus).to_numpy().tolist() == [0, np.inf, np.inf]
    # CuPy compiles for GPUs so that subnormal float32 numbers are zero
    flushed = device == "cuda" and kind == np.float32
    tiny = np.finfo(kind).tiny if flushed else np.finfo(kind).smallest_subnormal
    A, v = path_graph(np.array([tiny, tiny, 1], kind), device)
    assert closure(A, v, min_plus).to_numpy().tolist() == [0, tiny, 2 * tiny, 1]


def test_absorbed_reals(device: str) -> None:
    """Weights too small to change the sum, in a cycle."""
    n = 40
    rows, columns = np.arange(n), (np.arange(n) + 1) % n
    weights = np.where(np.arange(n) == 0, np.float32(2**25), np.float32(0.25))
    A = sg.Matrix.from_coo(rows, columns, weights, nrows=n, ncols=n).to(device)
    start = sg.Vector.from_coo([0], np.zeros(1, np.float32), size=n, device=device)
    assert closure(A, start, min_plus).to_numpy().tolist() == [0.0] + [2.0**25] * (n - 1)


@pytest.mark.parametrize("sign", [1, pytest.param(-1, marks=pytest.mark.full)])
@pytest.mark.parametrize("delta", [None, 2.5])
def test_nan(sign: int, delta: Any, device: str) -> None:
    """Named semirings refuse NaN; with a multiply of one's own min and max omit it."""

    def run(A: sg.Matrix, start: sg.Vector, semiring: Semiring) -> Any:
        return closure(A.to(device), start.to(device), semiring, delta=delta)

    check_nan(run, sign)


@pytest.mark.parametrize("shards", [1, 3])
def test_nan_in_shards(shards: int) -> None:
    def run(A: sg.Matrix, start: sg.Vector, semiring: Semiring) -> Any:
        G = A.distribute(shards)
        return closure(G, start.to(G.device), semiring, delta=2.5)

    check_nan(run, 1)


def test_nan_that_a_monoid_keeps(device: str) -> None:
    """A minimum of one's own that NaN wins over: it settles, too."""
    A = sg.Matrix.from_coo([0, 0, 1], [0, 1, 2], [1.0, 1.0, 2.0], nrows=4, ncols=4).to(device)
    start = sg.Vector.from_coo([0, 1], [np.nan, 3.0], size=4).to(device)
    semiring = Semiring(Monoid(BinaryOp.define(least_or_nan), np.inf, None, True), binary.plus)
    found = entries(closure(A, start, semiring).to("cpu"))
    np.testing.assert_array_equal([found[v] for v in range(3)], [np.nan] * 3)


def test_nan_that_is_an_identity() -> None:
    """Which vertices are visited is told by their values where these are not the identity."""

    def lesser(x, y):  # type: ignore[no-untyped-def]
        return y if x != x or y < x else x

    semiring = Semiring(Monoid(BinaryOp.define(lesser), np.nan, None, True), binary.plus)
    A = sg.Matrix.from_coo([0, 1, 0, 3], [1, 2, 2, 4], [1.0, 1.0, 5.0, 1.0], nrows=5, ncols=5)
    start = sg.Vector.from_coo([0], [0.0], size=5)
    assert entries(closure(A, start, semiring)) == {0: 0.0, 1: 1.0, 2: 2.0}


def test_values_without_a_total_order_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every vertex passes on in a round what it has, even if its value has changed since: so there
    need not be more rounds than vertices.
    """
    from spgraph.backends.cpu.closure import closure as fused

    monkeypatch.setattr(fused, "ALONE", 1)  # no rounds but those that are counted
    union = BinaryOp.define(lambda x, y: x | y)
    semiring = Semiring(Monoid(union, 0, None, True), binary.first)
    rows, columns = [0, 0, 0, 1, 1, 1, 2, 3, 3, 3], [0, 2, 3, 0, 2, 3, 0, 0, 1, 3]
    A = sg.Matrix.from_coo(rows, columns, 1, nrows=4, ncols=4)
    found = closure(A, sg.Vector.from_dense([1, 2, 4, 8]), semiring)
    assert entries(found) == dict.fromkeys(range(4), 15)


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_composed_buckets_keep_nan(shards: int) -> None:
    """A value that is no number comes before every limit, as without buckets: min passes it over,
    but what it reaches has an entry.
    """
    ends = [0, 0, 1, 3], [1, 2, 3, 4]
    A = sg.Matrix.from_coo(*ends, [1.0, 1.0, 2.0, 5.0], nrows=5, ncols=5).distribute(shards)
    start = sg.Vector.from_coo([0, 2], [np.nan, 1.0], size=5).to(A.device)
    typed = min_plus.resolve("float64", "float64")
    for delta in (None, 0.5, 1e9):
        found: Any = composed_closure(A, start, typed, delta)
        right = np.array([np.nan, np.inf, 1.0, np.inf, np.inf])
        np.testing.assert_array_equal(found.to_numpy(fill=-1.0), right)


A5 = sg.Matrix.from_coo([0, 1, 2], [1, 2, 3], [4.0, 2.0, 3.0], nrows=5, ncols=5)


V5 = sg.Vector.from_coo([0], [0.0], size=5)


def edited(value: float, at: int = 1) -> sg.Matrix:
    values = A5.values.copy()
    values[at] = value
    return sg.Matrix._of(5, 5, A5.indptr, A5.indices, values)


def vector(value: float) -> sg.Vector:
    return sg.Vector.from_coo([0], [value], size=5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: closure(np.ones((2, 3)), V5, min_plus), "ValueError: closure: A: .* got 2 x 3"),
        (
            lambda: closure(A5, sg.Vector.empty(4), min_plus),
            "ValueError: .* start.size 4 != A.nrow",
        ),
        (lambda: closure(A5, [0], min_plus), "TypeError: .* start: expected a Vector, got list"),
        (lambda: closure(A5, V5, 3), "TypeError: .* expected a Semiring"),
        (lambda: closure(A5, V5, plus_times), "TypeError: .* x \\+ x == x .* got plus_times"),
        (lambda: closure(A5, V5, any_first), "TypeError: .* one result, .* got any_first"),
        (
            lambda: closure(A5, V5, min_plus, delta=0),
            "ValueError: closure: delta: .* positive .* got 0",
        ),
        (lambda: closure(A5, V5, min_plus, delta="1"), "ValueError: closure: delta: .* got '1'"),
        (lambda: closure(A5, V5, min_plus, delta=np.inf), "ValueError: closure: delta: .* got inf"),
        (
            lambda: closure(A5, V5, lor_land, delta=1),
            "ValueError: closure: delta: .* None for lor_land",
        ),
        (
            lambda: closure(edited(-2.0), V5, min_plus),
            "NegativeWeight: closure: A: .* A\\[1, 2\\] = -2.0; ",
        ),
        (lambda: closure(edited(-2.0, 0), V5, min_plus), "NegativeWeight: .* A\\[0, 1\\] = -2.0"),
        (lambda: composed(edited(-2.0), V5, min_plus), "NegativeWeight: .* A\\[1, 2\\] = -2.0"),
        (
            lambda: closure(edited(np.nan, 2), V5, min_plus),
            "ValueError: closure: A: .* A\\[2, 3\\] = nan",
        ),
        (
            lambda: closure(edited(np.nan), V5, max_min),
            "ValueError: closure: A: .* A\\[1, 2\\] = nan",
        ),
        (lambda: closure(A5, vector(np.nan), min_plus), "ValueError: closure: start: .* got NaN"),
        (lambda: closure(A5, V5, max_times), "ValueError: .* 0 to 1, got A\\[0, 1\\] = 4.0"),
        (lambda: closure(edited(-0.5, 0), V5, max_times), "ValueError: .* A\\[0, 1\\] = -0.5"),
        (
            lambda: closure(A5.pattern(), vector(-1.0), max_times),
            "ValueError: closure: start: .* got -1.0",
        ),
        (
            lambda: dag_edges(A5, sg.Vector.empty(4), min_plus),
            "ValueError: dag_edges: x.size 4 != A.nrows",
        ),
        (
            lambda: dag_edges(A5, sg.Vector.empty(5, int), min_plus),
            "TypeError: dag_edges: x: .* got int64",
        ),
        (lambda: parents(A5, sg.Vector.empty(4), min_plus), "ValueError: parents: x.size 4 != "),
        (lambda: parents(A5, sg.Vector.empty(5, int), min_plus), "TypeError: parents: x: .* int64"),
        (lambda: parents(A5, V5, 3), "TypeError: parents: .* expected a Semiring"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    kind, _, text = message.partition(": ")
    with pytest.raises(Exception, match=text) as caught:
        call()
    assert kind in {parent.__name__ for parent in type(caught.value).__mro__}
    assert closure(A5, V5, min_plus).nvals == 4  # everything is still usable


def test_start_without_entries(device: str) -> None:
    A, _ = path_graph([1, 2], device)
    for loop, semiring, kind in ((closure, min_first, np.int32), (composed, min_plus, np.int64)):
        found = loop(A, sg.Vector.empty(3, kind, device=device), semiring)
        assert found.nvals == 0 and found.dtype == kind and found.size == 3


def test_the_type_of_nothing_is_that_of_values(device: str) -> None:
    """A sum that might leave int8 is computed in a wider type, which is not that of the result."""
    A = path_graph([100, 100], device)[0].astype(np.int8)
    for loop in (closure, composed):
        for entries_of_start in ([], [2]):
            start = sg.Vector.from_coo(
                entries_of_start, np.zeros(len(entries_of_start), np.int8), size=3, device=device
            )
            assert loop(A, start, min_plus).dtype == np.int8
