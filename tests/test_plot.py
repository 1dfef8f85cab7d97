"""The picture of a search: what is drawn, for few and for many levels, without a display."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from spgraph import plot
from spgraph.errors import BackendUnavailable


def trace(levels: int, directions: str = "push pull") -> list[SimpleNamespace]:
    names = directions.split()
    return [
        SimpleNamespace(
            depth=d,
            direction=names[d % len(names)],
            frontier=3 * d + 1,
            edges=20 * d + 7,
            seconds=(d + 1) * 1e-5,
        )
        for d in range(levels)
    ]


def texts(figure: object) -> list[str]:
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]  # type: ignore[attr-defined]


def test_bars_have_the_heights_of_the_trace() -> None:
    rows = trace(5)
    figure = plot.frontier_profile(rows)
    counts, times = figure.axes
    drawn = sorted(bar.get_height() for bar in counts.patches)
    assert drawn == sorted([row.frontier for row in rows] + [row.edges for row in rows])
    # in microseconds, as the longest level takes less than a millisecond
    assert times.get_ylabel() == "time [µs]"
    assert sorted(bar.get_height() for bar in times.patches) == pytest.approx([10, 20, 30, 40, 50])
    assert counts.get_yscale() == "log" and times.get_yscale() == "linear"
    assert counts.get_title(loc="left") == "5 levels, 235 edges looked at, 0.15 ms"


def test_direction_shows_in_colour_and_hatch() -> None:
    figure = plot.frontier_profile(trace(4))
    by_level = {round(bar.get_x() + bar.get_width() / 2): bar for bar in figure.axes[1].patches}
    looks = [(by_level[d].get_facecolor(), by_level[d].get_hatch()) for d in range(4)]
    assert looks[0] == looks[2] and looks[1] == looks[3]
    assert looks[0][0] != looks[1][0] and looks[0][1] != looks[1][1]
    assert texts(figure) == ["push", "pull", "frontier (vertices)", "edges looked at"]


def test_a_search_without_a_pull_says_nothing_of_pulling() -> None:
    assert "pull" not in texts(plot.frontier_profile(trace(4, "push")))


@pytest.mark.parametrize("levels", [1, plot.LABELS + 1, plot.BARS, plot.BARS + 1, 2000])
def test_any_number_of_levels_can_be_drawn(levels: int, tmp_path: Path) -> None:
    figure = plot.frontier_profile(trace(levels), title="a title")
    figure.savefig(tmp_path / "profile.png")
    assert (tmp_path / "profile.png").read_bytes().startswith(b"\x89PNG")
    assert figure.axes[0].get_title(loc="left") == "a title"


def test_many_levels_are_areas_of_the_same_heights() -> None:
    rows = trace(100)
    counts = plot.frontier_profile(rows).axes[0]
    push, pull, edges = (stairs.get_data().values for stairs in counts.patches)
    assert np.where(np.isnan(push), pull, push).tolist() == [row.frontier for row in rows]
    assert np.isnan(push[1::2]).all() and np.isnan(pull[::2]).all()
    assert edges.tolist() == [row.edges for row in rows]


def test_an_empty_trace_is_refused() -> None:
    with pytest.raises(ValueError, match="trace: expected at least one level"):
        plot.frontier_profile([])


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(BackendUnavailable, match=r"pip install 'spgraph\[plot\]'"):
        plot.frontier_profile(trace(2))


def test_drawing_touches_no_global_state() -> None:
    code = """
import sys
from types import SimpleNamespace
import spgraph as sg
row = SimpleNamespace(depth=0, direction="push", frontier=1, edges=1, seconds=1.0)
assert "matplotlib" not in sys.modules
sg.plot.frontier_profile([row])
assert "matplotlib.figure" in sys.modules and "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
