"""The CUDA power iteration and its tiles without a GPU: host code on NumPy arrays, kernels under
the shim; and they compile over what they are specialised on.
"""

from __future__ import annotations

import ctypes
import dataclasses
import importlib
import itertools
from typing import Any

import cuda_host_shim
import numpy as np
import pytest
import scipy.sparse
from search_cases import matrix, weighted_graph
from shim_exchanges import HostBuffers

import spgraph as sg
from spgraph import distributed, semirings
from spgraph.algorithms import pagerank
from spgraph.backends import cuda
from spgraph.backends.cuda.power import power_stepwise, warp_tasks
from spgraph.backends.cuda.products import row_bins, tiles
from spgraph.backends.cuda.runtime import jit, offline, preamble
from spgraph.backends.cuda.runtime.sources import source
from spgraph.containers.storage.arrays import unpack_bits
from spgraph.distributed.containers import placement
from spgraph.iterations import power_iteration as powers
from spgraph.iterations import ranks
from tests.iterations.test_power import NORMS, dense, full, steps

on_cuda = importlib.import_module("spgraph.backends.cuda.power.power")
shimmed = pytest.mark.skipif(cuda_host_shim.COMPILER is None, reason="no C++ compiler")


@pytest.fixture
def shim(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations on CPU containers run on the CUDA backend, in blocks of 128 threads."""
    cuda_host_shim.install(monkeypatch)
    for module in (powers, ranks):
        monkeypatch.setattr(module, "backend", lambda device: cuda)
    monkeypatch.setattr(jit, "current_device", lambda: 0)
    monkeypatch.setattr(jit, "multiprocessors", lambda device: 2)
    monkeypatch.setattr(on_cuda, "THREADS", 128)
    monkeypatch.setattr(jit, "shared_memory", lambda device: 7000)


@pytest.fixture
def tiled(shim: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small matrices are cut into tiles, with pieces of rows and with far columns."""
    small = {"ENTRIES": 1, "COLUMNS": 1, "MOST_TILES": 3, "RANGE": 400, "PIECE": 64, "PIECES": 2}
    for name, value in small.items():
        monkeypatch.setattr(tiles, name, value)
    monkeypatch.setattr(tiles, "sectors", lambda *arguments: (2.0, 1.0))


def skewed(n: int, m: int, entries: int, dtype: Any) -> scipy.sparse.csr_array:
    """An n x m matrix some rows and columns of which are long, with values 1 to 9."""
    rng = np.random.default_rng(n)
    rows, columns = (rng.random(entries) ** 3 * n, rng.random(entries) ** 3 * m)
    rows, columns = rng.permutation(n)[rows.astype(int)], rng.permutation(m)[columns.astype(int)]
    keys = np.unique(rows * m + columns)
    values = rng.integers(1, 10, keys.size).astype(dtype)
    S = scipy.sparse.coo_array((values, (keys // m, keys % m)), shape=(n, m)).tocsr()
    S.sort_indices()
    return S


@shimmed
@pytest.mark.parametrize(
    ("ring", "dtype", "iso", "flip"),
    [
        ("plus_times", np.int64, False, False),
        ("plus_second", np.float32, True, False),
        ("plus_times", np.float32, False, True),
        ("min_plus", np.float64, False, False),
        ("max_minus", np.int8, False, True),
    ],
)
def test_pull_over_tiles_equals_pull(
    ring: str, dtype: Any, iso: bool, flip: bool, tiled: None
) -> None:
    S = skewed(1500, 1400, 40_000, dtype)
    S.indptr = S.indptr.astype(np.int64 if iso else np.int32)
    A = sg.Matrix.from_scipy(S)
    A = A.pattern() if iso else A
    u = sg.Vector.from_dense(np.random.default_rng(1).integers(1, 100, 1400).astype(dtype))
    kinds = (u.dtype, A.dtype) if flip else (A.dtype, u.dtype)
    typed = getattr(semirings, ring).resolve(*kinds)
    plain = cuda.pull(A, u, typed, None, flip)
    made = tiles.prepare(A)
    assert made is not None and tiles.prepare(A) is made
    assert made.number == 3 and made.split > 0 and made.nonempty - made.rows > 100
    assert made.columns.size < 1400 and made.nbytes > (2 if iso else 5) * A.nvals
    found = cuda.pull(A, u, typed, None, flip)
    assert found.storage == plain.storage and found.nvals == plain.nvals
    if np.dtype(dtype).kind == "f":  # whole numbers: sums are exact in any order
        assert found.isequal(plain) or found.isclose(plain, rtol=1e-6)
    else:
        assert found.isequal(plain)
    if ring == "plus_times" and not flip:
        expected = S @ u.to_numpy()
        assert (found.to_numpy(fill=0) == expected).all()


@shimmed
def test_every_row_has_a_place_in_tiles(tiled: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "SHORT", 0)
    S = skewed(300, 1400, 20_000, np.int64)
    S.indptr = S.indptr.astype(np.int32)
    A, u = sg.Matrix.from_scipy(S), sg.Vector.from_dense(np.arange(1400))
    made = tiles.prepare(A)
    assert made is not None and made.rest.slices == 0 and made.rows == made.nonempty
    found = cuda.pull(A, u, semirings.plus_times.resolve(A.dtype, u.dtype), None, False)
    assert (found.to_numpy(fill=0) == S @ np.arange(1400)).all()


@shimmed
@pytest.mark.parametrize(
    ("n", "m", "entries", "dtype", "iso"),
    [
        (1, 3000, 3000, np.float32, True),  # one row, dealt in pieces
        (33, 70_001, 60_000, np.float32, True),  # columns that 16 bits do not number
        (2777, 203, 60_000, np.float64, True),
        (1501, 1399, 25_000, np.float64, False),
        (777, 4001, 50_000, np.float32, False),
    ],
)
@pytest.mark.parametrize("offsets", [np.int32, np.int64])
def test_tiles_of_every_shape(
    n: int, m: int, entries: int, dtype: Any, iso: bool, offsets: Any, tiled: None
) -> None:
    S = skewed(n, m, entries, dtype)
    # a hub's row and a hub's column
    S = S + scipy.sparse.coo_array((np.ones(m, dtype), (np.full(m, n // 2), np.arange(m))), (n, m))
    S = scipy.sparse.csr_array(S.tocsr())
    S.indptr = S.indptr.astype(offsets)
    A = sg.Matrix.from_scipy(S)
    x = np.random.default_rng(2).integers(1, 50, m).astype(dtype)
    if iso:
        A, S.data[:] = A.pattern(), 1
    made = tiles.prepare(A)
    assert made is not None
    packs, singles = groups_of(made)
    assert singles.sum() > 0 and (packs.sum() > 0) == iso
    ring = semirings.plus_second if iso else semirings.plus_times
    found = cuda.pull(A, sg.Vector.from_dense(x), ring.resolve(A.dtype, x.dtype), None, False)
    assert (found.to_numpy(fill=0) == S @ x).all()  # whole numbers: sums are exact in any order


def groups_of(made: tiles.Tiles) -> tuple[np.ndarray, np.ndarray]:
    """Of each warp, the groups of packs in each tile, and those of single entries."""
    blocks, count = (int(word) for word in made.words[:2])
    ends = made.held[2].astype(np.int64)
    sections = np.diff(ends).reshape(blocks * tiles.WARPS, -1)
    assert ends[0] == 0 and made.held[0].size == (ends[-1] + tiles.SPARE) * tiles.SINGLES
    return sections[:, : 2 * count : 2], sections[:, 1 : 2 * count : 2]


@shimmed
@pytest.mark.parametrize("iso", [False, True])
def test_a_row_ends_in_one_lane(iso: bool, tiled: None) -> None:
    """Rows ascend along a lane and from lane to lane, so that no two lanes add to one at a time."""
    A = sg.Matrix.from_scipy(skewed(300, 1400, 200_000, np.float32))
    made = tiles.prepare(A.pattern() if iso else A)
    assert made is not None
    ends, words = made.held[2].astype(np.int64), made.held[0].reshape(-1, tiles.SINGLES)
    sections = 2 * made.number + int(made.words[4])
    long = 0
    for section, (first, end) in enumerate(itertools.pairwise(ends)):
        groups = words[first:end]
        lane_by_lane = np.concatenate([groups[lane::32] for lane in range(32)])
        if section % sections < 2 * made.number and section % sections % 2 == 0:
            rows = lane_by_lane[:, :1] & 1023
        else:
            rows = lane_by_lane >> 22
        assert (np.diff(rows.ravel().astype(int)) >= 0).all()
        long += end - first > 64
    assert long > 20


@shimmed
def test_groups_waste_few_bytes(tiled: None) -> None:
    """Packs of 7 entries where a row has many in a tile: less than 3 bytes an entry in all."""
    A = sg.Matrix.from_scipy(skewed(150, 1400, 90_000, np.float32)).pattern()
    made = tiles.prepare(A)
    assert made is not None
    packs, singles = (16 * int(groups.sum()) for groups in groups_of(made))
    in_tiles = int(np.isin(A._indices, made.columns).sum())
    assert packs > singles and 2 * in_tiles > A.nvals
    assert packs + singles < 3 * in_tiles


@shimmed
def test_lanes_load_from_different_banks(tiled: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The k-th entries of 32 packs are loaded together: by chance 3.5 would lie in one bank."""
    monkeypatch.setattr(jit, "shared_memory", lambda device: 16_000)
    S = skewed(600, 1400, 150_000, np.float32)
    A = sg.Matrix.from_scipy(S).pattern()
    made = tiles.prepare(A)
    assert made is not None
    packs, _ = groups_of(made)
    ends = made.held[2][:-1].astype(np.int64).reshape(*packs.shape[:1], -1)
    halves = made.held[0].view(np.uint16).reshape(-1, 8)
    most = []
    for first, count in zip(ends[:, : 2 * made.number : 2].flat, packs.flat, strict=True):
        held = halves[first : first + count, 0] >> 10
        assert ((held >= 5) & (held <= 7)).all()
        for step in range(0, count // 32 * 32, 32):
            for k in range(1, 8):
                places = np.unique(halves[first + step : first + step + 32, k])
                most.append(np.bincount(places % 32).max())
    assert len(most) > 500 and np.mean(most) < 2.5


@shimmed
@pytest.mark.parametrize("iso", [False, True])
def test_what_tiles_read_is_written(
    iso: bool, tiled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps are loaded ahead and tiles copied whole: what lies behind the last entry and behind the
    last column is no memory of others either.
    """
    pattern, made, empty = 0xA5, [], np.empty

    def poisoned(shape: Any, dtype: Any = float) -> np.ndarray:
        made.append(empty(shape, dtype))
        made[-1].view(np.uint8)[...] = pattern
        return made[-1]

    def unwritten(array: np.ndarray) -> int:
        raw = array.view(np.uint8).reshape(-1, array.itemsize)
        return int((raw == pattern).all(axis=1).sum())

    A = sg.Matrix.from_scipy(skewed(1500, 1400, 40_000, np.float32))
    A = A.pattern() if iso else A
    u = sg.Vector.from_dense(np.arange(1400, dtype=np.float32))
    typed = semirings.plus_times.resolve(A.dtype, u.dtype)
    monkeypatch.setattr(tiles, "MOST_TILES", 10)  # so that the last one is not full
    monkeypatch.setattr(np, "empty", poisoned)
    cut = tiles.prepare(A)
    assert cut is not None and cut.columns.size < cut.number * cut.width
    for array in (*cut.held, cut.columns, *cut.rest[1:]):
        assert unwritten(array) == 0
    made.clear()
    cuda.pull(A, u, typed, None, False)
    hubs = [array for array in made if array.size == cut.number * cut.width]
    assert len(hubs) == 1 and unwritten(hubs[0]) == 0


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


@shimmed
@pytest.mark.parametrize("name", ["leaking", "two scales"])
def test_power_over_tiles_equals_dense_loops(
    name: str, tiled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_cuda, "LARGE", 0)
    A = sg.Matrix.from_scipy(skewed(700, 700, 12_000, np.float64))
    for weighted, norm, single in ((False, None, True), (True, 2, False), (True, None, False)):
        step = steps(A, "cpu", weighted)[name]
        x = np.random.default_rng(1).random(700)
        for M in {id(hop.A.T): hop.A.T for hop in step.hops}.values():
            made = tiles.prepare(M)
            assert made is not None and made.number > 1 and made.split > 0
        found = powers.power(
            full(x, "cpu"), step, norm=norm, tol=None, max_iter=2, single=single
        ).value.to_numpy()
        expected = dense(x, step, norm, 2)
        np.testing.assert_allclose(found, expected, rtol=1e-6 if single else 1e-12)


@shimmed
def test_large_graphs_get_tiles_unless_steps_are_few(
    tiled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_cuda, "LARGE", 0)
    A = sg.Matrix.from_scipy(skewed(700, 700, 12_000, np.float64))
    few = pagerank(A, tol=None, max_iter=power_stepwise.MANY - 1)
    assert "shared_tiles" not in A.T._derived
    many = pagerank(A, tol=None, max_iter=power_stepwise.MANY)
    assert A.T._derived["shared_tiles"] is not None
    again = pagerank(A, tol=None, max_iter=power_stepwise.MANY - 1)
    np.testing.assert_allclose(few.values, again.values, rtol=1e-6)
    assert 0 < abs(many.values - again.values).sum() < 0.1


def test_tiles_are_made_where_they_pay(shim: None, monkeypatch: pytest.MonkeyPatch) -> None:
    grid = sg.generators.grid(300, 300)
    assert tiles.prepare(grid) is None  # few entries
    monkeypatch.setattr(tiles, "ENTRIES", 1)
    monkeypatch.setattr(jit, "shared_memory", lambda device: 232448)
    monkeypatch.setattr(jit, "multiprocessors", lambda device: 132)
    del grid._derived["shared_tiles"]
    assert tiles.prepare(grid) is None  # no hubs
    plain, cut = tiles.sectors(181_000_000, 1.0, 132, 700_000, 175_000_000, 4e6)
    assert cut < plain / 4

    def full_up(*arguments: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(tiles, "_make", full_up)
    assert tiles.prepare(matrix("path")) is None


def test_what_tiles_take() -> None:
    single = np.dtype(np.float32)
    for name, taken in (("plus_times", True), ("min_plus", True), ("any_pair", False)):
        assert tiles.takes(getattr(semirings, name).resolve(single, single)) is taken
    assert not tiles.takes(semirings.min_secondi.resolve(single, single))
    assert not tiles.takes(semirings.lor_land.resolve(np.dtype(bool), np.dtype(bool)))


@pytest.mark.parametrize("stem", ["power", "power_stepwise", "tiles", "tiles_build"])
def test_variants_compile(stem: str) -> None:
    pytest.importorskip(
        "cuda.bindings", reason="NVRTC: pip install cuda-bindings 'cuda-toolkit[nvrtc]==13.*'"
    )
    byte, double, long = np.dtype(np.int8), np.dtype(np.float64), np.dtype(np.int64)
    ring = semirings.plus_second.resolve(byte, double)
    texts = {
        "power": on_cuda.program(ring, True, "<f8", ("<i8", "<i8", "|i1", "<i4"))
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


@shimmed
def test_rows_are_binned_over_windows(shim: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"WINDOW": 1024, "PIECE": 30, "NARROW": 10, "SINGLE": 4}.items():
        monkeypatch.setattr(row_bins, name, value)
    A = sg.Matrix.from_scipy(skewed(2500, 1400, 20_000, np.float32))
    degrees, made = np.diff(A.indptr), row_bins.row_bins(A)
    assert row_bins.row_bins(A) is made
    bins = np.select([degrees > 30, degrees > 10, degrees > 4, degrees > 0], [0, 1, 2, 3], 4)
    expected = [np.flatnonzero(bins == b) for b in range(4)]
    assert (made.rows == np.concatenate(expected)).all()
    sizes = [made.split, made.wide, made.narrow, made.single]
    assert sizes == [each.size for each in expected] and min(sizes) > 0
    pieces = -(-degrees[expected[0]] // 30)
    assert (np.diff(made.piece_first) == pieces).all() and made.piece_first[0] == 0
    assert (made.piece_row == np.repeat(np.arange(made.split), pieces)).all()
    assert (unpack_bits(A._derived["nonempty"], 2500) == (degrees > 0)).all()
