"""Graph files: `read` and `write`."""

from spgraph.io.files import read, write

__all__ = ["read", "write"]
