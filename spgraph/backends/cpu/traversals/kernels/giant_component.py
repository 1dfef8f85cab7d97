# Vertices that no cycle goes through, and the strong component of the vertex with the most edges,
# which holds most of many graphs (Hong, Rodia and Olukotun 2013): vertices without in-edges are
# taken away, those that have none then, and so on; those without out-edges likewise; what is left
# is searched forward from that vertex, and backward within what it reaches. The order of a search
# is of no account, so that no thread waits for the end of a level. Preamble: stacks.py.

# marks of a vertex: nothing is known; it is reached; it is in that component; it is one of its own
OPEN, REACHED, GIANT, ALONE = 0, 1, 2, 3
# words of `found` for each thread: the vertex with the most edges, the product of its degrees, the
# least vertex of the component, how many vertices are open in the end
LINE, BEST, MOST, LEAST, LEFT = 8, 0, 1, 2, 3


@inner
def degree_of(indptr, v):
    return np.int64(indptr[v + np.uint64(1)]) - np.int64(indptr[v])


@inner
def trim(
    thread, threads, sync, indptr, indices, t_indptr, wait, mark, stack, blocks, ready, shared
):  # fmt: skip
    """Mark the vertices without in-edges, which t_indptr counts, but from vertices so marked."""
    n = mark.size
    first, stop = np.uint64(n * thread // threads), np.uint64(n * (thread + 1) // threads)
    for v in range(first, stop):
        wait[v] = degree_of(t_indptr, v)
    barrier(sync, threads)
    for v in range(first, stop):
        if degree_of(t_indptr, v) == 0 and mark[v] == OPEN:
            mark[v] = ALONE
            push(stack, v, blocks, ready, shared)
    while True:
        v = pop(threads, sync, stack, blocks, ready, shared)
        if v < 0:
            break
        for e in range(np.uint64(indptr[v]), np.uint64(indptr[v + 1])):
            u = np.uint64(indices[e])
            if mark[u] == OPEN and atomic_add(wait, u, wait.dtype.type(-1)) == 1:
                mark[u] = ALONE
                push(stack, u, blocks, ready, shared)
    end_work(thread, threads, sync, shared)


@inner
def elect(thread, threads, sync, indptr, t_indptr, mark, found):
    """The open vertex with the greatest product of in- and out-degrees, -1 if none is open."""
    n, mine = mark.size, LINE * thread
    found[mine + BEST], found[mine + MOST] = -1, -1
    for v in range(np.uint64(n * thread // threads), np.uint64(n * (thread + 1) // threads)):
        if mark[v] == OPEN:
            product = degree_of(indptr, v) * degree_of(t_indptr, v)
            if product > found[mine + MOST]:
                found[mine + BEST], found[mine + MOST] = v, product
    barrier(sync, threads)
    best = 0
    for other in range(threads):
        if found[LINE * other + MOST] > found[LINE * best + MOST]:
            best = other
    return found[LINE * best + BEST]


@inner
def reach(
    thread, threads, sync, start, indptr, indices, mark, old, new, stack, blocks, ready, shared
):  # fmt: skip
    """Give the mark `new` to `start` and what has the mark `old` and is reached from there."""
    if thread == 0:
        mark[start] = new
        push(stack, start, blocks, ready, shared)
    barrier(sync, threads)
    while True:
        v = pop(threads, sync, stack, blocks, ready, shared)
        if v < 0:
            break
        for e in range(np.uint64(indptr[v]), np.uint64(indptr[v + 1])):
            u = np.uint64(indices[e])
            if mark[u] == old and compare_exchange(mark, u, np.uint8(old), np.uint8(new)):
                push(stack, u, blocks, ready, shared)
    end_work(thread, threads, sync, shared)


@inner
def name(thread, threads, sync, mark, found, label):
    """Give the giant component the name of its least vertex, and those of one vertex theirs."""
    n, mine = mark.size, LINE * thread
    first, stop = np.uint64(n * thread // threads), np.uint64(n * (thread + 1) // threads)
    found[mine + LEAST], found[mine + LEFT] = n, 0
    for v in range(first, stop):
        if mark[v] == GIANT:
            found[mine + LEAST] = v
            break
    barrier(sync, threads)
    least = np.int64(n)
    for other in range(threads):
        least = min(least, found[LINE * other + LEAST])
    for v in range(first, stop):
        if mark[v] == GIANT:
            label[v] = least
        elif mark[v] == ALONE:
            label[v] = v
        else:
            label[v] = n
            found[mine + LEFT] += 1


@kernel
def giant_component(
    thread, threads, sync, indptr, indices, t_indptr, t_indices, wait, mark, label, found, stacks,
    blocks, ready, shared,
):  # fmt: skip
    # label[v]: the least vertex of the component of v, or n where v is still open
    stack, room = stacks[thread], (blocks, ready, shared)
    ahead, back = (indptr, indices), (t_indptr, t_indices)
    trim(thread, threads, sync, *ahead, t_indptr, wait, mark, stack, *room)
    trim(thread, threads, sync, *back, indptr, wait, mark, stack, *room)
    pivot = elect(thread, threads, sync, indptr, t_indptr, mark, found)
    if pivot >= 0:
        reach(thread, threads, sync, pivot, *ahead, mark, OPEN, REACHED, stack, *room)
        reach(thread, threads, sync, pivot, *back, mark, REACHED, GIANT, stack, *room)
    name(thread, threads, sync, mark, found, label)
