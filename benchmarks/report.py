"""Write the tables of docs/speed.md and docs/speed/, and the figures of README.md and these pages,
out of the newest files of benchmarks/results/. A test holds all equal to the files.
"""

from __future__ import annotations

import argparse
import pathlib

from benchmarks.pages import figures, speed_tables


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command takes none."""


def run(given: argparse.Namespace) -> int:
    """Bring the pages and the pictures up to date."""
    for path, text in documents().items():
        path.write_text(text, encoding="utf-8")
    return 0


def documents() -> dict[pathlib.Path, str]:
    """The texts of the pages and the pictures, as the result files have them."""
    pages = {
        page: speed_tables.filled(page.read_text(encoding="utf-8")) for page in speed_tables.PAGES
    }
    drawn = {figures.DOCS / name: draw() for name, draw in figures.FIGURES.items()}
    return {**pages, **drawn}
