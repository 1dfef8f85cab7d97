"""The CPU's compiler: texts, cache folder; what products prepare."""

from __future__ import annotations

import os
import pathlib
import stat
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from spgraph.backends.cpu import jit, masks, products
from spgraph.containers import Matrix, Vector

PROGRAM = """
import sys
from spgraph import operations
from spgraph.backends.cpu import jit
from spgraph.containers import Matrix, Vector
A = Matrix.from_coo([0, 1, 1], [1, 0, 2], [2, 3, 4], nrows=3, ncols=3)
print(operations.mxv(A, Vector.from_dense([1, 10, 100])).to_numpy(fill=-1).tolist())
for name, module in list(sys.modules.items()):
    if name.startswith("spgraph_kernel"):
        stats = module.pull.stats
        print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
print(jit.cache_folder())
"""


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        cwd=pathlib.Path(__file__).parents[1],
        timeout=120,
    )


def test_second_process_compiles_nothing(tmp_path: pathlib.Path) -> None:
    first, second = (run(PROGRAM, SPGRAPH_CACHE_DIR=str(tmp_path / "cache")) for _ in range(2))
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    expected = [str([20, 403, -1]), "0 1", str(tmp_path / "cache" / "cpu")]
    assert first.stdout.splitlines() == expected
    assert second.stdout.splitlines() == [expected[0], "1 0", expected[2]]
    folder = tmp_path / "cache" / "cpu"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not list(folder.glob("*.tmp"))


def test_an_edited_kernel_is_compiled_anew(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "@kernel\ndef fill(thread, threads, z):\n    z[0] = NUMBER\n"
    monkeypatch.setattr(jit, "KERNELS", tmp_path)
    z = np.zeros(1)
    for number in (1, 2):
        (tmp_path / "given.py").write_text(text.replace("NUMBER", f"{number} + OFFSET"))
        jit.module.__wrapped__("given", "OFFSET = 10").fill(0, 1, z)
        assert z[0] == number + 10


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere"
)
def test_unwritable_cache_warns(tmp_path: pathlib.Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    check_warning(str(locked / "cache"))


def test_cache_folder_that_cannot_be_made_warns(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    check_warning(str(tmp_path / "file"))


def check_warning(folder: str) -> None:
    done = run(PROGRAM, SPGRAPH_CACHE_DIR=folder)
    assert done.returncode == 0, done.stderr
    assert "cannot be written" in done.stderr and "SPGRAPH_CACHE_DIR" in done.stderr
    assert done.stdout.startswith("[20, 403, -1]")


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_splits_are_whole_words_in_order(threads: int) -> None:
    A = Matrix.from_dense(np.triu(np.ones((300, 300))))
    splits = products._splits(A, np.arange(300, dtype=np.int32), threads)
    assert splits[0] == 0 and splits[-1] == 300 and (np.diff(splits) >= 0).all()
    assert (splits[1:-1] % 32 == 0).all()


def test_mask_words() -> None:
    flags = np.random.default_rng(0).random(100) < 0.3
    indices = np.flatnonzero(flags)
    v = Vector(100, np.ones(indices.size), indices=indices)
    for w in (v, v.to_bitmap()):
        bits, invert = masks.mask_words(w.S)
        assert invert == 0 and np.array_equal(
            np.unpackbits(bits.view(np.uint8), bitorder="little")[:100], flags
        )
        assert masks.mask_words(~w.S)[1] == 0xFFFFFFFF
    bitmap = v.to_bitmap()
    assert masks.mask_words(bitmap.S)[0] is bitmap.bits
