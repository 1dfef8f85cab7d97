"""Random graphs: directed or not, with loops, in several parts, with weights of every type."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from soak.entries import Entries, container, placed


@dataclass
class GraphCase:
    """One call of an algorithm."""

    what: str
    graph: Entries
    form: tuple[str, ...]
    undirected: bool
    options: dict[str, Any] = field(default_factory=dict)
    threads: int = 1
    rules: set[str] = field(default_factory=set)

    @property
    def n(self) -> int:
        return self.graph.shape[0]

    def matrix(self, device: str, shards: int) -> Any:
        """The Matrix of the library, on a device or in shards of it."""
        if self.form[0] == "view" and not shards:
            return placed(self.graph, self.form, device)
        A = container(self.graph, self.form)
        if self.undirected and self.options.get("known"):
            A.symmetric = True
        return A.distribute(shards, devices=device) if shards else A.to(device)

    def dense(self) -> np.ndarray:
        """Weights as float64, infinite where there is no edge."""
        table = np.full(self.n * self.n, np.inf)
        table[self.graph.keys] = self.graph.values.astype(np.float64)
        return table.reshape(self.n, self.n)

    def edges(self, *, loops: bool = True) -> np.ndarray:
        """Where there is an edge, as a table of truth values."""
        table = np.zeros(self.n * self.n, bool)
        table[self.graph.keys] = True
        table = table.reshape(self.n, self.n)
        if not loops:
            np.fill_diagonal(table, False)
        return table

    def text(self) -> str:
        i, j = (part.tolist() for part in self.graph.at())
        return (
            f"{self.what} {self.options} threads {self.threads}\n"
            f"{self.graph.dtype} {self.graph.shape} {self.form} undirected {self.undirected}\n"
            f"  {i} {j} {self.graph.values.tolist()}"
        )


def draw_graph(rng: np.random.Generator, kind: np.dtype, manner: str) -> tuple[Entries, bool]:
    """(the edges with weights >= 0, whether they are symmetric)."""
    n = int(rng.choice([1, 2, 3, 5, 8, 12, 16, 24, 33]))
    table = SHAPES[str(rng.choice(list(SHAPES)))](rng, n)
    undirected = bool(rng.random() < 0.5)
    if undirected:
        table = table | table.T
    if rng.random() < 0.6:
        np.fill_diagonal(table, False)
    if rng.random() < 0.3:
        table[rng.random(n) < 0.3] = False
        table = table & table.T if undirected else table
    keys = np.flatnonzero(table)
    weights = draw_weights(rng, n * n, kind, manner).reshape(n, n)
    if undirected:
        weights = np.triu(weights) + np.triu(weights, 1).T
    return Entries((n, n), keys.astype(np.int64), weights.ravel()[keys].astype(kind)), undirected


SHAPES: dict[str, Any] = {
    "sparse": lambda rng, n: rng.random((n, n)) < 1.5 / n,
    "middle": lambda rng, n: rng.random((n, n)) < 0.3,
    "complete": lambda rng, n: np.ones((n, n), bool),
    "path": lambda rng, n: np.eye(n, k=1, dtype=bool)[rng.permutation(n)],
    "chain": lambda rng, n: np.eye(n, k=int(rng.integers(1, 4)), dtype=bool),
    "star": lambda rng, n: (np.arange(n) == rng.integers(n))[:, None] & (rng.random(n) < 0.9),
    "parts": lambda rng, n: (
        (rng.integers(0, 3, n)[:, None] == rng.integers(0, 3, n)) & (rng.random((n, n)) < 0.4)
    ),
    "none": lambda rng, n: np.zeros((n, n), bool),
}


def draw_weights(rng: np.random.Generator, count: int, kind: np.dtype, manner: str) -> np.ndarray:
    """Weights >= 0: 'positive', with 'zeros', or of any size ('wild')."""
    if kind.kind == "b":
        return np.ones(count, bool)
    least = 1 if manner == "positive" else 0
    values = rng.integers(least, 6, count)
    if kind.kind == "f":
        if manner == "wild":
            return rng.choice([0.1, 1 / 3, 1e-17, 1.0, 2.0, 1e9, 0.0, 7.3], count).astype(kind)
        return (values / 2).astype(kind)
    if manner == "wild":
        top = np.iinfo(kind).max
        if kind.itemsize == 8:
            top = 2**62
        values = np.where(rng.random(count) < 0.2, rng.choice([top, top // 2], count), values)
    return values.astype(kind)
