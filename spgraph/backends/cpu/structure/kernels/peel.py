# Cores: for one k after the other, the vertices of degree k are taken away until all that are left
# have a greater one (Dhulipala, Blelloch and Shun 2017), without rounds: a thread goes on with what
# it has brought down to k (Kabir and Madduri 2017). Preamble: stacks.py.

# elements of `least` between those of two threads, and in it those of even and of odd levels
LINE, ODD = 16, 8


@inner
def choose(sync, k, left, first, stop, degree, stack, blocks, ready, shared):
    """Push the vertices left[first:stop] of degree k, keep those of a greater one at the front;
    returns (where these end, their least degree, k if any is pushed).
    """
    least = np.int64(degree.size)
    kept = first
    for i in range(first, stop):
        if i & np.uint64(0xFFFF) == 0:
            poll(sync)
        v = np.uint64(left[i])
        d = np.int64(degree[v])
        if d > k:
            left[kept] = v
            kept += np.uint64(1)
            least = min(least, d)
        elif d == k:
            push(stack, v, blocks, ready, shared)
            least = k
    return kept, least


@inner
def lower(threads, degree, u, k):
    """Whether u, one neighbour of which is taken away, has then the degree k for the first time."""
    if np.int64(degree[u]) <= k:
        return False
    if threads == 1:
        degree[u] -= 1
        return np.int64(degree[u]) == k
    before = np.int64(atomic_add(degree, u, degree.dtype.type(-1)))
    if before <= k:  # another thread has brought it down
        atomic_add(degree, u, degree.dtype.type(1))
    return before == k + 1


@kernel
def peel(
    thread, threads, sync, indptr, indices, degree, left, least, stacks, blocks, ready, shared
):  # fmt: skip
    # `degree` becomes the core number
    stack = stacks[thread]
    n = degree.size
    first, stop = np.uint64(n * thread // threads), np.uint64(n * (thread + 1) // threads)
    for v in range(first, stop):
        left[v] = v
    k, levels = np.int64(0), 0
    while True:
        side = ODD * (levels & 1)
        levels += 1
        stop, least[LINE * thread + side] = choose(
            sync, k, left, first, stop, degree, stack, blocks, ready, shared
        )
        barrier(sync, threads)
        lowest = np.int64(n)
        for other in range(threads):
            lowest = min(lowest, np.int64(least[LINE * other + side]))
        if lowest == n:
            break
        if lowest > k:
            k = lowest
            continue
        while True:
            v = pop(threads, sync, stack, blocks, ready, shared)
            if v < 0:
                break
            for e in range(np.uint64(indptr[v]), np.uint64(indptr[v + 1])):
                u = np.uint64(indices[e])
                if lower(threads, degree, u, k):
                    push(stack, u, blocks, ready, shared)
        k += 1
        end_work(thread, threads, sync, shared)
