"""Values that are written into narrower types: only what is written has to fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fixtures_device import device  # noqa: F401

import spgraph as sg
from spgraph.errors import DomainMismatch
from spgraph.semirings import binary, indexunary, monoid

NARROWER = [(np.dtype(t), np.dtype(w)) for t, w in (("int64", "int8"), ("uint8", "int8"))]


def changed(w: Any, write: Any, error: type[Exception] | None, message: str = ".") -> Any:
    """w as a call leaves it, and an error as one that leaves it alone."""
    before = w.dup()
    if error is None:
        write(w)
        return w.to("cpu")
    with pytest.raises(error, match=message):
        write(w)
    assert w.isequal(before, check_dtype=True)
    return None


def made_of(lists: Any, kinds: Any, device: str, shards: int, matrix: bool) -> Any:
    """Vectors, or Matrices of one column, of a type each; None stands for no entry."""
    made = []
    for each, kind in zip(lists, kinds, strict=True):
        at = [i for i, x in enumerate(each) if x is not None]
        values = np.array([each[i] for i in at], kind)
        v: Any = sg.Vector.from_coo(at, values, size=len(each))
        if matrix:
            v = sg.Matrix.from_coo(at, [0] * len(at), values, nrows=len(each), ncols=1)
        made.append(v.to(device))
    if shards:
        n = len(lists[0])
        placement = sg.Matrix.empty(n, n, bool, device=device).distribute(shards, devices=device)
        made = [v.to(placement.device) for v in made]
    return made


def entries(v: Any) -> dict[int, int]:
    return {each[0]: each[-1] for each in v.to("cpu")}


CASES = [(shards, matrix) for shards in (0, 3) for matrix in (False, True)]


@pytest.mark.parametrize(
    ("kinds", "shards", "matrix"),
    [
        # another sign is found in the values, which Matrices have as Vectors have
        pytest.param(
            kinds, *case, marks=pytest.mark.full if kinds[0] == "uint8" and case[1] else ()
        )
        for kinds in NARROWER
        for case in CASES
    ],
    ids=str,
)
def test_only_what_is_written_has_to_fit(
    kinds: Any, shards: int, matrix: bool, device: str
) -> None:
    """A mask, an accumulator, a region: values that stay outside do not count."""
    source, target = kinds
    lists = [1, 2, None, 4], [5, 200, 200, None], [7, None, None, 7]
    w, t, few = made_of(lists, (target, source, target), device, shards, matrix)
    plain = lambda w: sg.extract(t, out=w)  # noqa: E731
    changed(w.dup(), plain, OverflowError, "extract: expected values from -128 to 127, .* got 5 to")
    masked = changed(w.dup(), lambda w: sg.extract(t, out=w, mask=few.S), None)
    assert entries(masked) == {0: 5, 1: 2}
    negative = changed(w.dup(), lambda w: sg.extract(t, out=w, mask=few.S, replace=True), None)
    assert entries(negative) == {0: 5}
    changed(w.dup(), lambda w: sg.extract(t, out=w, mask=~few.S), OverflowError)
    # by an accumulator the result counts: 2 - 200 does not fit, 5 + 1 does, 200 alone does not
    sums = lambda w: sg.extract(t, out=w, accum=binary.plus)  # noqa: E731
    changed(w.dup(), sums, OverflowError, "extract: .* got (200 to 200|6 to 202)")
    both = lambda w: sg.extract(t, out=w, accum=binary.plus, mask=few.S)  # noqa: E731
    assert entries(changed(w.dup(), both, None)) == {0: 6, 1: 2, 3: 4}
    first = lambda w: sg.extract(t, out=w, accum=binary.first)  # noqa: E731
    changed(w.dup(), first, OverflowError, "got 200 to 200")
    w[(2, 0) if matrix else 2] = 3
    assert entries(changed(w.dup(), first, None)) == {0: 1, 1: 2, 2: 3, 3: 4}


@pytest.mark.parametrize(("shards", "matrix"), CASES)
def test_assign_checks_what_it_writes(shards: int, matrix: bool, device: str) -> None:
    lists = [1, 2, None, 4], [5, 300, -300, None], [7, None, None, 7], [5, 6, None, 1]
    kinds = "int8", "int64", "int8", "int64", "int64"
    made = made_of((*lists, [300, -300, 5, None]), kinds, device, shards, matrix)
    w, t, some, small, back = made
    changed(w.dup(), lambda w: sg.assign(w, t), OverflowError, "assign: expected values from -128")
    assert entries(sg.assign(w.dup(), t, mask=some.S)) == {0: 5, 1: 2}
    assert entries(sg.assign(w.dup(), small)) == {0: 5, 1: 6, 3: 1}
    # at indices, with the value's empty position, with and without a mask
    at = [3, 1, 2, 0]
    assert entries(sg.assign(w.dup(), small, at)) == {0: 1, 1: 6, 3: 5}
    changed(w.dup(), lambda w: sg.assign(w, t, at), OverflowError, "assign: expected values from")
    assert entries(sg.assign(w.dup(), t, at, mask=some.S)) == {1: 2, 3: 5}
    summed = lambda w: sg.assign(w, t, at, accum=binary.plus)  # noqa: E731
    changed(w.dup(), summed, OverflowError, "assign: expected values from")
    assert entries(sg.assign(w.dup(), small, at, accum=binary.plus)) == {0: 2, 1: 8, 3: 9}
    # repeats are folded in a type that holds the sums: 1 + 300 - 300 + 5
    again = [0, 0, 0, 0]
    assert entries(sg.assign(w.dup(), back, again, accum=binary.plus)) == {0: 6, 1: 2, 3: 4}
    folded = lambda w: sg.assign(w, t, [1, 1, 2, 2], accum=binary.plus)  # noqa: E731
    changed(w.dup(), folded, OverflowError, "assign: expected values from")
    floats = t.astype(np.float64)
    for write in (
        lambda w: sg.assign(w, floats),
        lambda w: sg.assign(w, floats, at),
        lambda w: sg.assign(w, floats, at, accum=binary.plus),
        lambda w: sg.assign(w, floats, accum=binary.plus),
    ):
        changed(w.dup(), write, DomainMismatch, "assign: .* same_kind.* got float64; convert them")


def test_every_operation_refuses_a_narrower_out(device: str) -> None:
    v = sg.Vector.from_dense(np.array([1.5, 300.0])).to(device)
    out = sg.Vector.empty(2, np.int8, device=device)
    with pytest.raises(DomainMismatch, match=r"apply: .* float64; convert them, .astype\('int8'\)"):
        sg.apply(v, binary.times, right=1.5, out=out)
    with pytest.raises(OverflowError, match="assign: value: .* int8 holds, got 300; .*'int64'"):
        sg.assign(out, 300)
    with pytest.raises(ValueError, match=r"values: expected numbers that int64 holds, got 9.22337"):
        sg.Vector.from_coo([0], [2.0**63], dtype=np.int64, device=device)
    assert out.nvals == 0
    K = sg.generators.kronecker(12).to(device)
    assert sg.reduce(K * 1) == K.nvals > np.iinfo(np.int16).max and (K * 1).dtype == np.int64
    A = sg.Matrix.from_coo([0, 1], [1, 0], [2.0, 3.0]).to(device)
    B = sg.Matrix.empty(2, 2, np.int32, device=device)
    for write in (
        lambda: sg.mxm(A, A, out=B),
        lambda: sg.mxm(A, A, out=B, accum=binary.plus, mask=A.S),
        lambda: sg.kronecker(A, sg.Matrix.from_dense([[1.0]]).to(device), out=B),
        lambda: sg.transpose(A, out=B),
        lambda: sg.ewise_add(A, A, out=B),
        lambda: sg.select(A, indexunary.tril, out=B),
        lambda: sg.diag(v, out=B),
        lambda: sg.mxv(A, v, out=out),
        lambda: sg.vxm(v, A, out=out),
        lambda: sg.reduce_rowwise(A, monoid.max, out=out),
        lambda: sg.reduce_columnwise(A, monoid.max, out=out),
    ):
        with pytest.raises(DomainMismatch, match="same_kind"):
            write()
    assert B.nvals == 0 and out.nvals == 0


@pytest.mark.parametrize("reduced", [sg.reduce_rowwise, sg.reduce_columnwise])
def test_an_overflow_names_the_operation_that_was_called(reduced: Any, device: str) -> None:
    A = sg.Matrix.from_coo([0, 1], [0, 1], [300, 1]).to(device)
    out = sg.Vector.empty(2, np.int8, device=device)
    with pytest.raises(OverflowError, match=f"^{reduced.__name__}: expected values"):
        reduced(A, monoid.max, out=out)
    assert out.nvals == 0


@pytest.mark.parametrize(("shards", "matrix"), CASES)
def test_entries_of_one_operand_alone_are_written_as_they_are(
    shards: int, matrix: bool, device: str
) -> None:
    """binary.first gives the type of its left operand, into which the right one's are written."""
    kinds = "int8", "int64", "int64", "float64"
    lists = [1, None, None], [300, 5, None], [5, 300, None], [1.0, 2.0, None]
    u, fits, wide, real = made_of(lists, kinds, device, shards, matrix)
    made = sg.ewise_add(u, fits, binary.first)
    assert made.dtype == np.int8 and entries(made) == {0: 1, 1: 5}
    with pytest.raises(OverflowError, match="ewise_add: expected values from -128 to 127, .* 300"):
        sg.ewise_add(u, wide, binary.first)
    with pytest.raises(OverflowError, match="ewise_add: expected values from -128 to 127, .* 300"):
        sg.ewise_add(wide, u, binary.second)
    with pytest.raises(DomainMismatch, match="ewise_add: .* same_kind.* got float64"):
        sg.ewise_add(u, real, binary.first)
    assert entries(sg.ewise_add(u, real, binary.lor)) == {0: True, 1: True}  # truths are meant
    assert sg.ewise_union(u, real, binary.first, left=0.5).dtype == np.float64
