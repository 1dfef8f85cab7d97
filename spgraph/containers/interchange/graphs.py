"""Graphs of NetworkX and igraph, containers of python-graphblas, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spgraph.containers.annotations import Graph
from spgraph.containers.interchange.libraries import importing
from spgraph.containers.methods.parts import MatrixParts, VectorParts
from spgraph.containers.sparray.lines import plain
from spgraph.containers.storage.arrays import INT64_MAX, as_array, index_dtype, is_instance
from spgraph.containers.storage.numbers import flags_or_none
from spgraph.containers.storage.values import value_dtype
from spgraph.errors import DimensionMismatch, DomainMismatch

if TYPE_CHECKING:
    from spgraph.containers.matrix import Matrix
    from spgraph.containers.vector import Vector


class MatrixGraphs(MatrixParts):
    """The from_* and to_* of a Matrix, whose base this is, for graphs of other libraries."""

    __slots__ = ()

    @classmethod
    def from_networkx(
        cls: Any, G: Graph, *, nodelist: Sequence[Any] | None = None, weight: str | None = "weight"
    ) -> Matrix:
        """The adjacency matrix of `G`, a NetworkX graph, rows in the order of `nodelist` (None:
        G's own).

        `weight` names the edge attribute that becomes the value (1 where an edge lacks it; parallel
        edges are summed); None makes a pattern matrix. An undirected graph gives a symmetric
        matrix. DomainMismatch for a weight that is no number, such as None, and for integers that
        float64 rounds, beside floats; OverflowError for a sum that its type does not hold;
        ValueError where `nodelist` is not of distinct nodes of G.

        >>> import spgraph as sg
        >>> import networkx
        >>> A = sg.Matrix.from_networkx(networkx.path_graph(3))
        >>> A.to_dense().tolist(), A.symmetric
        ([[0, 1, 0], [1, 0, 1], [0, 1, 0]], True)
        """
        given: Any = G
        labels = list(given) if nodelist is None else list(nodelist)
        index = dict(zip(labels, range(len(labels)), strict=True))
        wrong = [label for label in index if label not in given]
        if wrong or len(index) < len(labels):
            what = f"{wrong[0]!r}, which is none" if wrong else "one of them twice"
            raise ValueError(f"from_networkx: nodelist: expected distinct nodes of G, got {what}")
        part = given if len(labels) == len(given) else given.subgraph(labels)
        rows, columns, values = [], [], []
        for source, target, value in part.edges(data=weight, default=1):
            rows.append(index[source])
            columns.append(index[target])
            values.append(value)
        numbers = _weights("from_networkx", values) if weight is not None else np.bool_(True)
        return _adjacency((rows, columns), numbers, len(labels), G.is_directed())

    def to_networkx(
        self,
        *,
        names: Sequence[Any] | None = None,
        weight: str | None = "weight",
        directed: bool | None = None,
    ) -> Any:
        """The graph of NetworkX with the edge i -> j for each entry (i, j), zeros among them, and
        every vertex, with edges or without.

        `names` are those of the vertices (a list, an array, or the `Ids` of `from_edges`), by
        default 0, 1, and so on. The values become the edge attribute `weight`, as Python's numbers;
        None leaves them out. `directed` makes a DiGraph; False a Graph, for which the Matrix must
        be symmetric; None a Graph if it is. DimensionMismatch unless it is square, with as many
        names; ValueError for names that are not distinct, and for directed=False of one that is not
        symmetric.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 1], [1, 0], 2.5, nrows=3, ncols=3)
        >>> G = A.to_networkx(names=["Ulm", "Bonn", "Kiel"])
        >>> list(G), list(G.edges(data=True))
        (['Ulm', 'Bonn', 'Kiel'], [('Ulm', 'Bonn', {'weight': 2.5})])
        """
        with importing("to_networkx", "'spgraph[networkx]'"):
            import networkx

        A, labels, directed = _as_graph("to_networkx", self, names, directed)
        rows, columns, values = _edges(A, directed)
        G = networkx.DiGraph() if directed else networkx.Graph()
        G.add_nodes_from(labels)
        sources, targets = (map(labels.__getitem__, ids.tolist()) for ids in (rows, columns))
        if weight is None:
            G.add_edges_from(zip(sources, targets, strict=True))
        else:
            edges = zip(sources, targets, values.tolist(), strict=True)
            G.add_weighted_edges_from(edges, weight=weight)
        return G

    @classmethod
    def from_igraph(cls: Any, G: Any, *, weight: str | None = "weight") -> Matrix:
        """The adjacency matrix of `G`, an igraph.Graph, vertices in its order.

        `weight` names the edge attribute that becomes the value: 1 where no edge has it,
        DomainMismatch where only some have it. Parallel edges are summed; a loop is one entry. None
        makes a pattern matrix. An undirected graph gives a symmetric matrix.

        >>> import igraph, spgraph as sg  # doctest: +SKIP
        >>> sg.Matrix.from_igraph(igraph.Graph.Ring(4)).nvals  # doctest: +SKIP
        8
        """
        ends = np.asarray(G.get_edgelist(), np.int64).reshape(-1, 2).T
        numbers = np.ones(ends.shape[1], np.int64) if weight is not None else np.bool_(True)
        if weight is not None and weight in G.es.attributes():
            numbers = _weights("from_igraph", G.es[weight])
        return _adjacency((ends[0], ends[1]), numbers, G.vcount(), G.is_directed())

    def to_igraph(
        self,
        *,
        names: Sequence[Any] | None = None,
        weight: str | None = "weight",
        directed: bool | None = None,
    ) -> Any:
        """The igraph.Graph with the edge i -> j for each entry (i, j), zeros among them; `names`
        become the vertex attribute "name", the values the edge attribute `weight`, with `directed`
        as in `to_networkx`. Raises as that does.

        >>> import spgraph as sg
        >>> A = sg.Matrix.from_coo([0, 1], [1, 0], 2.5, nrows=3, ncols=3)
        >>> A.to_igraph().es["weight"]  # doctest: +SKIP
        [2.5]
        """
        with importing("to_igraph", "'spgraph[igraph]'"):
            import igraph

        A, labels, directed = _as_graph("to_igraph", self, names, directed)
        rows, columns, values = _edges(A, directed)
        ends = list(zip(rows.tolist(), columns.tolist(), strict=True))
        G = igraph.Graph(n=A.nrows, edges=ends, directed=directed)
        if names is not None:
            G.vs["name"] = labels
        if weight is not None:
            G.es[weight] = values.tolist()
        return G

    def to_graphblas(self) -> Any:
        """A graphblas.Matrix of python-graphblas with the same entries and type; its arrays are
        copies, made once. `sg.Matrix(M)` is the way back.

        >>> import spgraph as sg
        >>> sg.Matrix([[0, 2], [3, 0]]).to_graphblas().nvals  # doctest: +SKIP
        2
        """
        with importing("to_graphblas", "'python-graphblas[default]'"):
            import graphblas

        A: Matrix = plain(self).to("cpu")
        return graphblas.Matrix.ss.import_csr(
            nrows=A.nrows,
            ncols=A.ncols,
            indptr=A._indptr.astype(np.uint64),
            col_indices=A._indices.astype(np.uint64),
            values=A._values.copy(),
            is_iso=A.iso,
            sorted_cols=True,
            take_ownership=True,
        )


class VectorGraphs(VectorParts):
    """The to_graphblas of a Vector, whose base this is."""

    __slots__ = ()

    def to_graphblas(self) -> Any:
        """A graphblas.Vector of python-graphblas with the same entries and type; its arrays are
        copies, made once. `sg.Vector(v)` is the way back.

        >>> import spgraph as sg
        >>> sg.Vector.from_coo([1], [5], size=3).to_graphblas().nvals  # doctest: +SKIP
        1
        """
        with importing("to_graphblas", "'python-graphblas[default]'"):
            import graphblas

        v: Vector = plain(self).to("cpu")
        indices, values = v.to_coo()
        return graphblas.Vector.ss.import_sparse(
            size=v.size,
            indices=indices.astype(np.uint64),
            values=values,
            sorted_index=True,
            take_ownership=True,
        )


def is_graph(given: Any) -> bool:
    """True for a graph of NetworkX or of igraph."""
    return _is_igraph(given) or (hasattr(given, "adj") and hasattr(given, "is_directed"))


def is_graphblas(given: Any, name: str) -> bool:
    """True for a `name`, Matrix or Vector, of python-graphblas."""
    # without the modules that graphblas imports when they are first asked for
    return is_instance(given, f"graphblas.core.{name.lower()}", name)


def matrix_of_graph(given: Any) -> Matrix:
    """The Matrix of a graph."""
    from spgraph.containers.matrix import Matrix

    return Matrix.from_igraph(given) if _is_igraph(given) else Matrix.from_networkx(given)


def matrix_of_graphblas(given: Any) -> Matrix:
    """The Matrix of a graphblas.Matrix, whose arrays are copied once."""
    from spgraph.containers.matrix import Matrix

    parts = given.ss.export("csr", sort=True)
    iso, nrows, ncols = parts["is_iso"], given.nrows, given.ncols
    values = _numbers("Matrix: x", parts["values"])
    if max(nrows, ncols) > INT64_MAX:
        raise DimensionMismatch(f"Matrix: x: expected less than 2**63 positions, got {given.shape}")
    offsets = parts["indptr"].astype(index_dtype(given.nvals))
    columns = parts["col_indices"].astype(index_dtype(max(nrows, ncols)))
    return Matrix._of(nrows, ncols, offsets, columns, values, iso=iso)


def vector_of_graphblas(given: Any) -> Vector:
    """The Vector of a graphblas.Vector, whose arrays are copied once."""
    from spgraph.containers.vector import Vector

    if given.size > INT64_MAX:
        raise DimensionMismatch(f"Vector: x: expected less than 2**63 positions, got {given.size}")
    indices, values = given.to_coo()
    indices = indices.astype(index_dtype(given.size))
    return Vector._of(given.size, _numbers("Vector: x", values), indices=indices)._conform()


def _numbers(name: str, values: np.ndarray) -> np.ndarray:
    try:
        return values.astype(value_dtype(values.dtype), copy=False)
    except DomainMismatch as error:
        raise DomainMismatch(f"{name}: {error}") from None


def _is_igraph(given: Any) -> bool:
    return is_instance(given, "igraph", "Graph")


_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)


def _weights(name: str, given: list[Any]) -> np.ndarray:
    """The weights of edges as an array; DomainMismatch unless all are numbers."""
    try:
        values = as_array(f"{name}: weight", given)
    except ValueError:  # lists of several lengths
        values = np.array(None)
    if values.dtype.kind in "biuf" and values.ndim == 1:
        return values
    wrong = [value for value in given if not _is_number(value)]
    got = f"{wrong[0]!r}" if wrong else f"numbers of {values.dtype}"
    missing = sum(value is None for value in given)
    if missing:
        got = f"None for {missing} of {len(given)}"
    raise DomainMismatch(
        f"{name}: weight: expected a number for each edge, real and of at most 64 bits, got "
        f"{got[:60]}; weight=None makes a pattern"
    )


def _is_number(value: Any) -> bool:
    integer = isinstance(value, int)
    return isinstance(value, _NUMBERS) and not (integer and not -(2**63) <= value < 2**64)


def _adjacency(
    ends: tuple[Sequence[int], Sequence[int]] | tuple[np.ndarray, np.ndarray],
    values: np.ndarray | np.bool_,
    n: int,
    directed: bool,
) -> Matrix:
    """The Matrix of n vertices and of edges, parallel ones summed; one value makes a pattern."""
    from spgraph.containers.matrix import Matrix

    rows, columns = (np.asarray(ids, np.int64) for ids in ends)
    if not directed:
        other = np.flatnonzero(rows != columns)
        rows, columns = (
            np.concatenate([rows, columns[other]]),
            np.concatenate([columns, rows[other]]),
        )
        if isinstance(values, np.ndarray):
            values = np.concatenate([values, values[other]])
    return Matrix.from_coo(
        rows,
        columns,
        values,
        nrows=n,
        ncols=n,
        dup_op="plus" if isinstance(values, np.ndarray) else None,
        symmetric=None if directed else True,
    )


def _as_graph(
    name: str, given: Any, names: Any, directed: bool | None
) -> tuple[Matrix, list[Any], bool]:
    """(the Matrix on the CPU, the names of its vertices, whether edges have a direction)."""
    flags_or_none(name, directed=directed)
    A: Matrix = plain(given).to("cpu")
    if A.nrows != A.ncols:
        raise DimensionMismatch(f"{name}: expected a square Matrix, got {A.nrows} x {A.ncols}")
    names = range(A.nrows) if names is None else getattr(names, "names", names)
    labels = names.tolist() if hasattr(names, "tolist") else list(names)
    if len(labels) != A.nrows:
        raise DimensionMismatch(
            f"{name}: names: expected one for each of {A.nrows} vertices, got {len(labels)}"
        )
    if len(set(labels)) != len(labels):
        raise ValueError(f"{name}: names: expected distinct names, got one of them twice")
    if directed is not None and not directed and not A.is_symmetric():
        raise ValueError(
            f"{name}: directed: expected True or None for a Matrix that is not symmetric, got "
            'False; sg.ewise_add(A, A.T, "max") makes a symmetric one'
        )
    return A, labels, not A.is_symmetric() if directed is None else directed


def _edges(A: Matrix, directed: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows, columns, values) of all entries; of an undirected graph each edge once."""
    parts = A.to_coo()
    if directed:
        return parts
    once = parts[0] <= parts[1]
    return parts[0][once], parts[1][once], parts[2][once]
