"""The pictures: what their artists hold, beside NumPy's and NetworkX's counts; no display."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import spgraph as sg
from spgraph import plot
from spgraph.errors import BackendUnavailable, DomainMismatch, FormatError
from spgraph.plot.distance_histogram import intervals
from spgraph.plot.frontier_profile import BARS, LABELS
from spgraph.plot.spy import CELLS

nx = pytest.importorskip("networkx", reason="networkx is not installed (extra networkx)")

TRIANGLE = [(0.0, 0.0), (2.0, 0.0), (1.0, 1.0)]


# --- a search, level by level ---------------------------------------------------------------------


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


@pytest.mark.parametrize("levels", [1, LABELS + 1, BARS, BARS + 1, 300])
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


def test_what_is_no_trace_is_refused() -> None:
    A = sg.generators.grid(2, 3)
    remedy = r"levels of a search, got {}; sg\.bfs\(A, source, trace=True\)\.trace has them"
    for search in (sg.bfs(A, 0), sg.bfs(A, 0, trace=True)):
        with pytest.raises(DomainMismatch, match=remedy.format(type(search).__name__)):
            plot.frontier_profile(search)  # type: ignore[arg-type]
    with pytest.raises(DomainMismatch, match=r"got BFS; \.level and \.parent of it are$"):
        plot.distance_histogram(sg.bfs(A, 0))  # type: ignore[arg-type]


def test_an_empty_trace_is_refused() -> None:
    with pytest.raises(ValueError, match="trace: expected at least one level"):
        plot.frontier_profile([])


# --- where the entries are ------------------------------------------------------------------------


def drawn_image(figure: Any) -> np.ndarray:
    return np.ma.filled(figure.axes[0].images[0].get_array(), 0.0)


def test_spy_of_a_small_matrix_has_a_cell_an_entry() -> None:
    dense = np.array([[0, 3, 0], [0, 0, 5]])
    figure = plot.spy(sg.Matrix.from_dense(dense))
    axes = figure.axes[0]
    assert np.array_equal(drawn_image(figure), dense != 0)
    assert len(figure.axes) == 1  # nothing for a colour bar to say
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("column", "row")
    assert axes.get_title(loc="left") == "2 x 3, 2 entries"
    assert axes.get_xlim() == (-0.5, 2.5) and axes.get_ylim() == (1.5, -0.5)  # row 0 on top
    assert axes.images[0].get_extent() == [-0.5, 2.5, 1.5, -0.5]


@pytest.mark.parametrize("shape", [(1000, 1234), (401, 3), (7, 5000), (400, 800)])
def test_spy_of_a_large_matrix_draws_densities(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(4)
    rows, columns = (rng.integers(0, n, 3000) for n in shape)
    A = sg.Matrix.from_coo(rows, columns, nrows=shape[0], ncols=shape[1])
    figure = plot.spy(A, title="a title")
    cells = [min(n, CELLS) for n in shape]
    entries, positions = np.zeros(cells), np.zeros(cells)
    for i, j in set(zip(rows.tolist(), columns.tolist(), strict=True)):
        entries[i * cells[0] // shape[0], j * cells[1] // shape[1]] += 1
    high, wide = (np.bincount(np.arange(n) * c // n) for n, c in zip(shape, cells, strict=True))
    positions = np.outer(high, wide)
    assert np.allclose(drawn_image(figure), entries / positions)
    assert figure.axes[1].get_ylabel() == "density"
    assert figure.axes[0].get_title(loc="left") == "a title"
    figure.draw_without_rendering()


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0), (3, 4)])
def test_spy_without_entries(shape: tuple[int, int]) -> None:
    figure = plot.spy(sg.Matrix.empty(*shape))
    assert figure.axes[0].get_title(loc="left") == f"{shape[0]} x {shape[1]}, 0 entries"
    figure.draw_without_rendering()


# --- degrees --------------------------------------------------------------------------------------


def points(line: Any) -> dict[int, int]:
    return dict(zip(*(data.tolist() for data in line.get_data()), strict=True))


def test_in_and_out_degrees_of_a_directed_graph() -> None:
    G = nx.gnp_random_graph(80, 0.05, seed=3, directed=True)
    axes = plot.degree_distribution(sg.Matrix.from_networkx(G)).axes[0]
    leaving, entering = axes.lines
    for line, degrees in ((leaving, dict(G.out_degree())), (entering, dict(G.in_degree()))):
        expected = Counter(degrees.values())
        none = expected.pop(0, 0)
        assert points(line) == expected
        assert f"({none} vert" in line.get_label()
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("degree", "vertices")


def test_degrees_that_are_distributed_alike_are_drawn_once() -> None:
    for G in (nx.star_graph(9), nx.cycle_graph(5, create_using=nx.DiGraph)):
        A = sg.Matrix.from_networkx(G)
        figure = plot.degree_distribution(A)
        (line,) = figure.axes[0].lines
        assert points(line) == Counter(np.diff(A.indptr).tolist())
        assert texts(figure) == ["degree"]
        figure.draw_without_rendering()


@pytest.mark.parametrize("n", [0, 4])
def test_degrees_of_a_graph_without_edges(n: int) -> None:
    figure = plot.degree_distribution(sg.Matrix.empty(n, n), title="none")
    figure.draw_without_rendering()
    assert texts(figure) == (["degree (4 vertices have 0)"] if n else ["degree"])


# --- distances ------------------------------------------------------------------------------------


def heights(axes: Any) -> dict[float, int]:
    """The height of each bar that has one, by its middle."""
    bars = [(bar.get_x() + bar.get_width() / 2, bar.get_height()) for bar in axes.patches]
    return {middle: int(height) for middle, height in bars if height}


def test_distances_of_a_search() -> None:
    G = nx.disjoint_union(nx.balanced_tree(2, 6), nx.path_graph(3))
    level = sg.bfs(sg.Matrix.from_networkx(G), 0).level
    axes = plot.distance_histogram(level).axes[0]
    assert heights(axes) == Counter(nx.single_source_shortest_path_length(G, 0).values())
    assert axes.get_title(loc="left") == (
        "127 of 130 vertices reached, 3 unreached; the farthest at 6"
    )
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("distance", "vertices")
    assert axes.get_yscale() == "linear"


def test_infinite_and_missing_distances_are_unreached() -> None:
    v = sg.Vector.from_coo([0, 1, 2, 4], [0.25, np.inf, 7.5, np.nan], size=6)
    axes = plot.distance_histogram(v).axes[0]
    assert sum(heights(axes).values()) == 2
    assert axes.get_title(loc="left") == "2 of 6 vertices reached, 4 unreached; the farthest at 7.5"


def test_steep_counts_are_logarithmic() -> None:
    v = sg.Vector.from_dense(np.array([0] + [1] * 300))
    assert plot.distance_histogram(v).axes[0].get_yscale() == "log"


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint64", "float32", "float64"])
def test_whole_distances_of_any_range_fall_into_whole_intervals(dtype: str) -> None:
    kind = np.dtype(dtype)
    ends = [0, 1] if dtype == "bool" else [-100, 90] if kind.kind == "f" else np.iinfo(kind)
    low, high = (ends.min, ends.max) if isinstance(ends, np.iinfo) else ends
    values = np.array([low, low, low + (high - low) // 2, high], kind)
    counts, edges = intervals(values)
    assert counts.size <= 61 and counts.sum() == 4 and counts[0] >= 2 and counts[-1] >= 1
    width = edges[1] - edges[0]
    assert width == int(width) and np.allclose(np.diff(edges), width)
    assert edges[0] <= low and high <= edges[-1]


def test_long_distances_say_their_intervals() -> None:
    values = np.arange(200)
    axes = plot.distance_histogram(sg.Vector.from_dense(values)).axes[0]
    assert axes.get_xlabel() == "distance, in intervals of 4"
    assert heights(axes) == {4 * k + 1.5: 4 for k in range(50)}


@pytest.mark.parametrize("values", [[0.1 + 0.2, 0.3], [0.5, 0.5 + 2**-53, 0.5 + 2**-52], [5e-324]])
def test_distances_that_differ_by_rounding(values: list[float]) -> None:
    """They were an error of NumPy: too many bins for the range."""
    axes = plot.distance_histogram(sg.Vector.from_dense(np.array(values))).axes[0]
    assert list(heights(axes).values()) == [len(values)]


def test_no_distances(tmp_path: Path) -> None:
    for size in (0, 7):
        figure = plot.distance_histogram(sg.Vector.empty(size))
        figure.savefig(tmp_path / "none.png")
        assert figure.axes[0].get_title(loc="left").startswith(f"0 of {size} vertices reached")


# --- several devices ------------------------------------------------------------------------------

ROWS = [
    {"algorithm": algorithm, "graph": graph, "devices": devices, "ms": ms}
    for algorithm, graph, devices, ms in [
        ("bfs", "kron25", 4, 3.0),
        ("bfs", "kron25", 1, 9.0),
        ("bfs", "kron25", 2, 6.0),
        ("bfs", "road", 2, 50.0),  # did not fit on one
        ("bfs", "road", 4, 40.0),
        ("pagerank", "kron25", 1, 8),
    ]
]


def lines(axes: Any) -> dict[str, list[tuple[int, float]]]:
    return {
        line.get_label(): [(int(x), float(y)) for x, y in line.get_xydata()]
        for line in axes.lines
        if not line.get_label().startswith("_")
    }


def test_speed_up_over_the_fewest_devices(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"benchmark": "distributed_gpu", "results": ROWS}))
    figure = plot.scaling(path)
    bfs, pagerank = figure.axes
    assert lines(bfs) == {
        "ideal": [(1, 1.0), (2, 2.0), (4, 4.0)],
        "kron25": [(1, 1.0), (2, 1.5), (4, 3.0)],
        "road": [(2, 2.0), (4, 2.5)],
    }
    assert lines(pagerank)["kron25"] == [(1, 1.0)]
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["bfs", "pagerank"]
    assert (bfs.get_xlabel(), bfs.get_ylabel()) == ("devices", "speed-up")
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["ideal", "kron25", "road"]
    figure.savefig(tmp_path / "scaling.png")


def test_times_on_several_devices() -> None:
    bfs = plot.scaling({"results": ROWS}, speedup=False, title="times").axes[0]
    assert lines(bfs)["road"] == [(2, 50.0), (4, 40.0)]
    ideal = [line.get_ydata() for line in bfs.lines if line.get_label().startswith("_")]
    assert [data.tolist() for data in map(np.array, ideal)] == [[9.0, 4.5, 2.25], [50.0, 25.0]]
    assert bfs.get_xscale() == bfs.get_yscale() == "log" and bfs.get_ylabel() == "time [ms]"


@pytest.mark.parametrize(
    "row",
    [
        {},
        [],
        ROWS[0] | {"devices": 0},
        ROWS[0] | {"devices": True, "ms": "1"},
        ROWS[0] | {"devices": 1.5},
        ROWS[0] | {"ms": 0},
        ROWS[0] | {"ms": float("nan")},
        ROWS[0] | {"graph": None},
        ROWS[0],
    ],
    ids=str,
)
def test_bad_results_are_named(row: Any) -> None:
    with pytest.raises(FormatError, match="results: row 6: "):
        plot.scaling({"results": [*ROWS, row]})


def test_files_that_hold_no_results(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    for content in (b"", b"\xff\xfe", b"[1]", b'{"results": []}', b'{"results": 3}', b"{"):
        path.write_bytes(content)
        with pytest.raises(FormatError, match="result.json: expected"):
            plot.scaling(path)
    with pytest.raises(FileNotFoundError):
        plot.scaling(tmp_path / "none.json")


# --- all of them ----------------------------------------------------------------------------------

GRAPH = sg.Matrix.from_coo([0, 1, 2], [1, 2, 0], nrows=3, ncols=3)
LEVEL = sg.Vector.from_coo([0, 1], [0, 1], size=3)
PICTURES = {
    "spy": lambda: plot.spy(GRAPH, title="title"),
    "degrees": lambda: plot.degree_distribution(GRAPH, title="title"),
    "distances": lambda: plot.distance_histogram(LEVEL, title="title"),
    "draw": lambda: plot.draw(GRAPH, LEVEL, positions=TRIANGLE, title="title"),
    "scaling": lambda: plot.scaling({"results": ROWS}, title="title"),
    "profile": lambda: plot.frontier_profile(trace(2), title="title"),
}


@pytest.mark.parametrize("name", PICTURES)
def test_notebooks_show_a_picture_and_it_can_be_pickled(name: str) -> None:
    figure = PICTURES[name]()
    image, size = figure._repr_png_()
    assert image.startswith(b"\x89PNG") and 300 < size["width"] < 900
    titles = [axes.get_title(loc="left") for axes in figure.axes] + [figure.get_suptitle()]
    assert "title" in titles
    assert pickle.loads(pickle.dumps(figure)).get_size_inches().tolist() == (
        figure.get_size_inches().tolist()
    )


def test_containers_in_shards_are_drawn_whole() -> None:
    A = GRAPH.distribute(2)
    v = sg.Vector.from_coo([0, 1], [0, 1], size=3, device=A.device)
    assert plot.spy(A).axes[0].get_title(loc="left") == "3 x 3, 3 entries"
    assert points(plot.degree_distribution(A).axes[0].lines[0]) == {1: 3}
    assert heights(plot.distance_histogram(v).axes[0]) == {0: 1, 1: 1}
    assert "1 without a value" in plot.draw(A, v, positions=TRIANGLE).axes[0].get_title(loc="left")


@pytest.mark.parametrize("function", [plot.spy, plot.degree_distribution, plot.draw])
def test_what_is_no_matrix_is_refused(function: Any) -> None:
    with pytest.raises(DomainMismatch, match=f"{function.__name__}: A: expected a Matrix"):
        function("no matrix")


def test_what_is_no_vector_is_refused() -> None:
    with pytest.raises(DomainMismatch, match="distance_histogram: v: expected a Vector, got BFS"):
        plot.distance_histogram(sg.bfs(GRAPH, 0))


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
