"""Push or pull, and other choices between methods: pure functions of a few counts.

*Push* follows the edges that leave the entries of a vector and scatters; *pull* searches the
in-neighbours of every row for entries and gathers. Beamer, Asanovic and Patterson,
"Direction-optimizing breadth-first search" (SC 2012), switch between the two by comparing the edges
that leave the frontier with those that leave the unvisited vertices; Pan et al., "Multi-GPU graph
analytics" (IPDPS 2017), and Yang, Buluc and Owens, "Implementing push-pull efficiently in
GraphBLAS" (ICPP 2018), decide with counts that cost nothing to keep.

The two tests that loops run inside kernels, `pull_pays` and `pull_pays_all`, are scalar functions
of one returned expression, so that Numba compiles them as they are and `semirings.translate` turns
them into CUDA C++. They compute in floating point: products of edge counts overflow integers."""

import math

# as users name them; kernels of searches, and the rows of their traces, have their numbers here
DIRECTIONS = ("auto", "push", "pull")
# Costs in units of one step of push in a search: a pull probe reads one id and one bit; a push step
# also tests and writes the vertex that it reaches. FIRST_HIT: where the first hit decides;
# ALL_EDGES: where all edges are combined.
FIRST_HIT = 1.0
ALL_EDGES = 0.5
# the same on a CPU, whose push steps miss the caches and whose probes mostly do not
CPU_FIRST_HIT = 0.25
# one step of push in units of one step of pull in a single product: scattering costs more than
# gathering
PUSH_STEP = 2.0
# branch misprediction of pull probes: multiplied by density * (1 - density) of the vector, it is
# added to the cost of a probe
MISPREDICTION = 8.0
# a multiplication of a row-by-row product, which also finds its place in the row, in units of one
# of a dot product
ROW_STEP = 2.0
# how far the mean degree at the ends of edges may exceed that of the vertices before the edges of a
# graph are pointed by degree instead of by number
SKEWED = 2.0
# the mean degree at the ends of edges up to which a graph's triangles are counted along all of its
# rows, without a matrix of edges that point one way; the same on a CPU, and there if the rows of
# most neighbours are near each other in memory
SHORT_ROWS, CPU_SHORT_ROWS, CPU_NEAR_ROWS = 8.0, 12.0, 41.0
# transposing one entry, in the same units
TRANSPOSE_STEP = 8.0
# edges per vertex, on average, from which it pays to sample two edges per vertex before an exchange
SAMPLE_PAYS = 8
# what a step of push costs in a search on GPUs, in probes of a pull whose first hit decides: with
# values; and with levels only, where a pull looks at the hubs among the neighbours first
SEARCH_PUSH_STEP, SEARCH_PUSH_STEP_HUBS = 8.0, 4.0
# edges that a push has to save before such a search turns a frontier from a bitmap into a queue
CONVERT_EDGES = 65536
# edges from which on a level of such a search is pushed in parts where least ids decide: they take
# about a millisecond, of which ten barriers more are a twentieth
PARTS_EDGES = 1 << 24
# the buckets of a closure on a GPU: the edges from which on they may be narrow; what a bucket
# costs, in relaxations of an edge, by itself and for each vertex, and how many times as much by
# itself where the host drives its rounds; how often an edge is relaxed again in a bucket whose
# vertices improve one other each; the least width, in steps of the least weight
NARROW_EDGES = 1 << 22
BUCKET_EDGES, BUCKET_EDGES_A_VERTEX, HOST_BUCKET = 1e7, 0.22, 10.0
RELAXED_AGAIN = 0.02
LEAST_STEPS = 3.0
# microseconds that a round of a loop takes longer on several GPUs than on one: where they write
# into each other's memory (7.6 against 5.3), and where the host drives the rounds (75 to 108)
PEER_ROUND, HOST_ROUND = 2.3, 90.0
# microseconds for moving operands and results to one GPU and back; edges that a GPU follows in one
MOVE_TO_ONE, EDGES_A_MICROSECOND = 300.0, 1e5


def pull_pays(
    frontier_edges: float, unvisited: float, unvisited_edges: float, edges: float
) -> bool:
    """Whether a search in which a vertex's first hit decides should pull.

    A neighbour is in the frontier with a probability of about frontier_edges / edges. So an
    unvisited vertex needs edges / frontier_edges probes to find one, but at most its own degree;
    push costs frontier_edges steps.
    """
    return (
        1.0 * frontier_edges * frontier_edges > FIRST_HIT * unvisited * edges
        or 1.0 * frontier_edges > FIRST_HIT * unvisited_edges
    )


