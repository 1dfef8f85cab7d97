"""What spgraph answers to a case: on a device, or in shards."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from soak.entries import Entries, Refusal, container, placed, read_back
from soak.operations import Case

REFUSALS = (ValueError, TypeError, OverflowError)  # what spgraph.errors are made of


def answer(case: Case, device: str = "cpu", shards: int = 0) -> Entries | Refusal:
    """The entries that the case gives; AssertionError where something else was changed by it."""
    place = _placement(case, device, shards) if shards else device
    given = [placed(e, form, place) for e, form in zip(case.operands, case.forms, strict=True)]
    out = None if case.out is None else placed(case.out, case.out_form, place)
    mask = None if case.mask is None else placed(case.mask, case.mask_form, place)
    if case.own_mask:
        mask = out
    if case.alias is not None:
        given[case.alias] = out
    options: dict[str, Any] = {}
    if mask is not None:
        chosen = mask.S if case.structure else mask.V
        options["mask"] = ~chosen if case.complement else chosen
    try:
        result = _called(case, given, out, options, place)
    except REFUSALS as error:
        if out is not None:
            _unchanged("out, by a call that failed", out, case.out)
        return Refusal(f"{type(error).__name__}: {error}")
    if out is not None:
        assert result is out, "out is not what was returned"
    for k, (one, entries) in enumerate(zip(given, case.operands, strict=True)):
        if k != case.alias:
            _unchanged(f"operand {k}", one, entries)
    if mask is not None and not case.own_mask:
        _unchanged("the mask", mask, case.mask)
    if case.what == "reduce":
        value = np.asarray(result.get() if hasattr(result, "get") else result)
        return Entries((1,), np.zeros(1, np.int64), value.reshape(1))
    return read_back(result)


def _placement(case: Case, device: str, shards: int) -> Any:
    """The Placement that divides the rows of the first Matrix, or the positions of a Vector."""
    import spgraph as sg

    there = [e for e in (*case.operands, case.mask, case.out) if e is not None]
    matrices = [e for e in there if len(e.shape) == 2]
    n = there[0].shape[0] if there else 4
    A = container(matrices[0], ("plain", "int32", "int32")) if matrices else sg.Matrix.empty(n, n)
    square = A.nrows == A.ncols
    partition = "random" if square and A.nvals % 2 else "edges"
    return A.distribute(shards, devices=device, partition=partition).device


def _unchanged(what: str, container: Any, entries: Any) -> None:
    now = read_back(container)
    same = np.array_equal(now.keys, entries.keys)
    kind = entries.dtype.kind == "f"
    same = same and np.array_equal(now.values, entries.values, equal_nan=kind)
    assert same and now.dtype == entries.dtype, f"{what} was changed"


def _called(case: Case, given: list[Any], out: Any, options: dict[str, Any], place: Any) -> Any:
    import spgraph as sg
    from spgraph import semirings
    from spgraph.semirings import binary

    if case.what == "build":
        return _built(case, place)
    if case.sign is not None:
        left, right = ([case.options[k]] if k in case.options else [] for k in ("left", "right"))
        return SIGNS[case.sign](*left, *given, *right)
    if case.what == "reduce":
        return sg.reduce(given[0], getattr(semirings.monoid, case.op))
    options["accum"] = None if case.accum is None else getattr(binary, case.accum)
    options["replace"] = case.replace
    if case.what == "assign":
        value = case.options["value"] if "value" in case.options else given[0]
        at = [case.options["indices"], *([case.options["columns"]] if out.shape[1:] else [])]
        return sg.assign(out, value, *at, **options)
    options["out"] = out
    name, _, form = case.what.partition(" ")
    function = getattr(sg, name)
    if name in ("mxv", "vxm", "mxm"):
        semiring = getattr(semirings, "_".join(case.op))
        return function(*given, semiring, **case.options, **options)
    if name.startswith("ewise") or name == "kronecker":
        return function(*given, getattr(binary, case.op), **case.options, **options)
    if name == "apply":
        kind = {"unary": semirings.unary, "index": semirings.indexunary}.get(form, binary)
        return function(*given, getattr(kind, case.op), **case.options, **options)
    if name == "select":
        op = getattr(semirings.indexunary, case.op)
        return function(*given, op, case.options["thunk"], **options)
    if name.startswith("reduce_"):
        return function(*given, getattr(semirings.monoid, case.op), **options)
    if name == "extract":
        return function(*given, *case.options.values(), **options)
    return function(*given, **case.options, **options)  # transpose, diag


SIGNS: dict[str, Any] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "|": operator.or_,
    "&": operator.and_,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _built(case: Case, place: Any) -> Any:
    import spgraph as sg
    from spgraph.semirings import binary

    op = None if case.op is None else getattr(binary, case.op)
    at, values = case.options["at"], case.options["values"]
    given: dict[str, Any] = {"dup_op": op, "device": place}
    if len(case.shape) == 1:
        return sg.Vector.from_coo(*at, values, size=case.shape[0], **given)
    nrows, ncols = case.shape
    return sg.Matrix.from_coo(*at, values, nrows=nrows, ncols=ncols, **given)
