"""Every algorithm as a subcommand: the options that Python has, its results, files, pictures."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import spgraph as sg
from spgraph import cli
from spgraph.cli import output, placement
from spgraph.cli.commands import warm
from spgraph.cli.placement import Place

Run = Callable[..., tuple[int, str, str]]

FUNCTIONS = {
    name: getattr(sg.algorithms, name)
    for name in sg.algorithms.__all__
    if inspect.isfunction(getattr(sg.algorithms, name))
}
UNDIRECTED = "triangle-count clustering core-number k-truss maximal-independent-set greedy-color"
UNDIRECTED += " label-propagation minimum-spanning-tree"
DRAWN = "sssp reachable multi-source-bfs pagerank connected-components minimum-spanning-tree"


def is_fine(name: str, code: int, err: str) -> bool:
    """No error, and nothing said but of a directed graph where an undirected one is meant."""
    begins = err.startswith(("note: ", '{"note": '))  # the latter under --format json
    noted = begins and err.count("\n") == 1 and name in UNDIRECTED.split()
    return code == 0 and (err == "" or noted)


def words_of(name: str) -> str:
    return name.replace("_", "-")


def strict(text: str) -> Any:
    """JSON without the NaN and Infinity that Python's reader lets pass."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


# --- the commands are the functions ---------------------------------------------------------------


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_algorithm_is_a_subcommand_with_its_parameters(name: str) -> None:
    command = cli.cli.commands[words_of(name)]
    options = {option.name: option for option in command.params}
    for parameter in inspect.signature(FUNCTIONS[name]).parameters.values():
        if parameter.name == "A":
            continue
        # --trace prints the rows, and the command is one of others, too
        option = options["with_trace" if parameter.name == "trace" else parameter.name]
        default = parameter.default
        if isinstance(option, click.Argument):  # k: as for generators, without a default
            assert default is parameter.empty
            continue
        assert f"--{words_of(parameter.name)}" in option.opts
        if default is not parameter.empty and default is not None:
            assert option.get_default(click.Context(command)) == default
    shared = {"file", "symmetric", "base", "device", "gpus", "shards", "partition", "style"}
    assert shared <= options.keys()


def test_there_is_no_command_beside_the_algorithms() -> None:
    algorithms = {words_of(name) for name in FUNCTIONS}
    others = {"convert", "gap", "generate", "graph500", "info", "warm"}
    assert cli.cli.commands.keys() == algorithms | others


def all_commands(group: click.Group, *path: str) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name, command in group.commands.items():
        found.append((*path, name))
        if isinstance(command, click.Group):
            found += all_commands(command, *path, name)
    return found


def test_the_list_of_commands_has_one_style() -> None:
    for path in all_commands(cli.cli):
        group: Any = cli.cli if len(path) == 1 else cli.cli.commands[path[0]]
        text = group.commands[path[-1]].short_help
        assert text and text[0].isupper() and text[-1].isalnum(), path


# what stands in the examples, and what is quick; 18 is the scale of a Kronecker graph
SMALLER = {"18": "8", "16": "6", "300": "12", "1000": "20", "100000": "300", "0.01": "0.1"}


