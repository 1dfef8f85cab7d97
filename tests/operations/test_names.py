"""Operators by name where an operator is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import spgraph as sg
from spgraph import iterations
from spgraph.errors import DomainMismatch
from spgraph.semirings import binary, indexunary, min_first, min_plus, monoid, unary

A = sg.Matrix([[1, 4, 0], [0, 9, 2], [3, 0, 5]])
u, x = sg.Vector([1, 2, 3]), np.array([1, 2, 3])
x0 = sg.Vector([0, 4, 6])
assert A.T.indptr.size  # kept, so that parents looks at it

CALLS: dict[str, tuple[Any, Any, str]] = {
    "mxm": (lambda op: sg.mxm(A, A, op), min_plus, "min_plus"),
    "mxm of an array": (lambda op: sg.mxm(A, A.toarray(), op), min_plus, "min_plus"),
    "mxv": (lambda op: sg.mxv(A, u, op), min_plus, "min_plus"),
    "mxv of an array": (lambda op: sg.mxv(A, x, op), min_plus, "min_plus"),
    "vxm": (lambda op: sg.vxm(u, A, op), min_plus, "min_plus"),
    "reduce_mxm": (lambda op: sg.reduce_mxm(A, A, op), min_plus, "min_plus"),
    "closure": (lambda op: iterations.closure(A, u, op), min_plus, "min_plus"),
    "search": (
        lambda op: iterations.search(A, sg.Vector.from_coo([0], [0], size=3), op).value,
        min_first,
        "min_first",
    ),
    "dag_edges": (lambda op: iterations.dag_edges(A, x0, op), min_plus, "min_plus"),
    "parents": (lambda op: iterations.parents(A, x0, op), min_plus, "min_plus"),
    "reduce": (lambda op: sg.reduce(A, op), monoid.max, "max"),
    "reduce_rowwise": (lambda op: sg.reduce_rowwise(A, op), monoid.max, "max"),
    "reduce_columnwise": (lambda op: sg.reduce_columnwise(A, op), monoid.max, "max"),
    "ewise_add": (lambda op: sg.ewise_add(A, A, op), binary.minus, "minus"),
    "ewise_mult": (lambda op: sg.ewise_mult(u, u, op), binary.minus, "minus"),
    "ewise_union": (lambda op: sg.ewise_union(A, A, op), binary.minus, "minus"),
    "kronecker": (lambda op: sg.kronecker(A, A, op), binary.minus, "minus"),
    "apply": (lambda op: sg.apply(A, op), unary.ainv, "ainv"),
    "apply beside a number": (lambda op: sg.apply(A, op, right=2), binary.minus, "minus"),
    "apply by position": (lambda op: sg.apply(A, op), indexunary.rowindex, "rowindex"),
    "select": (lambda op: sg.select(A, op), indexunary.tril, "tril"),
    "accum": (lambda op: sg.apply(A, unary.ainv, out=A.dup(), accum=op), binary.minus, "minus"),
    "assign": (lambda op: sg.assign(u.dup(), 1, [0, 0], accum=op), binary.minus, "minus"),
    "assign to shards": (
        lambda op: sg.assign(u.to(A.distribute(2).device), 1, [0, 0], accum=op).gather(),  # type: ignore[attr-defined]
        binary.minus,
        "minus",
    ),
    "from_coo": (
        lambda op: sg.Matrix.from_coo([0, 0], [1, 1], [5, 2], dup_op=op),
        binary.minus,
        "minus",
    ),
    "of a Vector": (lambda op: sg.Vector.from_coo([0, 0], [5, 2], dup_op=op), monoid.plus, "plus"),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_name_stands_for_its_operator(case: str) -> None:
    call, op, name = CALLS[case]
    by_name, expected = call(name), call(op)
    if hasattr(expected, "isequal"):
        assert by_name.isequal(expected, check_dtype=True)
    else:
        assert np.array_equal(by_name, expected)


@pytest.mark.parametrize(
    ("case", "name", "message"),
    [
        ("mxm", "min_pluss", r"^mxm: semiring: .*'min_pluss'; did you mean min_plus"),
        ("mxm", "plus", r"^mxm: semiring: .*'plus'; it is binary.plus and monoid.plus"),
        ("mxm", 3, r"^mxm: semiring: expected a Semiring .* or its name, got 3"),
        ("closure", "min_pluss", r"^closure: semiring: .* did you mean min_plus"),
        ("reduce", "maxx", r"^reduce: monoid: .* got 'maxx'; .* did you mean max\?"),
        ("reduce", 3, r"^reduce: monoid: expected a Monoid .* or its name, got 3"),
        (
            "ewise_add",
            "add",
            r"^ewise_add: op: .* got 'add'; binary has no operator 'add'; use plus",
        ),
        ("apply", "ainw", r"^apply: op: .* unary has no operator 'ainw'; did you mean .*ainv"),
        ("apply", "quux", r"^apply: op: .* unary has no operator 'quux'; dir\(unary\) lists them"),
        ("apply", "minus", r"^apply: op: binary.minus takes two operands"),
        ("apply beside a number", "ainv", r"^apply: left, right: a UnaryOp takes neither"),
        ("select", "trill", r"^select: op: .* did you mean tril"),
        ("select", 3, r"^select: op: expected an IndexUnaryOp .* name, got 3"),
        ("accum", "minuss", r"^apply: accum: .* did you mean .*minus"),
        ("from_coo", "minuss", r"^from_coo: dup_op: .* did you mean .*minus"),
        ("from_coo", 3, r"^from_coo: dup_op: expected a BinaryOp or Monoid"),
    ],
)
def test_names_that_there_are_not(case: str, name: Any, message: str) -> None:
    with pytest.raises(DomainMismatch, match=message):
        CALLS[case][0](name)
