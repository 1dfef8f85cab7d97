"""The text of a CUDA program: a preamble, kernels/common.cuh and one kernel file. Needs neither
CuPy nor a GPU.
"""

from __future__ import annotations

import functools
import pathlib
import re

KERNELS = pathlib.Path(__file__).parent / "kernels"
OPTIONS = ("-std=c++17",)


def source(stem: str, preamble: str) -> str:
    """The whole program of kernels/`stem`.cu under `preamble`.

    One text: a line `#include "push.cuh"` of a kernel file stands for that file of kernels/, since
    CuPy's cache of compiled programs is keyed by the text and would not notice an edited header.
    The #line directives make a compiler's messages name the file they are about.
    """
    return f'#line 1 "preamble of {stem}"\n{preamble}\n{whole("common.cuh")}{whole(f"{stem}.cu")}'


def stems() -> list[str]:
    """The names of all kernel files."""
    return sorted(path.stem for path in KERNELS.glob("*.cu"))


@functools.cache
def whole(name: str) -> str:
    """The text of a file of kernels/, with the files that it includes in place."""
    lines = [f'#line 1 "kernels/{name}"']
    text = (KERNELS / name).read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        included = re.fullmatch(r'#include "(\w+\.cuh)"', line)
        if included:
            lines += [whole(included[1]), f'#line {number + 1} "kernels/{name}"']
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"
