"""A call of every public function and method of containers and operations, and of algorithms, for
tests of where they work.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import spgraph as sg
from spgraph.containers.storage.arrays import device_of, move
from spgraph.semirings import binary, indexunary, min_plus, monoid, plus_pair, plus_times, unary

RNG = np.random.default_rng(4)
N = 9


def _matrix() -> sg.Matrix:
    dense = np.where(RNG.random((N, N)) < 0.4, RNG.integers(1, 9, (N, N)), 0)
    return sg.Matrix.from_dense(dense, missing=0)


class Given(NamedTuple):
    """What a call is given, all on one device."""

    A: Any
    B: Any
    pattern: Any  # one value for all entries
    v: Any  # sparse
    bits: Any  # a bitmap
    full: Any
    order: Any  # a permutation
    three: Any  # a full Vector of 3

    def to(self, device: str) -> Given:
        """The same elsewhere; nothing is shared."""
        moved = [container.dup().to(device) for container in self]
        moved[3], moved[4] = moved[3].to_sparse(), moved[4].to_bitmap()
        return Given(*moved)


GIVEN = Given(
    _matrix(),
    _matrix(),
    _matrix().pattern(),
    sg.Vector.from_coo([1, 3, 4, 8], [5, 2, 7, 1], size=N),
    sg.Vector.from_coo([0, 1, 3, 5, 6], [4, 3, -2, 7, 1], size=N),
    sg.Vector.from_dense(RNG.integers(-4, 5, N)),
    sg.Vector.from_dense(RNG.permutation(N)),
    sg.Vector.from_dense([7, 8, 9]),
)
_IDS = [5, 0, 7]


def _other(given: Given) -> str:
    return "cpu" if given.A.device == "cpu" else "cuda:0"


def _cupy(v: Any) -> Any:
    return v.to_numpy(fill=0) if v.device == "cpu" else v.to_cupy(fill=0)


def _written(write: Callable[[Any], Any], container: Any) -> Any:
    """A container after it has been written."""
    write(container)
    return container


def _set(container: Any, at: Any, value: Any) -> Any:
    container[at] = value
    return container


CALLS: dict[str, Callable[[Given], Any]] = {
    # --- operations
    "vxm, push": lambda g: sg.vxm(g.v, g.A, min_plus, direction="push"),
    "vxm, pull": lambda g: sg.vxm(g.bits, g.A, plus_times, direction="pull", mask=~g.v.S),
    "mxv": lambda g: sg.mxv(g.A, g.full, plus_times, mask=g.bits.V),
    "mxm": lambda g: sg.mxm(g.A, g.B, plus_times),
    "mxm, mask": lambda g: sg.mxm(g.A, g.B.T, plus_pair, mask=g.A.S),
    "mxm, accum": lambda g: sg.mxm(g.A, g.B, accum=binary.plus, out=g.pattern.astype("int64")),
    "reduce_mxm": lambda g: sg.reduce_mxm(g.A, g.B, plus_pair, mask=g.A.S),
    "reduce": lambda g: [sg.reduce(x, monoid.max) for x in (g.v, g.bits, g.full, g.A, g.pattern)],
    "reduce_rowwise": lambda g: sg.reduce_rowwise(g.A),
    "reduce_columnwise": lambda g: sg.reduce_columnwise(g.A, monoid.max),
    "apply": lambda g: [sg.apply(x, unary.ainv) for x in (g.v, g.bits, g.A)],
    "apply, right": lambda g: [sg.apply(x, binary.plus, right=3) for x in (g.v, g.A)],
    "apply, positions": lambda g: [sg.apply(x, indexunary.rowindex) for x in (g.bits, g.A)],
    "select": lambda g: [sg.select(x, indexunary.valuegt, 2) for x in (g.v, g.bits, g.full, g.A)],
    "select, triangle": lambda g: sg.select(g.A, indexunary.tril, -1),
    "ewise_add": lambda g: [sg.ewise_add(*x) for x in ((g.v, g.bits), (g.full, g.v), (g.A, g.B))],
    "ewise_mult": lambda g: [sg.ewise_mult(*x) for x in ((g.v, g.bits), (g.full, g.v), (g.A, g.B))],
    "ewise_union": lambda g: [
        sg.ewise_union(*x, binary.minus, left=1, right=2) for x in ((g.v, g.bits), (g.A, g.B))
    ],
    "extract": lambda g: [sg.extract(x, _IDS) for x in (g.v, g.bits, g.full)],
    "extract, Vector": lambda g: [sg.extract(x, g.order) for x in (g.v, g.full)],
    "extract, Matrix": lambda g: [sg.extract(x, _IDS, [1, 2, 3]) for x in (g.A, g.pattern)],
    "extract, row": lambda g: [sg.extract(g.A, 4), sg.extract(g.A, slice(None), 4)],
    "extract, mask": lambda g: sg.extract(
        g.full, g.order, mask=g.v.S, accum=binary.plus, out=g.bits
    ),
    "diag": lambda g: [sg.diag(g.v, 1), sg.diag(g.A, -1), sg.diag(g.bits), sg.diag(g.full)],
    "block_array": lambda g: [
        sg.block_array([[g.A, g.B], [None, g.pattern]]), sg.block_array([[g.pattern], [g.pattern]])
    ],
    "kronecker": lambda g: sg.kronecker(g.A, g.pattern),
    "transpose": lambda g: [sg.transpose(g.A), sg.transpose(g.A, mask=g.B.S), g.A.T.T],
    "assign, number": lambda g: [
        sg.assign(g.v, 3, _IDS), sg.assign(g.bits, 3, _IDS), sg.assign(g.full, 3)
    ],
    "assign, Vector": lambda g: [
        sg.assign(g.v, g.three, _IDS), sg.assign(g.bits, g.three, slice(2, 5)),
        sg.assign(g.full, g.full.dup(), g.order, accum=binary.plus),
    ],
    "assign, mask": lambda g: sg.assign(g.bits, g.full, mask=~g.v.S, accum=binary.minus),
    "assign, repeated": lambda g: sg.assign(g.full, g.three, [2, 2, 5], accum=binary.min),
    "assign, Matrix": lambda g: sg.assign(g.A, sg.extract(g.B, _IDS, _IDS), _IDS, [1, 2, 3]),
    "assign, row": lambda g: sg.assign(g.A, g.v, 4),
    "assign, column": lambda g: sg.assign(g.A, g.full, slice(None), 4, accum=binary.plus),
    "assign, block": lambda g: sg.assign(g.A, 3, [1, 4], [2, 3]),
    "assign, masked Matrix": lambda g: sg.assign(g.A, 3, mask=g.B.S, replace=True),
    # --- brackets, arithmetic
    "v[...]": lambda g: [g.v[3], g.v[2:7], g.full[[1, 4]], g.bits[g.order], g.full[::-1]],
    "A[...]": lambda g: [g.A[1, 2], g.A[4], g.A[:, 4], g.A[[1, 5]], g.A[2:5, 3:], g.A[_IDS, _IDS]],
    "v[...] =": lambda g: [
        _set(g.v, 2, 5), _set(g.bits, [1, 4], 6), _set(g.full, slice(0, 3), g.three)
    ],
    "v[mask]": lambda g: [g.full[g.v.S], _set(g.bits, g.v.S, 4)],
    "A[...] =": lambda g: [_set(g.A, (1, 2), 5), _set(g.B, (slice(None), 3), g.full)],
    "A[mask] =": lambda g: _set(g.A, g.B.S, 4),
    "+ - *": lambda g: [g.v + g.bits, g.full - 2, -g.v, 3 * g.A, g.A * g.B, g.A + g.B, g.A - g.A],
    "comparisons": lambda g: [g.v > 2, g.full == 1, g.A >= 3],
    "@": lambda g: [g.A @ g.full, g.v @ g.A, g.A @ g.B, g.v @ g.bits],
    "ufuncs": lambda g: [np.sqrt(g.full.astype(float)), np.abs(g.A), np.maximum(g.full, 2)],
    "copies": lambda g: [copy.copy(g.A), copy.deepcopy(g.bits)],
    # --- methods of both
    "astype": lambda g: [x.astype("int32") for x in (g.v, g.bits, g.full, g.A, g.pattern, g.A.T)],
    "dup": lambda g: [x.dup("float64") for x in (g.v, g.bits, g.full, g.A, g.A.T)],
    "copy": lambda g: [x.copy() for x in (g.v, g.bits, g.A)],
    "isequal": lambda g: [
        g.v.isequal(g.v.dup()), g.v.isequal(g.bits), g.bits.isequal(g.bits.to_sparse()),
        g.A.isequal(g.A.dup()), g.A.isequal(g.B), g.pattern.isequal(g.pattern.dup()),
    ],
    "isclose": lambda g: [g.full.isclose(g.full.dup()), g.bits.isclose(g.bits), g.A.isclose(g.B)],
    "to": lambda g: [x.to("cpu") for x in (g.v, g.bits, g.full, g.A, g.A.T, g.pattern)],
    "to another": lambda g: [x.to(_other(g)).to("cpu") for x in (g.v, g.bits, g.A)],
    "to_coo": lambda g: [x.to_coo() for x in (g.v, g.bits, g.full, g.A, g.A.T, g.pattern)],
    "repr": lambda g: [repr(x)[:0] for x in (g.v, g.bits, g.full, g.A, g.A.T, g.pattern)],
    "iteration": lambda g: [list(x) for x in (g.v, g.bits, g.full, g.A)],
    "nbytes": lambda g: [x.nbytes and 0 for x in (g.v, g.bits, g.A)],
    "sum": lambda g: [x.sum() for x in (g.v, g.bits, g.full, g.A)]
    + [g.A.sum(0), g.A.sum(1, "float32"), g.A.sum(0, out=g.A.sum(0))],
    "mean": lambda g: [x.mean() for x in (g.v, g.A)] + [g.A.mean(0), g.A.mean(1, "float32")],
    "max": lambda g: [x.max() for x in (g.v, g.bits, g.full, g.A)] + [g.A.max(0), g.A.max(1)],
    "min": lambda g: [x.min() for x in (g.v, g.bits, g.full, g.A)] + [g.A.min(0), g.A.min(1)],
    "argmax": lambda g: [x.argmax() for x in (g.v, g.bits, g.full, g.A)] + [g.A.argmax(0)],
    "argmin": lambda g: [x.argmin() for x in (g.v, g.bits, g.full, g.A)] + [g.A.argmin(1)],
    "multiply": lambda g: [g.v.multiply(g.bits), g.A.multiply(g.B), g.A.multiply(2)],
    "power": lambda g: [g.full.power(2), g.A.power(2)],
    "dot": lambda g: [g.A.dot(g.full), g.v.dot(g.full), g.A.dot(g.B)],
    "conj": lambda g: [g.v.conj(), g.A.conj()],
    "nonzero": lambda g: [*g.v.nonzero(), *g.bits.nonzero(), *g.A.nonzero()],
    "toarray": lambda g: [x.toarray() for x in (g.v, g.bits, g.full, g.A)],
    "tocoo": lambda g: [g.v.to("cpu").tocoo().nnz, g.A.to("cpu").tocoo().nnz],
    # --- of a Vector
    "to_sparse": lambda g: [x.to_sparse() for x in (g.v, g.bits, g.full)],
    "to_bitmap": lambda g: [x.to_bitmap() for x in (g.v, g.bits, g.full)],
    "indices": lambda g: [x.indices for x in (g.v, g.bits, g.full)],
    "values": lambda g: [x.values for x in (g.v, g.bits, g.full)],
    "bits": lambda g: [x.to_bitmap().bits for x in (g.v, g.bits)],
    "to_numpy": lambda g: [x.to_numpy(fill=0) for x in (g.v, g.bits, g.full)],
    "to_numpy, NaN": lambda g: [x.to_numpy(fill=np.nan) for x in (g.v, g.bits)],
    "to_cupy": lambda g: [_cupy(x) for x in (g.v, g.bits, g.full)],
    "Vector of arrays": lambda g: [
        sg.Vector.from_coo(g.v.indices, g.v.values, size=N), sg.Vector.from_dense(g.full.values),
        sg.Vector.from_dense(g.full.values, missing=1),
    ],
    "constructors": lambda g: [
        sg.Vector.empty(3, device=g.A.device), sg.Vector.arange(3, device=g.A.device),
        sg.Vector.unit(1, 5, size=3, dtype=int, device=g.A.device),
        sg.Vector.filled(2, size=3, device=g.A.device),
        sg.Vector.from_coo([1, 2], [3, 4], size=9, device=g.A.device),
        sg.Matrix.empty(2, 3, device=g.A.device),
        sg.Matrix.from_coo([1, 2], [0, 1], [3, 4], device=g.A.device),
        sg.generators.grid(3, 3, device=g.A.device),
    ],
    "_value_range": lambda g: [x._value_range() for x in (g.v, g.bits, g.full, g.A, g.pattern)],
    "_with_values": lambda g: [x._with_values(np.abs) for x in (g.v, g.bits, g.full, g.A, g.A.T)],
    "_total": lambda g: float(g.full._total(np.abs)),
    # --- of a Matrix
    "row_degrees": lambda g: [g.A.row_degrees(), g.A.T.row_degrees()],
    "row_indices": lambda g: [g.A.row_indices(), g.A.T.row_indices()],
    "expanded_values": lambda g: [g.pattern.expanded_values(), g.A.expanded_values()],
    "pattern": lambda g: [g.A.pattern(), g.A.T.pattern("int32")],
    "is_symmetric": lambda g: [g.A.is_symmetric(), (g.A + g.A.T).is_symmetric()],
    "diagonal": lambda g: [g.A.diagonal(), g.A.diagonal(1)],
    "setdiag": lambda g: _written(lambda A: A.setdiag(3), g.A),
    "to_dense": lambda g: [g.A.to_dense(), g.pattern.to_dense(fill=0)],
    "to_scipy": lambda g: [g.A.to("cpu").to_scipy().toarray()],
    "prepare": lambda g: g.A.prepare(),
    "matvec": lambda g: [g.A.matvec(g.full.values), g.A.rmatvec(g.full.values)],
    "matmat": lambda g: [g.A.matmat(g.B.to_dense()), g.A.rmatmat(g.B.to_dense())],
    "A @ array": lambda g: [g.A @ g.B.to_dense(), g.A @ g.full.values],
    "agg": lambda g: [sg.agg.sum(g.A, g.B.to_dense()), sg.agg.max(g.A, g.B.to_dense()),
                      sg.agg.mean(g.A, g.B.to_dense())],
    "Matrix of arrays": lambda g: [
        sg.Matrix.from_coo(*g.A.to_coo(), nrows=N, ncols=N), sg.Matrix.from_dense(g.A.to_dense())
    ],
    "_where": lambda g: g.A._where(lambda a, i, j: (a > 2) & (i < j), g.full),
    "_sampled_mean": lambda g: [g.A._sampled_mean(), g.pattern._sampled_mean()],
    "_sampled_row_length": lambda g: [g.A._sampled_row_length()],
}  # fmt: skip

# each is kernels of its own: for a GPU, where compiling them pays
ALGORITHMS: dict[str, Callable[[Given], Any]] = {
    "bfs": lambda g: [*sg.bfs(g.A, 0)],
    "sssp": lambda g: [*sg.sssp(g.A, 0)],
    "reachable": lambda g: sg.reachable(g.A, 0),
    "pagerank": lambda g: sg.pagerank(g.A, max_iter=5, tol=None),
    "closeness_centrality": lambda g: sg.closeness_centrality(g.A),
    "betweenness_centrality": lambda g: sg.betweenness_centrality(g.A),
    "connected_components": lambda g: sg.connected_components(g.A),
    "core_number": lambda g: sg.core_number(g.A + g.A.T),
    "k_truss": lambda g: sg.k_truss(g.A + g.A.T, 3),
    "triangle_count": lambda g: sg.triangle_count(g.A + g.A.T),
    "clustering": lambda g: sg.clustering(g.A + g.A.T),
    "greedy_color": lambda g: sg.greedy_color(g.A + g.A.T, seed=1),
    "maximal_independent_set": lambda g: sg.maximal_independent_set(g.A + g.A.T, seed=1),
    "minimum_spanning_tree": lambda g: sg.minimum_spanning_tree(g.A + g.A.T),
    "label_propagation": lambda g: sg.label_propagation(g.A + g.A.T, seed=1),
    "hits": lambda g: [*sg.hits(g.A, max_iter=5, tol=None)],
    "multi_source_bfs": lambda g: sg.multi_source_bfs(g.A, [0, 3]),
}


def check(call: Callable[[Given], Any], device: str, right: Any) -> None:
    """The results of a call are those `right` of the CPU, and lie on the device."""
    for expected, found in zip(_flat(right), _flat(call(GIVEN.to(device))), strict=True):
        if isinstance(expected, sg.Matrix | sg.Vector):
            for name in ("_values", "_indices", "_bits", "_indptr"):
                if (array := getattr(found, name, None)) is not None:
                    assert device_of(array) == found.device, name
            assert found.to("cpu").isclose(expected, rtol=1e-6)
        elif isinstance(expected, np.ndarray):
            assert device_of(found) in (device, "cpu")
            np.testing.assert_allclose(move(found, "cpu"), expected)
        elif isinstance(expected, float):  # a sum of floats, in another order
            assert found == pytest.approx(expected, rel=1e-12, nan_ok=True)
        else:
            assert found == expected


def _flat(results: Any) -> list[Any]:
    if isinstance(results, list | tuple):
        return [one for each in results for one in _flat(each)]
    return [results]
