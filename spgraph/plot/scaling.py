"""Plot the speed-up on several devices, from result files of the benchmarks."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spgraph.containers.storage.numbers import flags
from spgraph.errors import FormatError
from spgraph.plot.style import GREY, INK, MARKERS, SERIES, log_ticks, new_figure, plain, quiet

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# subplots in one row
ROW = 3


def scaling(
    results: str | os.PathLike[str] | Mapping[str, object],
    *,
    speedup: bool = True,
    title: str | None = None,
) -> Figure:
    """A matplotlib Figure of the speed-up against the number of devices, with one subplot per
    algorithm and one line per graph.

    `results` is a result file of the benchmarks, or its content as a mapping: "results" are rows of
    "algorithm", "graph", "devices" and "ms". The speed-up of a line is relative to its fewest
    devices, times their number; the dashed line is the ideal, a speed-up of n on n devices. With
    `speedup=False` the plot shows times on logarithmic axes, and for each line the ideal, dashed.
    `title` replaces the one above all subplots.

    Raises FormatError, which names the row, for a file of another kind, for one without rows, and
    for two rows of the same algorithm, graph and number of devices; OSError for a file that cannot
    be read; BackendUnavailable if matplotlib is missing.

    >>> import spgraph as sg
    >>> rows = [{"algorithm": "bfs", "graph": "kron25", "devices": n, "ms": t}
    ...         for n, t in ((1, 4.0), (2, 2.2), (4, 1.4))]
    >>> axes = sg.plot.scaling({"results": rows}).axes[0]
    >>> [round(float(y), 2) for y in axes.lines[-1].get_ydata()]
    [1.0, 1.82, 2.86]
    """
    flags("scaling", speedup=speedup)
    series = curves(results)
    graphs = list(dict.fromkeys(graph for lines in series.values() for graph in lines))
    devices = sorted({n for lines in series.values() for times in lines.values() for n in times})
    columns = 2 if len(series) == 4 else min(len(series), ROW)
    rows = -(-len(series) // columns)
    figure = new_figure(1.0 + 2.5 * rows, width=max(4.4, 2.7 * columns))
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=speedup)
    for axes, (algorithm, lines) in zip(grid.flat, series.items(), strict=False):
        if speedup:
            axes.plot(devices, devices, "--", color=GREY, linewidth=0.9, label="ideal", zorder=1)
        for graph, times in lines.items():
            _line(axes, times, speedup, graphs.index(graph), graph)
        _dress(axes, devices, speedup, algorithm)
    for axes in grid.flat[len(series) :]:
        axes.set_axis_off()
    for axes in grid[:, 0]:
        axes.set_ylabel("speed-up" if speedup else "time [ms]")
    _legend(figure)
    layout = figure.get_layout_engine()
    assert layout is not None
    layout.set(w_pad=0.1, h_pad=0.08)  # type: ignore[call-arg]
    figure.suptitle(
        title or ("Speed-up" if speedup else "Time") + " on several devices",
        x=0.01,
        ha="left",
        fontsize=11,
        color=INK,
    )
    return figure


def curves(
    results: str | os.PathLike[str] | Mapping[str, object],
) -> dict[str, dict[str, dict[int, float]]]:
    """{algorithm: {graph: {devices: milliseconds}}}, devices in ascending order."""
    where = "results"
    if not isinstance(results, Mapping):
        where = os.fspath(results)
        try:
            results = json.loads(Path(results).read_text(encoding="utf-8"))
        except ValueError as error:  # not JSON, or not text
            raise FormatError(f"{where}: expected a JSON file of the benchmarks: {error}") from None
    rows = results.get("results") if isinstance(results, Mapping) else None
    if not isinstance(rows, list) or not rows:
        raise FormatError(
            f'{where}: expected "results", a list of one or more rows of "algorithm", "graph", '
            '"devices" and "ms"'
        )
    found: dict[str, dict[str, dict[int, float]]] = {}
    for k, row in enumerate(rows):
        if not _is_row(row):
            raise FormatError(
                f'{where}: row {k}: expected "algorithm" and "graph" as text, "devices" as an '
                f'integer > 0 and "ms" as a number > 0, got {row!r}'
            )
        times = found.setdefault(row["algorithm"], {}).setdefault(row["graph"], {})
        if row["devices"] in times:
            raise FormatError(
                f"{where}: row {k}: expected one time for {row['algorithm']} of {row['graph']} on "
                f"{row['devices']} devices, got a second one; leave one of them out of the mapping"
            )
        times[row["devices"]] = float(row["ms"])
    return {
        algorithm: {graph: dict(sorted(times.items())) for graph, times in lines.items()}
        for algorithm, lines in found.items()
    }


def _is_row(row: object) -> bool:
    if not isinstance(row, Mapping):
        return False
    devices, ms = row.get("devices"), row.get("ms")
    return (
        isinstance(row.get("algorithm"), str)
        and isinstance(row.get("graph"), str)
        and isinstance(devices, int)
        and devices > 0
        and isinstance(ms, int | float)
        and 0 < ms < math.inf
    )


def _line(axes: Axes, times: dict[int, float], speedup: bool, k: int, graph: str) -> None:
    devices, first = list(times), min(times)
    height = [first * times[first] / t for t in times.values()] if speedup else times.values()
    color = SERIES[k % len(SERIES)]
    if not speedup:
        ideal = [times[first] * first / n for n in devices]
        axes.plot(devices, ideal, "--", color=color, linewidth=0.9, alpha=0.6, zorder=1)
    axes.plot(
        devices,
        list(height),
        marker=MARKERS[k % len(MARKERS)],
        markersize=5,
        color=color,
        linewidth=1.4,
        label=graph,
        zorder=2,
    )


def _dress(axes: Axes, devices: list[int], speedup: bool, algorithm: str) -> None:
    from matplotlib.ticker import NullLocator

    if speedup:
        axes.set_ylim(bottom=0)
    else:
        axes.set_xscale("log")
        axes.set_yscale("log")
        heights = [float(y) for line in axes.lines for y in np.asarray(line.get_ydata())]
        log_ticks(axes.yaxis, min(heights), max(heights))
        axes.yaxis.set_major_formatter(plain)
    axes.set_xticks(devices, [str(n) for n in devices])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("devices")
    quiet(axes)
    axes.tick_params(labelbottom=True)
    axes.set_title(algorithm, loc="left", fontsize=10, color=INK)


def _legend(figure: Figure) -> None:
    """One legend for all subplots, below them: each graph once."""
    named = {label: handle for axes in figure.axes for handle, label in _handles(axes)}
    figure.legend(
        list(named.values()),
        list(named),
        loc="outside lower center",
        ncols=max(int(figure.get_size_inches()[0] / 1.3), 1),
        frameon=False,
        fontsize=9,
        labelcolor=INK,
    )


def _handles(axes: Axes) -> list[tuple[Artist, str]]:
    return list(zip(*axes.get_legend_handles_labels(), strict=True))
