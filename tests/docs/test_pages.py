"""What the pages under docs/ say is computed: both sides of every table of equivalent calls, every
number about speed, every source, every link and every command.

The examples in the pages run as doctests (pyproject.toml: --doctest-glob).
"""

from __future__ import annotations

import doctest
import json
import math
import re
import runpy
import shlex
import subprocess
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import spgraph
from benchmarks.pages import figures, speed_tables, tables
from spgraph import cli

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))


def located(path: Path) -> Path:
    """A file of the checkout; in an sdist semirings/ and algorithms/ are under spgraph/ only."""
    path = path.resolve()
    return path if path.exists() else ROOT / "spgraph" / path.relative_to(ROOT)


# --- tables of equivalent calls -------------------------------------------------------------------


def sections(text: str) -> dict[str, str]:
    """The parts of a page by their headings of second order."""
    parts = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


COMING = sections((DOCS / "coming_from.md").read_text())
ROWS = [
    pytest.param(section, *row, id=f"{section}: {row[0]}")
    for section, text in COMING.items()
    for row in re.findall(r"^\| `(.+?)` \| `(.+?)` \|$", text, re.MULTILINE)
]


def test_every_row_of_a_table_is_found() -> None:
    rows = sum(text.count("\n|") - 2 * text.count("\n| ---") for text in COMING.values())
    assert len(ROWS) == rows > 70
    assert list(COMING) == ["From python-graphblas", "From SciPy", "From NetworkX", "From cuGraph"]


@pytest.mark.parametrize(("section", "theirs", "ours"), ROWS)
def test_both_sides_of_a_table_agree(section: str, theirs: str, ours: str) -> None:
    if "graphblas" in section:
        pytest.importorskip(
            "graphblas", reason="the table's other side: pip install 'spgraph[dev]'"
        )
    above = COMING[section].partition("\n| ")[0]
    blocks = re.findall(r"```python\n(.*?)```", above, re.DOTALL)
    *before, mine = [namespace(block) for block in blocks]
    found = result(ours, mine)
    assert found is not None or ours == "A[1, 0]"
    if before:
        same(result(theirs, before[0]), found)


def namespace(block: str) -> dict[str, Any]:
    """What the examples of a block define."""
    found: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples(block):
        exec(example.source, found)
    return found


def result(expression: str, names: dict[str, Any]) -> Any:
    """The value of a call; of one that writes, what `w` is afterwards."""
    value = eval(expression, names)
    return names["w"] if " << " in expression else value


def same(theirs: Any, ours: Any) -> None:
    theirs, ours = plain(theirs), plain(ours)
    if isinstance(theirs, dict) and not isinstance(ours, dict):
        ours = dict(enumerate(ours))
    if isinstance(theirs, dict):
        assert theirs.keys() == ours.keys()
        theirs, ours = zip(*((theirs[key], ours[key]) for key in theirs), strict=True)
    if isinstance(theirs, list | tuple):
        assert len(theirs) == len(ours)
        for one, other in zip(theirs, ours, strict=True):
            same(one, other)
    elif isinstance(theirs, float):
        assert math.isclose(theirs, ours, rel_tol=1e-4, abs_tol=1e-6) or theirs == ours
    else:
        assert theirs == ours


def plain(x: Any) -> Any:
    """Matrices, vectors and arrays of any library as dictionaries and lists."""
    if isinstance(x, Mapping):
        return dict(x)
    if isinstance(x, scipy.sparse.sparray | scipy.sparse.spmatrix):
        x = scipy.sparse.coo_array(x)
        return dict(
            zip(zip(*(c.tolist() for c in x.coords), strict=True), x.data.tolist(), strict=True)
        )
    if hasattr(x, "to_coo"):
        *at, values = (part.tolist() for part in x.to_coo())
        keys = at[0] if len(at) == 1 else zip(*at, strict=True)
        return dict(zip(keys, values, strict=True))
    return x.tolist() if isinstance(x, np.ndarray | np.generic) else x


def test_the_site_offers_this_version() -> None:
    versions = json.loads((DOCS / "site" / "versions.json").read_text())
    (preferred,) = [each["version"] for each in versions if each.get("preferred")]
    assert preferred == spgraph.__version__
    assert all(each["url"] == f"/{each['version']}/" for each in versions)


# --- names of other libraries ---------------------------------------------------------------------

NAMES = sections((DOCS / "names.md").read_text())


@pytest.mark.parametrize("section", NAMES)
def test_our_names_in_the_page_of_names_exist(section: str) -> None:
    here = runpy.run_path(str(DOCS / "site" / "names.py"))["ours"]()
    sg = here["sg"]
    owners = [here["A"], here["v"], sg, sg.csgraph]
    if ": spgraph.semirings." in section:
        owners = [getattr(sg.semirings, section.rpartition(".")[2])]
    (alike,) = re.findall(r"^The same names: (.*)\.$", NAMES[section], re.MULTILINE) or [""]
    calls = re.findall(r"^\| `.+?` \| `(.+?)` \|$", NAMES[section], re.MULTILINE)
    (moved,) = re.findall(r"^Methods there.*?: (.*)\.$", NAMES[section], re.MULTILINE) or [""]
    assert alike or calls
    for name in re.findall(r"`(\w+)`", moved):
        assert hasattr(sg, name), name
        assert not hasattr(here["A" if section.endswith("Matrix") else "v"], name), name
    for name in re.findall(r"`(\w+)`", alike):
        assert any(hasattr(owner, name) for owner in owners), name
    for call in calls:
        assert eval(call, here) is not None, call


# --- numbers about speed --------------------------------------------------------------------------


