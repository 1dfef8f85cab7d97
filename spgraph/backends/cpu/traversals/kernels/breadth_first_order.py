# Breadth-first order with a queue, by one thread.
#
# Edges are given as rows `indptr, indices` and, if they are followed in both directions (`both`),
# also as the rows of the transpose. Rows may be unsorted and have parallel edges.
#
# No preamble but the header.

from spgraph.backends.cpu.device.prefetching import prefetch

# distances in the queue at which row pointers and then rows are prefetched
FAR_AHEAD, AHEAD = 12, 5


@kernel
def breadth_first_order(
    thread, threads, sync, start, indptr, indices, t_indptr, t_indices, both, order, parent, counts
):
    """The counts[0] vertices reachable from `start`, in `order`, and their predecessors in
    `parent`, which the caller fills with -9999; the start is its own predecessor.
    """
    order[0] = start
    parent[start] = start
    count, done = np.uint64(1), np.uint64(0)
    n = np.uint64(order.size)
    while done < count and count < n:
        if done & np.uint64(4095) == 0:
            poll(sync)
        u = np.uint64(order[done])
        if done + np.uint64(FAR_AHEAD) < count:
            prefetch(indptr, np.uint64(order[done + np.uint64(FAR_AHEAD)]))
            w = np.uint64(order[done + np.uint64(AHEAD)])
            prefetch(indices, np.uint64(indptr[w]))
        done += np.uint64(1)
        for e in range(np.uint64(indptr[u]), np.uint64(indptr[u + np.uint64(1)])):
            v = np.uint64(indices[e])
            if parent[v] < 0:
                parent[v] = u
                order[count] = v
                count += np.uint64(1)
        if both:
            for e in range(np.uint64(t_indptr[u]), np.uint64(t_indptr[u + np.uint64(1)])):
                v = np.uint64(t_indices[e])
                if parent[v] < 0:
                    parent[v] = u
                    order[count] = v
                    count += np.uint64(1)
    counts[0] = count
