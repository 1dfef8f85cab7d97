# The minimum spanning forest by Boruvka's algorithm (1926), on all threads. Edges are ordered by
# weight, those of equal weight by their position, so that the forest is unique; NaN is greater than
# all numbers. `root` links each vertex to another one of its tree or, if it is the root, to itself.
#
# `count_edges` and `join_trees` are called twice if there are many edges: for the light ones, and
# then for all, of which few still lead from one tree to another. Light are those of less than
# `limit`, and those of `limit` in the rows before `limit_row`. Preamble: the text of
# lower_bound.py.

# edges of a list that a thread takes at a time
PIECE = 4096
# words of `state`, each in a cache line of its own: the next chunk, how many edges are left
TICKET, LEFT = 0, 8


@inner
def is_before(weight, place, other_weight, other_place):
    """Whether an edge comes before another one."""
    if weight == other_weight:
        return place < other_place
    if weight != weight:
        return other_weight != other_weight and place < other_place
    return weight < other_weight or other_weight != other_weight


@inner
def first_edge(indptr, indices, i, upper):
    """The first edge of row i, or of those above the diagonal."""
    e, end = np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])
    return lower_bound(indices, e, end, i + np.uint64(1)) if upper else e


@inner
def find(root, v):
    """The root of v's tree, to which all vertices on the way are linked. No thread may join trees
    meanwhile.
    """
    r = np.int64(atomic_load(root, v))
    above = np.int64(atomic_load(root, r))
    if above == r:
        return r
    while above != r:
        r = above
        above = np.int64(atomic_load(root, r))
    while v != r:
        above = np.int64(atomic_load(root, v))
        atomic_store(root, v, root.dtype.type(r))
        v = above
    return r


# --- which edges join trees -----------------------------------------------------------------------


@inner
def count_light(indices, values, keep, first, end, i, limit, ties):
    """How many of these edges of row i are light, where each vertex is a tree."""
    count = 0
    for e in range(first, end):
        weight = values[e & keep]
        count += (np.uint64(indices[e]) != i) & ((weight < limit) | (ties & (weight == limit)))
    return count


@inner
def count_open(indices, root, first, end, tree):
    """How many of these edges lead from `tree` to another one."""
    count = 0
    for e in range(first, end):
        count += root[np.uint64(indices[e])] != tree
    return count


