"""Drawings of graphs: what their artists hold."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import spgraph as sg
from spgraph import plot
from spgraph.errors import BackendUnavailable, DimensionMismatch, DomainMismatch
from tests.plot.test_plot import TRIANGLE

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")


def collections(figure: Any) -> dict[str, Any]:
    return {type(artist).__name__: artist for artist in figure.axes[0].collections}


def test_edges_arrows_and_rings_of_a_drawing() -> None:
    # 0 - 1 both ways, 1 -> 2 one way, a loop at 2
    A = sg.Matrix.from_coo([0, 1, 1, 2], [1, 0, 2, 2], nrows=3, ncols=3)
    figure = plot.draw(A, positions=TRIANGLE)
    artists = collections(figure)
    (line,) = artists["LineCollection"].get_segments()
    assert line.tolist() == [[-1.0, -0.5], [1.0, -0.5]]  # fitted into the square, in proportion
    arrows = artists["Quiver"]
    assert len(arrows.XY) == 1 and arrows.U[0] < 0 < arrows.V[0]
    rings, vertices = (a for a in figure.axes[0].collections if hasattr(a, "set_widths"))
    assert len(rings.get_offsets()) == 1
    assert vertices.get_offsets().tolist() == [[-1.0, -0.5], [1.0, -0.5], [0.0, 0.5]]
    assert [text.get_text() for text in figure.axes[0].texts] == ["0", "1", "2"]
    assert figure.axes[0].get_title(loc="left") == "3 vertices, 3 edges"


def test_names_in_a_drawing() -> None:
    A, ids = sg.from_edges((["Ulm", "$x$"], ["$x$", "Bonn"]))
    index = type("Index", (list,), {"names": [None]})(ids)  # as that of a table of pandas
    for names in (ids, ids.names, list(ids), (name for name in ids), index):
        figure = plot.draw(A, positions=TRIANGLE, names=names)  # type: ignore[arg-type]
        texts = figure.axes[0].texts
        assert [text.get_text() for text in texts] == ["Ulm", "$x$", "Bonn"]
        assert not any(text.get_parse_math() for text in texts)
        figure.canvas.draw()
    with pytest.raises(DimensionMismatch, match="draw: names: expected one for each of 3 .* got 2"):
        plot.draw(A, positions=TRIANGLE, names=["a", "b"])
    many = sg.generators.grid(1, 41)
    assert not plot.draw(many, positions=np.ones((41, 2)), names=range(41)).axes[0].texts


def test_colours_of_a_drawing() -> None:
    A = sg.Matrix.empty(3, 3)
    figure = plot.draw(A, sg.Vector.from_coo([0, 2], [7, -1], size=3), positions=TRIANGLE)
    faces = collections(figure)["EllipseCollection"].get_facecolor()
    assert faces[1].tolist() == [1, 1, 1, 1]  # hollow
    assert len({tuple(face) for face in faces.tolist()}) == 3
    bar = figure.axes[1]
    assert [label.get_text() for label in bar.get_yticklabels()] == ["-1", "7"]
    assert figure.axes[0].get_title(loc="left") == "3 vertices, 0 edges; 1 without a value"
    figure = plot.draw(A, sg.Vector.from_dense([0.5, np.inf, 2.5]), positions=TRIANGLE)
    assert figure.axes[1].get_ylim() == (0.5, 2.5)
    assert "1 without a value" in figure.axes[0].get_title(loc="left")


@pytest.mark.parametrize(
    "G",
    [nx.empty_graph(0), nx.empty_graph(1), nx.disjoint_union(nx.star_graph(120), nx.path_graph(3))],
    ids=str,
)
def test_the_layout_keeps_vertices_apart(G: Any) -> None:
    A = sg.Matrix.from_networkx(G)
    level = sg.bfs(A, 0).level if len(G) else None
    figure = plot.draw(A, level)
    figure.draw_without_rendering()
    at = collections(figure)["EllipseCollection"].get_offsets()
    assert at.shape == (len(G), 2) and np.abs(at).max(initial=0) <= 1 + 1e-9
    gaps = np.linalg.norm(at[:, None] - at[None], axis=2) + 9 * np.eye(len(G))
    assert gaps.min(initial=9) > 0.01
    again = collections(plot.draw(A, level))["EllipseCollection"].get_offsets()
    assert np.array_equal(at, again)


def test_drawings_that_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    A = sg.Matrix.from_coo([0], [1], nrows=3, ncols=3)
    with pytest.raises(
        ValueError, match=r"expected at most 500 vertices, got 501; .*A\[ids, ids\]"
    ):
        plot.draw(sg.Matrix.empty(501, 501))
    with pytest.raises(DimensionMismatch, match="expected a square matrix, got 2 x 3"):
        plot.draw(sg.Matrix.empty(2, 3))
    with pytest.raises(DimensionMismatch, match="values.size 4 != A.nrows 3"):
        plot.draw(A, sg.Vector.empty(4))
    with pytest.raises(DomainMismatch, match="draw: values: expected a Vector, got list"):
        plot.draw(A, [1, 2, 3])
    for positions in ([1, 2, 3], TRIANGLE[:2], [*TRIANGLE[:2], (0, np.nan)], "abc", [[1], [2, 3]]):
        with pytest.raises(DimensionMismatch, match="positions: expected 3 rows"):
            plot.draw(A, positions=positions)
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(BackendUnavailable, match=r"pip install 'spgraph\[networkx\]', or give pos"):
        plot.draw(A)
    assert plot.draw(A, positions=TRIANGLE)
