# Shortest paths from many starts by Bellman's and Ford's rounds: a search is one thread's, several
# are shared by the threads.
#
# Edges lie in two sets of rows, `indptr, indices, values` and, where an edge may be gone both ways
# (`both`), the rows of the transpose. Rows need be neither sorted nor free of repetitions: what is
# repeated is a parallel edge. `values[e & keep]` is the length of edge e: keep is 0 where all have
# one length. Search b starts from starts[bounds[b]:bounds[b + 1]], from each of them at distance 0.
#
# No preamble but the header.

# what a cycle may be below zero by rounding
SLACK = 1e-15


@inner
def improve(u, indptr, indices, values, keep, reached, parent, last, marked, queue, count):
    """Relax the edges of one row of u; vertices that get better join the queue, each once. `last`
    is the edge by which a vertex was reached.
    """
    x = reached[u]
    for e in range(np.uint64(indptr[u]), np.uint64(indptr[u + np.uint64(1)])):
        v = np.uint64(indices[e])
        z = x + values[e & keep]
        if z < reached[v]:
            reached[v] = z
            parent[v] = u
            last[v] = values[e & keep]
            if marked[v] == 0:
                marked[v] = 1
                queue[count] = v
                count += 1
            if v == u:
                x = reached[u]
    return count


@inner
def closes(parent, last, colour):
    """Whether parents lead around a cycle of negative length."""
    n = parent.size
    colour[:] = 0
    for s in range(n):
        v = s
        while v >= 0 and colour[v] == 0:
            colour[v] = s + 1
            v = np.int64(parent[v])
        if v >= 0 and colour[v] == s + 1:
            total, w = last[v], np.int64(parent[v])
            while w != v:
                total += last[w]
                w = np.int64(parent[w])
            if total < -SLACK:
                return True
    return False


@inner
def unstable(indptr, indices, values, keep, reached):
    """Whether an edge still makes a vertex better, by more than rounding."""
    for i in range(np.uint64(reached.size)):
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            if reached[i] + values[e & keep] + SLACK < reached[np.uint64(indices[e])]:
                return True
    return False


@kernel
def bellman_ford(
    thread, threads, sync, ticket, starts, bounds, indptr, indices, values, t_indptr, t_indices,
    t_values, keep, both, distance, parents, failed, lasts, queues, marks, colours
):  # fmt: skip
    """Bellman's and Ford's walks, for lengths of either sign: rounds over what got better in the
    round before. failed[b] = 1 where a walk leads into a cycle of negative length.

    Parents lead around a cycle if there is one such, after some rounds: that is looked at ever more
    rarely. Rounding may hide it; then the vertices do not rest within as many rounds as there are.
    """
    queue, fresh = queues[thread, 0], queues[thread, 1]
    last, marked, colour = lasts[thread], marks[thread], colours[thread]
    n = distance.shape[1]
    while True:
        poll(sync)
        b = atomic_add(ticket, 0, 1)
        if b >= bounds.size - 1:
            break
        reached, parent = distance[b], parents[b]
        marked[:] = 0
        count = np.int64(0)
        for k in range(bounds[b], bounds[b + 1]):
            s = np.uint64(starts[k])
            if marked[s] == 0:
                reached[s] = 0.0
                marked[s] = 1
                queue[count] = s
                count += 1
        rounds, look = np.int64(0), np.int64(16)
        while count > 0:
            found = np.int64(0)
            for i in range(count):
                if i & 1023 == 0:
                    poll(sync)
                u = np.uint64(queue[i])
                marked[u] = 0
                found = improve(
                    u, indptr, indices, values, keep, reached, parent, last, marked, fresh, found
                )
                if both:
                    found = improve(
                        *(u, t_indptr, t_indices, t_values, keep, reached, parent, last),
                        *(marked, fresh, found),
                    )
            queue, fresh = fresh, queue
            count = found
            rounds += 1
            if rounds == look or rounds > n:
                look *= 2
                if closes(parent, last, colour):
                    failed[b] = 1
                    break
            if rounds > n:
                if unstable(indptr, indices, values, keep, reached) or (
                    both and unstable(t_indptr, t_indices, t_values, keep, reached)
                ):
                    failed[b] = 1
                break
