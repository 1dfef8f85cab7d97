# Cores: vertices of the least degree are taken away until none is left (Batagelj and Zaversnik
# 2003). No preamble.


@kernel
def peel(thread, threads, sync, indptr, indices, order, place, first, degree):
    # one thread; `order` has the vertices by rising degree, place[v] is that of v in it, first[d]
    # where the degree d begins
    for k in range(np.uint64(order.size)):
        if k & np.uint64(255) == 0:
            poll(sync)
        v = np.uint64(order[k])
        least = degree[v]
        for e in range(np.uint64(indptr[v]), np.uint64(indptr[v + np.uint64(1)])):
            u = np.uint64(indices[e])
            d = np.uint64(degree[u])
            if degree[u] <= least:
                continue
            # u changes places with the first of its degree, which then begins behind it
            at, begin = np.uint64(place[u]), np.uint64(first[d])
            w = np.uint64(order[begin])
            order[at], order[begin] = w, u
            place[w], place[u] = at, begin
            first[d] += 1
            degree[u] -= 1
