"""The entries of a vector or matrix as plain arrays, random ones, and how containers hold them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SMALL_FLOATS = np.array([-2, -1, -0.5, -0.0, 0, 0.5, 1, 1.5, 2, 3])
DENSITIES = (0.0, 0.05, 0.3, 0.6, 1.0)


@dataclass(frozen=True, eq=False)
class Entries:
    """Values at ascending flat positions (row * columns + column) of a shape."""

    shape: tuple[int, ...]
    keys: np.ndarray
    values: np.ndarray
    kept: dict[Any, Any] = field(default_factory=dict)  # what others make of them once

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    def at(self) -> tuple[np.ndarray, ...]:
        """The ids in each dimension."""
        if len(self.shape) == 1:
            return (self.keys,)
        width = max(self.shape[1], 1)
        return self.keys // width, self.keys % width

    def cast(self, dtype: Any) -> Entries:
        """The same entries in another type, by NumPy's cast."""
        if self.dtype == dtype:
            return self
        dtype = np.dtype(dtype)
        if dtype not in self.kept:
            with np.errstate(all="ignore"):
                self.kept[dtype] = Entries(self.shape, self.keys, self.values.astype(dtype))
        return self.kept[dtype]

    def with_values(self, values: Any) -> Entries:
        return Entries(self.shape, self.keys, np.asarray(values))

    def taken(self, kept: np.ndarray) -> Entries:
        return Entries(self.shape, self.keys[kept], self.values[kept])


def from_coo(shape: tuple[int, ...], at: tuple[np.ndarray, ...], values: np.ndarray) -> Entries:
    """The entries at ids in each dimension, in any order, each once."""
    keys = np.asarray(at[0], np.int64)
    if len(shape) == 2:
        keys = keys * max(shape[1], 1) + np.asarray(at[1], np.int64)
    order = np.argsort(keys, kind="stable")
    return Entries(shape, keys[order], np.asarray(values)[order])


