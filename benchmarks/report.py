"""Write the tables of docs/speed.md, its figure and those of README.md, out of the newest files of
benchmarks/results/. A test holds both equal to the files.
"""

from __future__ import annotations

import argparse

from benchmarks.pages import figures, speed_tables


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command takes none."""


def run(given: argparse.Namespace) -> int:
    """Bring the page and the pictures up to date."""
    page = speed_tables.PAGE
    page.write_text(speed_tables.filled(page.read_text(encoding="utf-8")), encoding="utf-8")
    for name, draw in figures.FIGURES.items():
        (figures.DOCS / name).write_text(draw(), encoding="utf-8")
    return 0
