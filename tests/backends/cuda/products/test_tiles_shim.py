"""Products over tiles of CUDA without a GPU, and where tiles are made."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from power_fixtures import on_cuda, shim, shimmed, skewed, tiled  # noqa: F401
from search_cases import matrix

import spgraph as sg
from spgraph import semirings
from spgraph.algorithms import pagerank
from spgraph.backends import cuda
from spgraph.backends.cuda.power import power_stepwise
from spgraph.backends.cuda.products import row_bins, tiles, tiles_build
from spgraph.backends.cuda.runtime import jit
from spgraph.backends.loops import PowerIteration
from spgraph.containers.storage.arrays import unpack_bits
from spgraph.iterations import power_iteration as powers
from tests.iterations.test_power import dense, full, steps


@shimmed
@pytest.mark.parametrize(
    ("semiring", "dtype", "iso", "flip"),
    [
        ("plus_times", np.int64, False, False),
        ("plus_second", np.float32, True, False),
        ("plus_times", np.float32, False, True),
        ("min_plus", np.float64, False, False),
        ("max_minus", np.int8, False, True),
    ],
)
def test_pull_over_tiles_equals_pull(
    semiring: str, dtype: Any, iso: bool, flip: bool, tiled: None
) -> None:
    S = skewed(1500, 1400, 40_000, dtype)
    S.indptr = S.indptr.astype(np.int64 if iso else np.int32)
    A = sg.Matrix.from_scipy(S)
    A = A.pattern() if iso else A
    u = sg.Vector.from_dense(np.random.default_rng(1).integers(1, 100, 1400).astype(dtype))
    kinds = (u.dtype, A.dtype) if flip else (A.dtype, u.dtype)
    typed = getattr(semirings, semiring).resolve(*kinds)
    plain = cuda.pull(A, u, typed, None, flip)
    made = tiles.prepare(A)
    assert made is not None and tiles.prepare(A) is made
    first, *others = made.batches
    assert first.number == 3 and first.split > 0 and others and made.nonempty - made.rows > 100
    assert made.columns.size < 1400 and made.nbytes > (2 if iso else 5) * A.nvals
    found = cuda.pull(A, u, typed, None, flip)
    assert found.storage == plain.storage and found.nvals == plain.nvals
    if np.dtype(dtype).kind == "f":  # whole numbers: sums are exact in any order
        assert found.isequal(plain) or found.isclose(plain, rtol=1e-6)
    else:
        assert found.isequal(plain)
    if semiring == "plus_times" and not flip:
        expected = S @ u.to_numpy()
        assert (found.to_numpy(fill=0) == expected).all()


@shimmed
def test_every_row_has_a_place_in_tiles(tiled: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles_build, "SHORT", 0)
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
    semiring = semirings.plus_second if iso else semirings.plus_times
    found = cuda.pull(A, sg.Vector.from_dense(x), semiring.resolve(A.dtype, x.dtype), None, False)
    assert (found.to_numpy(fill=0) == S @ x).all()  # whole numbers: sums are exact in any order


def groups_of(made: tiles_build.Tiles) -> tuple[np.ndarray, np.ndarray]:
    """Of each warp, the groups of packs in each tile, and those of single entries."""
    first = made.batches[0]
    blocks, count = (int(word) for word in first.words[:2])
    ends = first.held[2].astype(np.int64)
    sections = np.diff(ends).reshape(blocks * tiles_build.WARPS, -1)
    groups = ends[-1] + tiles_build.SPARE
    assert ends[0] == 0 and first.held[0].size == groups * tiles_build.SINGLES
    return sections[:, : 2 * count : 2], sections[:, 1 : 2 * count : 2]


@shimmed
@pytest.mark.parametrize("iso", [False, True])
def test_a_row_ends_in_one_lane(iso: bool, tiled: None) -> None:
    """Rows ascend along a lane and from lane to lane, so that no two lanes add to one at a time."""
    A = sg.Matrix.from_scipy(skewed(300, 1400, 200_000, np.float32))
    cut = tiles.prepare(A.pattern() if iso else A)
    assert cut is not None
    (made,) = cut.batches
    ends, words = made.held[2].astype(np.int64), made.held[0].reshape(-1, tiles_build.SINGLES)
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
    (batch,) = made.batches
    ends = batch.held[2][:-1].astype(np.int64).reshape(*packs.shape[:1], -1)
    halves = batch.held[0].view(np.uint16).reshape(-1, 8)
    most = []
    for first, count in zip(ends[:, : 2 * batch.number : 2].flat, packs.flat, strict=True):
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
    monkeypatch.setattr(tiles_build, "MOST_TILES", 10)  # so that the last one is not full
    monkeypatch.setattr(np, "empty", poisoned)
    cut = tiles.prepare(A)
    assert cut is not None and cut.copied < cut.places
    held = [array for batch in cut.batches for array in batch.held]
    for array in (*held, cut.columns, *cut.rest[2:]):
        assert unwritten(array) == 0
    made.clear()
    cuda.pull(A, u, typed, None, False)
    hubs = [array for array in made if array.size == cut.places]
    assert len(hubs) == 1 and unwritten(hubs[0]) == 0


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
            assert made is not None and made.batches[0].number > 1 and made.batches[0].split > 0
        found = powers.power(
            full(x, "cpu"), step, norm=norm, tol=None, max_iter=2, single=single
        ).value.to_numpy()
        expected = dense(x, step, norm, 2)
        np.testing.assert_allclose(found, expected, rtol=1e-6 if single else 1e-12)


@shimmed
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("tol", [None, 1e-5, 1e-9])
def test_pagerank_in_the_numbers_of_tiles(
    symmetric: bool, tol: float | None, tiled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vertices are renumbered for the whole iteration, those without edges are the last ones."""
    monkeypatch.setattr(on_cuda, "LARGE", 0)
    monkeypatch.setattr(tiles_build, "SHORT", 4)
    S = skewed(1100, 1100, 9_000, np.float64)
    S = scipy.sparse.csr_array(S + S.T) if symmetric else S
    S.resize(1300, 1300)
    A = sg.Matrix.from_scipy(S)
    A.symmetric = symmetric
    restart = np.random.default_rng(3).random(1300)
    steps_ = 30 if tol is None else 200
    rank = sg.pagerank(A, tol=tol, max_iter=steps_, personalization=restart)
    made = A.T._derived["shared_tiles"]
    assert made.renumbered and len(made.batches) > 1 and made.rest.number > 32
    alone = int((np.diff(S.indptr) + np.bincount(S.indices, minlength=1300) == 0).sum())
    assert alone >= 200
    P, x = S != 0, np.full(1300, 1 / 1300)
    degrees = np.diff(S.indptr)
    inverse = np.divide(1.0, degrees, where=degrees > 0, out=np.zeros(1300))
    for _ in range(200 if tol else 30):
        flow = P.T @ (x * inverse)
        x = 0.85 * flow + (0.15 + 0.85 * x[degrees == 0].sum()) * restart / restart.sum()
    assert abs(rank.to_numpy() - x).sum() < (4e-7 if tol is None else 6 * tol)


