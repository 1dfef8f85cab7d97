"""What has to be the same in shards as on one device; the plain containers are the oracle. Every
case takes `spread`, which distributes a container, and so runs under every communicator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import spgraph as sg
from spgraph import direction as directions
from spgraph.distributed.loops import components as components_in_shards
from spgraph.semirings import (
    Semiring,
    any_pair,
    binary,
    indexunary,
    max_min,
    min_first,
    min_plus,
    min_secondi,
    monoid,
    plus_first,
    plus_pair,
    plus_times,
    unary,
)

Spread = Callable[[Any], Any]


def graph(n: int = 70, m: int = 260, *, symmetric: bool = False, seed: int = 1) -> sg.Matrix:
    """Random integer weights; some vertices without edges, one with very many."""
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(0, n, (2, m)) * 9 // 10
    rows[: n // 3] = 5
    keep = rows != columns
    rows, columns = rows[keep], columns[keep]
    if symmetric:
        rows, columns = np.append(rows, columns), np.append(columns, rows)
    weight = (np.minimum(rows, columns) * 7 + np.maximum(rows, columns) * 3) % 11 + 1
    return sg.Matrix.from_coo(
        *(rows, columns, weight), nrows=n, ncols=n, dup_op=binary.min, symmetric=symmetric or None
    )


def components(n: int) -> list[sg.Matrix]:
    """Symmetric graphs of `n` vertices: two giants with what is around them, no giant but loops and
    paths, and hubs on a path that is longer than any search for a giant.
    """
    rng = np.random.default_rng(7)
    k, hubs = np.arange(n), rng.permutation(n)
    halves = rng.integers(0, n // 3, (n, 2)) * 2 + k[:, None] % 2
    paths = np.stack([hubs[: n // 2], hubs[k[: n // 2] // 3 * 3]], 1)
    chain = np.stack([hubs, hubs[np.maximum(k - 1, 0) // 2 * 2]], 1)
    made = []
    for pairs in (halves, paths, chain):
        rows, columns = np.concatenate([pairs, pairs[:, ::-1]]).T
        made.append(sg.Matrix.from_coo(rows, columns, nrows=n, ncols=n))
    return made


def vector(n: int, density: float, dtype: Any = np.int64, seed: int = 3) -> sg.Vector:
    rng = np.random.default_rng(seed)
    ids = np.flatnonzero(rng.random(n) < density)
    return sg.Vector.from_coo(ids, rng.integers(1, 50, ids.size).astype(dtype), size=n)


def same(spread: Any, plain: Any, *, close: float | None = None) -> None:
    """A result in shards beside the one on one device: entries, type and size."""
    assert type(spread).__name__ == f"Distributed{type(plain).__name__}", type(spread)
    home = spread.gather()
    assert home.shape == plain.shape and home.dtype == plain.dtype
    assert spread.nvals == plain.nvals
    if close is None:
        assert home.isequal(plain), (home, plain)
    else:
        assert home.isclose(plain, rtol=close, atol=1e-12), (home.to_coo(), plain.to_coo())


def check_void_components(shards: int, place: Callable[..., Any]) -> None:
    """Where the search for the giant component ends too early, which only the owner of vertex 91
    sees, all processes find it out.
    """
    leaves = np.arange(1, 91)
    ends = np.append(leaves, [91, 92, 93]), np.append(0 * leaves, [1, 91, 92])
    A = sg.Matrix.from_coo(*(np.concatenate(both) for both in (ends, ends[::-1])), symmetric=True)
    G = place(A, partition=np.minimum(np.arange(94) // 40, shards - 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(directions, "all_are_near", lambda *counts: True)
        assert components_in_shards.plan_of(G).giant is not None
        patch.setattr(components_in_shards, "MOST_LEVELS", 2)
        same(sg.connected_components(G), sg.connected_components(A))
    assert components_in_shards.plan_of(G).giant is None


def check_products(A: sg.Matrix, G: Any, spread: Spread) -> None:
    n = A.nrows
    for density in (0.02, 0.5, 1.1):
        u = vector(n, density)
        v, mask = spread(u), vector(n, 0.4, seed=8)
        V = spread(mask)
        for semiring in (plus_times, min_plus, any_pair, min_secondi):
            for way in ("push", "pull"):
                options: dict[str, Any] = {"direction": way}
                same(sg.vxm(v, G, semiring, **options), sg.vxm(u, A, semiring, **options))
                # shards know of a semiring only whether it looks at positions
                if semiring in (plus_times, min_secondi):
                    same(sg.mxv(G, v, semiring, **options), sg.mxv(A, u, semiring, **options))
        for masks in ((V.S, mask.S), (~V.S, ~mask.S), (V.V, mask.V)):
            for way in ("push", "pull"):
                same(
                    sg.vxm(v, G, min_plus, mask=masks[0], direction=way),
                    sg.vxm(u, A, min_plus, mask=masks[1], direction=way),
                )
        out, into = spread(mask), mask.dup()
        sg.vxm(v, G, plus_times, accum=binary.plus, mask=V.S, out=out)
        sg.vxm(u, A, plus_times, accum=binary.plus, mask=mask.S, out=into)
        same(out, into)


def check_elements(A: sg.Matrix, G: Any, spread: Spread) -> None:
    n = A.nrows
    u, v = vector(n, 0.3), vector(n, 0.9, seed=4)
    x, y = spread(u), spread(v)
    same(sg.ewise_add(x, y), sg.ewise_add(u, v))
    same(sg.ewise_mult(x, y, binary.minus), sg.ewise_mult(u, v, binary.minus))
    same(x - y, u - v)
    same(sg.apply(x, unary.ainv), sg.apply(u, unary.ainv))
    same(sg.apply(x, indexunary.rowindex, right=3), sg.apply(u, indexunary.rowindex, right=3))
    same(sg.select(x, indexunary.rowle, n // 2), sg.select(u, indexunary.rowle, n // 2))
    same(sg.select(x, indexunary.valuegt, 20), sg.select(u, indexunary.valuegt, 20))
    for op in (monoid.plus, monoid.min, monoid.max):
        assert sg.reduce(x, op) == sg.reduce(u, op)
        assert sg.reduce(G, op) == sg.reduce(A, op)
        same(sg.reduce_rowwise(G, op), sg.reduce_rowwise(A, op))
        same(sg.reduce_columnwise(G, op), sg.reduce_columnwise(A, op))
    assert sg.reduce(spread(sg.Vector.empty(n, np.int64))) == 0
    assert sg.reduce(G.pattern(np.int64)) == A.nvals
    same(G + G, A + A)
    same(sg.ewise_mult(G, G.T), sg.ewise_mult(A, A.T))
    same(sg.select(G, indexunary.tril, -1), sg.select(A, indexunary.tril, -1))
    same(sg.select(G, indexunary.valuege, 5), sg.select(A, indexunary.valuege, 5))
    same(sg.apply(G, indexunary.colindex), sg.apply(A, indexunary.colindex))
    same(sg.apply(G, binary.plus, right=2), sg.apply(A, binary.plus, right=2))
    same(G.row_degrees(), A.row_degrees())
    same(G.T.row_degrees(), A.T.row_degrees())
    assert G._value_range() == A._value_range() and x._value_range() == u._value_range()
    assert np.isclose(G._sampled_mean(), A._sampled_mean())
    assert np.isclose(G._sampled_row_length(), A._sampled_row_length())
    w, W = sg.Vector.arange(n), sg.Vector.arange(n, device=G.device)
    same(W, w)
    same(
        G._where(lambda a, i, j: (i < j) & (a > 3), W),
        A._where(lambda a, i, j: (i < j) & (a > 3), w),
    )
    assert int(W._total()) == n * (n - 1) // 2


def check_structure(A: sg.Matrix, G: Any, spread: Spread) -> None:
    n = A.nrows
    u = vector(n, 0.4)
    x = spread(u)
    same(G.T, A.T)
    assert G.T.T is G
    same(sg.transpose(sg.transpose(G)), A)
    rng = np.random.default_rng(5)
    ids = rng.integers(0, n, 2 * n)
    same(sg.extract(x, ids), sg.extract(u, ids))
    same(x[3:40:4], u[3:40:4])
    assert x[7] == u[7] and G[5, 9] == A[5, 9]
    J = sg.Vector.from_dense(rng.integers(0, n, n))
    same(sg.extract(x, spread(J)), sg.extract(u, J))
    same(sg.extract(G, ids, ids[:9]), sg.extract(A, ids, ids[:9]))
    same(G[5], A[5])
    same(G[:, 7], A[:, 7])
    same(G[[8, 2, 5]], A[[8, 2, 5]])
    for k in (0, 2, -3):
        same(sg.diag(x, k), sg.diag(u, k))
        same(sg.diag(G, k), sg.diag(A, k))
    B = sg.Matrix.from_dense([[0, 2, 0], [1, 0, 0], [0, 3, 4]])
    same(sg.kronecker(G, spread(B)), sg.kronecker(A, B))
    positions = rng.permutation(n)[: n // 2]
    mask = vector(n, 0.6, seed=9)
    M = spread(mask)
    for accum in (None, binary.plus):
        for value in (5, vector(positions.size, 0.7)):
            for masks in ((None, None), (M.S, mask.S), (~M.V, ~mask.V)):
                w, W = u.dup(), spread(u)
                V = value if isinstance(value, int) else spread(value)
                sg.assign(w, value, positions, mask=masks[1], accum=accum)
                assert sg.assign(W, V, positions, mask=masks[0], accum=accum) is W
                same(W, w)
    w, W = sg.Vector.filled(n, size=n), sg.Vector.filled(n, size=n, device=G.device)
    full = sg.Vector.from_dense(rng.integers(0, n, n))
    sg.assign(w, full, J, accum=binary.min)
    sg.assign(W, spread(full), spread(J), accum=binary.min)
    same(W, w)
    C, D = A.dup(), spread(A)
    sg.assign(C, 3, [1, 4, 9], [2, 3])
    sg.assign(D, 3, [1, 4, 9], [2, 3])
    same(D, C)
    sg.assign(C, u, 4)
    sg.assign(D, x, 4)
    same(D, C)
    same(G, A)


def check_matrix_products(A: sg.Matrix, G: Any, spread: Spread) -> None:
    same(G @ G, A @ A)
    same(sg.mxm(G, G, plus_pair, mask=G.S), sg.mxm(A, A, plus_pair, mask=A.S))
    L, M = sg.select(A, indexunary.tril, -1), sg.select(G, indexunary.tril, -1)
    same(sg.mxm(M, M.T, plus_pair, mask=M.S), sg.mxm(L, L.T, plus_pair, mask=L.S))
    B = sg.Matrix.from_dense(np.arange(1, 3 * A.ncols + 1).reshape(A.ncols, 3))
    same(G @ spread(B), A @ B)
    C, D = A.dup(), spread(A)
    sg.mxm(A, A, plus_times, mask=~A.S, accum=binary.plus, out=C)
    sg.mxm(G, G, plus_times, mask=~G.S, accum=binary.plus, out=D)
    same(D, C)


def check_array_products(A: sg.Matrix, G: Any, spread: Spread) -> None:
    """Arrays of NumPy: the same one in every process, and the whole product in every process."""
    rng = np.random.default_rng(4)
    last = Semiring(monoid.max, binary.secondj), Semiring(monoid.max, binary.firsti1)
    # A is on the left, on the right; each is compiled
    for semiring, sides in ((plus_times, "l"), (min_plus, "r"), *((each, "lr") for each in last)):
        for shape in ((A.ncols,), (A.ncols, 1), (A.ncols, 5), (A.ncols, 0)):
            x = rng.integers(0, 9, shape).astype(np.float64)
            right, left = (sg.mxv, sg.vxm) if x.ndim == 1 else (sg.mxm, sg.mxm)
            for fill in (None, 3):
                for side in sides:
                    ours, plain = (
                        right(X, x, semiring, fill=fill)
                        if side == "l"
                        else left(x.T, X, semiring, fill=fill)
                        for X in (G, A)
                    )
                    assert type(ours) is np.ndarray and ours.dtype == plain.dtype
                    assert np.array_equal(ours, plain)


def check_writes(A: sg.Matrix, G: Any, spread: Spread) -> None:
    """A value of one shard that does not fit is an error in all of them, and none is written."""
    n, plus = A.nrows, binary.plus
    w, W = (spread(x) for x in (sg.Vector.filled(1, size=n, dtype=np.int8), A.astype(np.int8)))
    order = np.arange(n)[::-1]
    for at in (0, n - 1):
        v = sg.Vector.from_coo([at], [300], size=n)
        B = sg.Matrix.from_coo([at], [at], [300], nrows=n, ncols=n)
        t, T = spread(v), spread(B)
        for out, value in ((w, t), (W, T)):
            before = out.gather()
            for write in (
                lambda out, value: sg.extract(value, out=out),
                lambda out, value: sg.extract(value, out=out, accum=plus),
                lambda out, value: sg.assign(out, value),
                lambda out, value: sg.assign(out, value, accum=plus),
                lambda out, value: sg.assign(out, value, order),
                lambda out, value: sg.assign(out, np.int64(300), accum=plus),
                lambda out, value, at=at: sg.assign(out, np.int64(300), [at], accum=plus),
            ):
                try:
                    write(out, value)
                    raise AssertionError("300 was written into int8")
                except OverflowError as error:
                    assert str(error).startswith(("extract: ", "assign: ")) and "int8" in str(error)
                assert out.gather().isequal(before, check_dtype=True)
        same(sg.assign(w.dup(), t, mask=~t.S), sg.assign(w.gather(), v, mask=~v.S))
    same(w.astype(np.float32), w.gather().astype(np.float32))
    same(W > 300, W.gather() > 300)


def check_counting(A: sg.Matrix, G: Any, spread: Spread) -> None:
    """What counts has room to count, in shards as well: products and reductions of narrow types."""
    n = A.nrows
    K, H = A.pattern(), G.pattern()
    same(sg.mxm(H, H, plus_pair, mask=H.S), sg.mxm(K, K, plus_pair, mask=K.S))
    same(sg.mxm(H, H, min_plus), sg.mxm(K, K, min_plus))
    # every monoid and every type: what is made of them together is tested on one device
    kinds = {bool: monoid.max, np.uint8: monoid.times}
    for kind, other in kinds.items():
        rows, columns, weight = A.to_coo()
        B = sg.Matrix.from_coo(rows, columns, (weight % 3 * 60).astype(kind), nrows=n, ncols=n)
        D, u = spread(B), vector(n, 0.5, kind)
        for op in (monoid.plus, other):
            found, expected = sg.reduce(D, op), sg.reduce(B, op)
            assert found == expected and found.dtype == expected.dtype
            found, expected = sg.reduce(spread(u), op), sg.reduce(u, op)
            assert found == expected and found.dtype == expected.dtype
            same(sg.reduce_rowwise(D, op), sg.reduce_rowwise(B, op))
            same(sg.reduce_columnwise(D, op), sg.reduce_columnwise(B, op))
        assert sg.reduce(D, dtype=np.float32).dtype == np.float32
        for way in ("push", "pull"):
            same(sg.vxm(spread(u), D, direction=way), sg.vxm(u, B, direction=way))
    assert sg.reduce(spread(sg.Vector.empty(n, np.uint8))).dtype == np.uint64
    try:
        sg.reduce(spread(sg.Vector.empty(n, bool)), monoid.any)
    except ValueError as error:
        assert "has no identity" in str(error)
    else:
        raise AssertionError("any of nothing has a value")


def check_loops(A: sg.Matrix, G: Any, spread: Spread) -> None:
    from spgraph.iterations import closure, contract, search

    for direction in ("auto", "push", "pull"):
        for semiring in (any_pair, min_secondi, plus_first):
            start = sg.Vector.from_coo([5, 8], [5, 8], size=A.nrows)
            plain = search(A, start, semiring, direction=direction)
            found = search(G, spread(start), semiring, direction=direction, trace=True)
            same(found.level, plain.level)
            assert (plain.value is None) == (found.value is None)
            if plain.value is not None:
                same(found.value, plain.value)
            assert sum(level.frontier for level in found.trace) == plain.level.nvals
    for semiring in (min_plus, max_min, min_first):
        start = sg.Vector.from_coo([5], [10], size=A.nrows)
        same(closure(G, spread(start), semiring), closure(A, start, semiring))
    for X in components(A.nrows):
        for symmetric in (None, True):
            X.symmetric = symmetric
            same(contract(spread(X)), contract(X))


def check_power(A: sg.Matrix, G: Any, spread: Spread) -> None:
    """Five steps with each norm: those of algorithms, without the algorithms."""
    from spgraph.iterations import Hop, Step, power

    x = sg.Vector.from_dense(np.arange(1.0, A.nrows + 1) / A.nrows)
    for norm in (None, 1, 2, "max"):
        plain, found = (
            power(start, Step((Hop(M),), keep=1.0), norm=norm, tol=None, max_iter=5).value
            for start, M in ((x, A), (spread(x), G))
        )
        same(found, plain, close=1e-9)


OPERATIONS = (
    check_products,
    check_elements,
    check_structure,
    check_matrix_products,
    check_array_products,
    check_counting,
    check_writes,
    check_loops,
    check_power,
)


def check_algorithms(A: sg.Matrix, G: Any, S: sg.Matrix, H: Any) -> None:
    """A and G may be directed; S and H are symmetric."""
    for X, Y in ((A, G), (S, H)):
        for plain, spread in (
            (sg.bfs(X, 5), sg.bfs(Y, 5)),
            (sg.bfs(X, 5, max_depth=2), sg.bfs(Y, 5, max_depth=2)),
            (sg.sssp(X, 5), sg.sssp(Y, 5)),
            (sg.widest_path(X, 5), sg.widest_path(Y, 5)),
        ):
            for one, shards in zip(plain, spread, strict=True):
                same(shards, one)
        for function in (sg.connected_components, lambda M: sg.reachable(M, [5, 60])):
            same(function(Y), function(X))
        for function in (
            lambda M: sg.pagerank(M, weighted=True, tol=1e-9),
            lambda M: sg.katz_centrality(M, alpha=0.01),
            lambda M: sg.betweenness_centrality(M, sources=[5, 9, 69]),
            lambda M: sg.betweenness_centrality(M, sources=[5], weighted=True),
            sg.closeness_centrality,
        ):
            same(function(Y), function(X), close=1e-9)
        same(sg.pagerank(Y), sg.pagerank(X), close=1e-6)  # which gathers in single precision
        same(sg.multi_source_bfs(Y, [5, 60, 9]), sg.multi_source_bfs(X, [5, 60, 9]))
        same(sg.connected_components(Y, connection="strong"),
             sg.connected_components(X, connection="strong"))  # fmt: skip
    for found, expected in zip(sg.hits(H), sg.hits(S), strict=True):
        same(found, expected, close=1e-9)
    for found, expected in zip(sg.salsa(H), sg.salsa(S), strict=True):
        same(found, expected, close=1e-9)
    same(sg.eigenvector_centrality(H), sg.eigenvector_centrality(S), close=1e-9)
    assert sg.triangle_count(H) == sg.triangle_count(S)
    same(sg.clustering(H), sg.clustering(S), close=1e-9)
    same(sg.core_number(H), sg.core_number(S))
    same(sg.k_truss(H, 4), sg.k_truss(S, 4))
    same(sg.maximal_independent_set(H, seed=4), sg.maximal_independent_set(S, seed=4))
    same(sg.greedy_color(H, seed=4), sg.greedy_color(S, seed=4))
    same(sg.minimum_spanning_tree(H), sg.minimum_spanning_tree(S))
    same(sg.label_propagation(H, seed=4), sg.label_propagation(S, seed=4))
    R = sg.apply(A, binary.truediv, left=1.0)
    Q = sg.apply(G, binary.truediv, left=1.0)
    for found, expected in zip(
        sg.most_reliable_path(Q, 5), sg.most_reliable_path(R, 5), strict=True
    ):
        same(found, expected)
