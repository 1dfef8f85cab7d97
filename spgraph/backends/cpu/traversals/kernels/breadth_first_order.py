# A breadth-first search by one thread, in the order of a queue.
#
# Edges lie in two sets of rows, `indptr, indices, values` and, where an edge may be gone both ways
# (`both`), the rows of the transpose. Rows need be neither sorted nor free of repetitions: what is
# repeated is a parallel edge.
#
# No preamble but the header.

from spgraph.backends.cpu.device.prefetching import prefetch

# the rest of a queue whose rows are fetched ahead
FAR_AHEAD, AHEAD = 12, 5


@kernel
def breadth_first_order(
    thread, threads, sync, start, indptr, indices, t_indptr, t_indices, both, order, parent, counts
):
    """The vertices in the order of a queue, each with the one that put it there; counts[0] of them.
    `parent` is -1 all over; the start is its own.
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
