"""A plugin of pytest that puts spgraph.csgraph in the place of scipy.sparse.csgraph.

    pytest -p scipy_csgraph_plugin --pyargs scipy.sparse.csgraph

It is loaded before any test module, for these bind names when they are imported. While the tests
run, SciPy's own versions of what spgraph serves raise an error wherever spgraph could get at them:
nothing that it serves is forwarded. SciPy's functions in the table of delegated ones may call each
other.

One test is left out: test_return_type of test_traversal.py, which reaches into private modules for
functions that spgraph serves. test_flow.py reaches into them too, for parts of what stays SciPy's:
it passes. At the end of the report stand the cases that passed, file by file, and how often each
function was called.
"""

from __future__ import annotations

import collections
import contextvars
import functools
import importlib
import pkgutil
from collections.abc import Callable, Generator
from typing import Any

import pytest
import scipy.sparse.csgraph as scipys

import spgraph.csgraph as ours
from spgraph.csgraph import delegated

PRIVATE = "_laplacian _shortest_path _traversal _min_spanning_tree _tools".split()
SERVED = [name for name in ours.__all__ if name not in delegated.DELEGATED and name[0].islower()]
ORIGINALS = {name: getattr(scipys, name) for name in SERVED}
CALLS: collections.Counter[str] = collections.Counter()
PASSED: collections.Counter[str] = collections.Counter()
# takes laplacian and minimum_spanning_tree from where they are SciPy's
LEFT_OUT = {("test_traversal.py", "test_return_type")}
# true while SciPy works on its own
inside: contextvars.ContextVar[bool] = contextvars.ContextVar("inside", default=False)


def among_themselves(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function within which SciPy's own may be called."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        token = inside.set(True)
        try:
            return function(*args, **kwargs)
        finally:
            inside.reset(token)

    return call


def forbidden(name: str) -> Callable[..., Any]:
    """SciPy's `name`, which raises an error outside of SciPy's own work."""

    @functools.wraps(ORIGINALS[name])
    def call(*args: Any, **kwargs: Any) -> Any:
        if not inside.get():
            raise AssertionError(f"{name} was forwarded to SciPy")
        return ORIGINALS[name](*args, **kwargs)

    return call


def counted(name: str) -> Callable[..., Any]:
    """spgraph's `name`."""
    function = getattr(ours, name)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        CALLS[name] += 1
        return function(*args, **kwargs)

    return call


def holders() -> list[str]:
    """Where a module of spgraph.csgraph holds one of SciPy's originals."""
    found = []
    for part in pkgutil.iter_modules(ours.__path__, "spgraph.csgraph."):
        module = importlib.import_module(part.name)
        for name, value in vars(module).items():
            if any(value is original for original in ORIGINALS.values()):
                found.append(f"{part.name}.{name}")
    return found


def install() -> None:
    """Put everything in its place."""
    assert set(ours.__all__) == set(scipys.__all__), "a name is missing"
    assert not holders()
    for name in SERVED:
        for private in PRIVATE:
            module = importlib.import_module(f"scipy.sparse.csgraph.{private}")
            if getattr(module, name, None) is ORIGINALS[name]:
                setattr(module, name, forbidden(name))
        setattr(scipys, name, counted(name))
    for name in delegated.DELEGATED:
        setattr(scipys, name, among_themselves(getattr(ours, name)))


def pytest_configure(config: pytest.Config) -> None:
    """Before any test module is imported, and only where this is loaded as a plugin."""
    install()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what asks SciPy's private modules for functions that are ours here."""
    left_out = [item for item in items if (item.path.name, item.name) in LEFT_OUT]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Count what passed, by file."""
    report = yield
    if report.when == "call" and report.passed:
        PASSED[item.path.name] += 1
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The cases of each file that passed, and the calls of each function."""
    for file, count in sorted(PASSED.items()):
        terminalreporter.write_line(f"passed {file} {count}")
    for name in SERVED:
        terminalreporter.write_line(f"called {name} {CALLS[name]}")
