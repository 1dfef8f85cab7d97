"""What all benchmarks take on the command line, and the names of result files."""

from __future__ import annotations

import argparse
import datetime
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"


def parser(doc: str | None, benchmark: str, graphs: str | None = None) -> argparse.ArgumentParser:
    """The parser of a benchmark; with `graphs`, those that it measures by default, it takes others
    and the folder of real ones.
    """
    made = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    if graphs is not None:
        made.add_argument("--graphs", default=graphs)
        made.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared" / "data")
    add_output(made, benchmark)
    return made


def add_output(made: argparse.ArgumentParser, benchmark: str) -> None:
    """Where the result goes, and of what commit it is."""
    made.add_argument("--commit", help="where the tree has no git history: which commit it is")
    made.add_argument("-o", "--output", type=pathlib.Path, default=free(RESULTS, benchmark))


def free(folder: pathlib.Path, benchmark: str) -> pathlib.Path:
    """The name of a new file of today, which sorts after those that are there."""
    stem = f"{benchmark}_{datetime.datetime.now(datetime.UTC).date()}"
    file, number = folder / f"{stem}.json", 2
    while file.exists():
        file, number = folder / f"{stem}_{number}.json", number + 1
    return file.resolve()
