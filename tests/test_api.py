"""What users import, and from where."""

from __future__ import annotations

import inspect

import pytest

from spgraph import iterations


@pytest.mark.parametrize("name", ["search", "closure", "power", "contract", "dependencies"])
def test_the_loops_are_functions_of_their_package(name: str) -> None:
    loop = getattr(iterations, name)
    assert inspect.isfunction(loop) and loop.__name__ == name
    # no module of that name, whose import would put itself in the function's place
    assert loop.__module__.rpartition(".")[2] not in iterations.__all__
