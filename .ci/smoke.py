"""An installed spgraph at work: a search, and the README's first example.

usage: python .ci/smoke.py     in an environment that holds the wheel and not the checkout
"""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path

import spgraph as sg
from spgraph.validation import validate_bfs

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """End with an error at the first thing that is not as it should be."""
    assert Path(sg.__file__).resolve().parents[1] != ROOT, "this is the checkout, not the wheel"
    A = sg.generators.grid(30, 40)
    level, parent = sg.bfs(A, 0)
    failures = validate_bfs(A, 0, level, parent)
    assert not failures and level.to_numpy().max() == 68, failures

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = re.split(r"^## ", text.partition("## First example\n")[2], flags=re.MULTILINE)[0]
    example = doctest.DocTestParser().get_doctest(section, {}, "README.md", "README.md", 0)
    assert len(example.examples) > 5, "the README has no first example"
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed = doctest.DocTestRunner(optionflags=options).run(example).failed
    assert not failed, f"{failed} lines of the README's first example"
    print(f"spgraph {sg.__version__}, Python {sys.version.split()[0]}, {sys.platform}: all is well")


if __name__ == "__main__":
    main()
