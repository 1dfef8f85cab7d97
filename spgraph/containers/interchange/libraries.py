"""Libraries that are needed for a conversion alone."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from types import ModuleType

from spgraph.process import lazy_imports


@contextlib.contextmanager
def importing(name: str, install: str) -> Iterator[None]:
    """What is imported in this block is imported as a whole; where it is missing, the error names
    the operation `name` and what pip has to install.
    """
    with lazy_imports.whole():
        try:
            yield
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"{name}: needs the package {error.name}, which is not installed: "
                f"pip install {install}",
                name=error.name,
            ) from error


@functools.cache
def scipy_sparse() -> ModuleType:
    """scipy.sparse: half of the time of `import spgraph`, if that imported it."""
    with lazy_imports.whole():
        import scipy.sparse
    return scipy.sparse
