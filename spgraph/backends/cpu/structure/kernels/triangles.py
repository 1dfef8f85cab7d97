# The triangles of a symmetric pattern: at each edge (i, j), j < i, the k < j in both rows.
#
# Only entries below the diagonal are looked at, the first ones of each row: a row's lesser
# neighbours are marked in a bitmap, and those of each of them are looked up there. The bitmap stays
# in a register if they are near, as in a lattice, or few: then it is a filter. No preamble but the
# header.

from spgraph.backends.cpu.device.prefetching import prefetch

SIX = np.uint64(6)
LOW = np.uint64(63)
BIT = np.uint64(1)
# a row with at most this many lesser neighbours is searched, behind the filter
SHORT = 3
# rows ahead whose first entries are fetched
AHEAD = np.uint64(16)


@inner
def in_short(indices, first, last, filter_, low, high, j):
    """How many of indices[low:high] below j are among indices[first:last]."""
    found = 0
    for q in range(low, high):
        k = np.uint64(indices[q])
        if k >= j:
            break
        if filter_ >> (k & LOW) & BIT != 0:
            for p in range(first, last):
                found += np.uint64(indices[p]) == k
    return found


@inner
def in_near(indices, near, i, low, high, j):
    """How many of indices[low:high] below j are marked, k at bit i - k - 1; bit 63 is not set."""
    found = np.uint64(0)
    for q in range(low, high):
        k = np.uint64(indices[q])
        if k >= j:
            break
        found += near >> min(i - k - BIT, LOW) & BIT
    return np.int64(found)


@inner
def in_bits(indices, bits, low, high, j):
    """How many of indices[low:high] below j are marked."""
    found = np.uint64(0)
    for q in range(low, high):
        k = np.uint64(indices[q])
        if k >= j:
            break
        found += bits[k >> SIX] >> (k & LOW) & BIT
    return np.int64(found)


@kernel
def triangles(thread, threads, sync, bounds, ticket, indptr, indices, all_bits, total):
    bits = all_bits[thread]
    entries = np.uint64(indices.size)
    found = 0
    while True:
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk >= bounds.size - 1:
            break
        for i in range(np.uint64(bounds[chunk]), np.uint64(bounds[chunk + 1])):
            first, end = np.uint64(indptr[i]), np.uint64(indptr[i + BIT])
            last = first
            filter_ = np.uint64(0)
            while last < end and np.uint64(indices[last]) < i:
                filter_ |= BIT << (np.uint64(indices[last]) & LOW)
                last += BIT
            if last - first < np.uint64(2):
                continue
            short = last - first <= np.uint64(SHORT)
            if not short and i - np.uint64(indices[first]) <= LOW:
                near = np.uint64(0)
                for p in range(first, last):
                    near |= BIT << (i - np.uint64(indices[p]) - BIT)
                for p in range(first + BIT, last):
                    j = np.uint64(indices[p])
                    low, high = np.uint64(indptr[j]), np.uint64(indptr[j + BIT])
                    found += in_near(indices, near, i, low, high, j)
                continue
            if not short:
                if i & np.uint64(15) == 0:
                    poll(sync)
                # the next row is probably like this one: its neighbours' rows
                p, far = end, end + AHEAD
                while p < far and p < entries:
                    j = np.uint64(indices[p])
                    if j > i:
                        break
                    prefetch(indices, np.uint64(indptr[j]))
                    p += BIT
                for p in range(first, last):
                    k = np.uint64(indices[p])
                    bits[k >> SIX] |= BIT << (k & LOW)
            # the least neighbour has none below it among the others
            for p in range(first + BIT, last):
                if not short:
                    ahead = np.uint64(indices[min(p + AHEAD, last - BIT)])
                    prefetch(indices, np.uint64(indptr[ahead]))
                j = np.uint64(indices[p])
                low, high = np.uint64(indptr[j]), np.uint64(indptr[j + BIT])
                if short:
                    found += in_short(indices, first, last, filter_, low, high, j)
                else:
                    found += in_bits(indices, bits, low, high, j)
            if not short:
                for p in range(first, last):
                    bits[np.uint64(indices[p]) >> SIX] = 0
    atomic_add(total, 0, found)
