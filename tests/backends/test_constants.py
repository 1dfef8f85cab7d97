"""Numbers that the host and its kernels share and that both texts have to write down: where a
comment says "as in kernels/...", those of one name are one number.
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
HOSTS = [
    path
    for path in sorted(BACKENDS.glob("c*/*/*.py"))
    if re.search(r"# .*as in kernels/", path.read_text(encoding="utf-8"))
]


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
    text = re.sub(r"#ifndef (\w+) *\n#define \1 .*\n", "", text)  # what the host may give
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


def stated(path: pathlib.Path) -> Iterator[tuple[set[str], dict[str, int]]]:
    """(the files of kernels, the numbers) of each comment "as in kernels/..." of a module, and of
    the statements right below it.
    """
    text = path.read_text(encoding="utf-8")
    for comment, below in re.findall(r"((?:^#.*\n)+)((?:^[A-Z(].*\n)+)", text, re.MULTILINE):
        said = comment.replace("\n# ", " ").partition("as in kernels/")[2]
        files = set(re.findall(r"[\w*]+\.(?:py|cuh|cu)\b|[\w]+\*", said))
        if files:
            yield files, numbers(in_python(below))


def of_kernel(backend: pathlib.Path, name: str) -> dict[str, int]:
    """The numbers of the kernels of this name, parts that they include among them."""
    found: dict[str, int] = {}
    waiting = [path for path in backend.glob(f"*/kernels/**/{name}") if path.is_file()]
    assert waiting, name
    seen = set()
    while waiting:
        path = waiting.pop()
        seen.add(path)
        text = path.read_text(encoding="utf-8")
        found |= numbers((in_python if path.suffix == ".py" else in_cuda)(text))
        parts = re.findall(r'^#include "(.+)"', text, re.MULTILINE)
        inside = {each for part in parts for each in backend.glob(f"*/kernels/**/{part}")}
        waiting += inside - seen
    return found


@pytest.mark.parametrize("path", HOSTS, ids=lambda path: "/".join(path.parts[-3:]))
def test_what_is_as_in_kernels_is(path: pathlib.Path) -> None:
    for files, own in stated(path):
        for file in files:
            kernel = of_kernel(path.parents[1], file)
            differ = {name for name in own.keys() & kernel.keys() if own[name] != kernel[name]}
            assert not differ, (file, differ)


def test_most_of_them_are_found() -> None:
    shared = [
        name
        for path in HOSTS
        for files, own in stated(path)
        for file in files
        for name in own.keys() & of_kernel(path.parents[1], file).keys()
    ]
    assert len(shared) > 40 and {"RING", "TEAM_LEAVE", "STAGE", "WHOLE"} <= set(shared)


def test_constants_are_found_in_both_languages() -> None:
    found = numbers(in_python("A, B = 1, 1 << 3\nC = np.zeros(3)\nD, E = range(2)\nF = -1\n"))
    assert found == {"A": 1, "B": 8, "D": 0, "E": 1, "F": -1}
    text = """
#define A (1 << 3) // a comment
#define B(x) x
#ifndef K
#define K 7
#endif
constexpr i64 C = 4, D = C + 1; constexpr int E = 5;
constexpr int F = 6;
enum Kind { G, H = 4, I };
enum { J = 2 };
"""
    assert numbers(in_cuda(text)) == {"A": 8, "C": 4, "F": 6, "G": 0, "H": 4, "I": 5, "J": 2}
