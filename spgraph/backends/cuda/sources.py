"""The text of a CUDA program: a preamble, common.cuh and one kernel file. Needs neither CuPy nor a
GPU.
"""

from __future__ import annotations

import functools
import pathlib

FOLDER = pathlib.Path(__file__).parent
KERNELS = FOLDER / "kernels"
OPTIONS = ("-std=c++17",)


def source(stem: str, preamble: str) -> str:
    """The whole program of kernels/`stem`.cu under `preamble`.

    One text without includes: CuPy's cache of compiled programs is keyed by the text, and would not
    notice an edited header. The #line directives make a compiler's messages name the file they are
    about.
    """
    return (
        f'#line 1 "preamble of {stem}"\n{preamble}\n'
        f'#line 1 "common.cuh"\n{_read(FOLDER / "common.cuh")}\n'
        f'#line 1 "kernels/{stem}.cu"\n{_read(KERNELS / f"{stem}.cu")}'
    )


def stems() -> list[str]:
    """The names of all kernel files."""
    return sorted(path.stem for path in KERNELS.glob("*.cu"))


@functools.cache
def _read(path: pathlib.Path) -> str:
    return path.read_text(encoding="utf-8")
