# Dijkstra's algorithm from many starts: each search is run by one thread, and the threads divide
# the searches among them.
#
# Edges are given as rows `indptr, indices, values` and, if they are followed in both directions
# (`both`), also as the rows of the transpose. Rows may be unsorted and have parallel edges.
# values[e & keep] is the length of edge e; keep is 0 if all have the same length. Search b starts
# from all vertices starts[bounds[b]:bounds[b + 1]], at distance 0.
#
# No preamble but the header.

from spgraph.backends.cpu.device.prefetching import prefetch

# place[v] is 1 + the position of v in the heap, or one of these
UNVISITED, SETTLED = 0, -1
# children of a node of the heap
ARITY = 4


@inner
def sift_up(keys, heap, place, hole, key, v):
    """Insert v with its key into the heap, moving it up from the free position `hole`."""
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
def sift_down(keys, heap, place, count):
    """Remove the top of a heap of `count` + 1 entries: the last one replaces it and moves down."""
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
def relax_row(
    u, x, indptr, indices, values, keep, limit, dist, parent, root, with_parents, with_origins,
    keys, heap, place, count
):  # fmt: skip
    """Relax the edges of one row of u, which is settled at distance x; returns the new size of the
    heap.
    """
    for e in range(np.uint64(indptr[u]), np.uint64(indptr[u + np.uint64(1)])):
        v = np.uint64(indices[e])
        z = x + values[e & keep]
        if z < dist[v] and z <= limit:
            at = place[v]
            if at == SETTLED:
                continue
            dist[v] = z
            hole = np.uint64(at - 1)
            if at == UNVISITED:
                hole = count
                count += np.uint64(1)
            if with_parents:
                parent[v] = u
            if with_origins:
                root[v] = root[u]
            sift_up(keys, heap, place, hole, z, v)
    return count


@inner
def settle_starts(starts, heap, place, dist, root, with_origins):
    """Settle the starts of a search at distance 0; returns where they begin in the heap's array."""
    far = np.uint64(heap.size)
    for k in range(starts.size):
        s = np.uint64(starts[k])
        if place[s] == UNVISITED:
            far -= np.uint64(1)
            heap[far] = s
            place[s] = SETTLED
            dist[s] = 0.0
            if with_origins:
                root[s] = s
    return far


@kernel
def dijkstra(
    thread, threads, sync, ticket, starts, bounds, indptr, indices, values, t_indptr, t_indices,
    t_values, keep, both, limit, distance, parents, origins, with_parents, with_origins, all_keys,
    heaps, places
):  # fmt: skip
    """Dijkstra's algorithm. The caller fills distance[b] with infinity, and parents[b] and
    origins[b] with the value for "no vertex". For negative lengths results may be wrong.

    Settled vertices are stored at the end of the heap's array, so that only their `place` has to be
    reset for the next search.
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
            place[np.uint64(heap[k])] = UNVISITED
        dist = distance[b]
        parent, root = parents[b if with_parents else 0], origins[b if with_origins else 0]
        count = np.uint64(0)
        own = starts[bounds[b] : bounds[b + 1]]
        first = far = settle_starts(own, heap, place, dist, root, with_origins)
        k = n
        while True:
            if k > first:
                k -= np.uint64(1)
                u = np.uint64(heap[k])
            elif count > np.uint64(0):
                u = np.uint64(heap[0])
                place[u] = SETTLED
                count -= np.uint64(1)
                if count > np.uint64(0):
                    sift_down(keys, heap, place, count)
                far -= np.uint64(1)
                heap[far] = u
            else:
                break
            if far & np.uint64(1023) == 0:
                poll(sync)
            if count > np.uint64(0):  # the top of the heap is probably the next vertex
                row = np.uint64(indptr[np.uint64(heap[0])])
                prefetch(indices, row)
                prefetch(values, row & keep)
            x = dist[u]
            count = relax_row(
                *(u, x, indptr, indices, values, keep, limit, dist, parent, root),
                *(with_parents, with_origins, keys, heap, place, count),
            )
            if both:
                count = relax_row(
                    *(u, x, t_indptr, t_indices, t_values, keep, limit, dist, parent, root),
                    *(with_parents, with_origins, keys, heap, place, count),
                )
