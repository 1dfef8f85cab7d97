"""A function of a graph as a command: what is around every algorithm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import click

from spgraph import terminal
from spgraph.algorithms.vertices import tree_path
from spgraph.cli import names, options, output, signatures, streams
from spgraph.cli.kinds import Kind, Parts, Record
from spgraph.cli.placement import Place, on_host, vector
from spgraph.iterations import Level
from spgraph.validation import Failure

FAILED_VALIDATION = 1


class Algorithm(NamedTuple):
    """A command: the function `function(A, **parameters)`, and what to print of its result.

    kind: how the result is printed and written.
    name: what the result is called, unless it is a named tuple.
    example: the call in the help: a file of `commands.algorithms.EXAMPLES`, and options.
    start: the parameter, source or sources, whose default is the vertex of largest degree.
    undirected: for algorithms of undirected graphs, whether "edges" or their "weights" have to be
      the same both ways; for any other graph a note on standard error says that they are not.
    trace: called as the function is, returns the levels for --trace and --plot.
    warm: called as the function is, makes the kernels ready before the time is taken.
    measures: what to add to the summary.
    validate: returns what is wrong with the result, for --validate.
    """

    function: Callable[..., Any]
    kind: Kind
    name: str
    example: str
    start: str | None = None
    undirected: str | None = None
    trace: Callable[..., Sequence[Level]] | None = None
    warm: Callable[..., None] | None = None
    measures: Callable[[output.Graph, Parts, float], Record] | None = None
    validate: Callable[[output.Graph, Parts, dict[str, Any]], list[Failure]] | None = None

    def command(self, examples: dict[str, str]) -> click.Command:
        """The command, with the options of the function's signature and those all share."""
        title = self.function.__name__.replace("_", "-")
        example = f"{examples[self.example.split()[0]]}\n  spgraph {title} {self.example}"
        default = None if self.start is None else "that of largest degree"
        own = signatures.options(self.function, without={"A", "trace"}, default=default)
        return options.Command(
            title,
            callback=self.run,
            params=[
                *(given for given in own if isinstance(given, click.Option)),
                *([options.PATH_TO] if self.start == "source" else []),
                *([options.VALIDATE] if self.validate else []),
                *options.GRAPH,
                *(given for given in own if isinstance(given, click.Argument)),  # after FILE
                *options.PLACE,
                *self.results(),
                options.FORMAT,
            ],
            help=f"{signatures.summary(self.function)}.\n\n{signatures.explanation(self.function)}"
            f"\n\n\b\nExample:\n  {example}",
            short_help=signatures.summary(self.function),
        )

    def results(self) -> list[click.Option]:
        """The options of what to do with a result of this kind."""
        kind, found = self.kind, []
        if kind.top is not None:
            found.append(options.top(f"Print the K {kind.best.format(name=self.name)}."))
        if self.trace is not None:
            found.append(options.TRACE)
        if self.trace is not None or kind.picture is not None:
            what = "the levels" if self.trace else kind.drawn.format(name=self.name)
            found.append(options.picture(f"Draw {what} into this file"))
        if kind.suffixes:
            formats = options.either(kind.suffixes)
            text = f"Write the result into this file ({formats})."
            found += options.output(kind.suffixes, text)
        return found

    def run(self, **given: Any) -> int:
        """Read the graph, place it, run the function, print and write the result; the exit code."""
        place, source = Place.of(given), output.Source.of(given)
        wanted = Wanted.of(given, self.kind.suffixes, source.compact)
        self.check_input(source, given)
        graph = output.read(source, place)
        end = None if wanted.goal is None else one_vertex("--path-to", wanted.goal, graph)
        told = given | self.find_vertices(graph, given)
        note = self.about_direction(graph)
        G, parts, times = self.timed(graph, place, given)
        rows = None
        if self.trace is not None and (wanted.trace or wanted.picture is not None):
            rows = self.traced(G, given)
        levels = rows if wanted.trace else None
        record = {
            "graph": graph.facts(),
            "algorithm": self.function.__name__,
            "parameters": told,
            **place.facts(),
            **times.record(),
            "summary": self.kind.summary(parts)
            | (self.measures(graph, parts, times.seconds) if self.measures else {})
            | ({} if end is None else path_to(end, graph, parts)),
            **output.details(self.kind, parts, graph.ids, wanted.top, levels),
        }
        if wanted.validate and self.validate is not None:
            with terminal.progress("validating"):
                record["failures"] = [f._asdict() for f in self.validate(graph, parts, given)]
        if wanted.target is not None:
            output.write_result(wanted.target, parts, graph.ids, self.kind.ends)
        if wanted.picture is not None:
            output.write_picture(wanted.picture, self.kind, parts, rows)
        if note is not None:
            output.note(note)
        lines = [graph.line(), *self.lines(record, times)]
        output.show(record, lines, wanted.style, aside=wanted.aside)
        return FAILED_VALIDATION if record.get("failures") else 0

    def check_input(self, source: output.Source, given: dict[str, Any]) -> None:
        """UsageError where standard input is named more than once, for it is read once; and for a
        source that is no integer where vertices cannot have names.
        """
        named = [name for name, value in given.items() if value == streams.STANDARD]
        if len(named) + (source.file == streams.STANDARD) > 1:
            raise click.UsageError(
                f"--{named[0]}: expected - for one file only: standard input can be read once"
            )
        if not names.may_have_names(source.file, source.columns):
            for option, words in self.words_of_vertices(given).items():
                names.positions(f"--{option}", words, None)

    def words_of_vertices(self, given: dict[str, Any]) -> dict[str, list[str]]:
        """The words for vertices in the options, by option."""
        found: dict[str, list[Any]] = {
            "source": [given.get("source")],
            "sources": given.get("sources") or [None],
        }
        return {option: words for option, words in found.items() if words != [None]}

    def timed(
        self, graph: output.Graph, place: Place, given: dict[str, Any]
    ) -> tuple[Any, Parts, terminal.Times]:
        """The graph where it is to be, the result on the CPU, and the time that it took."""
        with terminal.progress(f"running {self.function.__name__}"):
            G = place.place(graph.A)
            arguments = {
                name: vector(value, G, graph.ids) if isinstance(value, Path) else value
                for name, value in given.items()
            }
            with terminal.measured() as first:
                if self.warm is not None:
                    self.warm(G, **arguments)
            with terminal.measured() as times:
                found = self.function(G, **arguments)
                if self.warm is None:
                    found = on_host(found, self.name)
                else:
                    found[0].nvals  # a number on the host: the device has finished  # noqa: B018
            times.compile_seconds += first.compile_seconds
            return G, found if self.warm is None else on_host(found, self.name), times

    def find_vertices(self, graph: output.Graph, given: dict[str, Any]) -> dict[str, Any]:
        """Replace words for vertices in `given` by vertices, those that are missing by the vertex
        of largest degree; the same as they are told to the user, with names.
        """
        found = {
            option: names.positions(f"--{option}", words, graph.ids)
            for option, words in self.words_of_vertices(given).items()
        }
        if self.start is not None and self.start not in found:
            found[self.start] = [graph.most_connected()]
        told = {}
        for option, vertices in found.items():
            called = names.names_of(vertices, graph.ids)
            single = option == "source"
            given[option] = vertices[0] if single else vertices
            told[option] = called[0] if single else called
        return told

    def traced(self, G: Any, given: dict[str, Any]) -> Sequence[Level]:
        """The levels, in whose times nothing is compiled: else they are found once more."""
        assert self.trace is not None
        with terminal.progress("tracing"), terminal.measured() as times:
            rows = self.trace(G, **given)
        return self.trace(G, **given) if times.compile_seconds else rows

    def lines(self, record: Record, times: terminal.Times) -> list[str]:
        """The record for people."""
        facts = {"time": str(times)}
        for key, value in record["summary"].items():
            said = terminal.rate(value) if key == "teps" else output.said(value)
            facts[key.replace("_", " ")] = said
        failures = record.get("failures", [])
        if "failures" in record:
            facts["result"] = "NOT VALID" if failures else "valid by the five checks of Graph500"
        lines = [output.heading(record), "", *terminal.facts(facts)]
        lines += [f"  check {f['check']}: {f['message']}" for f in failures]
        return lines + output.detail_lines(self.kind, record)

    def about_direction(self, graph: output.Graph) -> str | None:
        """What an algorithm of undirected graphs makes of a directed one; None of an undirected
        one, and where the algorithm is about any graph.
        """
        A, weights = graph.A, self.undirected == "weights"
        if self.undirected is None or A.nrows != A.ncols:  # which the algorithm refuses
            return None
        with terminal.progress("testing for symmetry"):
            if (A if weights or A.iso else A.pattern()).is_symmetric():
                return None
        which = "edges and weights are" if weights else "edges are"
        taken = "the lesser weight" if weights else "an edge"
        return (
            f"{graph.file}: {which} not the same both ways, and {self.function.__name__} is about "
            f"undirected graphs: it takes {taken} between two vertices, whichever way it points"
        )


