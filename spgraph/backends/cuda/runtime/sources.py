"""The text of a CUDA program: a preamble, common.cuh and one kernel file. Needs neither
CuPy nor a GPU.
"""

from __future__ import annotations

import functools
import pathlib
import re

BACKEND = pathlib.Path(__file__).parents[1]
OPTIONS = ("-std=c++17",)
# kernel files whose kernels are alternatives, of which most calls take one or two
SEPARATE = {"ewise", "masks", "multiply_dots", "multiply_rows", "push", "unpack", "write"}
_KERNEL = re.compile(r'extern "C" __global__ void(\s+)(?:__launch_bounds__\([^)]*\)(\s+))?(\w+)\(')


def source(stem: str, preamble: str) -> str:
    """The whole program of `stem`.cu under `preamble`.

    One text: a line `#include "part.cuh"` of a kernel file stands for the file of that name, since
    CuPy's cache of compiled programs is keyed by the text and would not notice an edited header.
    The #line directives make a compiler's messages name the file they are about.
    """
    return f'#line 1 "preamble of {stem}"\n{preamble}\n{whole("common.cuh")}{whole(f"{stem}.cu")}'


def alone(stem: str, preamble: str, name: str) -> str:
    """The program of `stem`.cu with the kernel `name` alone: what nobody calls is parsed, which
    takes no time, but not compiled.
    """

    def other(found: re.Match[str]) -> str:
        if found[3] == name:
            return found[0]
        return f"static __device__ void{found[1]}{found[2] or ''}{found[3]}("

    return _KERNEL.sub(other, source(stem, preamble))


def stems() -> list[str]:
    """The names of all kernel files."""
    return sorted(name.removesuffix(".cu") for name in paths() if name.endswith(".cu"))


@functools.cache
def paths() -> dict[str, pathlib.Path]:
    """Where each kernel file is, by its name: under the folder `kernels` of some capability."""
    return {path.name: path for path in BACKEND.glob("*/kernels/**/*.cu*")}


@functools.cache
def whole(name: str) -> str:
    """The text of a kernel file, with the files that it includes in place."""
    lines = [f'#line 1 "kernels/{name}"']
    text = paths()[name].read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        included = re.fullmatch(r'#include "(\w+\.cuh)"', line)
        if included:
            lines += [whole(included[1]), f'#line {number + 1} "kernels/{name}"']
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"
