# The triangles of every edge of a symmetric pattern, whose edges point one way in `ids`: each
# triangle is found once, at the vertex u that leads to both others, v and w, of which v leads to w.
# Preamble: the texts of leads.py and lower_bound.py.

from spgraph.backends.cpu.device.prefetching import prefetch

SIX = np.uint64(6)
LOW = np.uint64(63)
BIT = np.uint64(1)
# rows ahead whose first entries are fetched
AHEAD = 4


@inner
def add_to(threads, count, k, more):
    if threads == 1:
        count[k] += more
    else:
        atomic_add(count, k, more)


@inner
def count_along(threads, ids, low, high, bits, place, own, count):
    """Count the triangles of u, whose row is laid out in `bits` and `place`, and v, whose row is
    ids[low:high]: at the edge from v to w in `count`, at that from u to w in `own`; their number.
    """
    found = np.int64(0)
    for q in range(low, high):
        w = np.uint64(ids[q])
        if bits[w >> SIX] >> (w & LOW) & BIT != 0:
            own[np.uint64(place[w])] += 1
            add_to(threads, count, q, np.int64(1))
            found += 1
    return found


@kernel
def count_triangles(
    thread, threads, sync, bounds, ticket, indptr, ids, all_bits, all_place, all_own, count
):  # fmt: skip
    # count[k]: the triangles of ids[k]; `bits` and `own` are zero between two rows
    bits, place, own = all_bits[thread], all_place[thread], all_own[thread]
    while True:
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk >= bounds.size - 1:
            break
        for u in range(np.uint64(bounds[chunk]), np.uint64(bounds[chunk + 1])):
            first, last = np.uint64(indptr[u]), np.uint64(indptr[u + BIT])
            if last - first < np.uint64(2):
                continue
            poll(sync)
            for k in range(first, last):
                w = np.uint64(ids[k])
                bits[w >> SIX] |= BIT << (w & LOW)
                place[w] = k - first
            for k in range(first, last):
                ahead = np.uint64(ids[min(k + np.uint64(AHEAD), last - BIT)])
                prefetch(ids, np.uint64(indptr[ahead]))
                v = np.uint64(ids[k])
                low, high = np.uint64(indptr[v]), np.uint64(indptr[v + BIT])
                own[k - first] += count_along(threads, ids, low, high, bits, place, own, count)
            for k in range(first, last):
                bits[np.uint64(ids[k]) >> SIX] = 0
                if own[k - first] != 0:
                    add_to(threads, count, k, own[k - first])
                    own[k - first] = 0


@kernel
def write_support(
    thread, threads, sync, bounds, ticket, indptr, indices, by_degree, z_ptr, z_ids, count, z
):  # fmt: skip
    # z[p]: the count of the edge that entry p is one direction of; 0 of a loop
    while True:
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk >= bounds.size - 1:
            break
        for i in range(np.uint64(bounds[chunk]), np.uint64(bounds[chunk + 1])):
            first, last = np.uint64(indptr[i]), np.uint64(indptr[i + BIT])
            degree = np.int64(last - first)
            k = np.uint64(z_ptr[i])
            for p in range(first, last):
                j = np.uint64(indices[p])
                if leads(indptr, by_degree, degree, i, j):
                    z[p] = count[k]
                    k += BIT
                elif j == i:
                    z[p] = 0
                else:
                    low, high = np.uint64(z_ptr[j]), np.uint64(z_ptr[j + BIT])
                    z[p] = count[lower_bound(z_ids, low, high, i)]
