"""Communities by label propagation."""

from __future__ import annotations

from ..containers import MatrixLike, Vector
from ..errors import ConvergenceError
from ..iterations.labels import sweep_labels
from ..iterations.power_iteration import check_limits
from .greedy_color import greedy_color
from .random_words import checked_seed
from .triangle_count import undirected


def label_propagation(A: MatrixLike, *, max_iter: int = 100, seed: int | None = None) -> Vector:
    """The community of every vertex: a full Vector of A.nrows labels, each the number of a vertex.
    No other label is more frequent among a vertex's neighbours than its own.

    `A` is as in `triangle_count`, an undirected graph: of a directed matrix both ends of an edge
    are neighbours, whichever way it points; values are not looked at, loops are no edges. `seed`,
    an integer >= 0, gives the same labels on every device; None draws other ones at every call.

    Parameters:
        max_iter: the most sweeps over all vertices.
        seed: an integer >= 0 that fixes all random choices; None: others at every call.

    At first every vertex is its own label. A sweep goes through the colours of `greedy_color`, one
    after the other. All vertices of a colour take the label that is most frequent among their
    neighbours; of several such labels they keep their own, or else take the least. If all vertices
    changed at once, neighbours could exchange their labels for ever, as in a star. Vertices of one
    colour are no neighbours: so each change increases the number of edges between equal labels, and
    the sweeps end. `max_iter` bounds their number.

    Raises DimensionMismatch for an A that is not square, ValueError for a max_iter that is no
    integer >= 0, ConvergenceError, with the labels reached, if the last sweep still changes some.

    Source: Raghavan, Albert, Kumara, "Near linear time algorithm to detect community structures in
    large-scale networks" (2007); by colours: Cordasco and Gargano, "Community detection via
    semi-synchronous label propagation algorithms" (2010).

    Two triangles and a bridge:

    >>> import spgraph as sg
    >>> A = sg.Matrix.from_coo([0, 1, 2, 2, 3, 4, 5], [1, 2, 0, 3, 4, 5, 3])
    >>> label = sg.label_propagation(A, seed=1).to_numpy()
    >>> len(set(label[:3])), len(set(label[3:])), len(set(label))
    (1, 1, 2)
    """
    A = undirected("label_propagation", A)
    check_limits("label_propagation", None, max_iter)
    color = greedy_color(A, seed=checked_seed("label_propagation", seed, A.device))
    label, settled = sweep_labels(A, color, max_iter)
    if not settled:
        raise ConvergenceError(
            f"label_propagation: labels still change after {max_iter} sweeps; raise max_iter", label
        )
    return label