def draw_values(rng: np.random.Generator, count: int, dtype: np.dtype, manner: str) -> np.ndarray:
    """Values of a type: 'small' ones whose sums are exact, also 'special' ones (NaN, infinities,
    the extremes of integers), or of any size ('wild').
    """
    if dtype.kind == "b":
        return rng.random(count) < 0.6
    if dtype.kind == "f":
        values = rng.choice(SMALL_FLOATS, count)
        odd = rng.random(count) < (0.0 if manner == "small" else 0.2)
        limit = np.finfo(dtype)
        others = np.array([np.nan, np.inf, -np.inf])
        if manner == "wild":
            more = [limit.max, -limit.max, limit.tiny, limit.eps, 1 / 3, 1e9 + 0.1]
            others = np.append(others, more)
        return np.where(odd, rng.choice(others, count), values).astype(dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    values = rng.integers(max(low, -3), 6, count).astype(dtype)
    if manner != "small":
        ends = np.array([low, low + 1, high - 1, high, high // 2, 100], dtype)
        values = np.where(rng.random(count) < 0.2, rng.choice(ends, count), values)
    return values


def draw_entries(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: Any, manner: str
) -> Entries:
    """Random entries: of any density, sometimes all of one value."""
    size = math.prod(shape)
    present = rng.random(size) < rng.choice(DENSITIES)
    if len(shape) == 2 and size and rng.random() < 0.5:  # an empty row or column
        table = present.reshape(shape)
        table[rng.integers(shape[0])] = False
        table[:, rng.integers(shape[1])] = False
    keys = np.flatnonzero(present)
    values = draw_values(rng, keys.size, np.dtype(dtype), manner)
    if rng.random() < 0.2 and keys.size:
        values = np.full(keys.size, values[0])
    return Entries(shape, keys.astype(np.int64), values)


# --- containers of the library ----------------------------------------------------------------


def placed(entries: Entries, form: tuple[str, ...], place: Any) -> Any:
    """A new Vector or Matrix of these entries on a device or in shards, a view there, too."""
    if form[0] != "view":
        return container(entries, form).to(place)
    rows, columns = entries.at()
    turned = from_coo(entries.shape[::-1], (columns, rows), entries.values)
    return container(turned, ("plain", *form[1:])).to(place).T


def container(entries: Entries, form: tuple[str, ...]) -> Any:
    """A new Vector or Matrix of these entries, on the CPU; `form` is drawn by `draw_form`."""
    from spgraph.containers import Matrix, Vector
    from spgraph.containers.storage.arrays import pack_bits

    values = entries.values.copy()
    if len(entries.shape) == 1:
        (size,) = entries.shape
        kind = form[0]
        if kind == "dense" and entries.keys.size == size:
            return Vector._of(size, values)
        if kind == "sparse" or size == 0:
            return Vector._of(size, values, indices=entries.keys.astype(np.int32))
        laid, flags = np.zeros(size, values.dtype), np.zeros(size, bool)
        laid[entries.keys], flags[entries.keys] = values, True
        known = entries.keys.size if kind == "bitmap" else None
        return Vector._of(size, laid, bits=pack_bits(flags), nvals=known)
    kind, offsets, ids = form
    nrows, ncols = entries.shape
    rows, columns = entries.at()
    indptr = np.zeros(nrows + 1, offsets)
    indptr[1:] = np.cumsum(np.bincount(rows, minlength=nrows))
    iso = kind == "iso" and is_iso(entries)
    values = values[:1] if iso else values
    return Matrix._of(nrows, ncols, indptr, columns.astype(ids), values, iso=iso)


def is_iso(entries: Entries) -> bool:
    """Whether there is a value that all entries have."""
    values = entries.values
    same = (values == values[:1]) | ((values != values) & (values[:1] != values[:1]))
    return bool(values.size and same.all())


def draw_form(
    rng: np.random.Generator, shape: tuple[int, ...], index: tuple[str, str]
) -> tuple[str, ...]:
    """A storage: of a Vector, or of a Matrix with the types of its offsets and ids."""
    if len(shape) == 1:
        return (str(rng.choice(["sparse", "bitmap", "uncounted", "dense"])),)
    return (str(rng.choice(["plain", "plain", "iso", "view"])), *index)


def read_back(result: Any) -> Entries:
    """The entries of a Vector or Matrix anywhere; AssertionError where its arrays break the rules
    of their storage.
    """
    if not isinstance(result.device, str):
        counted = result.nvals
        result = result.gather()
        assert result.nvals == counted, f"nvals {counted} in shards, {result.nvals} gathered"
    result = result.to("cpu")
    if len(result.shape) == 1:
        return _vector_entries(result)
    indptr, indices = result.indptr.astype(np.int64), result.indices.astype(np.int64)
    nrows, ncols = result.shape
    assert indptr.size == nrows + 1 and indptr[0] == 0 and indptr[-1] == indices.size, "indptr"
    lengths = np.diff(indptr)
    assert (lengths >= 0).all(), "indptr descends"
    assert not indices.size or (indices.min() >= 0 and indices.max() < ncols), "indices outside"
    keys = np.repeat(np.arange(nrows), lengths) * max(ncols, 1) + indices
    assert (keys[1:] > keys[:-1]).all(), "columns do not ascend"
    assert result.values.size == (1 if result.iso else indices.size), "the number of values"
    values = np.full(indices.size, result.values[0]) if result.iso else result.values
    return Entries(result.shape, keys, values)


def _vector_entries(v: Any) -> Entries:
    size = v.size
    if v.indices is not None:
        keys, values = v.indices.astype(np.int64), v.values
        assert keys.size == values.size, "the number of values"
        assert (keys[1:] > keys[:-1]).all(), "indices do not ascend"
        assert not keys.size or (keys[0] >= 0 and keys[-1] < size), "indices outside"
    else:
        assert v.values.size == size, "the number of values"
        keys, values = np.arange(size), v.values
        if v.bits is not None:
            assert v.bits.size == -(-size // 32), "the number of words"
            flags = np.unpackbits(v.bits.view(np.uint8), bitorder="little").astype(bool)
            assert not flags[size:].any(), "bits beyond the size"
            keys = np.flatnonzero(flags[:size])
            values = v.values[keys]
    assert v.nvals == keys.size, f"nvals {v.nvals}, of {keys.size} entries"
    return Entries((size,), keys, values)


# --- comparison -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Refusal:
    """An operation that has to raise an error, and why; or has raised this one."""

    why: str


def difference(found: Any, expected: Any, *, close: bool = False) -> str | None:
    """Where two answers differ, None where they agree; floats that are sums may be `close`."""
    if isinstance(found, Refusal) or isinstance(expected, Refusal):
        if isinstance(found, Refusal) and isinstance(expected, Refusal):
            return None
        return "one is refused"
    if found.shape != expected.shape:
        return f"shape {found.shape}, expected {expected.shape}"
    if found.dtype != expected.dtype:
        return f"type {found.dtype}, expected {expected.dtype}"
    if not np.array_equal(found.keys, expected.keys):
        return "other positions"
    x, y = found.values, expected.values
    same = (x == y) | ((x != x) & (y != y))
    if close and x.dtype.kind == "f":
        with np.errstate(all="ignore"):
            room = 64 * np.finfo(x.dtype).eps
            same |= np.abs(x - y) <= room * np.maximum(np.abs(x), np.abs(y))
    return None if same.all() else "other values"