@pytest.mark.parametrize("path", all_commands(cli.cli), ids=" ".join)
def test_every_help_has_examples_that_run(
    path: tuple[str, ...], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # tests/cli/test_warm.py compiles; what the names are is checked before
    monkeypatch.setattr(warm, "side_by_side", lambda names: None)
    code, text, _ = run(*path, "--help")
    assert code == 0
    assert "None:" not in text and "max_iter" not in text  # words of Python
    assert not re.search(r"\w(Error|Mismatch)\b", text)
    begin = text.index("Example:")
    lines = [line.strip() for line in text[begin:].splitlines() if line.startswith("    ")]
    lines = [line for line in lines if line.startswith(("spgraph ", "printf "))]
    assert lines and all(len(line) <= 80 for line in lines)
    assert any(line.startswith(" ".join(["spgraph", *path])) for line in lines)
    for line in lines:
        if line.startswith("printf "):
            subprocess.run(["sh", "-c", line], check=True)
            continue
        words = shlex.split(line)[1:]
        if "--plot" in words:
            pytest.importorskip("matplotlib", reason="an example draws a picture (extra plot)")
        if words[0] in ("generate", "graph500"):
            words = [SMALLER.get(word, word) for word in words]
        code, out, err = run(*words)
        assert (code, err) == (0, ""), line
        assert out
        for option in ("-o", "--plot"):
            if option in words:
                assert Path(words[words.index(option) + 1]).stat().st_size > 0


# --- the same results as in Python ----------------------------------------------------------------

# words of the command line, and the call that means the same
CALLS: dict[str, tuple[str, Callable[[sg.Matrix], Any]]] = {
    "bfs": ("--source 3 --direction push", lambda A: sg.bfs(A, 3)),
    "sssp": ("--source 0", lambda A: sg.sssp(A, 0)),
    "sssp ": ("--delta 5 --no-parents", lambda A: sg.sssp(A, 3).distance),
    "widest-path": ("--source 4", lambda A: sg.widest_path(A, 4)),
    "most-reliable-path": ("--source 0", lambda A: sg.most_reliable_path(A, 0)),
    "reachable": ("--sources 7,6", lambda A: sg.reachable(A, [7, 6])),
    "multi-source-bfs": ("--sources 4,0,4", lambda A: sg.multi_source_bfs(A, [4, 0, 4])),
    "connected-components": ("", sg.connected_components),
    "connected-components ": (
        "--connection strong",
        lambda A: sg.connected_components(A, connection="strong"),
    ),
    "pagerank": (
        "--damping 0.5 --tol 1e-9 --weighted",
        lambda A: sg.pagerank(A, damping=0.5, tol=1e-9, weighted=True),
    ),
    "pagerank ": (
        "--tol none --max-iter 7",
        lambda A: sg.pagerank(A, tol=None, max_iter=7),
    ),
    "hits": ("--max-iter 500", lambda A: sg.hits(A, max_iter=500)),
    "salsa": ("--max-iter 500", lambda A: sg.salsa(A, max_iter=500)),
    "katz-centrality": (
        "--alpha 0.2 --beta 2",
        lambda A: sg.katz_centrality(A, alpha=0.2, beta=2.0),
    ),
    "eigenvector-centrality": (
        "--symmetric --max-iter 500",
        lambda A: sg.eigenvector_centrality(undirected(A), max_iter=500),
    ),
    "betweenness-centrality": (
        "--sources 0,3 --normalized",
        lambda A: sg.betweenness_centrality(A, sources=[0, 3], normalized=True),
    ),
    "betweenness-centrality ": (
        "--k 3 --seed 2",
        lambda A: sg.betweenness_centrality(A, k=3, seed=2),
    ),
    "closeness-centrality": (
        "--no-wf-improved",
        lambda A: sg.closeness_centrality(A, wf_improved=False),
    ),
    "triangle-count": ("", sg.triangle_count),
    "clustering": ("", sg.clustering),
    "core-number": ("", sg.core_number),
    "k-truss": ("3", lambda A: sg.k_truss(A, 3)),
    "maximal-independent-set": ("--seed 3", lambda A: sg.maximal_independent_set(A, seed=3)),
    "greedy-color": ("--seed 3", lambda A: sg.greedy_color(A, seed=3)),
    "minimum-spanning-tree": ("", sg.minimum_spanning_tree),
    "label-propagation": (
        "--seed 3 --max-iter 50",
        lambda A: sg.label_propagation(A, seed=3, max_iter=50),
    ),
}


def undirected(A: sg.Matrix) -> sg.Matrix:
    """The lesser weight counts for both ways, as when it is read."""
    S = A.to_scipy().todok()
    for (i, j), weight in list(S.items()):
        S[i, j] = S[j, i] = min(weight, S.get((j, i), np.inf) or np.inf)
    return sg.Matrix.from_scipy(S)


def test_every_algorithm_is_compared() -> None:
    assert {name.strip() for name in CALLS} == {words_of(name) for name in FUNCTIONS}


@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_python(
    name: str, run: Run, file: Path, weights: Path, chances: Path, tmp_path: Path
) -> None:
    words, call = CALLS[name]
    if name.strip() in ("sssp", "minimum-spanning-tree"):
        file = weights
    elif name in ("widest-path", "most-reliable-path") or "--weighted" in words:
        file = chances
    expected = call(sg.read(file))
    target = tmp_path / "out.npz"
    more = () if name == "triangle-count" else ("-o", target, "--top", 3)
    code, out, err = run(name.strip(), file, *words.split(), "--format", "json", *more)
    assert is_fine(name.strip(), code, err)
    record = strict(out)
    assert record["algorithm"] == name.strip().replace("-", "_") and record["device"] == "cpu"
    schema = "graph algorithm parameters device seconds compile_seconds summary".split()
    assert list(record) == schema + (["entries"] if more else [])
    graph = record["graph"]
    assert graph["vertices"] == 8 and graph["edges"] == (18 if "--symmetric" in words else 11)
    asked = inspect.signature(FUNCTIONS[record["algorithm"]]).parameters
    assert record["parameters"].keys() == asked.keys() - {"A", "trace"} and record["seconds"] > 0
    if name == "triangle-count":
        assert record["summary"] == {"triangles": expected} and expected == 1
        return
    assert all(1 <= len(rows) <= 3 for rows in record["entries"].values())
    if isinstance(expected, sg.Vector | sg.Matrix):
        assert sg.load(target).isclose(expected)
        return
    with np.load(target, allow_pickle=False) as arrays:
        for field, vector in expected._asdict().items():
            at, values = vector.to_coo()
            assert np.flatnonzero(arrays["reached"]).tolist() == at.tolist()
            assert arrays[field][at] == pytest.approx(values)
            assert arrays[field].shape == (8,)


def test_levels_without_parents_and_a_number_for_personalization(
    run: Run, file: Path, tmp_path: Path
) -> None:
    A = sg.read(file)
    target, start = tmp_path / "out.npz", tmp_path / "start.npz"
    code, out, err = run("bfs", file, "--source", 1, "--no-parents", "--max-depth", 1, "-o", target)
    assert (code, err) == (0, "") and "reached          2\n" in out
    assert sg.load(target).to_numpy(fill=-1).tolist() == [-1, 0, -1, 1, -1, -1, -1, -1]

    v = sg.Vector.from_coo([2, 5], [1.0, 3.0], size=8)
    sg.save(start, v)
    assert run("pagerank", file, "--personalization", start, "-o", target)[0] == 0
    assert sg.load(target).isclose(sg.pagerank(A, personalization=v))
    assert run("katz-centrality", file, "--beta", start, "-o", target)[0] == 0
    assert sg.load(target).isclose(sg.katz_centrality(A, beta=v))


# --- --top, --trace, the text ---------------------------------------------------------------------


def entries(run: Run, *words: object) -> dict[str, list[dict[str, Any]]]:
    code, out, err = run(*words, "--format", "json")
    assert is_fine(str(words[0]), code, err)
    return strict(out)["entries"]


def test_top_is_the_nearest_the_widest_the_best(
    run: Run, file: Path, weights: Path, chances: Path
) -> None:
    # from 0 by hand: 1 at 8, 3 at 12, 5 at 14, 4 at 20, 2 at 28
    rows = entries(run, "sssp", weights, "--source", 0, "--top", 3)["distance"]
    assert [(row["vertex"], row["distance"], row["parent"]) for row in rows] == [
        (0, 0, 0),
        (1, 8, 0),
        (3, 12, 1),
    ]
    rows = entries(run, "widest-path", chances, "--source", 0, "--top", 2)["width"]
    assert [tuple(row.values()) for row in rows] == [(0, "inf", 0), (1, 0.5, 0)]
    # ties by the lesser vertex: 0, 1, 2, 6, 7 all have core number 1 or 2
    core = sg.core_number(sg.read(file)).to_numpy()
    best = sorted(range(8), key=lambda v: (-core[v], v))[:6]
    rows = entries(run, "core-number", file, "--top", 6)["core"]
    assert [row["vertex"] for row in rows] == best
    both = entries(run, "hits", file, "--max-iter", 500, "--top", 1)
    hub, authority = sg.hits(sg.read(file), max_iter=500)
    assert both["hub"][0]["vertex"] == hub.to_numpy().argmax()
    assert both["authority"][0]["vertex"] == authority.to_numpy().argmax()


def test_top_of_groups_sets_and_matrices(run: Run, file: Path, weights: Path) -> None:
    rows = entries(run, "connected-components", file, "--top", 9)["component"]
    assert rows == [{"component": 0, "vertices": 6}, {"component": 6, "vertices": 2}]
    rows = entries(run, "reachable", file, "--sources", "4", "--top", 2)["reached"]
    assert rows == [{"vertex": 0}, {"vertex": 1}]
    rows = entries(run, "minimum-spanning-tree", weights, "--top", 1)["weight"]
    heaviest = sg.minimum_spanning_tree(sg.read(weights)).to_coo()[2].max()
    assert rows[0]["weight"] == heaviest and rows[0].keys() == {"source", "target", "weight"}
    rows = entries(run, "multi-source-bfs", file, "--sources", "6,0", "--top", 3)["level"]
    assert rows == [
        {"search": 0, "vertex": 6, "level": 0},
        {"search": 1, "vertex": 0, "level": 0},
        {"search": 0, "vertex": 7, "level": 1},
    ]


def test_text(run: Run, file: Path) -> None:
    code, out, err = run("connected-components", file, "--top", 5)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith(f"{file}: 8 vertices, 11 edges, read in ")
    assert lines[1] == "connected_components on cpu: connection weak"
    assert "components        2" in lines
    assert "vertices of each  2 least, 4 mean, 6 largest" in lines
    assert lines[-6:] == [
        "The 2 largest components:",
        "",
        "component  vertices",
        "---------  --------",
        "        0         6",
        "        6         2",
    ]


def test_the_default_source_is_the_vertex_of_largest_degree(run: Run, file: Path) -> None:
    for name, parameter, expected in (("bfs", "source", 3), ("reachable", "sources", [3])):
        code, out, _ = run(name, file, "--format", "json")
        record = strict(out)
        assert code == 0 and record["parameters"][parameter] == expected
        assert "trace" not in record and "entries" not in record


def test_trace_of_a_search_from_several_vertices(run: Run, file: Path) -> None:
    code, out, err = run("reachable", file, "--sources", "7,1,7", "--trace", "--format", "json")
    assert (code, err) == (0, "")
    record = strict(out)
    # {1, 7}, then {3, 6}, {2, 4, 5}, {0}
    assert [row["frontier"] for row in record["trace"]] == [2, 2, 3, 1]
    assert record["summary"] == {"vertices": 8}
    code, out, _ = run("reachable", file, "--sources", "7,1", "--trace")
    assert code == 0 and "edges looked at" in out and "sources 7,1" in out


def test_a_graph_without_vertices(run: Run, tmp_path: Path) -> None:
    empty = tmp_path / "empty.npz"
    sg.write(empty, sg.Matrix.empty(0, 0))
    code, out, err = run("sssp", empty)
    assert code == 2 and "no vertex to start from" in err
    for name in ("pagerank", "connected-components", "minimum-spanning-tree", "core-number"):
        code, out, err = run(name, empty, "--top", 3, "--format", "json")
        assert (code, err) == (0, "")
        assert all(rows == [] for rows in strict(out)["entries"].values())
        assert run(name, empty, "--top", 3)[0] == 0


# --- pictures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["info", *DRAWN.split()])
def test_pictures(name: str, run: Run, file: Path, weights: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need the extra plot")
    target = tmp_path / "picture.png"
    weighted = name in ("sssp", "minimum-spanning-tree")
    code, _, err = run(name, weights if weighted else file, "--plot", target)
    assert is_fine(name, code, err)
    assert target.read_bytes().startswith(b"\x89PNG")


# --- places ---------------------------------------------------------------------------------------


def test_placed_asks_for_what_the_options_say() -> None:
    class Recorded:
        def distribute(self, *arguments: object, **options: object) -> tuple[object, ...]:
            return (*arguments, options)

    A: Any = Recorded()
    assert Place(shards=3).place(A) == (3, {"partition": "edges"})
    assert Place("cpu", shards=2, partition="random").place(A) == (2, {"partition": "random"})
    with pytest.raises(ValueError, match="--shards: expected an integer >= 1, got -1"):
        Place(shards=-1).check()
    plain = sg.Matrix.empty(2, 2)
    assert Place().place(plain) is plain


# the others' kernels are those of tests/distributed/test_distributed.py
SHARDS = ["bfs", "connected-components", "minimum-spanning-tree"]


@pytest.mark.parametrize("name", [*SHARDS, pytest.param("sssp", marks=pytest.mark.full)])
@pytest.mark.parametrize("partition", [(), ("--partition", "random")])
def test_shards_change_no_result(
    name: str, partition: tuple[str, ...], run: Run, file: Path, weights: Path
) -> None:
    words = (name, weights if name in ("sssp", "minimum-spanning-tree") else file, "--top", 8)
    assert entries(run, *words, "--shards", 3, *partition) == entries(run, *words)


def test_json_and_text_name_the_shards(run: Run, file: Path) -> None:
    words = ("core-number", file, "--shards", 2, "--partition", "biased")
    code, out, err = run(*words, "--format", "json")
    assert is_fine("core-number", code, err)
    record = strict(out)
    assert (record["device"], record["shards"], record["partition"]) == ("cpu", 2, "biased")
    assert "core_number on cpu, 2 shards by biased" in run(*words)[1]


def test_on_host_gathers_what_is_shared_out() -> None:
    class Shared:
        def gather(self) -> sg.Vector:
            return sg.Vector.from_dense([1.0, 2.0])

    assert placement.on_host(Shared(), "rank")["rank"].to_numpy().tolist() == [1.0, 2.0]
    assert placement.on_host(7, "triangles") == {"triangles": 7}
    level = sg.Vector.from_dense([0, 1])
    assert placement.on_host(sg.algorithms.BFS(level, None), "") == {"level": level}


def test_only_the_root_prints_and_writes(
    run: Run, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "is_root", lambda: False)
    assert run("core-number", file, "-o", tmp_path / "out.csv") == (0, "", "")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", UNDIRECTED.split())
@pytest.mark.parametrize("shards", [(), ("--shards", 2)])
def test_a_directed_graph_is_noted(
    command: str, shards: tuple[object, ...], tmp_path: Path, run: Run
) -> None:
    cycle = tmp_path / "cycle.el"
    cycle.write_text("0 1\n1 2\n2 0\n")
    both = tmp_path / "both.wel"
    both.write_text("0 1 5\n1 0 5\n1 2 6\n2 1 6\n")
    more = (*(["3"] if command == "k-truss" else []), *shards)
    code, out, err = run(command, cycle, *more)
    assert code == 0 and "note: " not in out
    assert err.startswith(f"note: {cycle}: edges") and err.count("\n") == 1
    assert command.replace("-", "_") in err and "whichever way it points" in err
    for words in ((cycle, "--symmetric"), (both,)):
        assert run(command, words[0], *more, *words[1:])[::2] == (0, "")
    both.write_text("0 1 5\n1 0 7\n1 2 6\n2 1 6\n")
    code, _, err = run(command, both, *more)
    assert code == 0 and bool(err) == (command == "minimum-spanning-tree")


def test_other_algorithms_take_directed_graphs_without_a_note(file: Path, run: Run) -> None:
    for command in ("connected-components", "bfs", "pagerank", "betweenness-centrality"):
        assert run(command, file)[::2] == (0, "")


def test_a_note_leaves_the_error_alone(tmp_path: Path, run: Run) -> None:
    wide = tmp_path / "wide.mtx"
    wide.write_text("%%MatrixMarket matrix coordinate pattern general\n2 3 1\n1 3\n")
    code, _, err = run("triangle-count", wide)
    assert code != 0 and "note" not in err and "expected a square matrix" in err
