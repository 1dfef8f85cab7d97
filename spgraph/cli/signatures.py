"""Options of the command line from the signatures and docstrings of Python functions."""

from __future__ import annotations

import csv
import inspect
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click

from spgraph.cli.names import split

# the words that turn an option off, where they are not --no-... and its name
OFF = {"symmetric": "directed"}


class Vertices(click.ParamType):
    """Vertices in a word, like 0,5,7, or their names; the graph tells later which there are."""

    name = "V,V,..."

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> list[str]:
        """The words as a list."""
        try:
            words = split(value)
        except csv.Error:
            words = [""]
        if not all(words):
            self.fail(f"expected vertices like 0,5,7, got {value!r}", parameter, context)
        return words


class Vertex(click.ParamType):
    """A vertex, or its name; the graph tells later whether there is one."""

    name = "V"


class NumberOr(click.ParamType):
    """A number, or a word: "none" for None, or the name of a file .npz that holds a Vector."""

    def __init__(self, *, file: bool) -> None:
        self.file = file
        self.name = "NUMBER|FILE.npz" if file else "NUMBER|none"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> float | Path | None:
        """The number, None or the file's Path."""
        if self.file and (str(value).lower().endswith(".npz") or value == "-"):
            return Path(value)
        if not self.file and value == "none":
            return None
        try:
            return float(value)
        except ValueError:
            other = "the name of a file .npz" if self.file else "none"
            self.fail(f"expected a number or {other}, got {value!r}", parameter, context)


# what is an array in Python and a file on the command line
FILES = {
    "personalization": "file .npz of a Vector of numbers >= 0, as -o of another run writes it, in "
    "proportion to which vertices are teleported to; - is standard input; left out: all alike.",
}

# parameters that hold no plain number, flag or word
TYPES: dict[str, click.ParamType] = {
    "source": Vertex(),
    "sources": Vertices(),
    "personalization": click.Path(path_type=Path),
    "beta": NumberOr(file=True),
    "tol": NumberOr(file=False),
}


def summary(function: Callable[..., object]) -> str:
    """The first line of a docstring up to where it says what comes back: what is computed."""
    first = " ".join(_paragraphs(function)[0].split()) or function.__name__
    return re.split(r"[:.](?: |$)", first)[0].replace("`", "")


def explanation(function: Callable[..., object]) -> str:
    """The second paragraph of a docstring: what the result means."""
    return " ".join("".join(_paragraphs(function)[1:2]).split()).replace("`", "")


def _paragraphs(function: Callable[..., object]) -> list[str]:
    # `python -OO` leaves docstrings out: help has no texts then, and all else is the same
    return (inspect.getdoc(function) or "").split("\n\n")


def helps(function: Callable[..., object]) -> dict[str, str]:
    """The texts `name: text` of the paragraph "Parameters:" of a docstring, by name."""
    for paragraph in _paragraphs(function):
        if paragraph.startswith("Parameters:"):
            words = re.split(r"^ {4}(\w+): ", paragraph, flags=re.MULTILINE)[1:]
            texts = [" ".join(text.split()) for text in words[1::2]]
            return dict(zip(words[::2], texts, strict=True))
    return {}


def options(
    function: Callable[..., object], *, without: Collection[str] = (), default: str | None = None
) -> list[click.Parameter]:
    """An option for each parameter of a function, but for those in `without`.

    Its type and default are those of the signature, its help that of the docstring. A parameter
    without a default is an argument, or, where `default` says what a command takes for it, an
    option.
    """
    hints, texts = get_type_hints(function), helps(function)
    found: list[click.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in without:
            continue
        texts[name] = FILES.get(name) or _for_options(name, texts.get(name, ""))
        needed = parameter.default is parameter.empty
        if needed and default is None:
            found.append(click.Argument([name], type=_type(name, hints[name])))
        else:
            text = texts[name] + (f" [default: {default}]" if needed else "")
            found.append(_option(name, None if needed else parameter.default, hints[name], text))
    return found


def _for_options(name: str, text: str) -> str:
    """The text of a parameter as that of an option: None is what is left out, or the word none."""
    absent = "none:" if isinstance(TYPES.get(name), NumberOr) else "left out:"
    return text.replace("None:", absent).replace("max_iter", "--max-iter")


def _option(name: str, default: Any, hint: Any, text: str) -> click.Option:
    word = f"--{name.replace('_', '-')}"
    text = f"{text[:1].upper()}{text[1:]}"
    if default is True:
        word = f"{word}/--{OFF.get(name, f'no-{word[2:]}')}"
    plain = {"is_flag": True} if isinstance(default, bool) else {"type": _type(name, hint)}
    shown = default is not None and default is not False
    return click.Option([word], default=default, show_default=shown, help=text, **plain)


def _type(name: str, hint: Any) -> Any:
    """What click converts the words of an option to; the last type of `int | None` is None's."""
    if name in TYPES:
        return TYPES[name]
    first = next(iter(get_args(hint)), hint)
    if get_origin(hint) is Literal:
        return click.Choice(get_args(hint))
    if first not in (int, float):
        raise TypeError(f"options: {name}: expected int, float or a Literal, got {hint}")
    return first
