"""What is promised outside of the code: metadata, documents, public names."""

from __future__ import annotations

import ast
import collections
import doctest
import importlib.metadata
import inspect
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import spgraph as sg

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
    assert "the spgraph authors" in (ROOT / "LICENSE").read_text()


def test_the_page_about_installing_names_every_extra() -> None:
    page = (ROOT / "docs" / "install.md").read_text()
    rows = re.findall(
        r"^\| `(\w+)` \| .* \| .* \|$", page.partition("## Which CUDA")[0], re.MULTILINE
    )
    assert set(rows) == set(PROJECT["project"]["optional-dependencies"]) and len(rows) > 8


def test_every_extra_that_a_message_or_document_names_exists() -> None:
    named = set()
    for path in [*ROOT.glob("*.md"), *ROOT.glob("spgraph/**/*.py"), *ROOT.glob("tests/**/*.py")]:
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


def test_readme_names_the_two_commands() -> None:
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for command in ("demo", "test"):
        assert f"make {command}" in README and command in targets


# --- the tests' own folders -----------------------------------------------------------------------


def test_every_module_of_algorithms_has_its_tests() -> None:
    modules = {path.stem for path in (ROOT / "algorithms").glob("*.py")} - {"__init__"}
    found = {path.stem for path in (ROOT / "tests" / "algorithms").glob("test_*.py")}
    missing = {name for name in modules if f"test_{name}" not in found}
    assert len(modules) > 20 and not missing


def test_the_tests_have_the_folders_of_what_they_test() -> None:
    """A folder of tests is called as one of the package or of the checkout; but for what tests
    share, the programs that they start, and the soak.
    """
    tests = ROOT / "tests"
    folders = {path.parent.relative_to(tests) for path in tests.glob("**/test_*.py")}
    assert len(folders) > 15
    places = (ROOT / "spgraph", ROOT)
    assert all(any((place / folder).is_dir() for place in places) for folder in folders), folders
    others = {path.name for path in tests.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert others - {folder.parts[0] for folder in folders if folder.parts} == {
        "helpers",
        "programs",
        "soak",
    }


# --- workflows, hooks, and what citing and packaging say ------------------------------------------

GITHUB = sorted((ROOT / ".github").glob("**/*.yml"))
WORKFLOWS = [path for path in GITHUB if path.parent.name == "workflows"]
TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)


def parsed(path: Path) -> Any:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed (python-graphblas needs it)")
    return yaml.safe_load(path.read_text())


def test_there_are_workflows_and_templates() -> None:
    assert {"ci", "dependabot", "bug_report", "feature_request"} <= {path.stem for path in GITHUB}
    assert {"test", "coverage", "docs", "site", "lint", "typecheck", "package"} <= set(TARGETS)


@pytest.mark.parametrize("path", GITHUB, ids=lambda path: path.stem)
def test_it_parses(path: Path) -> None:
    assert isinstance(parsed(path), dict)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_what_a_workflow_runs_exists(path: Path) -> None:
    """Targets of the Makefile and files; actions by their major version; rights to read alone."""
    workflow = parsed(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["cancel-in-progress"] is True
    ran = []
    for name, job in workflow["jobs"].items():
        assert 0 < job["timeout-minutes"] <= 90, name
        for step in job["steps"]:
            ran.append(step.get("run", ""))
            assert re.fullmatch(r"actions/[a-z-]+@v\d+", step.get("uses", "actions/x@v1")), step
    made = [target for run in ran for target in re.findall(r"\bmake ([a-z -]+)", run)]
    targets = {target for line in made for target in line.split()}
    assert targets and targets <= set(TARGETS)
    files = [name for run in ran for name in re.findall(r"\bpython (\S+\.py)", run)]
    assert all((ROOT / name).exists() for name in files), files


def test_the_workflow_tests_every_python_that_is_promised() -> None:
    promised = [
        line.rpartition(" ")[2]
        for line in PROJECT["project"]["classifiers"]
        if line.startswith("Programming Language :: Python :: 3.")
    ]
    jobs = parsed(ROOT / ".github/workflows/ci.yml")["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == promised
    assert PROJECT["project"]["requires-python"] == f">={promised[0]}"


def test_the_least_versions_are_those_that_are_tested() -> None:
    def versions(lines: list[str], relation: str) -> dict[str, str]:
        pattern = re.compile(rf"([\w.]+){relation}([\d.]+\d)")
        return {found[1]: found[2] for line in lines if (found := pattern.match(line))}

    least = (ROOT / ".ci" / "least.txt").read_text().splitlines()
    asked = PROJECT["project"]["dependencies"]
    assert versions(least, "==") == versions(asked, ">=") and len(asked) == len(least) - 1


def test_the_hooks_have_the_versions_of_the_extra_dev() -> None:
    (local,) = parsed(ROOT / ".pre-commit-config.yaml")["repos"]
    needed = {need for hook in local["hooks"] for need in hook["additional_dependencies"]}
    names = {re.split(r"[<>=]", need)[0] for need in needed}
    assert names == {"ruff", "clang-format", "nbstripout"}
    assert needed <= set(PROJECT["project"]["optional-dependencies"]["dev"])


def test_the_citation_says_what_the_project_says() -> None:
    citation, project = parsed(ROOT / "CITATION.cff"), PROJECT["project"]
    assert (citation["title"], citation["version"]) == (project["name"], sg.__version__)
    assert citation["authors"] == project["authors"]
    assert citation["license"] == project["license"]
    assert citation["abstract"] == project["description"]
    assert citation["keywords"] == project["keywords"]


# --- the size of what a reader has to keep in mind ------------------------------------------------

PACKAGE = [
    path for top in ("spgraph", "algorithms", "semirings") for path in ROOT.glob(f"{top}/**/*.py")
]


def test_functions_have_at_most_60_lines() -> None:
    """From `def` to the last line, docstring included. The kernels of the CPU are excepted, by the
    name of their folders: Numba compiles each as a whole.
    """
    cpu = ROOT / "spgraph" / "backends" / "cpu"
    long, count = {}, 0
    for path in PACKAGE:
        if cpu in path.parents and path.parent.name == "kernels":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines, count = (node.end_lineno or 0) - node.lineno + 1, count + 1
                if lines > 60:
                    long[f"{path.relative_to(ROOT)}: {node.name}"] = lines
    assert count > 1000 and not long


def test_modules_have_at_most_400_lines() -> None:
    lines = {path.relative_to(ROOT): path.read_text().count("\n") for path in PACKAGE}
    assert len(lines) > 200
    assert not {path: count for path, count in lines.items() if count > 400}


TREES = ("spgraph", "semirings", "tests", "benchmarks")


def test_folders_have_at_most_16_files_of_code() -> None:
    """Side by side; the tests of algorithms have a file for each."""
    found = [path for top in TREES for path in (ROOT / top).rglob("*")]
    code = [path for path in found if path.suffix in (".py", ".cu", ".cuh", ".h")]
    files = collections.Counter(str(path.parent.relative_to(ROOT)) for path in code)
    assert len(files) > 60
    crowded = {folder for folder, number in files.items() if number > 16}
    assert crowded == {"tests/algorithms"}
