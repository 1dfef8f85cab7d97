"""What a user writes, with the types that editors show: mypy checks it, and it runs.

A line that ends in `# error: CODE` is one that mypy has to refuse.
"""

from __future__ import annotations

from typing import assert_type

import numpy as np
import scipy.sparse

import spgraph as sg
from spgraph.iterations import Hop, Level, Power, Step, closure, power
from spgraph.semirings import BinaryOp, Semiring, binary, indexunary, monoid, plus_times, unary

S = scipy.sparse.csr_array(np.ones((6, 6)))
A = sg.Matrix.from_scipy(S)
u = sg.Vector.from_coo([1, 2], [1.0, 2.0], size=6, dup_op=binary.plus)
full = sg.Vector.from_dense(np.ones(6))

# operations give what they are given
assert_type(sg.select(A, indexunary.tril, -1), sg.Matrix)
assert_type(sg.select(u, indexunary.valuegt, 0.5), sg.Vector)
assert_type(sg.apply(u, unary.sqrt, mask=~u.S), sg.Vector)
assert_type(sg.ewise_add(A, S), sg.Matrix)
assert_type(sg.ewise_mult(u, full), sg.Vector)
assert_type(sg.ewise_union(A, np.ones((6, 6))), sg.Matrix)
assert_type(sg.mxm(A, A, plus_times, mask=A.S), sg.Matrix)
assert_type(sg.vxm(u, A, direction="push"), sg.Vector)
assert_type(sg.extract(A, 3), sg.Vector)
assert_type(sg.extract(A, [0, 3]), sg.Matrix)
assert_type(sg.extract(A, None, 3), sg.Vector)
assert_type(sg.assign(u, 0, [1], accum=monoid.plus), sg.Vector)
assert_type(sg.diag(full), sg.Matrix)
assert_type(sg.diag(A), sg.Vector)
assert_type(sg.reduce_rowwise(A), sg.Vector)
assert int(sg.reduce(A.pattern(), dtype=np.int64)) == 36
assert float(sg.reduce(u, monoid.max)) == 2.0
assert int(sg.reduce_mxm(A, A.T, plus_times, mask=A.S)) >= 0

# operators by name; containers of what stands for them
assert_type(sg.mxm(A, A, "min_plus", accum="plus", out=A.dup()), sg.Matrix)
assert_type(sg.apply(u, "sqrt"), sg.Vector)
assert_type(sg.select(A, "tril", -1), sg.Matrix)
assert_type(sg.ewise_add(u, full, "max"), sg.Vector)
assert float(sg.reduce(u, "max")) == 2.0
assert_type(sg.Matrix([[1, 2], [3, 4]]), sg.Matrix)
assert_type(sg.Matrix(S), sg.Matrix)
assert_type(sg.Vector([1, 2, 3]), sg.Vector)

# what SciPy's sparse arrays have
assert A.nnz == 36 and A.ndim == 2 and A.toarray().shape == (6, 6)
assert float(A.sum()) == 36.0 and A.sum(axis=0).shape == (6,)
assert A.tocsr().format == "csr" and A.diagonal(1).size == 5
assert_type(A.transpose(), sg.Matrix)
assert_type(A.astype(float, casting="safe", copy=False), sg.Matrix)

# operators and brackets
assert_type(A @ A, sg.Matrix)
assert_type(A @ u, sg.Vector)
assert (A @ np.ones(6)).shape == (6,) and (np.ones((2, 6)) @ A).shape == (2, 6)
assert_type(sg.mxm(A, A, plus_times), sg.Matrix)
assert sg.mxv(A, np.ones(6), plus_times, fill=0).dtype == np.float64
assert sg.mxm(S, np.ones((6, 3))).ndim == 2
assert_type(2 * u + full / 3, sg.Vector)
assert_type(u > 1, sg.Vector)
assert_type(A[0], sg.Vector)
assert_type(A[:, 1], sg.Vector)
assert_type(A[[0, 1], 2:5], sg.Matrix)
assert_type(A[A.V], sg.Matrix)
assert_type(A[A > 2], sg.Matrix)
assert_type(u[u > 1], sg.Vector)
u[[0, 1]] = [1.0, 2.0]
entry = A[0, 1]
assert entry is not None and float(entry) == 1.0
A[0, 1] = 1.0
u[3] = 2

# algorithms and loops
level, parent = sg.bfs(A, np.int64(0))
assert_type(level, sg.Vector)
assert_type(sg.bfs(A, 0, trace=True).trace, list[Level])
assert_type(sg.sssp(S, 0).distance, sg.Vector)
assert_type(sg.sssp(S, 0).path_to(0), list[int])
assert_type(sg.pagerank(A, personalization=np.ones(6)), sg.Vector)
assert_type(sg.triangle_count(S), int)
assert_type(sg.minimum_spanning_tree(A), sg.Matrix)
least = Semiring(monoid.min, BinaryOp.define(lambda x, y: x + y))
assert_type(closure(A, u, least), sg.Vector)
assert_type(power(full, Step((Hop(A),)), norm=1), Power)
assert_type(sg.bfs(A.distribute(2), 0).level, sg.Vector)

# constructors and conversions
assert_type(sg.Matrix.from_coo([0], [1]), sg.Matrix)
assert_type(sg.Matrix.from_coo([5, 7], [7, 9], compact=True)[0], sg.Matrix)
assert_type(sg.Vector.filled(0.5, size=3, dtype="float32"), sg.Vector)
assert_type(u.to_numpy(fill=0), np.ndarray)
assert_type(A.T, sg.Matrix)
assert_type(A.row_degrees(), sg.Vector)


def refused() -> None:
    """Never called: each line is wrong."""
    _ = sg.select(u, indexunary.tril).nrows  # error: attr-defined
    _ = A.nvalues  # error: attr-defined
    sg.mxv(A, A)  # error: call-overload
    sg.bfs(A, "0")  # error: call-overload
    sg.vxm(u, A, direction="up")  # error: call-overload
    sg.Vector.filled("x", size=3)  # error: arg-type
    sg.ewise_add(u, A)  # error: call-overload