@kernel
def count_edges(
    thread, threads, sync, bounds, indptr, indices, values, keep, upper, limited, limit, limit_row,
    root, counts, state,
):  # fmt: skip
    """Link each vertex to its root; counts[c + 1] = how many edges of chunk c of the rows join
    trees, if `limited` the light ones of a `root` that links each vertex to itself.
    """
    n = root.size
    for v in range(n * thread // threads, n * (thread + 1) // threads):
        if v & 0xFFFF == 0:
            poll(sync)
        find(root, v)
    barrier(sync, threads)
    while True:
        poll(sync)
        chunk = atomic_add(state, TICKET, 1)
        if chunk >= bounds.size - 1:
            break
        count = 0
        for i in range(np.uint64(bounds[chunk]), np.uint64(bounds[chunk + 1])):
            first, end = first_edge(indptr, indices, i, upper), np.uint64(indptr[i + np.uint64(1)])
            if limited:
                ties = i < limit_row
                count += count_light(indices, values, keep, first, end, i, limit, ties)
            else:
                count += count_open(indices, root, first, end, root[i])
        counts[chunk + 1] = count


@inner
def offer(best, weights, tree, k, weight):
    """best[tree] = k if that edge comes before the one that is there."""
    before = np.int64(atomic_load(best, tree))
    while before < 0 or is_before(weight, k, weights[np.uint64(before)], before):
        if compare_exchange(best, tree, best.dtype.type(before), best.dtype.type(k)):
            break
        before = np.int64(atomic_load(best, tree))


@inner
def list_edges(
    sync, bounds, starts, indptr, indices, values, keep, upper, limited, limit, limit_row, root,
    heads, tails, edges, weights, best, state,
):  # fmt: skip
    """List the edges that `count_edges` has counted, those of chunk c from starts[c] on, and offer
    them to the trees at both ends.
    """
    while True:
        poll(sync)
        chunk = atomic_add(state, TICKET, 1)
        if chunk >= bounds.size - 1:
            break
        k = starts[chunk]
        if k == starts[chunk + 1]:
            continue
        for i in range(np.uint64(bounds[chunk]), np.uint64(bounds[chunk + 1])):
            tree, ties = root[i], i < limit_row
            least = np.int64(-1)
            first = first_edge(indptr, indices, i, upper)
            for e in range(first, np.uint64(indptr[i + np.uint64(1)])):
                weight = values[e & keep]
                if limited and not (weight < limit or (ties and weight == limit)):
                    continue
                other = root[np.uint64(indices[e])]
                if other != tree:
                    heads[k], tails[k], edges[k], weights[k] = tree, other, e, weight
                    offer(best, weights, np.int64(other), k, weight)
                    if least < 0 or is_before(weight, k, weights[np.uint64(least)], least):
                        least = k
                    k += 1
            if least >= 0:
                offer(best, weights, np.int64(tree), least, weights[np.uint64(least)])


# --- the rounds -----------------------------------------------------------------------------------


@inner
def hook(sync, live, first, end, heads, tails, edges, best, root, kept):
    """Link each of the roots live[first:end] to the tree at the other end of its best edge."""
    for p in range(np.uint64(first), np.uint64(end)):
        if p & np.uint64(0xFFFF) == 0:
            poll(sync)
        c = np.int64(live[p])
        b = np.uint64(best[np.uint64(c)])
        if best[np.uint64(c)] >= 0:
            other = np.int64(heads[b]) + np.int64(tails[b]) - c
            # of two trees that select the same edge the one of the lesser root stays a root
            if np.uint64(best[np.uint64(other)]) != b or c > other:
                kept[np.uint64(edges[b])] = 1
                root[np.uint64(c)] = other


@inner
def compress(sync, live, first, end, best, root):
    """Link each of live[first:end] to its root. Those that stay roots, and had an edge to another
    tree, remain in live[first:]; returns where they end.
    """
    left = np.uint64(first)
    for p in range(np.uint64(first), np.uint64(end)):
        if p & np.uint64(0xFFFF) == 0:
            poll(sync)
        c = np.int64(live[p])
        if find(root, c) == c and best[np.uint64(c)] >= 0:
            best[np.uint64(c)] = -1
            live[left] = c
            left += np.uint64(1)
    return np.int64(left)


@inner
def shorten(sync, lengths, heads, tails, edges, weights, best, root, state):
    """Replace the ends of the edges by the roots of their trees, and leave out those within one.
    The others remain at the beginning of their piece of the lists, lengths[c] of piece c, and are
    offered to the trees at both ends.
    """
    while True:
        poll(sync)
        piece = atomic_add(state, TICKET, 1)
        if piece >= lengths.size:
            break
        left = begin = np.uint64(piece * PIECE)
        for k in range(begin, begin + np.uint64(lengths[piece])):
            head, tail = root[np.uint64(heads[k])], root[np.uint64(tails[k])]
            if head != tail:
                weight = weights[k]
                heads[left], tails[left], edges[left], weights[left] = head, tail, edges[k], weight
                offer(best, weights, np.int64(head), np.int64(left), weight)
                offer(best, weights, np.int64(tail), np.int64(left), weight)
                left += np.uint64(1)
        lengths[piece] = left - begin
        atomic_add(state, LEFT, np.int64(left - begin))


@kernel
def join_trees(
    thread, threads, sync, bounds, starts, indptr, indices, values, keep, upper, limited, limit,
    limit_row, root, heads, tails, edges, weights, lengths, best, live, kept, state,
):  # fmt: skip
    """Join the trees of `root` by edges that `count_edges` has counted, until none joins two;
    kept[e] = 1 for those that did. All of `best` is -1 where root[v] = v, before and afterwards.

    In each round every tree selects its first edge to another tree. Then edges within a tree are
    dropped, and the ends of the others are replaced by the roots of their trees.
    """
    n = root.size
    first = end = n * thread // threads
    for v in range(first, n * (thread + 1) // threads):
        if np.int64(root[v]) == v:
            live[end] = v
            end += 1
    list_edges(
        sync, bounds, starts, indptr, indices, values, keep, upper, limited, limit, limit_row,
        root, heads, tails, edges, weights, best, state,
    )  # fmt: skip
    barrier(sync, threads)
    left = np.int64(1)
    while left > 0:
        hook(sync, live, first, end, heads, tails, edges, best, root, kept)
        barrier(sync, threads)
        if thread == 0:
            state[TICKET] = state[LEFT] = 0
        end = compress(sync, live, first, end, best, root)
        barrier(sync, threads)
        shorten(sync, lengths, heads, tails, edges, weights, best, root, state)
        barrier(sync, threads)
        left = atomic_load(state, LEFT)


# --- the edges that are kept ----------------------------------------------------------------------


@kernel
def count_kept(thread, threads, sync, bounds, ticket, indptr, kept, eights, sizes):
    """sizes[i + 1] = how many edges of row i are kept. `eights` is `kept` in words of eight."""
    while True:
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk >= bounds.size - 1:
            break
        i = np.uint64(bounds[chunk])
        e, end = np.uint64(indptr[i]), np.uint64(indptr[bounds[chunk + 1]])
        while e < end:
            if e & np.uint64(7) == 0 and eights[e >> np.uint64(3)] == 0:
                e += np.uint64(8)
                continue
            if kept[e] != 0:
                while np.uint64(indptr[i + np.uint64(1)]) <= e:
                    i += np.uint64(1)
                sizes[i + np.uint64(1)] += 1
            e += np.uint64(1)


@kernel
def take_kept(
    thread, threads, sync, bounds, ticket, indptr, kept, eights, z_ptr, indices, values, iso, z_ids,
    z,
):  # fmt: skip
    """The columns of the edges that are kept, and their weights unless `iso`."""
    while True:
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk >= bounds.size - 1:
            break
        e = np.uint64(indptr[bounds[chunk]])
        k, end = np.uint64(z_ptr[bounds[chunk]]), np.uint64(z_ptr[bounds[chunk + 1]])
        while k < end:
            if e & np.uint64(7) == 0 and eights[e >> np.uint64(3)] == 0:
                e += np.uint64(8)
                continue
            if kept[e] != 0:
                z_ids[k] = indices[e]
                if not iso:
                    z[k] = values[e]
                k += np.uint64(1)
            e += np.uint64(1)
