"""How many edges components look at, beside what the text of the CPU's kernel reads as Python."""

from __future__ import annotations

import ast
import importlib
import types
from typing import Any

import numpy as np
import pytest
from two_devices import two_devices  # noqa: F401

import spgraph as sg
from benchmarks.measuring.component_edges import component_edges
from spgraph.backends.cpu.runtime import jit
from spgraph.distributed import Placement

host: Any = importlib.import_module("spgraph.backends.cpu.contract.contract")


class Noted:
    """An array that notes which of its elements are read."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.size, self.read = array, array.size, set()

    def __getitem__(self, k: Any) -> Any:
        self.read.add(int(k))
        return self.array[k]


def looked_at(A: sg.Matrix, patch: pytest.MonkeyPatch) -> int:
    """The edges that the kernel reads, on one thread, but for those that only vote."""

    def store(array: Any, k: Any, value: Any) -> None:
        array[k] = value

    def swap(array: Any, k: Any, old: Any, new: Any) -> bool:
        same = array[k] == old
        array[k] = new if same else array[k]
        return bool(same)

    def add(array: Any, k: int, value: int) -> int:
        array[k] += value
        return int(array[k]) - value

    def nothing(*given: Any) -> None:
        pass

    names: dict[str, Any] = {"np": np, "inner": lambda f: f, "kernel": lambda f: f}
    names |= {"atomic_load": lambda array, k: array[k], "atomic_store": store, "atomic_add": add}
    names |= {"compare_exchange": swap, "barrier": nothing, "poll": nothing}
    exec(compile(ast.parse(jit.text_of("contract")), "contract", "exec"), names)
    names["PIECE"] = 7  # rows are cut
    vote, noted = names["elect"], Noted(A._indices)
    names["elect"] = lambda indices, label: vote(indices.array, label)
    # a vertex without edges reads the entry behind its row, and takes itself
    entry = names["neighbour"]
    names["neighbour"] = lambda indptr, indices, v, k: (
        entry(indptr, indices, v, k) if indptr[v] + int(k) < indptr[v + np.uint64(1)] else v
    )

    def launch(kernel: Any, threads: int, *given: Any) -> None:
        with np.errstate(all="ignore"):
            kernel(0, 1, None, *(noted if array is A._indices else array for array in given))

    expected = sg.connected_components(A).to_numpy()
    with patch.context() as patched:
        made = types.SimpleNamespace(contract=names["contract"])
        patched.setattr(host, "jit", types.SimpleNamespace(module=lambda stem, preamble: made))
        patched.setattr(host.pool, "threads_for", lambda *given: 1)
        patched.setattr(host.pool, "launch", launch)
        assert (host.contract(A, True).to_numpy() == expected).all()
    return len(noted.read)


def chain(*parts: sg.Matrix) -> sg.Matrix:
    """The graphs beside each other."""
    rows, columns, first = [], [], 0
    for part in parts:
        i, j, _ = part.to_coo()
        rows.append(i + first), columns.append(j + first)
        first += part.nrows
    at = np.concatenate(rows), np.concatenate(columns)
    return sg.Matrix.from_coo(*at, True, nrows=first, ncols=first, symmetric=True)


def complete(n: int) -> sg.Matrix:
    return sg.Matrix.from_dense(~np.eye(n, dtype=bool), missing=False)


GRAPHS = {
    "kronecker": sg.generators.kronecker(8, 8, seed=3),
    "grid": sg.generators.grid(9, 14, remove=0.1),
    "no giant": chain(*(complete(n) for n in (5, 6, 6, 5))),
    "two": chain(complete(24), sg.generators.grid(4, 4), complete(3)),
    "star": chain(
        sg.Matrix.from_coo([0] * 9 + list(range(1, 10)), list(range(1, 10)) + [0] * 9, True),
        complete(2),
    ),
}


# at most, of 2,572, 406, 100, 606 and 20 edges; as in test_counts.py
LOOKED_AT = {"kronecker": 394, "grid": 251, "no giant": 100, "two": 102, "star": 13}


@pytest.mark.parametrize("name", GRAPHS)
def test_what_is_counted_is_what_the_kernel_reads(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    A = GRAPHS[name]
    assert component_edges(A) == looked_at(A, monkeypatch) <= LOOKED_AT[name]


def test_shards_and_other_matrices(two_devices: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """In shards on the CPU all edges are followed; a GPU leaves out the second edge of a vertex
    whose least neighbour is above it.
    """
    A = GRAPHS["two"]
    assert component_edges(A.distribute(3)) == A.nvals
    monkeypatch.setattr(Placement, "has", lambda placement, name: True)  # as on GPUs
    for partition in ("edges", "random"):
        assert component_edges(A.distribute(3, partition=partition)) == component_edges(A) < A.nvals
    monkeypatch.undo()
    edge = sg.Matrix.from_coo([0], [1], True, nrows=2, ncols=2)
    assert component_edges(edge) is None
    degrees, first = np.diff(A.indptr), A.indices[A.indptr[:-1]]
    least = (first < np.arange(A.nrows)) & (degrees > 1)
    followed = np.where(least, 2, np.minimum(degrees, 1))
    outside = np.arange(A.nrows) >= 24
    expected = followed.sum() + (degrees - followed)[outside].sum()
    assert component_edges(A.dup().to("cuda:1")) == expected
