"""A backend with the required functions alone (spgraph/backends/README.md), in plain NumPy.

Tests of operations and algorithms run on it beside the real backends (`fixtures_device.device`):
what it computes shows that the required functions are enough, and that the contract says all that
there is to know about them. Its containers are those of the CPU.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.special

from spgraph.containers import Mask, Matrix, Vector
from spgraph.containers.storage.arrays import index_dtype
from spgraph.semirings import Function, TypedMonoid, TypedSemiring, binary
from spgraph.semirings.functions import TYPES

# what overflows or is no number is a value like others
quiet = np.errstate(all="ignore")
# the operators that apply and select take, as calls of a value, its row and column and a scalar
CALLS: dict[str, Any] = {
    "unary": lambda op, x, i, j, scalar: op(x),
    "left": lambda op, x, i, j, scalar: op(scalar, x, i, j, i, j),
    "right": lambda op, x, i, j, scalar: op(x, scalar, i, j, i, j),
    "index": lambda op, x, i, j, scalar: op(x, i, j, scalar),
}


# --- operators, over arrays -----------------------------------------------------------------------


class Library:
    """NumPy in place of NumPy and Python's math: what these refuse (a root of -1, an integer that
    its type does not hold) is NaN or wraps around.
    """

    def __getattr__(self, name: str) -> Any:
        other = {"gamma": "gamma", "lgamma": "gammaln", "erf": "erf", "erfc": "erfc"}.get(name)
        return getattr(scipy.special, other) if other else getattr(np, name)


LIBRARY = Library()
for kind in TYPES:
    setattr(LIBRARY, kind.name, lambda x, kind=kind: np.asarray(x).astype(kind)[()])
LIBRARY.bool_ = LIBRARY.bool


class OverArrays(ast.NodeTransformer):
    """Conditional expressions as functions of arrays."""

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        return self._call("where", node.test, node.body, node.orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        name = "logical_or" if isinstance(node.op, ast.Or) else "logical_and"
        made = node.values[0]
        for value in node.values[1:]:
            made = self._call(name, made, value)
        return made

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return self._call("logical_not", node.operand) if isinstance(node.op, ast.Not) else node

    def _call(self, name: str, *arguments: Any) -> ast.AST:
        return ast.Call(ast.Name(f"np_{name}", ast.Load()), list(arguments), [])


@lru_cache(maxsize=1024)
def called(op: Function) -> Any:
    """The operator as a function of arrays, any of its last ones left out."""
    tree = ast.parse(op.define_python("op"))
    branches = any(isinstance(node, ast.If | ast.For | ast.While) for node in ast.walk(tree))
    tree = tree if branches else ast.fix_missing_locations(OverArrays().visit(tree))
    scope = {"np": LIBRARY, "math": LIBRARY, "njit": lambda **options: lambda f: f}
    scope |= {f"np_{n}": getattr(np, n) for n in "where logical_or logical_and logical_not".split()}
    exec(compile(tree, op.name, "exec"), scope)
    one = scope["op"]

    def many(*arguments: Any) -> np.ndarray:
        given = [np.asarray(x) for x in (*arguments, 0, 0, 0, 0)[: len(op.parameters)]]
        z = np.empty(np.broadcast(*given).shape, op.result)
        if branches:
            z[...] = [one(*each) for each in zip(*np.broadcast_arrays(*given), strict=True)]
        else:
            z[...] = one(*given)
        return z

    return many


# --- containers as ascending keys and values ------------------------------------------------------


def flat(u: Vector | Matrix) -> tuple[np.ndarray, np.ndarray]:
    """(keys, values): the indices of a Vector, row * ncols + column of a Matrix."""
    if isinstance(u, Vector):
        u = u.to_sparse()
        return u._indices.astype(np.int64), u._values
    return u.row_indices().astype(np.int64) * u.ncols + u._indices, u._expanded_values()


def made(shape: tuple[int, ...], keys: np.ndarray, values: np.ndarray) -> Any:
    """The container of these entries; keys ascend."""
    if len(shape) == 1:
        return Vector._of(shape[0], values, indices=keys.astype(index_dtype(shape[0])))._conform()
    rows, columns = places(shape, keys)
    indptr = np.zeros(shape[0] + 1, index_dtype(keys.size))
    np.cumsum(np.bincount(rows, minlength=shape[0]), out=indptr[1:])
    return Matrix._of(*shape, indptr, columns.astype(index_dtype(max(shape))), values)


def places(shape: tuple[int, ...], keys: np.ndarray) -> tuple[Any, Any]:
    """(rows, columns); a Vector is one column."""
    return (keys, 0) if len(shape) == 1 else np.divmod(keys, max(shape[1], 1))


def moved(A: Any, shape: tuple[int, ...], keys: np.ndarray, of: np.ndarray) -> Any:
    """Entries number `of` of A at `keys`: of an iso Matrix another."""
    order = np.argsort(keys, kind="stable")
    found = made(shape, keys[order], flat(A)[1][of[order]])
    if isinstance(A, Matrix) and A.iso:
        return Matrix._of(*shape, found._indptr, found._indices, A._values.copy(), iso=True)
    return found


def find(keys: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(where each wanted key stands among ascending ones, whether it does)."""
    if keys.size == 0:
        return np.zeros(wanted.size, np.int64), np.zeros(wanted.size, bool)
    if keys[-1] - keys[0] == keys.size - 1:  # all of a range
        at = wanted - keys[0]
        found = (at >= 0) & (at < keys.size)
        return np.where(found, at, 0), found
    at = np.searchsorted(keys, wanted)
    at[at == keys.size] = 0
    return at, keys[at] == wanted


