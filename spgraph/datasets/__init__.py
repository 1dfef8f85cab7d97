"""Graphs that others publish, by name: `fetch` downloads, checks and reads them."""

from spgraph.datasets.catalog import Dataset
from spgraph.datasets.download import fetch, folder, names

__all__ = ["Dataset", "fetch", "folder", "names"]


def __dir__() -> list[str]:
    return sorted(__all__)
