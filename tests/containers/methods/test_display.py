"""Containers as text and as HTML."""

from __future__ import annotations

import re

import numpy as np
from fixtures_device import device  # noqa: F401

from spgraph.containers import Matrix, Vector

DENSE = np.array([[0, 2, 0, 3], [0, 0, 0, 0], [5, 0, 6, 7]])


def test_text_and_html_show_the_facts() -> None:
    v = Vector.from_coo(np.arange(0, 1000, 50), np.arange(20) / 3, size=1000)
    lines = repr(v).splitlines()
    assert lines[0] == f"Vector 1000, 20 entries, float64, sparse, cpu, {20 * 12} B"
    assert lines[2].split() == ["50", "0.333333"] and lines[-1].strip() == "... 12 more"
    A = Matrix.from_dense(DENSE)
    assert repr(A).splitlines()[0].startswith("Matrix 3x4, 5 entries, int64, CSR, cpu, ")
    assert repr(A).splitlines()[1].split() == ["0", "1", "2"]
    assert "iso" in repr(A.pattern()) and "symmetric" in repr(
        Matrix.from_coo([0], [0], symmetric=True)
    )
    for container in (
        v,
        A,
        v.to_bitmap(),
        Vector.from_dense([True]),
        Vector.empty(0),
        Matrix.empty(0, 0),
    ):
        html = container._repr_html_()
        assert repr(container).split(",")[0] in re.sub("<.*?>", "", html)
        assert html.count("<tr>") == html.count("</tr>")


def test_the_head_of_a_bitmap_is_its_first_entries() -> None:
    v = Vector.from_coo([40, 70, 99], [1, 2, 3], size=100).to_bitmap()
    assert v.storage == "bitmap"
    assert [line.split() for line in repr(v).splitlines()[1:]] == [
        ["40", "1"],
        ["70", "2"],
        ["99", "3"],
    ]


def test_nbytes_counts_all_arrays() -> None:
    assert Vector.from_dense(np.zeros(10)).nbytes == 80
    assert Vector.from_coo([0], [1.0], size=64).nbytes == 12
    assert Vector.from_coo([0], [1.0], size=64).to_bitmap().nbytes == 64 * 8 + 8
    A = Matrix.from_coo([0], [0], nrows=4, ncols=4)
    assert A.nbytes == 5 * 4 + 4 + 1
