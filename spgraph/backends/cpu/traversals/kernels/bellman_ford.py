# The Bellman-Ford algorithm from many starts: each search is run by one thread, and the threads
# divide the searches among them.
#
# Edges are given as rows `indptr, indices, values` and, if they are followed in both directions
# (`both`), also as the rows of the transpose. Rows may be unsorted and have parallel edges.
# values[e & keep] is the length of edge e; keep is 0 if all have the same length. Search b starts
# from all vertices starts[bounds[b]:bounds[b + 1]], at distance 0.
#
# No preamble but the header.

# of a sum, each of whose terms may be rounded by this part of all of them together
ROUNDING = 2.0**-52
# edges of a cycle of length 0 along which rounding adds up, where the cycle is not known
MANY = 4096


@inner
def relax_row(u, indptr, indices, values, keep, dist, parent, last, marked, queue, count):
    """Relax the edges of one row of u; vertices that improve are appended to the queue, each once.
    last[v] is the length of the edge from parent[v] to v. Returns the new size of the queue.
    """
    x = dist[u]
    for e in range(np.uint64(indptr[u]), np.uint64(indptr[u + np.uint64(1)])):
        v = np.uint64(indices[e])
        z = x + values[e & keep]
        if z < dist[v]:
            dist[v] = z
            parent[v] = u
            last[v] = values[e & keep]
            if marked[v] == 0:
                marked[v] = 1
                queue[count] = v
                count += 1
            if v == u:
                x = dist[u]
    return count


@inner
def has_negative_cycle(parent, last, color):
    """Whether the parents contain a cycle of negative length, by more than rounding."""
    n = parent.size
    color[:] = 0
    for s in range(n):
        v = s
        while v >= 0 and color[v] == 0:
            color[v] = s + 1
            v = np.int64(parent[v])
        if v >= 0 and color[v] == s + 1:
            total, size, edges, w = last[v], abs(last[v]), 1, np.int64(parent[v])
            while w != v:
                total += last[w]
                size += abs(last[w])
                edges += 1
                w = np.int64(parent[w])
            if total < -ROUNDING * edges * size or total == -np.inf:
                return True
    return False


@inner
def improvable(indptr, indices, values, keep, dist):
    """Whether relaxing some edge would still improve a vertex, by more than rounding."""
    largest = 0.0
    for e in range(values.size):
        if largest < abs(values[e]) < np.inf:
            largest = abs(values[e])
    slack = ROUNDING * min(dist.size, MANY) * largest
    for i in range(np.uint64(dist.size)):
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            if dist[i] + values[e & keep] + slack < dist[np.uint64(indices[e])]:
                return True
    return False


@kernel
def bellman_ford(
    thread, threads, sync, ticket, starts, bounds, indptr, indices, values, t_indptr, t_indices,
    t_values, keep, both, distance, parents, failed, lasts, queues, marks, colors
):  # fmt: skip
    """The Bellman-Ford algorithm, for lengths of either sign: each round relaxes the edges of the
    vertices that the round before improved. failed[b] = 1 if search b reaches a cycle of negative
    length.

    After some rounds such a cycle appears among the parents, which are checked after 16, 32, 64,
    ... rounds. Rounding may hide it; then vertices still improve after n rounds.
    """
    queue, fresh = queues[thread, 0], queues[thread, 1]
    last, marked, color = lasts[thread], marks[thread], colors[thread]
    n = distance.shape[1]
    while True:
        poll(sync)
        b = atomic_add(ticket, 0, 1)
        if b >= bounds.size - 1:
            break
        dist, parent = distance[b], parents[b]
        marked[:] = 0
        count = np.int64(0)
        for k in range(bounds[b], bounds[b + 1]):
            s = np.uint64(starts[k])
            if marked[s] == 0:
                dist[s] = 0.0
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
                found = relax_row(
                    u, indptr, indices, values, keep, dist, parent, last, marked, fresh, found
                )
                if both:
                    found = relax_row(
                        *(u, t_indptr, t_indices, t_values, keep, dist, parent, last),
                        *(marked, fresh, found),
                    )
            queue, fresh = fresh, queue
            count = found
            rounds += 1
            if rounds == look or rounds > n:
                look *= 2
                if has_negative_cycle(parent, last, color):
                    failed[b] = 1
                    break
            if rounds > n:
                if improvable(indptr, indices, values, keep, dist) or (
                    both and improvable(t_indptr, t_indices, t_values, keep, dist)
                ):
                    failed[b] = 1
                break
