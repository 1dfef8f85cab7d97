"""Push or pull: pure functions of a few counts, no arrays.

*Push* walks the edges that leave the entries of a vector and scatters; *pull* lets every row look
for entries among its neighbours and gathers. Beamer, Asanovic and Patterson, "Direction-optimizing
breadth-first search" (SC 2012), switch between the two by comparing the edges that leave the
frontier with those that leave the unvisited vertices; Pan et al., "Multi-GPU graph analytics"
(IPDPS 2017), and Yang, Buluc and Owens, "Implementing push-pull efficiently in GraphBLAS" (ICPP
2018), decide with counts that cost nothing to keep.

The two tests that loops run inside kernels, `pull_pays` and `pull_pays_all`, are scalar functions
of one returned expression, so that Numba compiles them as they are and `semirings.translate` turns
them into CUDA C++. They compute in floating point: products of edge counts overflow integers."""

# a pull probe reads one id and one bit; a push step also tests and writes the vertex that it
# reaches
FIRST_HIT = 1.0
ALL_EDGES = 0.5
# one step of push in units of one step of pull, in a product by itself: scattering against
# gathering
PUSH_STEP = 2.0
# a pull probe of a vector that is neither empty nor full is a branch that the processor guesses
# wrong: at half density, the worst, this adds a quarter of itself to the probe
MISSED_GUESS = 8.0
# a multiplication of a row-by-row product, which also finds its place in the row, in units of one
# of a dot product
ROW_STEP = 2.0
# making a transpose, an entry
TRANSPOSE_STEP = 8.0
# edges of a vertex, on average, of which it pays to follow two before an exchange
SAMPLE_PAYS = 8
# microseconds that a round of a loop takes longer on several GPUs than on one: where they write
# into each other's memory (7.6 against 5.3), and where the host drives the rounds (75 to 108)
PEER_ROUND, HOST_ROUND = 2.3, 90.0
# what the way to one of them and back takes, and how many edges a GPU follows in one
WAY_HOME, EDGES_A_MICROSECOND = 300.0, 1e5


def pull_pays(
    frontier_edges: float, unvisited: float, unvisited_edges: float, edges: float
) -> bool:
    """Whether a search in which a vertex's first hit decides should pull.

    A neighbour is in the frontier with probability of about frontier_edges / edges, so that an
    unvisited vertex finds one after edges / frontier_edges probes, or after all of its own; push
    costs frontier_edges steps.
    """
    return (
        1.0 * frontier_edges * frontier_edges > FIRST_HIT * unvisited * edges
        or 1.0 * frontier_edges > FIRST_HIT * unvisited_edges
    )


def pull_pays_all(frontier_edges: float, unvisited_edges: float) -> bool:
    """Whether a search that has to combine every edge into a vertex should pull (Beamer 2012)."""
    return 1.0 * frontier_edges > ALL_EDGES * unvisited_edges


def choose(nvals: int, size: int, edges: int, rows: int, allowed: int, first_hit: bool) -> str:
    """'push' or 'pull' for one product of a matrix with a vector of `nvals` entries in `size`.

    The result has `rows` positions, of which a mask allows about `allowed`. Pushing costs the edges
    that leave the vector's entries, as many as its density says; pulling costs the allowed rows'
    edges, or, where `first_hit` decides, the probes until the first."""
    if nvals == 0:
        return "push"
    density = nvals / size
    push = PUSH_STEP * edges * density
    if first_hit:
        probes = min(float(edges), rows / density)
    else:
        probes = edges * (1.0 + MISSED_GUESS * density * (1.0 - density))
    pull = rows / 32 + probes * allowed / max(rows, 1)
    return "push" if push < pull else "pull"


def dots_pay(dot_products: int, row_products: int, transposed: int) -> bool:
    """Whether a masked product of two matrices should be made of dot products.

    They touch `dot_products` entries, whole rows take `row_products` multiplications; and first the
    transpose of `transposed` entries has to be made for the dots, or, if negative, for the rows.
    """
    return dot_products + TRANSPOSE_STEP * transposed <= ROW_STEP * row_products


def bucket_width(step: float, vertices: int, edges: int, device: str) -> float:
    """How far values may lie apart that a closure treats as equally good (delta-stepping).

    `step` is how much one edge changes a value, on average. A path to a vertex of degree d is
    replaced by a better one after about step / d: the width is a few of those on a CPU (Meyer and
    Sanders, "Delta-stepping", 2003). A GPU wants work for many warps in a bucket, which few edges a
    vertex give it in a wide one only; of a Kronecker graph, wide ones follow every edge of its hubs
    twice and thrice (measured: road networks, a grid, random graphs of degree 8 and 32, Kronecker
    graphs of degree 16 to 700 and scale 18 to 25).
    """
    degree = max(edges, 1) / max(vertices, 1)
    if device == "cpu":
        width = step * 4.0 / degree
    else:
        width = step * max(60.0 * min(4.0 / degree, 1.0) ** 5.5, 0.5 / degree**0.25)
    return width if width > 0 else 1.0


def one_device_pays(vertices: int, edges: int, shards: int, peers: bool) -> bool:
    """Whether a loop over a graph in `shards` shards, one a GPU, is faster on one of them alone.

    Several GPUs share its edges and lose time in every round. How many rounds it will take is a
    guess from the degree: as many as on a grid, which of dimension d has 2 d edges a vertex and
    d vertices^(1/d) levels. That is right for road networks and meshes, where rounds are all; for
    the seven levels of a Kronecker graph it says 35, of which `peers`, GPUs that write into each
    other's memory, lose little. Otherwise the host drives the rounds.
    """
    dimension = max(edges / max(vertices, 1) / 2.0, 2.0)
    rounds = dimension * vertices ** (1.0 / dimension)
    shared = edges / EDGES_A_MICROSECOND * (1.0 - 1.0 / shards)
    return rounds * (PEER_ROUND if peers else HOST_ROUND) > shared + WAY_HOME


def all_are_near(vertices: int, edges: int, most: int, levels: int) -> bool:
    """Whether a search from a vertex of `most` edges may be expected to reach what it can in
    `levels` levels: where each is larger than the one before by the average degree. So it is in
    Kronecker graphs and social networks; road networks need thousands.
    """
    degree = edges / max(vertices, 1)
    return most * degree ** (levels - 1) >= vertices


def a_sample_pays(vertices: int, edges: int) -> bool:
    """Whether components of a symmetric graph in shards are found from two edges of each vertex
    first, which takes one exchange more and spares most of the others.
    """
    return edges >= SAMPLE_PAYS * vertices
