"""What loops do on one GPU, on peers and in rounds is one text: each body and each decision has one
definition, whatever the exchange.
"""

from __future__ import annotations

import ast
import collections
import functools
import pathlib
import re

import pytest

from spgraph.backends.cuda.runtime import sources

# by folder: what every exchange brings its own of, beside the members of struct Exchange
OF_EACH_EXCHANGE = {
    "closure": {
        "struct Exchange", "struct Given", "struct Outbox", "struct Received", "leave", "receive",
    },
    "search": {
        "load_id", "partial", "struct Control", "struct Exchange", "struct Found", "struct Given",
        "struct Row", "struct Search", "convert", "counts", "first_word", "in_product",
        "is_symmetric", "pull_memory", "push_level", "settle", "small_level", "small_levels",
        "words_of_pull",
    },
}  # fmt: skip
# what several loops share: defined once in all folders
IN_ALL = [
    *"release release_rest swap block_scan row_at share_of walk_share combine".split(),
    *"combine_changed atomic_best place_after global nth_bit for_each_bit read_given".split(),
    *"write_count barrier_all".split(),
    "barrier_local",
    *("struct LaneOfBatch", "struct RankedBit", "struct Inbox", "struct PeerBarrier"),
]


def capability(path: pathlib.Path) -> str:
    """The folder whose `kernels` has the file, wherever the checkout lies."""
    return path.parts[-path.parts[::-1].index("kernels") - 2]


@functools.cache
def definitions(folder: str) -> dict[str, list[str]]:
    """The files of a capability's kernels in which each function, `Exchange::` and all, and each
    `struct` is defined; not the kernels themselves, nor members that are defined in their class.
    """
    found = collections.defaultdict(list)
    for name, path in sources.paths().items():
        if capability(path) != folder:
            continue
        text = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
        functions = re.finditer(r"^(?:DEVICE|CALLED|static|__device__)\b[^;{}]*?\{", text, re.M)
        for match in functions:
            head = re.match(r"[^(]*?((?:\w+::)?\w+)\(", match[0])
            assert head, match[0]
            found[head[1]].append(name)
        for match in re.finditer(r"^struct (?:__align__\(.*\) )?(\w+)[^;{}]*\{", text, re.M):
            found[f"struct {match[1]}"].append(name)
    return dict(found)


@pytest.mark.parametrize("folder", OF_EACH_EXCHANGE)
def test_each_name_is_defined_once(folder: str) -> None:
    several = {name for name, files in definitions(folder).items() if len(files) > 1}
    members = {name for name in several if name.startswith("Exchange::")}
    assert several - members == OF_EACH_EXCHANGE[folder]
    for name in members | OF_EACH_EXCHANGE[folder]:
        # one for each program, never two for one
        files = definitions(folder)[name]
        assert len(files) == len(set(files)), name


@pytest.mark.parametrize("name", IN_ALL)
def test_what_loops_share_is_defined_once(name: str) -> None:
    folders = {capability(path) for path in sources.paths().values()}
    files = [file for folder in folders for file in definitions(folder).get(name, [])]
    assert len(files) == 1, files


def code_of(name: str) -> list[str]:
    """The lines of a file that say something: without comments, braces alone, and fields."""
    text = re.sub(r"//[^\n]*", "", sources.paths()[name].read_text(encoding="utf-8"))
    lines = (re.sub(r"\s+", " ", line).strip() for line in text.splitlines())
    field = re.compile(r"(const )?\w+ ?\*? ?\w+;")
    said = (line for line in lines if not line.startswith("#") and not field.fullmatch(line))
    return [line for line in said if len(re.sub(r"\W", "", line)) > 3]


def repeated(length: int) -> dict[tuple[str, ...], list[str]]:
    """So many lines in a row that stand twice in the kernels, and in which files."""
    found = collections.defaultdict(list)
    for name in sources.paths():
        lines = code_of(name)
        for k in range(len(lines) - length + 1):
            found[tuple(lines[k : k + length])].append(name)
    return {lines: files for lines, files in found.items() if len(files) > 1}


