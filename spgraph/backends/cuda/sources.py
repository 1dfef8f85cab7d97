"""The text of a CUDA program: a preamble, common.cuh and one kernel file. Needs neither CuPy nor a
GPU.
"""

from __future__ import annotations

import functools
import pathlib
import re

FOLDER = pathlib.Path(__file__).parent
KERNELS = FOLDER / "kernels"
OPTIONS = ("-std=c++17",)


def source(stem: str, preamble: str) -> str:
    """The whole program of kernels/`stem`.cu under `preamble`.

    One text: a line `#include "push.cuh"` of a kernel file stands for that file of kernels/, since
    CuPy's cache of compiled programs is keyed by the text and would not notice an edited header.
    The #line directives make a compiler's messages name the file they are about.
    """
    return (
        f'#line 1 "preamble of {stem}"\n{preamble}\n'
        f'#line 1 "common.cuh"\n{_read(FOLDER / "common.cuh")}\n'
        f"{_whole(f'{stem}.cu')}"
    )


def stems() -> list[str]:
    """The names of all kernel files."""
    return sorted(path.stem for path in KERNELS.glob("*.cu"))


@functools.cache
def _whole(name: str) -> str:
    """The text of a file of kernels/, with the files that it includes in place."""
    lines = [f'#line 1 "kernels/{name}"']
    for number, line in enumerate(_read(KERNELS / name).splitlines(), 1):
        included = re.fullmatch(r'#include "(\w+\.cuh)"', line)
        if included:
            lines += [_whole(included[1]), f'#line {number + 1} "kernels/{name}"']
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


@functools.cache
def _read(path: pathlib.Path) -> str:
    return path.read_text(encoding="utf-8")
