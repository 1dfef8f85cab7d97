"""Small graphs that Hypothesis draws."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

import spgraph as sg


@st.composite
def drawn_graphs(draw: Any, vertices: int, edges: int, symmetric: bool | None = False) -> sg.Matrix:
    """Patterns of 1 to `vertices` vertices with up to `edges` edges, self-loops among them: all of
    them in both directions if `symmetric`, or for None in half of the graphs.
    """
    n = draw(st.integers(1, vertices))
    vertex = st.integers(0, n - 1)
    pairs = np.array(draw(st.lists(st.tuples(vertex, vertex), max_size=edges)), int).reshape(-1, 2)
    if draw(st.booleans()) if symmetric is None else symmetric:
        pairs = np.concatenate([pairs, pairs[:, ::-1]])
    return sg.Matrix.from_coo(pairs[:, 0], pairs[:, 1], nrows=n, ncols=n)