def test_no_body_stands_twice() -> None:
    """Whatever it is called: six lines of code in a row say so. Five happen by chance."""
    assert repeated(6) == {}
    assert repeated(4), "what there is, is found"


# --- bodies of functions, whatever their variables are called -------------------------------------

FUNCTION = re.compile(
    r"\b(?:DEVICE|CALLED|MEMBER|__device__|__global__)\b[^;{}]*?\b(\w+)\([^;{}]*\)[^;{}()]*\{"
)
# neither a type, a word of C++, nor a macro: what a function may call as it likes
VARIABLE = re.compile(
    r"(?<![.\w])(?<!->)(?<!::)(?!(?:if|else|for|while|return|const|constexpr|int|bool|auto|double|float"
    r"|true|false|sizeof|continue|break|u8|u16|u32|u64|i64|[A-Z_\d]+)\b)[A-Za-z_]\w*(?!\w*(?:\s*\(|<|::))"
)


def kernel_bodies(least: int) -> dict[str, list[str]]:
    """Of the functions of all kernels with so many words and signs or more: body -> where."""
    found = collections.defaultdict(list)
    for file, path in sources.paths().items():
        text = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
        text = re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*$", "", text, flags=re.M)
        for match in FUNCTION.finditer(text):
            end, depth = match.end(), 1
            while depth:
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
            names: dict[str, str] = {}
            body = VARIABLE.sub(
                lambda m, names=names: names.setdefault(m[0], f"variable{len(names)}"),  # type: ignore[misc]
                text[match.end() : end - 1],
            )
            words = re.findall(r"\w+|[^\s\w]", body)
            if len(words) >= least:
                found[" ".join(words)].append(f"{file}: {match[1]}")
    return found


