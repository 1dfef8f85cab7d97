"""Processes that give different arguments to one call find out, also where the call itself
exchanges nothing: each would have done something else with its part.
"""

from __future__ import annotations

import mpi_arguments
import pytest
from processes import finished

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("count", [2, pytest.param(3, marks=pytest.mark.full)])
def test_other_arguments_are_an_error_of_all(count: int) -> None:
    code, said = finished(count, mpi_arguments.__file__)
    assert code == 0, said
    lines = said.splitlines()
    for name in mpi_arguments.CALLS:
        assert lines.count(f"{name}, alike: no error;") == count, said
        for rank in range(count):
            begin = f"{name}, different: MPI: process {rank} of {count}: "
            (line,) = (line for line in lines if line.startswith(begin))
            assert line.endswith("have to call the same functions with the same arguments;"), line
