"""Graph files: `read` and `write`; tables of edges: `from_edges`."""

from spgraph.io.edge_table import Edges, from_edges
from spgraph.io.files import read, write
from spgraph.io.ids import Ids
from spgraph.io.saved import load, save

__all__ = ["Edges", "Ids", "from_edges", "load", "read", "save", "write"]
