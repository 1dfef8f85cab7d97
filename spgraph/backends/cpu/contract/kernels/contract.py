# Connected components by hook and compress, in one launch or two. `label` is a forest: label[v] <=
# v is a smaller vertex of the same component, or v if v is a root; in the end it is the smallest
# vertex of the component. Every thread runs `contract`, with a barrier between its steps.
#
# First, two edges of every vertex are followed; of a directed graph that has its transpose one
# out-edge and one in-edge, because many vertices have only one kind. Then most vertices of most
# graphs are in one tree, the giant, and edges within it change nothing. In an undirected graph the
# edges of its vertices are not even read: an edge that leaves it is stored at its other end, too.
# Of a directed graph that has its transpose, that takes the in-edges of the other vertices.
#
# There is at least one edge. No preamble but the header.

# edges of each vertex that are followed before the giant is determined
FOLLOWED = 2
# edges from which the giant is determined
SAMPLES = 1024
# items (rows and edges) that a thread takes at a time
PIECE = 16384
# words of `state`, of which a cache line has LINE: two tickets; the giant; how many edges outside
# of it are worth another launch, of more threads; whether they are left to that; then, in a line
# for each thread, whether one of its edges behind those first ones led to another tree
GIANT, WORTH, LEFT = 2, 3, 4
JOINED = LINE = 8


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
        # path halving; threads may overwrite each other's values, which are all ancestors
        x, below = np.int64(atomic_load(label, above)), x
        if x != above:
            atomic_store(label, below, label.dtype.type(x))
        y = np.int64(atomic_load(label, y))


@inner
def neighbour(indptr, indices, v, k):
    """Number k of v's neighbours, v itself if there are not so many; without a branch, because how
    many there are is hard to predict.
    """
    e = np.uint64(indptr[v]) + k
    u = np.uint64(indices[min(e, np.uint64(indices.size - 1))])
    return u if e < np.uint64(indptr[v + np.uint64(1)]) else v


@inner
def start(thread, threads, indptr, indices, t_indptr, t_indices, label, backward):
    """Link every vertex to its least neighbour, if that is smaller; or to what that is linked to,
    where this thread has linked it before.
    """
    n = label.size
    begin = np.uint64(n * thread // threads)
    for v in range(begin, np.uint64(n * (thread + 1) // threads)):
        least = min(v, neighbour(indptr, indices, v, np.uint64(0)))
        if backward:
            least = min(least, neighbour(t_indptr, t_indices, v, np.uint64(0)))
        label[v] = least
        if least >= begin:
            label[v] = label[least]


@inner
def hook(thread, threads, sync, indptr, indices, t_indptr, t_indices, label, backward):
    """Follow those two edges of every vertex that `start` has not followed."""
    n = label.size
    second = np.uint64(0 if backward else 1)
    for v in range(np.uint64(n * thread // threads), np.uint64(n * (thread + 1) // threads)):
        if v & np.uint64(PIECE - 1) == 0:
            poll(sync)
        u = neighbour(indptr, indices, v, np.uint64(0))
        union_trees(label, u if backward else max(u, v), v)
        union_trees(label, neighbour(t_indptr, t_indices, v, second), v)


@inner
def compress(thread, threads, sync, label):
    """Link every vertex to its root, which is near: smaller vertices of the same thread have been
    linked to theirs. No thread may join trees meanwhile.
    """
    n = label.size
    for v in range(n * thread // threads, n * (thread + 1) // threads):
        if v & (PIECE - 1) == 0:
            poll(sync)
        near = np.int64(atomic_load(label, v))
        root = np.int64(atomic_load(label, near))
        above = np.int64(atomic_load(label, root))
        while above != root:
            root = above
            above = np.int64(atomic_load(label, root))
        atomic_store(label, v, label.dtype.type(root))


@inner
def elect(indices, label):
    """(the giant: the root of more than half of a sample of edges, found by the majority vote of
    Boyer and Moore, or -1 if there is none; about how many edges are not of the giant).
    """
    giant, votes = np.int64(-1), 0
    samples = min(indices.size, SAMPLES)
    for k in range(samples):
        root = np.int64(label[indices[indices.size // samples * k]])
        if votes == 0:
            giant = root
        votes += 1 if root == giant else -1
    votes = 0
    for k in range(samples):
        if np.int64(label[indices[indices.size // samples * k]]) == giant:
            votes += 1
    if 2 * votes <= samples:
        return np.int64(-1), np.int64(indices.size)
    return giant, (samples - votes) * (indices.size // samples)


@inner
def row_of(indptr, n, item):
    """The row of an item: row v has the items from indptr[v] + v on, one for itself and one for
    each edge.
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
def rest(thread, sync, indptr, indices, label, state, slot, followed, giant):
    """Follow the edges from number `followed` of each row on, in pieces that threads take
    dynamically, but for those of the giant.
    """
    n = label.size
    items = n + indices.size
    while True:
        poll(sync)
        begin = atomic_add(state, slot, PIECE)
        if begin >= items:
            break
        end = min(begin + PIECE, items)
        row = row_of(indptr, n, begin)
        v = np.uint64(row)
        # the edge of item `begin`, or the row's first
        e = np.uint64(max(begin - row, np.int64(indptr[v])))
        while v < np.uint64(n) and np.int64(e) + np.int64(v) < end:
            stop = min(np.uint64(indptr[v + np.uint64(1)]), np.uint64(end) - v)
            e = max(e, np.uint64(indptr[v]) + np.uint64(followed))
            root = np.int64(label[v])
            # one branch: of many graphs the vertices outside of the giant have no edges
            if (root != giant) & (e < stop):
                for k in range(e, stop):
                    u = np.uint64(indices[k])
                    if np.int64(label[u]) != root:
                        union_trees(label, u, v)
                        root = np.int64(label[v])
                        state[JOINED + LINE * thread] = 1
            v += np.uint64(1)
            e = np.uint64(indptr[v])


@inner
def find_giant(
    thread, threads, sync, indptr, indices, t_indptr, t_indices, label, backward
):  # fmt: skip
    """Follow two edges of every vertex, and link each to its root; returns what `elect` does."""
    start(thread, threads, indptr, indices, t_indptr, t_indices, label, backward)
    barrier(sync, threads)
    if thread > 0:  # thread 0 has no smaller vertices of others
        compress(thread, threads, sync, label)
    barrier(sync, threads)
    hook(thread, threads, sync, indptr, indices, t_indptr, t_indices, label, backward)
    barrier(sync, threads)
    compress(thread, threads, sync, label)
    barrier(sync, threads)
    found = elect(indices, label)
    barrier(sync, threads)  # all threads read the same labels before one changes them
    return found


@kernel
def contract(
    thread, threads, sync, indptr, indices, t_indptr, t_indices, label, state, undirected, backward
):  # fmt: skip
    if state[LEFT] == 0:
        most, others = find_giant(
            *(thread, threads, sync, indptr, indices, t_indptr, t_indices, label, backward)
        )
        if others >= state[WORTH]:
            if thread == 0:
                state[GIANT], state[LEFT] = most, 1
            return
    else:
        most = state[GIANT]
    giant = np.int64(most)
    skipped = giant if undirected or backward else np.int64(-1)
    rest(thread, sync, indptr, indices, label, state, 0, 1 if backward else FOLLOWED, skipped)
    if backward and giant >= 0:
        rest(thread, sync, t_indptr, t_indices, label, state, 1, 1, skipped)
    barrier(sync, threads)
    for other in range(threads):
        if state[JOINED + LINE * other] != 0:  # else every vertex is still linked to its root
            compress(thread, threads, sync, label)
            break
