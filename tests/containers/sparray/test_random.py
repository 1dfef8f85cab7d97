"""Some of the random comparisons with SciPy and NumPy of tests/programs/scipy_methods.py."""

from __future__ import annotations

import pytest
import scipy_methods


@pytest.mark.parametrize("first", [0, 40])
def test_methods_operators_and_indices(first: int) -> None:
    assert not scipy_methods.run(1, first, 40)