def pull_pays_all(frontier_edges: float, unvisited_edges: float) -> bool:
    """Whether a search that has to combine every edge into a vertex should pull (Beamer 2012)."""
    return 1.0 * frontier_edges > ALL_EDGES * unvisited_edges


def search_pulls(
    frontier_edges: int,
    queued: bool,
    unvisited: int,
    unvisited_edges: int,
    edges: int,
    symmetric: bool,
    values: bool,
    first_hit: bool,
) -> bool:
    """Whether a level of a search on GPUs should pull: what the kernels that run all levels decide
    (`backends/cuda/search/kernels/search_driver.cuh`), for levels that the host launches.

    `queued`: the frontier is a queue already, else a bitmap. `symmetric`: out-edges of unvisited
    vertices are their in-edges. `values`: beside levels, values are sought, of which the
    `first_hit` of a vertex decides, or all edges are combined. Kernels that run
    all levels on one GPU also count the words of bitmaps that a pull reads whatever it finds.
    """
    work = frontier_edges + (0 if queued else CONVERT_EDGES)
    back = unvisited_edges if symmetric else edges
    if not first_hit:
        return pull_pays_all(work, back)
    step = SEARCH_PUSH_STEP if values else SEARCH_PUSH_STEP_HUBS
    return pull_pays(work, unvisited / step, back / step, edges)


def choose(nvals: int, size: int, edges: int, rows: int, allowed: int, first_hit: bool) -> str:
    """'push' or 'pull' for the product of a matrix of `edges` entries with a vector of `nvals`
    entries in `size` positions.

    The result has `rows` positions, of which a mask allows about `allowed`. Push costs the edges
    that leave the vector's entries, a share of all edges equal to its density; pull costs the edges
    of the allowed rows or, if the first hit of a row decides, the probes up to it.
    """
    if nvals == 0:
        return "push"
    density = nvals / size
    push = PUSH_STEP * edges * density
    if first_hit:
        probes = min(float(edges), rows / density)
    else:
        probes = edges * (1.0 + MISPREDICTION * density * (1.0 - density))
    pull = rows / 32 + probes * allowed / max(rows, 1)
    return "push" if push < pull else "pull"


def dots_pay(dot_products: int, row_products: int, transposed: int) -> bool:
    """Whether a masked product of two matrices should be computed by dot products, not by rows.

    Dot products read `dot_products` entries, the product by rows takes `row_products`
    multiplications. `transposed` is the number of entries that must be transposed first for the dot
    products; if negative, for the product by rows.
    """
    return dot_products + TRANSPOSE_STEP * transposed <= ROW_STEP * row_products


def degree_order_pays(squares: float, entries: int, rows: int) -> bool:
    """Whether triangles should be counted along edges that lead to the vertex of higher degree
    instead of the lesser number: in skewed graphs rows become far shorter. `squares` is the sum of
    the squares of the degrees.

    An edge's end has squares / entries neighbours on average, a vertex entries / rows. Beamer,
    Asanovic, Patterson, "The GAP benchmark suite" (2015) relabel by degree for the same reason.
    """
    return squares * rows > SKEWED * entries * entries


def rows_are_short(squares: float, entries: int, device: str = "cuda", near: bool = False) -> bool:
    """Whether triangles should be counted row by row, as on roads, where pointing the edges takes
    longer than following them. `squares` is the sum of the squares of the degrees, or, of hubs,
    of 4 times the product of how many neighbours are lesser and greater. `near`: the rows of most
    neighbours are near each other in memory, which a CPU's caches make use of.
    """
    if device != "cpu":
        return squares <= SHORT_ROWS * entries
    return squares <= (CPU_NEAR_ROWS if near else CPU_SHORT_ROWS) * entries