def host_bodies(folder: pathlib.Path, least: int) -> dict[str, list[str]]:
    """The same of Python's functions in a folder, with so many nodes of their syntax trees."""
    found = collections.defaultdict(list)
    for path in folder.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            body = function.body[ast.get_docstring(function) is not None :]
            nodes = [node for statement in body for node in ast.walk(statement)]
            own = {argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg)}
            own |= {
                node.id
                for node in nodes
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
            names: dict[str, str] = {}
            for node in nodes:
                for field in ("id", "arg"):
                    name = getattr(node, field, None)
                    if name in own and not isinstance(node, ast.keyword):
                        setattr(node, field, names.setdefault(name, f"variable{len(names)}"))
            if len(nodes) >= least:
                found["\n".join(map(ast.dump, body))].append(f"{path.name}: {function.name}")
    return found


def twice(bodies: dict[str, list[str]]) -> list[list[str]]:
    return [places for places in bodies.values() if len(places) > 1]


def test_no_function_has_the_body_of_another(tmp_path: pathlib.Path) -> None:
    """In the kernels, and on the host: what two do alike is one function."""
    kernels, host = kernel_bodies(16), host_bodies(sources.BACKEND, 16)
    assert len(kernels) > 400 and len(host) > 300
    assert twice(kernels) == [] and twice(host) == []
    copy = tmp_path / "copy.py"
    one = "def one(array, n):\n    kept = array[n:]\n    return [x + n for x in kept]\n"
    other = "def other(values, k):\n    of = values[k:]\n    return [y + k for y in of]\n"
    copy.write_text(one + other)
    assert twice(host_bodies(tmp_path, 16)) == [["copy.py: one", "copy.py: other"]]


def test_a_body_with_other_names_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    copy = tmp_path / "copy.cuh"
    copy.write_text(
        "CALLED u64 total_of(u64 value) {\n#pragma unroll\n"
        "    for (int d = WORDS_SENT; d < 32; d *= 2) // a comment\n"
        "        value += shuffle_xor(value, d);\n    return value;\n}\n"
    )
    both = sources.paths() | {"copy.cuh": copy}
    monkeypatch.setattr(sources, "paths", lambda: both)
    assert twice(kernel_bodies(16)) == [["peers.cuh: sum_of_peers", "copy.cuh: total_of"]]


@pytest.mark.parametrize(
    ("folder", "files"),
    [
        ("search", ["search_push.cuh"]),
        ("closure", ["closure_pull.cuh", "closure_relax.cuh", "dag_edges.cu", "parents.cu"]),
    ],
)
def test_each_walk_over_edges_takes_them_in_one_place(folder: str, files: list[str]) -> None:
    """`take` is a member: one for pushes of a search; one for pushes and one for pulls of a
    closure, whatever the exchange, and one for parents.
    """
    found = [
        name
        for name, path in sources.paths().items()
        if capability(path) == folder
        for _ in re.findall(r"\bvoid take\(", path.read_text(encoding="utf-8"))
    ]
    assert sorted(found) == files


def test_exchanges_of_the_search_have_the_same_members() -> None:
    """A body that all share could not call what one of them lacks."""

    def members(text: str, struct: str) -> set[str]:
        (body,) = re.findall(rf"^struct {struct}\b.*?^\}};", text, re.M | re.DOTALL)
        found = set(re.findall(r"(?:DEVICE|MEMBER) [\w*& ]*?(\w+)\(", body))
        return found | set(re.findall(r"(\w+) = (?:true|false|TRACE)\b", body))

    texts = {name: sources.paths()[name].read_text(encoding="utf-8") for name in sources.paths()}
    shared = members(texts["search_shards.cuh"], "ShardExchange")
    files = {"none": "none", "peers": "peers_exchange", "rounds": "rounds_exchange"}
    found = {name: members(texts[f"search_{file}.cuh"], "Exchange") for name, file in files.items()}
    assert not shared & (found["peers"] | found["rounds"])
    assert found["none"] == found["peers"] | shared == found["rounds"] | shared
    assert {"bit", "publish", "visit", "long_row", "DISTRIBUTED"} <= found["none"]


def test_exchanges_of_the_closure_have_the_same_members() -> None:
    """But for those of the loop of one launch, which rounds do not have."""

    def members(*files: str) -> set[str]:
        found: set[str] = set()
        for file in files:
            text = sources.paths()[file].read_text(encoding="utf-8")
            (body,) = re.findall(r"^struct \w*Exchange\b.*?^\};", text, re.M | re.DOTALL)
            found |= set(re.findall(r"DEVICE [\w*]+ (\w+)\(", body))
            found |= set(re.findall(r"([A-Z_]{2,}) = ", body))
        return found

    shards = "closure_shards_exchange.cuh"
    none = members("closure_none.cuh")
    assert members(shards, "closure_peers_state.cuh") - {"TOGETHER"} == none
    loop = {"is_empty", "best", "settle", "gave_up"}
    assert members(shards, "closure_rounds_state.cuh") - {"TOGETHER"} == none - loop
    assert {"is_own", "meet_here", "SHARDS", *loop} <= none


def test_a_second_definition_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path / "closure" / "kernels"
    folder.mkdir(parents=True)
    copy = folder / "copy.cuh"
    copy.write_text(
        "DEVICE bool is_bulk(i64 edges,\n                    i64 m) {\n    return 1;\n}"
    )
    both = sources.paths() | {"copy.cuh": copy}
    monkeypatch.setattr(sources, "paths", lambda: both)
    definitions.cache_clear()
    try:
        assert definitions("closure")["is_bulk"] == ["closure_decisions.cuh", "copy.cuh"]
    finally:
        definitions.cache_clear()


def test_every_function_is_called() -> None:
    """What no kernel calls is compiled away."""
    text = "".join(path.read_text("utf-8") for path in sources.paths().values())
    text = re.sub(r"//[^\n]*", "", text)
    functions = [found for found in FUNCTION.finditer(text) if "__global__" not in found[0]]
    words = collections.Counter(re.findall(r"\w+", text))
    assert len(functions) > 400
    assert [found[1] for found in functions if words[found[1]] < 2] == []


def test_every_header_is_included() -> None:
    """What no program includes is compiled by nobody."""
    included = {
        name
        for path in sources.paths().values()
        for name in re.findall(r'^#include "(\w+\.cuh)"', path.read_text("utf-8"), re.M)
    }
    headers = {name for name in sources.paths() if name.endswith(".cuh")}
    assert headers - {"common.cuh"} == included
