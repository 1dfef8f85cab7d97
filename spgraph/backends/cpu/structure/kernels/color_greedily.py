# Vertex by vertex in the order given: the least colour that no neighbour has; whether no neighbour
# is chosen. No preamble.


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


@kernel
def choose_greedily(thread, threads, sync, indptr, indices, order, near, chosen):
    # one thread, the last of the order first; `near`: whether a neighbour is chosen
    for k in range(np.uint64(order.size)):
        if k & np.uint64(255) == 0:
            poll(sync)
        v = np.uint64(order[np.uint64(order.size) - np.uint64(1) - k])
        if near[v]:
            continue
        chosen[v] = True
        for e in range(np.uint64(indptr[v]), np.uint64(indptr[v + np.uint64(1)])):
            near[np.uint64(indices[e])] = True