def bucket_width(step: float, vertices: int, edges: int, device: str) -> float:
    """The width of the buckets of a closure (delta-stepping), in the unit of its values: those in
    one bucket are relaxed together. On a GPU, where `narrow_width` may say less, also how far
    products are pushed beyond a large bucket.

    `step` is how much one edge changes a value, on average (Meyer and Sanders, "Delta-stepping: a
    parallelizable shortest path algorithm", 2003). A bucket needs work for all threads, on a GPU
    for many warps: with few edges per vertex, that takes wide buckets. On Kronecker and web graphs
    wide buckets relax the edges of hubs two or three times. Measured on road networks, a grid,
    random graphs of degree 8 and 32, web and social graphs of degree 7 to 15, Kronecker graphs of
    degree 16 to 700 and scale 18 to 25.
    """
    degree = max(edges, 1) / max(vertices, 1)
    if device == "cpu":
        width = step * min(4.0, max(4.0 * (3.6 / degree) ** 6, 1 / 16))
    else:
        width = step * max(60.0 * min(4.0 / degree, 1.0) ** 5.5, 0.5 / degree**0.25)
    return width if width > 0 else 1.0


def may_be_narrow(edges: int) -> bool:
    """Whether a graph has so many edges that `narrow_width` may be less than `bucket_width`."""
    return edges >= NARROW_EDGES


def narrow_width(
    width: float,
    step: float,
    least: float,
    vertices: int,
    edges: int,
    row_length: float,
    host: bool = False,
) -> float:
    """The width of the buckets of a closure on GPUs over a skewed graph of many edges: `width`,
    that of `bucket_width`, or less.

    `vertices` and `edges` are those of each GPU; `host`: the host drives the rounds. `row_length`
    is how many edges the vertex of an edge has, on average over the edges; `step` and `least` are
    how much one edge changes a value, on average and at least. In a bucket of width w a vertex of d
    edges improves about d * w / step others, which are relaxed again each time: in a model of the
    loop each edge is relaxed RELAXED_AGAIN * row_length * w / step times too often, until the whole
    bucket is; what row_length is above the mean degree counts, for where no vertex is large
    `width` is right. Against that stand width / w buckets, each of which costs its rounds and a
    look at all values. Three times the least change leaves few hops to a bucket.

    Modelled on Kronecker graphs (scale 18 to 26, degree 16 and 48), uniform, web-like and social
    ones, roads and a grid, with weights of floats and of integers up to 64 and 255.
    """
    bucket = BUCKET_EDGES * (HOST_BUCKET if host else 1.0) + BUCKET_EDGES_A_VERTEX * vertices
    again = RELAXED_AGAIN * (row_length - edges / max(vertices, 1)) * max(edges, 1)
    if again <= 0 or step <= 0:
        return width
    # of the ratio alone: the product of two small numbers may be zero
    best = width * math.sqrt(step / width * bucket / again)
    return min(width, max(best, LEAST_STEPS * least))


def expected_levels(vertices: int, edges: int) -> float:
    """How many levels a search has, estimated from the degree, as on a grid: one of dimension d has
    2 d edges per vertex and d * vertices**(1 / d) levels.

    That is right for road networks and meshes; for a Kronecker graph of seven levels the estimate
    is 35.
    """
    dimension = max(edges / max(vertices, 1) / 2.0, 2.0)
    return dimension * float(vertices) ** (1.0 / dimension)


def one_device_pays(vertices: int, edges: int, shards: int, peers: bool) -> bool:
    """Whether a loop over a graph in `shards` shards, one on each GPU, is faster on one GPU alone.

    Several GPUs divide the edges among them, but lose time in every round. `peers`: GPUs write into
    each other's memory, and a round costs little; otherwise the host drives the rounds.
    """
    rounds = expected_levels(vertices, edges)
    shared = edges / EDGES_A_MICROSECOND * (1.0 - 1.0 / shards)
    return rounds * (PEER_ROUND if peers else HOST_ROUND) > shared + MOVE_TO_ONE


def all_are_near(vertices: int, edges: int, most: int, levels: int) -> bool:
    """Whether a search from a vertex of `most` edges is expected to end within `levels` levels, if
    each level is larger than the one before by a factor of the average degree. This holds for
    Kronecker graphs and social networks; road networks need thousands of levels.
    """
    degree = edges / max(vertices, 1)
    return most * degree ** (levels - 1) >= vertices


def a_sample_pays(vertices: int, edges: int) -> bool:
    """Whether connected components of a symmetric graph in shards should begin with a sample of two
    edges per vertex: one more exchange, which makes most of the other edges unnecessary.

    Source: Sutton, Ben-Nun, Barak, "Optimizing parallel graph connectivity computation via subgraph
    sampling" (2018).
    """
    return edges >= SAMPLE_PAYS * vertices