def united(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The keys of either, ascending and each once."""
    return a if a.size == b.size and (a == b).all() else np.union1d(a, b)


def runs(starts: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n, p) for every p of every run n of counts[n] places from starts[n]."""
    counts = counts.astype(np.int64)
    which = np.repeat(np.arange(counts.size), counts)
    return which, np.arange(which.size) - (np.cumsum(counts) - counts - starts)[which]


def allowed(mask: Mask | None, keys: np.ndarray) -> np.ndarray:
    """Whether the mask allows each of the positions."""
    if mask is None:
        return np.ones(keys.size, bool)
    chosen, values = flat(mask.parent)
    return find(chosen if mask.structure else chosen[values != 0], keys)[1] != mask.complement


# --- entry by entry: the same for Vectors and Matrices --------------------------------------------


@quiet
def apply(u: Any, op: Function, kind: str, scalar: Any) -> Any:
    keys, values = flat(u)
    return made(u.shape, keys, CALLS[kind](called(op), values, *places(u.shape, keys), scalar))


@quiet
def ewise(u: Any, v: Any, op: Function, union: bool, left: Any = None, right: Any = None) -> Any:
    (a, x), (b, y) = flat(u), flat(v)
    keys = united(a, b) if union else a[find(b, a)[1]]
    (p, in_u), (q, in_v) = find(a, keys), find(b, keys)
    z = np.empty(keys.size, op.result)
    z[in_u], z[in_v] = x[p[in_u]], y[q[in_v]]
    for at in [in_u & in_v] if left is None else [in_u & in_v, in_u & ~in_v, in_v & ~in_u]:
        if at.any():
            first = x[p[at]] if in_u[at][0] else np.asarray(left).astype(op.arguments[0])
            second = y[q[at]] if in_v[at][0] else np.asarray(right).astype(op.arguments[1])
            i, j = places(u.shape, keys[at])
            z[at] = called(op)(first, second, i, j, i, j)
    return made(u.shape, keys, z)


@quiet
def select(u: Any, op: Function, thunk: Any) -> Any:
    keys, values = flat(u)
    kept = np.flatnonzero(called(op)(values, *places(u.shape, keys), thunk))
    return moved(u, u.shape, keys[kept], kept)


@quiet
def write(out: Any, t: Any, mask: Mask | None, accum: Function | None, replace: bool) -> None:
    (a, x), (b, y) = flat(out), flat(t)
    keys = united(a, b)
    (p, in_out), (q, in_t), may = find(a, keys), find(b, keys), allowed(mask, keys)
    z = np.empty(keys.size, out.dtype)
    new = may & in_t
    z[in_out], z[new] = x[p[in_out]], y[q[new]]
    if accum is not None:
        both = new & in_out
        i, j = places(out.shape, keys[both])
        z[both] = called(accum)(x[p[both]], y[q[both]], i, j, i, j)
    kept = new | (in_out & (may if accum is not None else False))
    kept |= in_out & ~may & (not replace)
    out._become(made(out.shape, keys[kept], z[kept]))


apply_matrix, ewise_matrix, select_matrix, write_matrix = apply, ewise, select, write


# --- sums -----------------------------------------------------------------------------------------


def sums(keys: np.ndarray, values: np.ndarray, add: TypedMonoid) -> tuple[np.ndarray, np.ndarray]:
    """(keys, each once; the sum of the values of each)."""
    z = values.astype(add.dtype)
    if (keys[1:] < keys[:-1]).any():
        order = np.argsort(keys, kind="stable")
        keys, z = keys[order], z[order]
    if not add.any:  # of one value too: min and max drop NaN
        z = called(add.function)(add.identity, z)
    while True:  # neighbours of one key in pairs, until each stands alone
        begins = np.ones(keys.size, bool)
        begins[1:] = keys[1:] != keys[:-1]
        if begins.all():
            return keys, z
        places = np.arange(keys.size)
        left = (places - np.maximum.accumulate(np.where(begins, places, 0))) % 2 == 0
        right = np.flatnonzero(~left)
        if not add.any:
            z[right - 1] = called(add.function)(z[right - 1], z[right])
        keys, z = keys[left], z[left]


@quiet
def reduce(u: Vector, monoid: TypedMonoid) -> Any:
    keys, values = flat(u)
    total = sums(np.zeros(keys.size, int), values, monoid)[1]
    return total[0] if total.size else monoid.identity


@quiet
def reduce_segments(
    values: np.ndarray, starts: np.ndarray, op: Function, dtype: np.dtype, first: Any = None
) -> np.ndarray:
    if dtype.kind in "iu" and values.dtype == dtype and starts.size:
        for operator, fold in ((binary.min, np.minimum), (binary.max, np.maximum)):
            if op == operator.resolve(dtype, dtype):  # in any order: long groups at once
                z = fold.reduceat(values, starts)
                if first is not None:
                    flags, before = first
                    z[flags] = fold(z[flags], before[flags].astype(dtype))
                return z
    sizes = np.diff(np.append(starts, values.size))
    z = values[starts].astype(dtype)
    if first is not None:
        flags, before = first
        z[flags] = called(op)(before[flags].astype(dtype), values[starts[flags]])
    for k in range(1, int(sizes.max(initial=0))):
        g = np.flatnonzero(sizes > k)
        z[g] = called(op)(z[g], values[starts[g] + k])
    return z


# --- parts ----------------------------------------------------------------------------------------


def extract(u: Vector, indices: np.ndarray) -> Vector:
    at, found = find(flat(u)[0], indices)
    found = np.flatnonzero(found)
    return moved(u, (indices.size,), found, at[found])


def extract_matrix(A: Matrix, rows: np.ndarray | None, columns: np.ndarray | None) -> Matrix:
    rows, columns = (
        np.arange(n) if x is None else x for n, x in zip(A.shape, (rows, columns), strict=True)
    )
    r, p = runs(A._indptr[rows], np.diff(A._indptr)[rows])
    order = np.argsort(columns, kind="stable")
    first, last = (
        np.searchsorted(columns[order], A._indices[p], side) for side in ("left", "right")
    )
    n, q = runs(first, last - first)
    keys = r[n] * columns.size + order[q]
    return moved(A, (rows.size, columns.size), keys, p[n])


def transpose(A: Matrix) -> Matrix:
    i, j = places(A.shape, flat(A)[0])
    return moved(A, (A.ncols, A.nrows), j * A.nrows + i, np.arange(A.nvals))


@quiet
def kronecker(A: Matrix, B: Matrix, op: Function) -> Matrix:
    p, q = np.divmod(np.arange(A.nvals * B.nvals), max(B.nvals, 1))
    (a, x), (b, y) = flat(A), flat(B)
    (i, j), (k, m) = places(A.shape, a[p]), places(B.shape, b[q])
    shape = A.nrows * B.nrows, A.ncols * B.ncols
    keys = (i * B.nrows + k) * shape[1] + j * B.ncols + m
    order = np.argsort(keys)
    return made(shape, keys[order], called(op)(x[p], y[q])[order])


# --- products -------------------------------------------------------------------------------------


def by_vector(A: Matrix, u: Vector, axis: int, mask: Mask | None) -> tuple[np.ndarray, ...]:
    """(position in the result, entry of A, entry of u, its position) of all products; axis 1: they
    run over the columns of A, 0: over its rows.
    """
    keys, values = flat(A)
    ids = places(A.shape, keys)
    at, there = find(flat(u)[0], ids[axis])
    there = np.flatnonzero(there & allowed(mask, ids[1 - axis]))
    return ids[1 - axis][there], values[there], flat(u)[1][at[there]], ids[axis][there]


@quiet
def pull(A: Matrix, u: Vector, semiring: TypedSemiring, mask: Mask | None, flip: bool) -> Vector:
    i, a, b, k = by_vector(A, u, 1, mask)
    operands = (b, a, 0, k, k, i) if flip else (a, b, i, k, k, 0)
    return made((A.nrows,), *sums(i, called(semiring.multiply)(*operands), semiring.add))


@quiet
def push(A: Matrix, u: Vector, semiring: TypedSemiring, mask: Mask | None, flip: bool) -> Vector:
    j, a, b, k = by_vector(A, u, 0, mask)
    operands = (a, b, j, k, k, 0) if flip else (b, a, 0, k, k, j)
    return made((A.ncols,), *sums(j, called(semiring.multiply)(*operands), semiring.add))


@quiet
def multiply_rows(A: Matrix, B: Matrix, semiring: TypedSemiring, mask: Mask | None) -> Matrix:
    (a, x), (_, y), shape = flat(A), flat(B), (A.nrows, B.ncols)
    i, k = places(A.shape, a)
    p, q = runs(B._indptr[k], np.diff(B._indptr)[k])
    i, k, j = i[p], k[p], B._indices[q].astype(np.int64)
    keys = i * B.ncols + j
    may = allowed(mask, keys)
    products = called(semiring.multiply)(*(n[may] for n in (x[p], y[q], i, k, k, j)))
    return made(shape, *sums(keys[may], products, semiring.add))
