"""What users import, and from where."""

from __future__ import annotations

import inspect

import pytest

import spgraph as sg
from spgraph import iterations, operations, semirings


@pytest.mark.parametrize("name", ["search", "closure", "power", "contract", "dependencies"])
def test_the_loops_are_functions_of_their_package(name: str) -> None:
    loop = getattr(iterations, name)
    assert inspect.isfunction(loop) and loop.__name__ == name
    # no module of that name, whose import would put itself in the function's place
    assert loop.__module__.rpartition(".")[2] not in iterations.__all__


def test_select_is_the_operation() -> None:
    assert sg.select is operations.select and inspect.isfunction(sg.select)
    assert "select" not in dir(semirings) and "indexunary" in dir(semirings)
    with pytest.warns(DeprecationWarning, match=r"select is now named .*indexunary") as warned:
        old = semirings.select
    assert old is semirings.indexunary
    assert [warning.filename for warning in warned] == [__file__]
    with pytest.warns(DeprecationWarning, match="indexunary"):
        from spgraph.semirings import select
    assert select is semirings.indexunary
