"""Blocks of lines by the kernel: against Python's int and float, and against the same block line by
line."""

from __future__ import annotations

import math
import pathlib
import random
import struct
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from spgraph.errors import FormatError
from spgraph.io import read, table
from spgraph.io.formats import dimacs, edge_list, matrix_market
from spgraph.io.table import Form, read_block

REALS = {"values": ("int64", "float64"), "markers": (b"#", b"%"), "commas": True}
LISTS = Form("u v w", comment=edge_list._COMMENT, **REALS)
FORMS = {
    "list": LISTS,
    "sparse ids": Form("u v w", high=(2**63 - 2,) * 2, comment=edge_list._COMMENT, **REALS),
    "dimacs": Form(
        *("a u v w", 2, b"a", ("int64",), 1, (9, 9)), comment=dimacs._COMMENT, markers=(b"c",)
    ),
    "coordinates": Form(
        *("u v w", 2, b"", ("uint64",), 1, (9, 5)),
        comment=matrix_market._COMMENT,
        markers=(b"%",),
    ),
    "array": Form("w", ids=0, values=("float64",), comment=matrix_market._COMMENT, markers=(b"%",)),
}


def bits_of(word: int) -> float:
    return struct.unpack("d", struct.pack("Q", word))[0]


def between(rng: random.Random) -> str:
    """A decimal of 19 digits next to the middle between two doubles."""
    x = abs(rng.gauss(0, 1)) * 10.0 ** rng.randint(-250, 250) or 1.0
    middle = (Fraction(x) + Fraction(math.nextafter(x, math.inf))) / 2
    q = math.floor(math.log10(x)) - 18
    return f"{round(middle / Fraction(10) ** q) + rng.randint(-1, 1)}e{q}"


def tie(rng: random.Random) -> str:
    """An odd multiple of a half of the last bit, or a number just beside it."""
    k = rng.randint(1, 20)
    middle = (2 * rng.getrandbits(rng.randint(1, 53)) + 1) * 5**k
    return f"{middle + rng.choice((-1, 0, 0, 1))}e-{k}"


WRITTEN: dict[str, Callable[[random.Random], str]] = {
    "bits": lambda rng: repr(bits_of(rng.getrandbits(64))),
    "powers": lambda rng: f"{rng.getrandbits(rng.randint(1, 63))}e{rng.randint(-340, 320)}",
    "small powers": lambda rng: f"{rng.getrandbits(rng.randint(1, 63))}E{rng.randint(-30, 30):+}",
    "points": lambda rng: f"{rng.gauss(0, 1e6):.{rng.randint(0, 25)}f}",
    "exponents": lambda rng: f"{rng.gauss(0, 1):+.{rng.randint(0, 22)}e}",
    "zeros": lambda rng: rng.choice("+- ").strip() + "0" * rng.randint(1, 30) + ".0e5",
    "points alone": lambda rng: rng.choice(("5.", ".5", "-.25e1", "7.e-2", "1e400", "1e-400")),
    "names": lambda rng: rng.choice(("inf", "-Infinity", "NaN", "+nan", "INF")),
    "ties": tie,
    "between": between,
}


@pytest.mark.parametrize("written", WRITTEN)
def test_reals(written: str) -> None:
    """To the last bit, as Python's float."""
    rng = random.Random(written)
    tokens = [WRITTEN[written](rng) for _ in range(4000)]
    text = "".join(f"1 2 {token}\n" for token in tokens).encode()
    columns = table._by_kernel(LISTS, text, ("float64",))
    assert columns is not None
    expected = np.array([float(token) for token in tokens])
    same = columns[2].view(np.uint64) == expected.view(np.uint64)
    same |= np.isnan(expected) & np.isnan(columns[2])
    assert same.all(), [(tokens[k], columns[2][k]) for k in np.flatnonzero(~same)[:5]]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0, 2**63 - 1, -(2**63), -1], "int64"),
        ([0, 2**63 - 1, -(2**63) - 1], "float64"),
        ([2**63], "float64"),
        ([10**19], "float64"),
        ([10**40, -5], "float64"),
    ],
)
@pytest.mark.parametrize("first", ["", "# 1.5\n", "0 1 7 % 1.5\n"])
def test_integers(values: list[int], kind: str, first: str) -> None:
    text = (first + "".join(f"0 1 {value}\n" for value in values)).encode()
    columns = table._by_kernel(LISTS, text, LISTS.values)
    assert columns is not None and columns[2].dtype == kind
    values = [7] * first.startswith("0") + values
    assert columns[2].tolist() == [float(v) if kind == "float64" else v for v in values]


