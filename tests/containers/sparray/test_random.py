"""Some of the random comparisons with SciPy and NumPy of tests/programs/scipy_methods.py."""

from __future__ import annotations

import scipy_methods


def test_methods_operators_and_indices() -> None:
    """Of one type, for which other tests compile the same kernels."""
    assert not scipy_methods.run(1, 0, 60, ["int64"])
