"""What loops do on one GPU, on peers and in rounds is one text: each body and each decision has one
definition, whatever the exchange.
"""

from __future__ import annotations

import collections
import functools
import re

import pytest

from spgraph.backends.cuda.runtime import sources

# by folder: what every exchange brings its own of, beside the members of struct Exchange
OF_EACH_EXCHANGE = {
    "closure": {
        "struct Exchange", "struct Given", "struct Outbox", "struct Received", "leave", "receive",
    },
    "search": {
        "load_id", "partial", "struct Control", "struct Found", "struct Given", "struct Row",
        "struct Search", "convert", "counts", "first_word",
        "in_product", "is_symmetric", "pull_memory", "push_level", "settle", "small_level",
        "small_levels", "work",
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


@functools.cache
def definitions(folder: str) -> dict[str, list[str]]:
    """The files of a capability's kernels in which each function, `Exchange::` and all, and each
    `struct` is defined; not the kernels themselves, nor members that are defined in their class.
    """
    found = collections.defaultdict(list)
    for name, path in sources.paths().items():
        if path.parts[path.parts.index("kernels") - 1] != folder:
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
    folders = {path.parts[path.parts.index("kernels") - 1] for path in sources.paths().values()}
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
    """So many lines in a row that stand twice in the kernels of searches, closures and exchanges,
    and in which files.
    """
    found = collections.defaultdict(list)
    for name, path in sources.paths().items():
        folder = path.parts[path.parts.index("kernels") - 1]
        if folder not in ("search", "closure", "exchange"):
            continue
        lines = code_of(name)
        for k in range(len(lines) - length + 1):
            found[tuple(lines[k : k + length])].append(name)
    return {lines: files for lines, files in found.items() if len(files) > 1}


def test_no_body_stands_twice() -> None:
    """Whatever it is called: six lines of code in a row say so. Five happen by chance."""
    assert repeated(6) == {}
    assert repeated(4), "what there is, is found"


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
        if path.parts[path.parts.index("kernels") - 1] == folder
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
    found = {
        name: members(texts[f"exchange_{name}.cuh"], "Exchange")
        for name in ("none", "peers", "rounds")
    }
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

    shards = "closure_shards_state.cuh"
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


def test_every_header_is_included() -> None:
    """What no program includes is compiled by nobody."""
    included = {
        name
        for path in sources.paths().values()
        for name in re.findall(r'^#include "(\w+\.cuh)"', path.read_text("utf-8"), re.M)
    }
    headers = {name for name in sources.paths() if name.endswith(".cuh")}
    assert headers - {"common.cuh"} == included
