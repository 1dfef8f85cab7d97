"""The CUDA power iteration without a GPU: host code on NumPy arrays, kernels under
the shim; and they compile over what they are specialised on.
"""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any

import numpy as np
import pytest
from power_fixtures import on_cuda, shim, shimmed, skewed  # noqa: F401
from search_cases import matrix, weighted_graph
from shim_exchanges import HostBuffers

import spgraph as sg
from spgraph import distributed, semirings
from spgraph.backends import cuda
from spgraph.backends.cuda.power import power_stepwise, warp_tasks
from spgraph.backends.cuda.runtime import offline, preamble
from spgraph.backends.cuda.runtime.sources import source
from spgraph.distributed.containers import placement
from spgraph.iterations import power_iteration as powers
from spgraph.iterations import ranks
from tests.iterations.test_power import NORMS, dense, full, steps


@pytest.fixture(params=["cooperative", "stepwise"])
def way(request: pytest.FixtureRequest, shim: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each form of the power iteration takes graphs of any size."""
    monkeypatch.setattr(on_cuda, "LARGE", 0 if request.param == "stepwise" else 1 << 62)
    return request.param


CASES = [
    (name, weighted, norm)
    for name in steps(matrix("one"), "cpu", False)
    for weighted in (False, True)
    for norm in NORMS
]


@pytest.fixture(scope="module")
def slow() -> dict[Any, powers.Power]:
    """What operations on the CPU make of every kind of step."""
    A, x = weighted_graph(90, 700), np.random.default_rng(1).random(90)
    return {
        (name, weighted, norm): powers.composed(
            full(x, "cpu"), steps(A, "cpu", weighted)[name], norm=norm, tol=1e-300, max_iter=3
        )
        for name, weighted, norm in CASES
    }


@shimmed
def test_both_forms_equal_the_composed_one(slow: dict[Any, powers.Power], way: str) -> None:
    A, x = weighted_graph(90, 700), np.random.default_rng(1).random(90)
    for name, weighted, norm in CASES:
        step, expected = steps(A, "cpu", weighted)[name], slow[name, weighted, norm]
        found = powers.power(full(x, "cpu"), step, norm=norm, tol=1e-300, max_iter=3)
        np.testing.assert_allclose(found.value.values, expected.value.values, rtol=1e-12)
        assert found.iterations == 3 and not found.converged
        assert found.change == pytest.approx(expected.change, rel=1e-9)
        if norm is None:
            unasked = powers.power(full(x, "cpu"), step, tol=None, max_iter=3)
            assert (unasked.value.values == found.value.values).all()


@shimmed
def test_a_number_is_what_all_vertices_begin_with(way: str) -> None:
    A = matrix("skewed both")
    step, one = steps(A, "cpu", False)["leaking"], 1 / A.nrows
    expected = powers.power(full(np.full(A.nrows, one), "cpu"), step, tol=1e-2)
    value, ended = powers.started(one, step, tol=1e-2)
    assert value.isequal(expected.value)
    assert ended()[1:] == expected[1:]


@shimmed
def test_tolerance_and_single_precision(way: str) -> None:
    A = matrix("skewed both")
    step, x = steps(A, "cpu", False)["leaking"], full(np.full(A.nrows, 1 / A.nrows), "cpu")
    found = powers.power(x, step, tol=1e-2)
    before, after, rounded = (
        powers.power(x, step, tol=None, max_iter=count, single=single).value.values
        for count, single in ((-1, False), (0, False), (0, True))
        for count in [found.iterations + count]
    )
    assert found.converged and found.change <= 1e-2 and (found.value.values == after).all()
    assert found.change == pytest.approx(abs(after - before).sum(), rel=1e-9)
    assert 0 < abs(after - rounded).sum() < 1e-7


@shimmed
def test_products_begin_before_the_change_is_known_but_for_the_last(
    shim: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_cuda, "LARGE", 0)
    order: list[str] = []
    gather, to_host = power_stepwise.gather, on_cuda.to_host

    def multiplied(*arguments: Any) -> None:
        order.append("product")
        gather(*arguments)

    def asked(array: Any) -> Any:
        wait = to_host(array)
        return lambda: order.append("change") or wait()

    monkeypatch.setattr(power_stepwise, "gather", multiplied)
    monkeypatch.setattr(on_cuda, "to_host", asked)
    A = matrix("skewed both")
    step, x = steps(A, "cpu", False)["leaking"], full(np.full(A.nrows, 1 / A.nrows), "cpu")
    short = powers.power(x, step, tol=1e-300, max_iter=4)
    assert short.iterations == 4 and order == ["product"] + 3 * ["product", "change"] + ["change"]
    order.clear()
    found = powers.power(x, step, tol=1e-6)
    # the change shrinks alike from step to step, so that the last one is foreseen
    assert found.iterations > 5 and order.count("product") == found.iterations
    assert order.index("change") == 2
    again = powers.power(x, step, tol=None, max_iter=found.iterations)
    assert (again.value.values == found.value.values).all()


@shimmed
def test_zeros_stay_zeros_under_a_norm(way: str) -> None:
    A = sg.Matrix.from_coo([0], [1], nrows=2, ncols=2)
    step = powers.Step((powers.Hop(A),))
    for norm in (1, 2, "max"):
        found = powers.power(full([1, 2], "cpu"), step, norm=norm, tol=1e-9)
        assert found.value.to_numpy().tolist() == [0, 0]
        assert (found.iterations, found.change) == (3, 0)


@shimmed
def test_rows_in_pieces_and_rows_without_entries(way: str) -> None:
    n = 3000
    hub, leaf = np.zeros(n - 10, int), np.arange(5, n - 5)
    A = sg.Matrix.from_coo(np.r_[hub, leaf], np.r_[leaf, hub], nrows=n, ncols=n, symmetric=True)
    for name in ("leaking", "two scales"):
        step = steps(A, "cpu", False)[name]
        x = np.random.default_rng(1).random(n)
        found = powers.power(full(x, "cpu"), step, tol=None, max_iter=2)
        np.testing.assert_allclose(found.value.to_numpy(), dense(x, step, None, 2), rtol=1e-11)


@shimmed
@pytest.mark.parametrize("iso", [False, True])
def test_every_entry_is_in_one_task(iso: bool, shim: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces, whole rows and short ones, in windows; a long row is cut into few pieces. The columns
    of most entries are hubs, as many as there is room for.
    """
    monkeypatch.setattr(warp_tasks, "MOST_PIECES", 4)
    monkeypatch.setattr(warp_tasks, "WINDOW", 100)
    S = skewed(1500, 1400, 40_000, np.float32)
    A = sg.Matrix.from_scipy(S)
    A = A.pattern() if iso else A
    made = warp_tasks.warp_tasks(A, iso, 150, 8)
    assert warp_tasks.warp_tasks(A, iso, 150, 8) is made
    counts = np.bincount(S.indices, minlength=1400)
    least = next(32 << b for b in range(9) if np.count_nonzero(counts >= 32 << b) <= 150)
    assert least > 32 and 20 < made.hubs == np.count_nonzero(counts >= least)
    assert ((made.hub >= 0) == (counts >= least)).all()
    assert np.unique(made.hub).tolist() == [*range(-1, made.hubs)]
    found = []
    for number, (first, size, target, kind) in enumerate(made.tasks.tolist()):
        at = slice(32 * first, 32 * (first + size))
        columns = made.columns[at].reshape(size, 32)
        hubs = np.argsort(made.hub, kind="stable")[1400 - made.hubs :]
        columns = np.where(columns < -1, hubs[np.maximum(-2 - columns, 0)], columns)
        values = np.ones((size, 32)) if iso else made.values[at].reshape(size, 32)
        assert (kind == warp_tasks.ROWS) == (number >= made.long)
        rows = made.rows[target : target + 32] if kind == warp_tasks.ROWS else np.full(32, target)
        if kind == warp_tasks.PART:
            piece, pieces, row, _ = made.splits[target].tolist()
            assert piece <= number < piece + pieces <= piece + 4 and pieces > 1
            rows = np.full(32, row)
        there = columns >= 0
        rows = np.broadcast_to(rows, columns.shape)[there]
        assert kind == warp_tasks.ROWS or len(set(rows.tolist())) == 1
        found.append(np.stack((rows, columns[there], values[there])))
    rows, columns, values = np.concatenate(found, axis=1)
    order = np.lexsort((columns, rows))
    expected = S.tocoo()
    assert (rows[order] == expected.row).all() and (columns[order] == expected.col).all()
    assert iso or (values[order] == expected.data).all()
    assert sorted(made.rows[made.rows >= 0]) == np.flatnonzero(np.diff(S.indptr) <= 32).tolist()


@shimmed
def test_tasks_are_dealt_so_that_warps_have_about_as_much(
    shim: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns of the warps are filled in falling and in rising order, the first one from where the
    tasks of long rows end; without hubs tasks stay in the order of the rows.
    """
    monkeypatch.setattr(warp_tasks, "WINDOW", 100)
    rng = np.random.default_rng(1)
    lengths = rng.integers(0, 33, 3_000)
    lengths[[5, 700]] = 300, 40  # three tasks
    rows = np.repeat(np.arange(3_000), lengths)
    columns = np.concatenate([rng.permutation(3_000)[:length] for length in lengths])
    columns[np.cumsum(lengths)[lengths > 0] - 1] = 3_000  # a hub
    A = sg.Matrix.from_coo(rows, columns, True, nrows=3_000, ncols=3_001)
    made = warp_tasks.warp_tasks(A, True, 1, 40)
    steps, kinds = made.tasks[:, 1], made.tasks[:, 3]
    assert made.long == 3 and made.hubs == 1 and (kinds[3:] == warp_tasks.ROWS).all()
    windows = [lengths[at : at + 100] for at in range(0, 3_000, 100)]
    falling = [-np.sort(-each[each <= 32]) for each in windows]
    # a task is as long as its longest row
    expected = np.sort(np.maximum.reduceat(np.concatenate(falling), np.arange(0, 2_998, 32)))[::-1]
    assert expected.size == steps.size - 3
    assert np.sort(steps[3:])[::-1].tolist() == expected.tolist()
    for turn, first in enumerate(range(0, steps.size, 40)):
        part = steps[max(first, 3) : first + 40]
        assert part.tolist() == np.sort(part)[:: 1 if turn % 2 else -1].tolist()
    assert np.sort(made.tasks[3:, 2]).tolist() == list(range(0, 32 * expected.size, 32))
    A._derived.clear()
    without = warp_tasks.warp_tasks(A, True, 0, 40)
    assert without.hubs == 0
    assert without.tasks[3:, 2].tolist() == list(range(0, 32 * expected.size, 32))


@shimmed
def test_without_hubs_and_with_few_a_hop_gathers_the_same(way: str, shim: None) -> None:
    """Values of hubs are read from shared memory, those of other columns from the device's; sums
    are taken in the same order.
    """
    A = sg.Matrix.from_scipy(skewed(700, 700, 30_000, np.float32))
    x, step = np.random.default_rng(1).random(700), steps(A, "cpu", False)["two scales"]
    found = {}
    for most in (0, 5, 300):
        A._derived.clear()
        A.T._derived.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(on_cuda, "MOST_HUBS", most)
            for single in (False, True):
                got = powers.power(full(x, "cpu"), step, tol=None, max_iter=3, single=single)
                found[most, single] = got.value.values
    for most in (5, 300):
        for single in (False, True):
            assert (found[most, single] == found[0, single]).all()


@shimmed
@pytest.mark.parametrize("weighted", [False, True])
def test_long_rows_in_two_hops(weighted: bool, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warp_tasks, "MOST_PIECES", 7)
    A = sg.Matrix.from_scipy(skewed(700, 700, 30_000, np.float32))
    x = np.random.default_rng(1).random(700)
    for name in ("restarted", "two scales"):
        step = steps(A, "cpu", weighted)[name]
        for norm in (None, 1):
            found = [
                powers.power(full(x, "cpu"), step, norm=norm, tol=None, max_iter=3).value
                for _ in range(2)
            ]
            expected = dense(x, step, norm, 3)
            np.testing.assert_allclose(found[0].to_numpy(), expected, rtol=1e-10)
            assert (found[0].values == found[1].values).all()


@shimmed
def test_hops_of_different_values(way: str) -> None:
    A, rng = weighted_graph(90, 700), np.random.default_rng(3)
    heavy = sg.Matrix._of(90, 90, A.indptr, A.indices, rng.random(A.nvals).astype(np.float32))
    same = sg.Matrix._of(90, 90, A.indptr, A.indices, np.full(1, 2.5, np.float32), iso=True)
    x = rng.random(90)
    for pair in ((heavy, same), (same, heavy), (heavy, heavy.dup(np.float64))):
        step = powers.Step(tuple(map(powers.Hop, pair)), factor=0.01, weighted=True)
        found = powers.power(full(x, "cpu"), step, tol=None, max_iter=2)
        np.testing.assert_allclose(found.value.to_numpy(), dense(x, step, None, 2), rtol=1e-11)


@shimmed
def test_hops_whose_index_types_differ(way: str) -> None:
    A = weighted_graph(90, 700)
    B = sg.Matrix._of(90, 90, A.indptr.astype(np.int64), A.indices.astype(np.int64), A.values)
    step, x = powers.Step((powers.Hop(A), powers.Hop(B))), np.random.default_rng(1).random(90)
    found = powers.power(full(x, "cpu"), step, norm=2, tol=None, max_iter=2)
    np.testing.assert_allclose(found.value.to_numpy(), dense(x, step, 2, 2), rtol=1e-12)


class Barriers(HostBuffers):
    """Stands for PeerBuffers where nobody waits: between two barriers a device does all its work
    before the next one begins.
    """

    barriers = handed_over = 0

    def barrier(self) -> None:
        self.barriers += 1

    def hand_over(self) -> None:
        self.handed_over += 1


def seen(address: int, size: int, dtype: np.dtype, owner: Any) -> np.ndarray:
    octets = (ctypes.c_char * (size * dtype.itemsize)).from_address(address)
    return np.frombuffer(memoryview(octets), dtype)


def in_shards(step: powers.Step, G: Any) -> powers.Step:
    """A step over the matrix of which G are the shards, or over its transpose."""

    def spread(v: Any) -> Any:
        return v.to(G.device) if isinstance(v, sg.Vector) else v

    first, *rest = (spread(hop.scale) for hop in step.hops)
    hops = (powers.Hop(G, first), *(powers.Hop(G.T, scale) for scale in rest))
    return dataclasses.replace(step, hops=hops, restart=spread(step.restart))


@pytest.fixture(scope="module")
def graphs_in_shards() -> dict[tuple[int, str], Any]:
    """The graph in shards, transposed by the CPU's own backend."""
    A, found = weighted_graph(90, 700), {}
    for key in ((2, "edges"), (3, "random"), (4, "random")):
        found[key] = A.distribute(key[0], partition=key[1])
        assert len(found[key].T.shards) == key[0]
    return found


@pytest.fixture
def sharded(graphs_in_shards: Any, shim: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards on the CPU iterate as those of GPUs do."""
    for module in (powers, ranks):
        monkeypatch.setattr(
            module, "backend", lambda device: cuda if isinstance(device, str) else distributed
        )
    monkeypatch.setattr(placement, "backend", lambda device: cuda)
    monkeypatch.setattr(power_stepwise, "array_at", seen)


@shimmed
@pytest.mark.parametrize(
    ("shards", "how", "peers"),
    [(2, "edges", True), (4, "random", True), (3, "random", False)],
)
def test_shards_equal_the_composed_form(
    slow: Any, graphs_in_shards: Any, shards: int, how: str, peers: bool, sharded: None
) -> None:
    A, x = weighted_graph(90, 700), np.random.default_rng(1).random(90)
    G, buffers = graphs_in_shards[shards, how], Barriers(shards)
    G.device.peers = buffers if peers else None
    for name, weighted, norm in CASES[shards % 2 :: 2]:
        step, expected = steps(A, "cpu", weighted)[name], slow[name, weighted, norm]
        start, step = full(x, "cpu").to(G.device), in_shards(step, G)
        buffers.barriers = 0
        found = powers.power(start, step, norm=norm, tol=1e-300, max_iter=3)
        np.testing.assert_allclose(found.value.to_numpy(), expected.value.values, rtol=1e-12)
        assert found.change == pytest.approx(expected.change, rel=1e-9)
        barriers = 2 + 3 * (len(step.hops) + (norm is not None))
        assert buffers.barriers == (barriers if peers else 0)
        if norm is None:
            unasked = powers.power(start, step, tol=None, max_iter=3)
            assert (unasked.value.to_numpy() == found.value.to_numpy()).all()
    single = powers.power(start, step, norm=norm, tol=None, max_iter=3, single=True)
    np.testing.assert_allclose(single.value.to_numpy(), found.value.to_numpy(), rtol=1e-6)


@shimmed
def test_after_a_failure_nothing_is_taken_for_granted(
    graphs_in_shards: Any, sharded: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    A, G = weighted_graph(90, 700), graphs_in_shards[2, "edges"]
    G.device.peers = buffers = Barriers(2)
    step, x = in_shards(steps(A, "cpu", False)["leaking"], G), full(np.ones(90), "cpu")
    first = powers.power(x.to(G.device), step, tol=None, max_iter=2)
    assert buffers.layout is not None

    def fails(*arguments: Any) -> None:
        raise MemoryError("of one shard")

    with monkeypatch.context() as patch:
        patch.setattr(power_stepwise, "gather", fails)
        with pytest.raises(MemoryError, match="of one shard"):
            powers.power(x.to(G.device), step, tol=None, max_iter=2)
    assert buffers.layout is None
    again = powers.power(x.to(G.device), step, tol=None, max_iter=2)
    assert (again.value.to_numpy() == first.value.to_numpy()).all()


@pytest.mark.parametrize("stem", ["power", "power_stepwise", "tiles", "tiles_build"])
def test_variants_compile(stem: str) -> None:
    pytest.importorskip(
        "cuda.bindings", reason="NVRTC: pip install cuda-bindings 'cuda-toolkit[nvrtc]==13.*'"
    )
    byte, double, long = np.dtype(np.int8), np.dtype(np.float64), np.dtype(np.int64)
    semiring = semirings.plus_second.resolve(byte, double)
    texts = {
        "power": on_cuda.program(semiring, True, "<f8", ("<i8", "<i8", "|i1", "<i4"))
        + preamble.constants(HUBS=False),
        "power_stepwise": preamble.types(U=double),
        "tiles": preamble.semiring(
            semirings.max_minus.resolve(byte, byte), ISO=False, FLIP=True, MASKED=False, FULL=True
        )
        + preamble.types(O=long, I=long, A=byte, U=byte, R=np.dtype(np.int32)),
        "tiles_build": preamble.constants(ISO=True)
        + preamble.types(O=long, I=long, A=byte, R=np.dtype(np.int32)),
    }
    for architecture in offline.ARCHITECTURES:
        assert offline.compile_source(source(stem, texts[stem]), architecture)


@shimmed
@pytest.mark.parametrize("offsets", [np.int32, np.int64])
def test_inverse_degrees_and_scaled_vectors(offsets: Any, shim: None) -> None:
    S = skewed(1500, 1500, 4_000, np.float32)
    S.indptr = S.indptr.astype(offsets)
    A, degrees = sg.Matrix.from_scipy(S), np.diff(S.indptr)
    assert degrees.min() == 0
    found = ranks.inverse_out_strength(A, weighted=False)
    expected = np.divide(1.0, degrees, where=degrees > 0, out=np.zeros(1500))
    assert (found.values == expected).all()
    x = np.random.default_rng(1).standard_normal(1500)
    for norm in (1, 2):
        divided = ranks.scaled(full(x, "cpu"), norm).to_numpy()
        np.testing.assert_allclose(divided, x / np.linalg.norm(x, norm), rtol=1e-13)
        assert not ranks.scaled(full(np.zeros(3), "cpu"), norm).to_numpy().any()