def test_the_numbers_about_speed_are_those_of_the_result_files() -> None:
    pages = {path: path.read_text() for path in [DOCS / "speed.md", *DOCS.glob("speed/*.md")]}
    places = [name for page in pages.values() for name in speed_tables.places(page)]
    assert sorted(places) == sorted(speed_tables.TABLES) and pages.keys() == {*speed_tables.PAGES}
    for path, page in pages.items():
        assert page == speed_tables.filled(page), f"python -m benchmarks report writes {path.name}"
        outside = re.sub(r"<!-- \w+ -->.*?<!-- end -->", "", page, flags=re.DOTALL)
        assert outside.count("<!--") == 0
        # graphs' parameters, and targets of links
        outside = re.sub(r"`(kronecker|uniform_random)\([\d <,]*\)`|\]\(.*?\)", "", outside)
        # what is not in a table has no measured number: only those of weights, iterations, sources
        assert set(re.findall(r"\b\d[\d.,]*\b", outside)) <= {"1", "20", "64"}, path.name


def test_the_figure_about_speed_shows_the_numbers_of_the_result_files() -> None:
    picture = (DOCS / "speed.svg").read_text()
    assert picture == figures.speed(), "python -m benchmarks report draws it"
    shown = re.findall(r'"normal"[^>]*>([\d.,]+)[^<]*</text>', picture)
    assert len(shown) == 2 * (5 + 5 + 5 + 4)  # the tasks of each panel, of two libraries
    for benchmark, graph in (("cpu", "kron18"), ("gpu", "rmat_n24_32"), ("gpu", "road_NY")):
        entry = tables.newest(f"algorithms_{benchmark}")[1]["graphs"][graph]
        for task in ("sssp", "components", "pagerank"):
            if benchmark == "cpu":
                time = entry["tasks"][task]["spgraph"]["median"]
            else:
                time = entry[task]["wall_ms"]
            assert tables.milliseconds(time) in shown, (graph, task)


def test_the_figure_of_a_frontier_shows_what_the_search_of_the_demo_did() -> None:
    picture = (DOCS / "frontier.svg").read_text()
    assert picture == figures.frontier(), "python -m benchmarks report draws it"
    edges, trace = figures.searched()
    shown = re.findall(r">([\d,]+)</text>", picture)
    assert shown == [f"{count:,}" for row in trace for count in (row.frontier, row.edges)]
    assert f"{edges:,} edges" in picture


# --- papers ---------------------------------------------------------------------------------------


def folded(text: str) -> str:
    """Lower case, no accents, one blank between words."""
    text = unicodedata.normalize("NFKD", text.replace("ö", "oe")).encode("ascii", "ignore").decode()
    return " ".join(text.lower().split())


CITED = [line for line in (DOCS / "citations.md").read_text().splitlines() if line[:2] == "- "]


def sources() -> Iterator[tuple[Path, str, str]]:
    """The file, title and year of everything that a docstring or comment of ours cites."""
    for path in [*ROOT.glob("algorithms/*.py"), *ROOT.glob("spgraph/**/*.py")]:
        # also in a comment of several lines
        text = " ".join(re.sub(r"^\s*# ", " ", path.read_text(), flags=re.MULTILINE).split())
        for title, year in re.findall(r'"([A-Z][^"]{11,100})",? \(?(?:[A-Z]\w+ )?(\d{4})\b', text):
            yield path, title, year


def test_every_source_of_the_code_is_cited() -> None:
    found = list(sources())
    assert len(found) > 40
    for path, title, year in found:
        lines = [line for line in CITED if folded(title) in folded(line) and year in line]
        assert len(lines) == 1, (path.name, title, year)


def test_cited_files_name_who_is_cited() -> None:
    assert len(CITED) > 45
    for line in CITED:
        author = re.split(r"[,:]| et al", line[2:])[0].split()[-1]
        for target in re.findall(r"\]\(\.\./([^)]+)\)", line):
            text = folded(located(ROOT / target).read_text())
            assert folded(author).split("-")[-1] in text, (target, author)


# --- links and commands ---------------------------------------------------------------------------


def headings(page: Path) -> set[str]:
    """What a forge calls the headings of a page in links: lower case, dashes for blanks."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    found = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in found}


LINKING = [
    page
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "notebooks/*.md",
        "benchmarks/*.md",
        "spgraph/backends/*.md",
    )
    for page in sorted(ROOT.glob(pattern))
]


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    """Every relative link and picture to a file and, behind #, to a heading; every path."""
    text = page.read_text()
    targets = [t for t in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in t]
    missing = []
    for target in targets:
        name, _, heading = target.partition("#")
        path = located(page.parent / name) if name else page
        if not path.exists() or (heading and heading not in headings(path)):
            missing.append(target)
    folders = "spgraph|semirings|algorithms|tests|benchmarks|docs"
    paths = re.findall(rf"`((?:{folders})/[\w/.-]*)`", text)
    missing += [path for path in paths if not located(ROOT / path).exists()]
    assert not missing


COMMANDS = [
    pytest.param(re.findall(r"^\$ (.*)$", block, re.MULTILINE), id=f"{page.stem} {k}")
    for page in PAGES
    for k, block in enumerate(re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL))
]


@pytest.mark.parametrize("lines", COMMANDS)
def test_commands_of_a_page_run(
    lines: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Block by block, in an empty folder; all but those for GPUs and for mpirun."""
    if any("--plot" in line for line in lines):
        pytest.importorskip("matplotlib", reason="an example draws a picture (extra plot)")
    monkeypatch.chdir(tmp_path)
    assert lines
    for line in lines:
        program, *words = shlex.split(line, comments=True)
        if program == "printf":
            subprocess.run(["sh", "-c", line], check=True)
        if program != "spgraph" or "cuda" in words or "--gpus" in words:
            continue
        assert cli.main(words) == 0, (line, capsys.readouterr().err)
