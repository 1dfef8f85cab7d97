# The least colour that no neighbour has, vertex by vertex in the order given. No preamble.


@kernel
def color_greedily(thread, threads, sync, indptr, indices, order, taken, color):
    # one thread; a colour below 0: none yet
    for k in range(np.uint64(order.size)):
        if k & np.uint64(255) == 0:
            poll(sync)
        v = np.uint64(order[k])
        for e in range(np.uint64(indptr[v]), np.uint64(indptr[v + np.uint64(1)])):
            c = np.int64(color[np.uint64(indices[e])])
            if c >= 0:
                taken[np.uint64(c)] = v
        free = np.uint64(0)
        while taken[free] == np.int64(v):
            free += np.uint64(1)
        color[v] = free