class Wanted(NamedTuple):
    """What the options say is to be made of the result."""

    style: str  # of what is printed: for people, or JSON
    target: streams.Target | None
    picture: streams.Target | None
    aside: bool  # whether one of these two is standard output, so that other output is not
    top: int | None
    trace: bool
    validate: bool
    goal: str | None  # the word of the vertex that a path leads to

    @classmethod
    def of(
        cls, given: dict[str, Any], suffixes: tuple[str, ...], compact: streams.Target | None
    ) -> Self:
        """Taken out of the options, of which the function gets the rest. UsageError where they
        contradict each other.
        """
        target = streams.result_target(given, options.standard_suffix(suffixes))
        picture = output.picture_target(given.pop("picture", None))
        aside = streams.writes_standard(output=target, plot=picture, compact=compact)
        validate, goal = given.pop("validated", False), given.pop("path_to", None)
        if validate and not given["parents"]:
            raise click.UsageError("--validate: expected --parents, there is no tree to check")
        if goal is not None and not given["parents"]:
            raise click.UsageError("--path-to: expected --parents, there is no tree to follow")
        top, trace = given.pop("top", None), given.pop("with_trace", False)
        return cls(given.pop("style"), target, picture, aside, top, trace, validate, goal)


def one_vertex(option: str, word: str, graph: output.Graph) -> int:
    """The vertex that the word of an option names. UsageError if there is none."""
    (v,) = names.positions(option, [word], graph.ids)
    if not 0 <= v < graph.A.nrows:
        raise click.UsageError(
            f"{option}: expected a vertex from 0 to {graph.A.nrows - 1}, got {v}"
        )
    return v


def path_to(end: int, graph: output.Graph, parts: Parts) -> Record:
    """What --path-to adds to the summary: the vertices on the path, none if there is no path."""
    path = tree_path("--path-to", parts["parent"], end)
    return {"path": names.names_of(path, graph.ids)}
