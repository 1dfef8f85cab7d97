"""Graph files: `read` and `write`."""

from spgraph.io.files import load, read, save, write

__all__ = ["load", "read", "save", "write"]
