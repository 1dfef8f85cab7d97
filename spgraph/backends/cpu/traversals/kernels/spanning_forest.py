# The minimum spanning forest by Boruvka's algorithm (1926), by one thread. No preamble but the
# header.


@kernel
def spanning_forest(
    thread, threads, sync, indptr, indices, values, keep, kept, heads, tails, edges, best, root
):
    """kept[e] = 1 for the edges of the minimum spanning forest; of equal weights the first edge is
    preferred, and NaN is greater than all numbers.

    In each round every tree selects its least edge to another tree. Then edges within a tree are
    dropped, and the ends of the others are replaced by the roots of their trees.
    """
    n = root.size
    count = np.int64(0)
    for i in range(np.uint64(n)):
        root[i] = i
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            if np.uint64(indices[e]) != i:
                heads[count], tails[count], edges[count] = i, indices[e], e
                count += 1
    while count > 0:
        best[:] = -1
        for k in range(count):
            if k & 0xFFFF == 0:
                poll(sync)
            w = values[np.uint64(edges[k]) & keep]
            for c in (np.uint64(heads[k]), np.uint64(tails[k])):
                b = best[c]
                if b < 0:
                    best[c] = k
                else:
                    least = values[np.uint64(edges[np.uint64(b)]) & keep]
                    if w < least or (least != least and w == w):
                        best[c] = k
        for c in range(n):
            b = best[c]
            if b >= 0:
                kept[edges[b]] = 1
                other = heads[b] + tails[b] - c
                # of two trees that select the same edge the one of the lesser root stays a root
                if best[other] != b or c > other:
                    root[c] = other
        for c in range(n):
            r = root[c]
            while root[r] != r:
                r = root[r]
            v = c
            while root[v] != r:
                above = root[v]
                root[v] = r
                v = above
        left = np.int64(0)
        for k in range(count):
            h, t = root[np.uint64(heads[k])], root[np.uint64(tails[k])]
            if h != t:
                heads[left], tails[left], edges[left] = h, t, edges[k]
                left += 1
        count = left