@shimmed
def test_a_shard_keeps_the_order_of_its_vertices(tiled: None) -> None:
    """Others gather what it shares, also where it has all rows, and tiles have numbers of their
    own.
    """
    A = sg.Matrix.from_scipy(skewed(700, 700, 12_000, np.float64))
    made, x = tiles.prepare(A), np.random.default_rng(1).random(700)
    assert made is not None and made.renumbered
    semiring = semirings.plus_second.resolve(A.dtype, np.dtype(float))
    constants, restart = (0.5, 0.0, 0.5, 0.0), 1 / 700
    iteration = PowerIteration(
        (A,), (None,), semiring, constants, restart, None, tol=None, max_iter=2, single=True
    )
    shard = on_cuda.power_shard(full(x, "cpu"), iteration)
    pattern, (_, (part, sums)) = A.to_scipy() != 0, next(shard)
    for _ in range(2):
        np.testing.assert_allclose(part, x, rtol=1e-6)
        x = 0.5 * (pattern @ x) + 0.5 * restart
        _, (part, sums) = shard.send((part.copy(), sums))
    with pytest.raises(StopIteration) as end:
        shard.send((None, sums))
    np.testing.assert_allclose(end.value.value[0].values, x, rtol=1e-6)


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


SECTORS = tiles_build.sectors


@shimmed
@pytest.mark.parametrize(("width", "batches"), [(1000, 2), (20_000, 1)])
def test_later_rows_are_put_into_tiles_where_it_pays(
    width: int, batches: int, tiled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """300 rows of 400 entries in 1,000 columns, and 600 of 20: in the same columns, or in 20,000
    others, of which none is worth being streamed.
    """
    monkeypatch.setattr(tiles_build, "sectors", SECTORS)
    rng, before = np.random.default_rng(1), 0 if width == 1000 else 1000
    long = [rng.choice(1000, 400, replace=False) for _ in range(300)]
    short = [before + rng.choice(width, 20, replace=False) for _ in range(600)]
    indptr = np.r_[0, np.cumsum([400] * 300 + [20] * 600)].astype(np.int32)
    columns = np.concatenate(long + short)
    S = scipy.sparse.csr_array((np.ones(columns.size), columns, indptr), shape=(900, 21_000))
    A, x = sg.Matrix.from_scipy(S), rng.integers(0, 100, 21_000).astype(float)
    made = tiles.prepare(A)
    assert made is not None and len(made.batches) == batches
    typed = semirings.plus_times.resolve(A.dtype, np.dtype(float))
    found = cuda.pull(A, sg.Vector.from_dense(x), typed, None, False)
    assert (found.to_numpy(fill=0) == S @ x).all()


def test_tiles_are_made_where_they_pay(shim: None, monkeypatch: pytest.MonkeyPatch) -> None:
    grid = sg.generators.grid(300, 300)
    assert tiles.prepare(grid) is None  # few entries
    monkeypatch.setattr(tiles_build, "ENTRIES", 1)
    monkeypatch.setattr(jit, "shared_memory", lambda device: 232448)
    monkeypatch.setattr(jit, "multiprocessors", lambda device: 132)
    del grid._derived["shared_tiles"]
    assert tiles.prepare(grid) is None  # no hubs
    plain, cut = tiles_build.sectors(181_000_000, 1.0, 132, 700_000, 175_000_000, 4e6)
    assert cut < plain / 4

    def full_up(*arguments: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(tiles, "make", full_up)
    assert tiles.prepare(matrix("path")) is None


def test_what_tiles_take() -> None:
    single = np.dtype(np.float32)
    for name, taken in (("plus_times", True), ("min_plus", True), ("any_pair", False)):
        assert tiles.takes(getattr(semirings, name).resolve(single, single)) is taken
    assert not tiles.takes(semirings.min_secondi.resolve(single, single))
    assert not tiles.takes(semirings.lor_land.resolve(np.dtype(bool), np.dtype(bool)))


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
