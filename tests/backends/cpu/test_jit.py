"""The CPU's compiler: texts and modules; what products prepare."""

from __future__ import annotations

import gc
import pathlib
import sys
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import spgraph as sg
from spgraph.backends.cpu.entrywise import masks
from spgraph.backends.cpu.products import products
from spgraph.backends.cpu.runtime import cache, jit
from spgraph.containers import Matrix, Vector


def test_an_edited_kernel_is_compiled_anew(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "@kernel\ndef fill(thread, threads, sync, z):\n    z[0] = NUMBER\n"
    monkeypatch.setattr(jit, "text_of", lambda stem: (tmp_path / f"{stem}.py").read_text())
    z = np.zeros(1)
    for number in (1, 2):
        (tmp_path / "given.py").write_text(text.replace("NUMBER", f"{number} + OFFSET"))
        made = jit.module.__wrapped__("given", "OFFSET = 10")
        made.fill(0, 1, 0, z)
        assert z[0] == number + 10


def test_a_text_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    A = sg.Matrix.from_coo([0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1], nrows=4, ncols=4)

    def calls() -> tuple[sg.Vector, sg.Matrix]:  # whose kernels share texts
        return sg.clustering(A), sg.ewise_add(A, A)

    expected = calls()
    monkeypatch.setattr(pathlib.Path, "glob", lambda path, _: pytest.fail(f"looked in {path}"))
    monkeypatch.setattr(pathlib.Path, "read_text", lambda path, **_: pytest.fail(f"read {path}"))
    for made, before in zip(calls(), expected, strict=True):
        assert made.isequal(before)


def test_what_nobody_holds_is_released_and_compiled_or_loaded_again(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "@inner\ndef two():\n    return 2.0\n\n\n"
    text += "@kernel\ndef fill(thread, threads, sync, z):\n    z[0] = two() + BASE\n"
    monkeypatch.setattr(jit, "text_of", lambda stem: (tmp_path / f"{stem}.py").read_text())
    (tmp_path / "given.py").write_text(text)
    before = {name for name in sys.modules if name.startswith("spgraph_kernel_given")}
    for _ in range(3):  # compiled in this process, then loaded
        for base in range(3):
            made = jit.module.__wrapped__("given", f"BASE = {base}")
            z = np.zeros(1)
            made.fill(0, 1, 0, z)
            assert z[0] == base + 2
            held = [weakref.ref(made.fill), weakref.ref(made.two)]
            del made
            gc.collect()
            assert [ref() for ref in held] == [None, None]
    assert {name for name in sys.modules if name.startswith("spgraph_kernel_given")} == before


def test_threads_that_want_the_same_kernel_get_the_same(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit, "text_of", lambda stem: (tmp_path / f"{stem}.py").read_text())
    (tmp_path / "given.py").write_text("@kernel\ndef fill(thread, threads, z):\n    z[0] = BASE\n")
    monkeypatch.setenv("SPGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    cache.folder.cache_clear()
    before, together = sys.getswitchinterval(), threading.Barrier(4)
    sys.setswitchinterval(1e-5)

    def get(base: int) -> tuple[object, float]:
        z = np.zeros(1)
        together.wait()
        made = jit.module("given", f"BASE = {base}")
        made.fill(0, 1, z)
        return made.fill, z[0]

    try:
        with warnings.catch_warnings(), ThreadPoolExecutor(4) as pool:
            warnings.simplefilter("error")
            for base in range(8):
                got = list(pool.map(get, [base] * 4))
                assert got == [(got[0][0], base)] * 4
                assert got[0][0] is jit.module("given", f"BASE = {base}").fill
    finally:
        sys.setswitchinterval(before)
        jit.module.cache_clear()
        cache.folder.cache_clear()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_splits_are_whole_words_in_order(threads: int) -> None:
    A = Matrix.from_dense(np.triu(np.ones((300, 300))))
    splits = products._splits(A, np.arange(300, dtype=np.int32), threads)
    assert splits[0] == 0 and splits[-1] == 300 and (np.diff(splits) >= 0).all()
    assert (splits[1:-1] % 32 == 0).all()


def test_mask_words() -> None:
    flags = np.random.default_rng(0).random(100) < 0.3
    indices = np.flatnonzero(flags)
    v = Vector._of(100, np.ones(indices.size), indices=indices)
    for w in (v, v.to_bitmap()):
        bits, invert = masks.mask_words(w.S)
        assert invert == 0 and np.array_equal(
            np.unpackbits(bits.view(np.uint8), bitorder="little")[:100], flags
        )
        assert masks.mask_words(~w.S)[1] == 0xFFFFFFFF
    bitmap = v.to_bitmap()
    assert masks.mask_words(bitmap.S)[0] is bitmap._bits
