"""Random sparse arrays of SciPy, and the comparison of what its methods and ours give."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

import spgraph as sg

TYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64".split()


def values_of(dtype: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Small integers, some zeros among them; of floats a few NaN and infinities, too."""
    low = 0 if dtype[0] in "ub" else -4
    made = rng.integers(low, 5, count).astype(dtype)
    if dtype.startswith("float") and count:
        made[rng.random(count) < 0.05] = np.nan
        made[rng.random(count) < 0.05] = np.inf
    return made


def random_csr(dtype: str, shape: tuple[int, int], density: float, seed: int) -> Any:
    """A csr_array with explicit zeros, rows without entries, and rows and columns of all."""
    rng = np.random.default_rng(seed)
    there = rng.random(shape) < density
    if shape[0] > 3 and shape[1] > 3:
        there[1], there[2], there[:, 2] = False, True, True
    rows, columns = (ids.astype(np.int32) for ids in there.nonzero())
    values = values_of(dtype, rows.size, rng)
    return scipy.sparse.csr_array((values, (rows, columns)), shape=shape)


def random_coo(dtype: str, size: int, density: float, seed: int) -> Any:
    """A coo_array of one dimension, its positions in order."""
    rng = np.random.default_rng(seed)
    there = (rng.random(size) < density).nonzero()[0].astype(np.int32)
    return scipy.sparse.coo_array((values_of(dtype, there.size, rng), (there,)), shape=(size,))


def assert_same(ours: Any, theirs: Any) -> None:
    """Sparse for sparse, an array for an array, a number for a number; equal type, shape, values
    (floats but for rounding), and for sparse ones number of entries.
    """
    if isinstance(ours, tuple):
        assert isinstance(theirs, tuple) and len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)
        return
    if scipy.sparse.issparse(theirs):
        assert isinstance(ours, sg.Matrix if theirs.ndim == 2 else sg.Vector), type(ours)
        assert ours.nnz == theirs.nnz, (list(ours), theirs)
    elif isinstance(theirs, np.ndarray):
        assert isinstance(ours, np.ndarray)
    else:  # a position may be a number of Python's or of NumPy's, as it happens
        assert np.ndim(ours) == 0 and not hasattr(ours, "toarray"), type(ours)
    assert np.shape(ours) == np.shape(theirs)
    x = ours.toarray() if hasattr(ours, "toarray") else np.asarray(ours)
    y = theirs.toarray() if hasattr(theirs, "toarray") else np.asarray(theirs)
    assert x.dtype == y.dtype
    rtol = 1e-4 if y.dtype == np.float32 else 1e-12
    assert np.allclose(x, y, rtol=rtol, atol=1e-5 if rtol > 1e-6 else 1e-12, equal_nan=True), (x, y)


def outcome(method: Any, *arguments: Any, **options: Any) -> Any:
    """What a call gives, or the error that it raises."""
    try:
        return method(*arguments, **options)
    except Exception as error:
        return error


def assert_same_outcome(ours: Any, theirs: Any, name: str, *arguments: Any, **options: Any) -> None:
    """The same result of the method of this name, or an error that an `except` for SciPy's catches;
    where it gives None, of what it wrote to. Theirs is given a csr_array for a container of ours.
    """
    given = [each.tocsr() if isinstance(each, sg.Matrix) else each for each in arguments]
    given = [each.tocoo() if isinstance(each, sg.Vector) else each for each in given]
    expected = outcome(getattr(theirs, name), *given, **options)
    found = outcome(getattr(ours, name), *arguments, **options)
    if isinstance(expected, Exception):
        assert isinstance(found, type(expected)), (found, expected)
    elif isinstance(found, Exception):
        raise found
    elif expected is None:
        assert found is None
        assert_same(ours, theirs)
    else:
        assert_same(found, expected)
