# What the kernels of a search share: the counters, products, when to pull, when to end levels of
# one thread. Preamble: that of search.py.

from spgraph.backends.cpu.device.prefetching import prefetch

# positions of the shared counters in `state`: each has a cache line of its own
COUNT, EDGES, PROBES, TICKET, SKIPPED, FILLED = 0, 8, 16, 24, 32, 40
# what thread 0 reports after levels that it ran alone, and at the end; TURN: which queue is next
DEPTH, LEFT, OPEN_EDGES, TURN, VISITED, FINDABLE = 48, 49, 50, 51, 52, 53
# whether to leave levels that are worth sharing to another launch; what another launch is to do:
# nothing, share levels, mark vertices, or run thin levels; whether this launch goes on from an
# earlier one; whether no vertices are to be marked; and no thin levels to be left
LEAVE, MORE, BEGUN, UNMARKED, NOT_THIN = 54, 55, 56, 57, 58
# frontier edges below which a level is pushed by thread 0, ALONE or fewer where threads are many
SHARE_FROM = 59
SHARE, MARK, THIN = 1, 2, 3
# cost of converting a bitmap to a queue, in edges of the frontier
TO_QUEUE = 4096


@inner
def degree_of(indptr, v):
    return np.int64(indptr[v + np.uint64(1)]) - np.int64(indptr[v])


@inner
def product(value, values, u, v, e):
    return multiply(value[u], values[0] if ISO else values[e], 0, u, u, v)


@inner
def sum_of_one(z):
    """The sum of one product: as in longer sums, min and max ignore NaN."""
    return z if TERMINAL == 1 else add(IDENTITY, z)


@inner
def fetch_row(queue, i, count, indptr, indices, values):
    """Start to fetch the row of vertex i of the queue, if it has so many."""
    if i < count:
        row = np.uint64(indptr[np.uint64(queue[i])])
        prefetch(indices, row)
        if VALUES and not ISO:
            prefetch(values, row)


@inner
def poll_at_times(sync, depth, edges):
    """Poll once in a level of many edges, and in one of 64 others: it takes as long as a level of
    two or three vertices.
    """
    if edges >= 1024 or depth & 63 == 0:
        poll(sync)


@inner
def wants_pull(direction, queued, edges, left, open_edges, symmetric, size):
    """Whether the next level should be pulled; `size` is the number of all edges."""
    if direction != 0:
        return direction == 2
    work = float(edges if queued else edges + TO_QUEUE)
    if VALUES and not FIRST:
        return pull_pays_all(work, float(open_edges))
    # out-edges of open vertices are their in-edges only in a symmetric graph
    bound = open_edges if symmetric else size
    return pull_pays(work, float(left), float(bound), float(size))


@inner
def probes_of(edges, left, open_edges, symmetric, size):
    """About how many in-edges a pull looks at: those of all open vertices or, if the first hit
    decides, of each as many as `pull_pays` expects.
    """
    bound = float(open_edges if symmetric else size)
    if VALUES and not FIRST:
        return bound
    return min(float(left) * float(size) / float(edges), bound)


@inner
def is_over(threads, state, count, edges, left, depth, max_depth, share_from):
    """Whether the search ends here, or another form of levels should take over from one thread:
    one that shares levels of so many edges.
    """
    if count == 0 or edges == 0 or left <= 0 or depth >= max_depth:
        return True
    return (threads > 1 or state[LEAVE] != 0) and edges >= share_from


@inner
def record(trace, depth, direction, frontier, edges, elapsed):
    if depth < trace.shape[0]:
        trace[depth, 0] = direction
        trace[depth, 1] = frontier
        trace[depth, 2] = edges
        trace[depth, 3] = elapsed
