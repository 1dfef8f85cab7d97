"""What type checkers and editors are told: py.typed is shipped."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import spgraph as sg

PROGRAM = Path(__file__).parent / "programs/typed_user.py"


def test_a_users_program_has_the_types_it_says() -> None:
    assert (Path(sg.__file__).parent / "py.typed").exists()
    runpy.run_path(str(PROGRAM))
    words = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary"]
    # a cache that nobody reads again takes longer to write than the check
    words += ["--no-incremental", "--cache-dir", os.devnull, "--ignore-missing-imports"]
    words += [str(PROGRAM)]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    found = re.findall(r"typed_user\.py:(\d+): error: .*\[([a-z-]+)\]", run.stdout)
    lines = PROGRAM.read_text().splitlines()
    expected = [
        (str(number), code)
        for number, line in enumerate(lines, 1)
        for code in re.findall(r"# error: ([a-z-]+)$", line)
    ]
    assert found == expected and len(expected) == 7, run.stdout + run.stderr
