"""Numbers that the host and its kernels share and that both texts have to write down: of one name,
in the folder of a capability, they are one number.
"""

from __future__ import annotations

import ast
import pathlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from spgraph import backends

BACKENDS = pathlib.Path(backends.__file__).parent
FOLDERS = sorted(path.parent for path in BACKENDS.glob("c*/*/kernels"))
# names that mean something else on the host than in the kernels of its folder
OTHERS = {
    "closure.py": {"UNSETTLED"},
    "dependencies_shard.py": {"FEW"},
    "parents.py": {"MOST_TIES"},
    "search_rounds.py": {"BATCH", "THREADS"},
    "tiles.py": {"PIECE", "PIECES"},
}


def number(text: str) -> int | None:
    """The value of an expression of integers; None of any other."""
    expression = re.sub(r"\b(\d+)(?:u|l|ll|ull)\b", r"\1", text.strip())
    return eval(expression) if re.fullmatch(r"[\d\s()<*+-]*\d[\d\s()<*+-]*", expression) else None


def in_python(text: str) -> Iterator[tuple[str, int | None]]:
    """The constants of a module or a kernel of the CPU."""
    for statement in ast.parse(text).body:
        if not isinstance(statement, ast.Assign):
            continue
        (target,), value = statement.targets[:1], statement.value
        names: list[Any] = target.elts if isinstance(target, ast.Tuple) else [target]
        values = value.elts if isinstance(value, ast.Tuple) else [value]
        if isinstance(value, ast.Call) and ast.unparse(value).startswith("range("):
            values = [ast.Constant(k) for k in range(len(names))]
        for name, each in zip(names, values, strict=False):
            if isinstance(name, ast.Name):
                yield name.id, number(ast.unparse(each))


def in_cuda(text: str) -> Iterator[tuple[str, int | None]]:
    """The constants of a kernel of CUDA: of `#define`, `constexpr` and `enum`."""
    text = re.sub(r"//[^\n]*", "", text)
    for name, value in re.findall(r"^#define (\w+) (.+)$", text, re.MULTILINE):
        yield name, number(value)
    for several in re.findall(r"^constexpr \w+ ([^;{]+);", text, re.MULTILINE):
        for name, value in re.findall(r"(\w+) = ([^,]+)", several):
            yield name, number(value)
    for several in re.findall(r"^enum \w* ?\{([^}]*)\}", text, re.MULTILINE):
        following: int | None = 0
        for each in filter(str.strip, several.split(",")):
            name, given, value = each.partition("=")
            following = number(value) if given else following
            yield name.strip(), following
            following = None if following is None else following + 1


def numbers(found: Iterable[tuple[str, int | None]]) -> dict[str, int]:
    return {name: value for name, value in found if value is not None}


def of_kernels(folder: pathlib.Path) -> dict[str, dict[str, int]]:
    """The numbers of a folder's kernels, by name and file."""
    found: dict[str, dict[str, int]] = {}
    for path in folder.glob("kernels/**/*.*"):
        if path.suffix in (".py", ".cu", ".cuh"):
            read = in_python if path.suffix == ".py" else in_cuda
            for name, value in numbers(read(path.read_text(encoding="utf-8"))).items():
                found.setdefault(name, {})[path.name] = value
    return found


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: "/".join(path.parts[-2:]))
def test_numbers_of_one_name_are_equal(folder: pathlib.Path) -> None:
    # what kernels of several folders of the CPU share lies in `device`
    kernels = of_kernels(folder.parent / "device") if folder.parent.name == "cpu" else {}
    kernels |= of_kernels(folder)
    for path in folder.glob("*.py"):
        for name, value in numbers(in_python(path.read_text(encoding="utf-8"))).items():
            if name not in OTHERS.get(path.name, set()):
                there = kernels.get(name, {})
                assert set(there.values()) <= {value}, (path.name, name, value, there)


def test_constants_are_found_in_both_languages() -> None:
    found = numbers(in_python("A, B = 1, 1 << 3\nC = np.zeros(3)\nD, E = range(2)\nF = -1\n"))
    assert found == {"A": 1, "B": 8, "D": 0, "E": 1, "F": -1}
    text = """
#define A (1 << 3) // a comment
#define B(x) x
constexpr i64 C = 4, D = C + 1; constexpr int E = 5;
constexpr int F = 6;
enum Kind { G, H = 4, I };
enum { J = 2 };
"""
    assert numbers(in_cuda(text)) == {"A": 8, "C": 4, "F": 6, "G": 0, "H": 4, "I": 5, "J": 2}
    closure = BACKENDS / "cuda" / "closure"
    host = numbers(in_python((closure / "closure.py").read_text(encoding="utf-8")))
    kernel = numbers(in_cuda((closure / "kernels" / "closure_state.cuh").read_text("utf-8")))
    assert host["RING"] == kernel["RING"]
