# Dijkstra's shortest paths from many starts: a search is one thread's, several are shared by the
# threads.
#
# Edges lie in two sets of rows, `indptr, indices, values` and, where an edge may be gone both ways
# (`both`), the rows of the transpose. Rows need be neither sorted nor free of repetitions: what is
# repeated is a parallel edge. `values[e & keep]` is the length of edge e: keep is 0 where all have
# one length. Search b starts from starts[bounds[b]:bounds[b + 1]], from each of them at distance 0.
#
# No preamble but the header.

from spgraph.backends.cpu.device.prefetching import prefetch

# what `place` says of a vertex that is not in the heap; of others, one more than where it is
UNSEEN, SETTLED = 0, -1
# children of a node of the heap
ARITY = 4


@inner
def rise(keys, heap, place, hole, key, v):
    """Put v with its key where it belongs, from `hole` upwards."""
    while hole > np.uint64(0):
        above = (hole - np.uint64(1)) // np.uint64(ARITY)
        if keys[above] <= key:
            break
        keys[hole] = keys[above]
        heap[hole] = heap[above]
        place[np.uint64(heap[hole])] = hole + np.uint64(1)
        hole = above
    keys[hole] = key
    heap[hole] = v
    place[v] = hole + np.uint64(1)


@inner
def sink(keys, heap, place, count):
    """Put the last of `count` + 1 entries where it belongs, from the top downwards."""
    key, v = keys[count], np.uint64(heap[count])
    hole = np.uint64(0)
    while True:
        child = np.uint64(ARITY) * hole + np.uint64(1)
        if child >= count:
            break
        least, low = child, keys[child]
        for other in range(child + np.uint64(1), min(child + np.uint64(ARITY), count)):
            if keys[other] < low:
                least, low = np.uint64(other), keys[other]
        if low >= key:
            break
        keys[hole] = low
        heap[hole] = heap[least]
        place[np.uint64(heap[hole])] = hole + np.uint64(1)
        hole = least
    keys[hole] = key
    heap[hole] = v
    place[v] = hole + np.uint64(1)


@inner
def offer(
    u, x, indptr, indices, values, keep, limit, reached, parent, root, wants, roots, keys, heap,
    place, count
):  # fmt: skip
    """Relax the edges of one row of u, which is settled at x: how many the heap holds then."""
    for e in range(np.uint64(indptr[u]), np.uint64(indptr[u + np.uint64(1)])):
        v = np.uint64(indices[e])
        z = x + values[e & keep]
        if z < reached[v] and z <= limit:
            at = place[v]
            if at == SETTLED:
                continue
            reached[v] = z
            hole = np.uint64(at - 1)
            if at == UNSEEN:
                hole = count
                count += np.uint64(1)
            if wants:
                parent[v] = u
            if roots:
                root[v] = root[u]
            rise(keys, heap, place, hole, z, v)
    return count


@kernel
def dijkstra(
    thread, threads, sync, ticket, starts, bounds, indptr, indices, values, t_indptr, t_indices,
    t_values, keep, both, limit, distance, parents, origins, wants, roots, all_keys, heaps, places
):  # fmt: skip
    """Dijkstra's walks: `distance[b]` holds infinity and `parents[b]`, `origins[b]` their sentinel
    where a walk does not lead. Lengths are not negative, or are taken as if they were not.

    What is settled lies at the far end of the heap's array: it is at once what a walk has touched.
    """
    keys, heap, place = all_keys[thread], heaps[thread], places[thread]
    n = np.uint64(place.size)
    far = n
    while True:
        poll(sync)
        b = atomic_add(ticket, 0, 1)
        if b >= bounds.size - 1:
            break
        for k in range(far, n):
            place[np.uint64(heap[k])] = UNSEEN
        far = n
        reached = distance[b]
        parent, root = parents[b if wants else 0], origins[b if roots else 0]
        count = np.uint64(0)
        for k in range(bounds[b], bounds[b + 1]):
            s = np.uint64(starts[k])
            if place[s] == UNSEEN:
                far -= np.uint64(1)
                heap[far] = s
                place[s] = SETTLED
                reached[s] = 0.0
                if roots:
                    root[s] = s
        first, k = far, n
        while True:
            if k > first:
                k -= np.uint64(1)
                u = np.uint64(heap[k])
            elif count > np.uint64(0):
                u = np.uint64(heap[0])
                place[u] = SETTLED
                count -= np.uint64(1)
                if count > np.uint64(0):
                    sink(keys, heap, place, count)
                far -= np.uint64(1)
                heap[far] = u
            else:
                break
            if far & np.uint64(1023) == 0:
                poll(sync)
            if count > np.uint64(0):  # probably the next
                row = np.uint64(indptr[np.uint64(heap[0])])
                prefetch(indices, row)
                prefetch(values, row & keep)
            x = reached[u]
            count = offer(
                *(u, x, indptr, indices, values, keep, limit, reached, parent, root),
                *(wants, roots, keys, heap, place, count),
            )
            if both:
                count = offer(
                    *(u, x, t_indptr, t_indices, t_values, keep, limit, reached, parent, root),
                    *(wants, roots, keys, heap, place, count),
                )
