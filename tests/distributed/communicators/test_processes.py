"""The helper that runs programs under mpiexec, on texts that launchers have said."""

from __future__ import annotations

import json

import pytest
from processes import environment, plain

RECORD = '{"reached": 3,\n "teps": 58.4}\n'


@pytest.mark.parametrize(
    "said",
    [
        RECORD,
        RECORD + "\x1b[?1034h",  # terminfo's greeting, of Open MPI 4
        RECORD + "\x1b[?1l\x1b>\x1b[0m",
        "\x1b]0;mpiexec\x07" + RECORD + "\0",  # a title, and the null byte of Open MPI 5
        "\x1b]0;mpiexec\x1b\\" + RECORD.replace("\n", "\r\n") + "\x1b(B\x1b[m\x1b7\x1b8",
    ],
)
def test_what_a_launcher_adds_is_not_read(said: str) -> None:
    assert plain(said) == RECORD
    assert json.loads(plain(said)) == {"reached": 3, "teps": 58.4}


def test_brackets_and_braces_stay() -> None:
    text = "[vm:05248] PMIX ERROR in [a](b) ]0; {} process 1 is done;\n"
    assert plain(text) == text


def test_root_may_start_processes() -> None:
    given = environment()
    for launcher in ("OMPI", "PRTE"):
        assert given[f"{launcher}_ALLOW_RUN_AS_ROOT"] == "1"
        assert given[f"{launcher}_ALLOW_RUN_AS_ROOT_CONFIRM"] == "1"
