"""Backends: packages of functions that compute on the containers of one kind of device.

What a backend has to have, and what it may have beside that, stands in README.md.
"""

from __future__ import annotations

import importlib
from functools import cache
from types import ModuleType

from spgraph.process import lazy_imports


@cache
def module_of(device: str) -> ModuleType:
    """The backend for containers on `device`: the package here of the name before the colon, so
    `spgraph.backends.cuda` for 'cuda:1'.
    """
    with lazy_imports.whole():
        return importlib.import_module(f"{__name__}.{device.partition(':')[0]}")
