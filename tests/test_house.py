"""What is promised outside of the code: metadata, documents, public names."""

from __future__ import annotations

import doctest
import importlib.metadata
import inspect
import re
import shlex
import tomllib
from pathlib import Path

import pytest

import spgraph as sg
from spgraph import cli

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
README = (ROOT / "README.md").read_text()


def test_the_version_is_the_same_everywhere() -> None:
    assert importlib.metadata.version("spgraph") == sg.__version__
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "spgraph.__version__"}
    assert f"## {sg.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_metadata() -> None:
    metadata = importlib.metadata.metadata("spgraph")
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert metadata["Requires-Python"] == ">=3.11"
    extras = {"cuda12", "cuda13", "mpi", "partition", "plot", "networkx", "dev"}
    assert set(metadata.get_all("Provides-Extra")) == extras
    assert "the spgraph authors" in (ROOT / "LICENSE").read_text()


def test_every_extra_that_a_message_or_document_names_exists() -> None:
    named = set()
    for path in [*ROOT.glob("*.md"), *ROOT.glob("spgraph/**/*.py"), *ROOT.glob("tests/*.py")]:
        for extras in re.findall(r"spgraph\[([a-z0-9,]+)\]", path.read_text()):
            named |= set(extras.split(","))
    assert named and named <= set(PROJECT["project"]["optional-dependencies"])


def public_objects() -> dict[str, object]:
    found: dict[str, object] = {}
    for name in sg.__all__:
        found[name] = value = getattr(sg, name)
        if inspect.isclass(value):
            for member, inner in vars(value).items():
                if not member.startswith("_") and (callable(inner) or isinstance(inner, property)):
                    found[f"{name}.{member}"] = inner
    return found


def test_every_public_name_exists_and_is_documented() -> None:
    assert {"read", "write", "bfs", "Matrix", "Vector", "mxv", "vxm"} <= set(sg.__all__)
    assert set(sg.__all__) <= set(dir(sg))
    plain = {"shape", "dtype", "copy"}  # NumPy's own words
    without = [
        name
        for name, value in public_objects().items()
        if name.rpartition(".")[2] not in plain
        and not (inspect.getdoc(value) or "").strip()
        and (callable(value) or inspect.ismodule(value) or isinstance(value, property))
    ]
    assert not without


def test_the_main_functions_have_examples() -> None:
    finder = doctest.DocTestFinder(recurse=False)
    for name in ("read", "bfs", "mxv", "vxm", "Matrix", "Vector"):
        assert any(test.examples for test in finder.find(getattr(sg, name))), name


@pytest.mark.parametrize(
    "name", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
)
def test_files_that_documents_name_exist(name: str) -> None:
    text = (ROOT / name).read_text()
    links = [target for target in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in target]
    paths = re.findall(r"`((?:spgraph|semirings|algorithms|tests|benchmarks)/[\w/.]*)`", text)
    missing = [target for target in [*links, *paths] if not (ROOT / target).exists()]
    assert not missing


def test_readme_names_the_two_commands() -> None:
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for command in ("demo", "test"):
        assert f"make {command}" in README and command in targets


def test_shell_examples_of_the_readme_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib", reason="an example draws a picture (extra plot)")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    lines = [line[2:] for block in blocks for line in block.splitlines() if line[:2] == "$ "]
    commands = [shlex.split(line, comments=True) for line in lines]
    commands = [words[1:] for words in commands if words[0] == "spgraph" and "cuda" not in words]
    assert len(commands) >= 3
    for words in commands:
        # smaller than a reader's graph, which would take a minute of every test run
        words = ["12" if word == "18" else word for word in words]
        assert cli.main(words) == 0, (words, capsys.readouterr().err)
