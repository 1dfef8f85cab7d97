"""The shortest-path DAG of the values of a closure: its edges, and the parents along them."""

from __future__ import annotations

from spgraph import checks
from spgraph.containers import Matrix, MatrixLike, Vector
from spgraph.containers.annotations import SemiringLike
from spgraph.errors import DomainMismatch
from spgraph.iterations.integer_sums import min_plus_and_one
from spgraph.iterations.level_search import operands, typed_for_rounds
from spgraph.operations import diag, mxm, select, vxm
from spgraph.semirings import Semiring, TypedSemiring, binary, indexunary, min_first
from spgraph.semirings import monoid as monoids
from spgraph.steps import backend


def dag_edges(A: MatrixLike, x: Vector, semiring: SemiringLike) -> Matrix:
    """The edges of the shortest-path DAG of `x` over `semiring`: the pattern of all entries (i, j)
    of `A` with x[i] * A[i, j] == x[j].

    An iso Matrix of value True. For a closure x from one vertex, over a semiring that makes no
    value better along an edge, they lead from that vertex to all that have an entry; a search
    over them finds, among the best walks, those of the fewest edges. `parents` does without that
    search where every edge makes values worse.

    Raises DimensionMismatch, DomainMismatch and BackendMismatch.

    >>> import spgraph as sg
    >>> from spgraph.iterations import dag_edges
    >>> from spgraph.semirings import min_plus
    >>> A = sg.Matrix.from_coo([0, 0, 1], [1, 2, 2], [1, 5, 2], nrows=3, ncols=3)
    >>> dag_edges(A, sg.Vector.from_dense([0, 1, 3]), min_plus).to_coo()[:2]
    (array([0, 1], dtype=int32), array([1, 2], dtype=int32))
    """
    A, x, typed = _carried("dag_edges", A, x, semiring)
    if x.nvals == 0 or A.nvals == 0:
        return Matrix.empty(A.nrows, A.ncols, bool, device=A.device).pattern()
    found: Matrix = getattr(backend(A.device), "dag_edges", composed_dag_edges)(A, x, typed)
    found._transient = True  # what is made of it is looked at once
    return found


def composed_dag_edges(A: Matrix, x: Vector, typed: TypedSemiring) -> Matrix:
    """`dag_edges` out of operations, with the arguments of a backend's."""
    X, multiply = diag(x), backend(A.device).multiply_rows
    # x[i] * A[i, j], and where that is x[j]
    semiring = TypedSemiring("any_multiply", typed.multiply, monoids.any.resolve(typed.dtype))
    carried = multiply(X, A, semiring, None)
    equal = mxm(carried, X, Semiring(monoids.any, binary.eq))
    return select(equal, indexunary.valueeq, True).pattern()


def parents(A: MatrixLike, x: Vector, semiring: SemiringLike) -> Vector:
    """For every vertex the least other one that carries the value of x to it: the least u != v with
    x[u] * A[u, v] == x[v].

    A Vector of A.nrows and of the type of A.indices; vertices without such a u, as the sources of a
    closure x, have no entry. They form trees where every edge makes values worse, as for what
    `counted` gives. Where values may stay the same along an edge, as distances do over weights of
    zero and widths over wide edges, parents may form a cycle: there a search over the `dag_edges`
    finds those of the best walks.

    `A`, `x` and `semiring` are as for `dag_edges`. Looks at A's transpose only where it is at hand
    already.

    Raises DimensionMismatch, DomainMismatch and BackendMismatch.

    >>> import spgraph as sg
    >>> from spgraph.iterations import parents
    >>> from spgraph.semirings import min_plus
    >>> A = sg.Matrix.from_coo([0, 0, 1], [1, 2, 2], [1, 5, 2], nrows=3, ncols=3)
    >>> parents(A, sg.Vector.from_dense([0, 1, 3]), min_plus).to_numpy(fill=-1).tolist()
    [-1, 0, 1]
    """
    semiring = checks.semiring("parents", semiring)
    A, x, typed = _carried("parents", A, x, semiring)
    if x.nvals == 0 or A.nvals == 0:
        return Vector.empty(A.nrows, A.index_dtype, device=A.device)
    fused = getattr(backend(A.device), "parents", composed_parents)
    T = A._T if A.has_transpose and _keeps_order(semiring) else None
    return fused(A, T, x, typed)


def composed_parents(A: Matrix, T: Matrix | None, x: Vector, typed: TypedSemiring) -> Vector:
    """`parents` out of operations, with the arguments of a backend's; T is not looked at."""
    edges = select(composed_dag_edges(A, x, typed), indexunary.offdiag)
    ids = Vector.arange(edges.nrows, dtype=A.index_dtype, device=A.device)
    return vxm(ids, edges, min_first)


def _keeps_order(semiring: Semiring) -> bool:
    """Whether it is known that x <= y implies x * a <= y * a: it is, for what `counted` computes.
    For plus it is not: with values that a user gives it may overflow.
    """
    return semiring in map(min_plus_and_one, range(16, 64, 8))


def _carried(
    name: str, A: MatrixLike, x: Vector, semiring: SemiringLike
) -> tuple[Matrix, Vector, TypedSemiring]:
    """Operands of which x has values of the semiring's own type."""
    A, x = operands(name, A, "x", x)
    typed = typed_for_rounds(name, checks.semiring(name, semiring), x.dtype, A.dtype, A.index_dtype)
    if typed.dtype != x.dtype:
        raise DomainMismatch(
            f"{name}: x: expected values of the semiring's type {typed.dtype}, got {x.dtype}"
        )
    return A, x, typed
