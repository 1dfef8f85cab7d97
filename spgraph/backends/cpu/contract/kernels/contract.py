# Hook and compress: one launch for the components of a graph. `label` is a forest: label[v] <= v
# leads to a smaller vertex of the same component, a root to itself; in the end every vertex leads
# straight to the smallest. Every thread runs `contract`; they meet at a barrier between its steps.
#
# Two edges of every vertex are followed for all. Then most vertices of most graphs are in one tree,
# the giant: an edge inside of it has nothing to say. In an undirected graph the edges of its
# vertices are not even read: the one that leads out stands at its other end, too.
#
# No preamble but the header.

# the edges of each vertex that are followed before the giant is looked for
FOLLOWED = 2
# edges that vote for the giant
SAMPLES = 1024
# items (rows and edges) that a thread takes at a time
PIECE = 16384


@inner
def union_trees(label, u, v):
    """Join the trees of u and v: the larger root under the smaller."""
    x, y = np.int64(label[u]), np.int64(label[v])
    while x != y:
        if x < y:
            x, y = y, x
        above = np.int64(atomic_load(label, x))
        if above == x:
            if compare_exchange(label, x, label.dtype.type(x), label.dtype.type(y)):
                return
            above = np.int64(atomic_load(label, x))
        # halve the path behind; threads may overwrite each other, each time by an ancestor
        x, below = np.int64(atomic_load(label, above)), x
        if x != above:
            atomic_store(label, below, label.dtype.type(x))
        y = np.int64(atomic_load(label, y))


@inner
def start(thread, threads, indptr, indices, label):
    """Every vertex under its first neighbour, the least (rows ascend), where that is smaller."""
    n = label.size
    for v in range(np.uint64(n * thread // threads), np.uint64(n * (thread + 1) // threads)):
        first = np.uint64(indptr[v])
        least = v
        if first < np.uint64(indptr[v + np.uint64(1)]):
            least = min(v, np.uint64(indices[first]))
        label[v] = least


@inner
def hook(thread, threads, sync, indptr, indices, label):
    """The second edge of every vertex, and the first where `start` has not followed it."""
    n = label.size
    for v in range(np.uint64(n * thread // threads), np.uint64(n * (thread + 1) // threads)):
        if v & np.uint64(PIECE - 1) == 0:
            poll(sync)
        first = np.uint64(indptr[v])
        last = np.uint64(indptr[v + np.uint64(1)])
        for e in range(first, min(last, first + np.uint64(FOLLOWED))):
            u = np.uint64(indices[e])
            if e > first or u > v:
                union_trees(label, u, v)


@inner
def compress(thread, threads, sync, label):
    """Every vertex under its root. Whatever a thread writes on a path is the root of all of it."""
    n = label.size
    for v in range(n * thread // threads, n * (thread + 1) // threads):
        if v & (PIECE - 1) == 0:
            poll(sync)
        root = np.int64(atomic_load(label, v))
        above = np.int64(atomic_load(label, root))
        if above == root:
            continue
        while above != root:
            root = above
            above = np.int64(atomic_load(label, root))
        x = v
        while x != root:
            above = np.int64(atomic_load(label, x))
            atomic_store(label, x, label.dtype.type(root))
            x = above


@inner
def elect(indices, label):
    """The giant: the root to which more than half of a sample of the edges lead, if there is one
    (Boyer and Moore's vote). Any vertex would do, this one saves the most.
    """
    giant, votes = np.int64(-1), 0
    samples = min(indices.size, SAMPLES)
    for k in range(samples):
        root = np.int64(label[indices[indices.size // samples * k]])
        if votes == 0:
            giant = root
        votes += 1 if root == giant else -1
    return giant


@inner
def row_of(indptr, n, item):
    """The row to which an item belongs: row v has the items from indptr[v] + v on, one for itself
    and one for each edge.
    """
    low, high = 0, n
    while high - low > 1:
        middle = (low + high) // 2
        if np.int64(indptr[middle]) + middle <= item:
            low = middle
        else:
            high = middle
    return low


@inner
def rest(sync, indptr, indices, label, ticket, giant, undirected):
    """The other edges, in pieces that the threads take as they come."""
    n = label.size
    items = n + indices.size
    while True:
        poll(sync)
        begin = atomic_add(ticket, 0, PIECE)
        if begin >= items:
            break
        end = min(begin + PIECE, items)
        row = row_of(indptr, n, begin)
        v = np.uint64(row)
        # the edge that `begin` is, or the row's first
        e = np.uint64(max(begin - row, np.int64(indptr[v])))
        while v < np.uint64(n) and np.int64(e) + np.int64(v) < end:
            stop = min(np.uint64(indptr[v + np.uint64(1)]), np.uint64(end) - v)
            e = max(e, np.uint64(indptr[v]) + np.uint64(FOLLOWED))
            root = np.int64(label[v])
            if root != giant or not undirected:
                for k in range(e, stop):
                    u = np.uint64(indices[k])
                    if np.int64(label[u]) != root:
                        union_trees(label, u, v)
                        root = np.int64(label[v])
            v += np.uint64(1)
            e = np.uint64(indptr[v])


@kernel
def contract(thread, threads, sync, indptr, indices, label, ticket, undirected):
    start(thread, threads, indptr, indices, label)
    barrier(sync, threads)
    hook(thread, threads, sync, indptr, indices, label)
    barrier(sync, threads)
    compress(thread, threads, sync, label)
    barrier(sync, threads)
    giant = elect(indices, label)
    barrier(sync, threads)  # all have elected the same before one hooks on
    rest(sync, indptr, indices, label, ticket, giant, undirected)
    barrier(sync, threads)
    compress(thread, threads, sync, label)