PIECES = ["1", "2", "9", "10", "0", "-0", "-3", "2.5", "1e3", "+4", "x", "a", "c", "1a", ".", "-"]
PIECES += ["18446744073709551615", "18446744073709551616", "9223372036854775806", "nan", "nano"]
GAPS = [" ", "  ", "\t", ",", " , ", ",,", "\v", "\f", "", "\r", "\x00", "\x1c"]
ENDS = ["\n"] * 6 + ["\r\n", " \n", "\n\n", "\n \t\n", "\n# 1 2\n", "\n% c\n", "\nc\n", "\nc 1\n"]
ENDS += ["#\n", " % x\n", "\r\r\n", "\nc\v\n", "\ncc\n", ",\n", "\n c\r\n", "\n%\r.\n"]


@pytest.mark.parametrize("name", FORMS)
def test_lines(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right and wrong lines of every form are read, or refused, as line by line."""
    form, rng = FORMS[name], random.Random(name)
    good = 0
    for case in range(3000):
        odd = case % 3  # a block without oddities, one with them at some places, and everywhere
        text = ""
        for _ in range(rng.randint(1, 4)):
            fields = [rng.choice(PIECES[: (3, 8, 99)[odd]]) for _ in range(form.ids + 1)]
            gaps = [rng.choice(GAPS[: (3, 5, 99)[odd]]) for _ in fields]
            text += "a " if form.letter and rng.random() < 0.95 else ""
            text += "".join(map(str.__add__, fields, gaps)).rstrip(" ,\t" if odd < 2 else "")
            text += rng.choice(ENDS[: (6, 14, 99)[odd]])
        block = (text if rng.random() < 0.7 else text.rstrip("\n")).encode("latin-1")
        found: list[list[np.ndarray] | str] = []
        for large in (0, 1 << 30):
            monkeypatch.setattr(table, "LARGE", large)
            try:
                found.append(read_block(form, "g", 1, block, form.values))
            except FormatError as error:
                found.append(str(error))
        one, other = found
        assert type(one) is type(other), block
        if isinstance(one, str):
            assert one == other
            continue
        good += 1
        for a, b in zip(one, other, strict=True):
            assert a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), block
    assert good > 300


@pytest.mark.parametrize("large", [0, 1 << 30])
def test_no_vertex(large: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A header that declares no vertices, of ids from 0, leaves no id that is right."""
    monkeypatch.setattr(table, "LARGE", large)
    path = tmp_path / "g.gr"
    path.write_text("p tw 0 0\nc 0 1\n")
    assert read(path, base=0).shape == (0, 0)
    path.write_text("p tw 0 1\n0 0\n")
    with pytest.raises(FormatError, match="line 2: vertex id 0 is beyond -1"):
        read(path, base=0)


@pytest.mark.parametrize("large", [0, 1 << 30])
def test_negative_zero(large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among reals it keeps its sign, as Python's float does."""
    monkeypatch.setattr(table, "LARGE", large)
    *_, reals = read_block(LISTS, "g", 1, b"0 1 -0\n0 1 0.5\n0 1 0\n", LISTS.values)
    assert np.signbit(reals).tolist() == [True, False, False]
    *_, integers = read_block(LISTS, "g", 1, b"0 1 -0\n", LISTS.values)
    assert integers.dtype == np.int64 and integers.tolist() == [0]
