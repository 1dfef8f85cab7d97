"""Parents on the best walks of a closure over shards: what one shard finds along its own edges."""

from __future__ import annotations

import numpy as np

from spgraph.backends.cuda.closure.parents import (
    MOST,
    Floor,
    choose_floor,
    chosen_parents,
    is_bounded,
    least_parents,
    parents_preamble,
    put,
    with_entries,
)
from spgraph.backends.cuda.runtime import jit
from spgraph.containers import Matrix, Vector
from spgraph.containers.storage.arrays import Array, array_module
from spgraph.semirings import TypedSemiring


class ParentsShard:
    """The rows of one shard in a Matrix of the whole shape; in `T` those of the transpose, the same
    Matrix where that is the graph's own, or None. `x` are the values of all vertices, which
    `semiring` makes; `collects`: what is not the least parent is kept, too.
    """

    parent: Array  # what `find` finds

    def __init__(
        self, A: Matrix, T: Matrix | None, x: Vector, semiring: TypedSemiring, collects: bool
    ) -> None:
        self.rows, self.back, self.x, self.semiring = A, T, x.to_bitmap(), semiring
        self.text = parents_preamble(A, semiring, collects)
        self.others: Array = jit.NULL
        if collects:
            self.others = array_module(A._indptr).zeros(1 + 2 * MOST, A._indices.dtype)

    def floor(self) -> Floor | None:
        """A value such that few of the own entries are in rows of better ones, which is compared
        with those of other shards: all look by the best of them. None where none is used.
        """
        if self.back is None or not is_bounded(self.semiring):
            return None
        if self.rows.nvals:
            x = self.x._values, jit.NULL if self.x._bits is None else self.x._bits
            return choose_floor(self.rows, x, self.semiring, self.text)
        xp, worst = array_module(self.rows._indptr), self.semiring.add.identity
        return xp.full(1, worst, self.semiring.dtype), xp.ones(1, np.uint32)

    def find(self, floor: Floor | None) -> None:
        """Find `parent`: the least one of every vertex along the own edges, the greatest number of
        the type where there is none.
        """
        given = self.rows, self.back, self.x, self.semiring, self.text, self.others
        self.parent = least_parents(*given, floor)

    def pairs(self, least: Array) -> Array:
        """(vertex, parent), flat, for each parent along the own edges that is not the least of all
        shards, which are `least`: MOST pairs at most.
        """
        n = self.parent.size
        differ = jit.kernel("parents", "parents_of_others", self.text)
        jit.sweep(differ, n, n, self.parent, least, self.others)
        number = int(self.others[:1].view(np.uint32)[0])
        return self.others[1 : 1 + 2 * min(number, MOST)]

    def chosen(
        self, pairs: Array, least: Array, source: int
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """As `chosen_parents`, of the `pairs` of all shards; None where there are MOST or more.
        `least` is of no use afterwards.
        """
        number = pairs.size // 2
        if number >= MOST:
            return None
        self.others[1 : 1 + pairs.size] = pairs
        return chosen_parents(self.others, number, least, source, self.text)

    def result(
        self, own: Array, vertices: np.ndarray | None = None, parents_of: np.ndarray | None = None
    ) -> Vector:
        """The Vector of the parents `own` of the own vertices, some of which are replaced."""
        if vertices is not None and parents_of is not None and vertices.size:
            put(own, vertices, parents_of, self.text)
        return with_entries(own, self.text)
