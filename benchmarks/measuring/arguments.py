"""What all benchmarks take on the command line, and the names of result files."""

from __future__ import annotations

import argparse
import datetime
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
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
    """The name of a new file of today, numbered after those that are there."""
    stem = f"{benchmark}_{datetime.datetime.now(datetime.UTC).date()}"
    there = [path for path in files(folder, benchmark) if path.stem.startswith(stem)]
    number = 1 + place(there[-1])[1] if there else 1
    return (folder / f"{stem}{'' if number == 1 else f'_{number}'}.json").resolve()


def files(folder: pathlib.Path, benchmark: str) -> list[pathlib.Path]:
    """The result files of a benchmark, the newest last."""
    return sorted(folder.glob(f"{benchmark}_[0-9]*.json"), key=place)


def place(file: pathlib.Path) -> tuple[str, int]:
    """The date in the name of a result file, and its number among those of that day."""
    day, _, number = re.split(r"_(?=\d{4}-)", file.stem)[-1].partition("_")
    return day, int(number or 1)
