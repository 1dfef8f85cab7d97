# Vertex by vertex in the order given: the least colour that no neighbour has; whether no neighbour
# is chosen. No preamble.

from spgraph.backends.cpu.device.atomics import let_others_run
from spgraph.backends.cpu.device.prefetching import prefetch

# vertices that a thread takes at a time behind the first ones, the hubs, which it takes one by one:
# hubs have many neighbours among those that other threads have
PIECE = 16
# nanoseconds that a thread waits before it gives up its processor, which another may need
SPIN = 5_000


@inner
def fetch(first, stop, indptr, indices, order, color):
    """Start to fetch the colours of the first neighbours of each vertex."""
    if indices.size == 0:
        return
    last = np.uint64(indices.size - 1)
    for p in range(first, stop):
        e = np.uint64(indptr[np.uint64(order[p])])
        for k in range(np.uint64(4)):
            prefetch(color, np.uint64(indices[min(e + k, last)]))


@inner
def color_of(sync, v, color):
    """The colour of v, once another thread has found it."""
    until = nanoseconds() + SPIN
    while True:
        c = np.int64(atomic_load(color, v))
        if c >= 0:
            return np.uint64(c)
        poll(sync)
        if nanoseconds() > until:
            let_others_run()


@inner
def color_one(sync, place, v, indptr, indices, waiting, taken, color):
    """Give v, which has this place in the order, the least colour that none before it has."""
    count = np.uint64(0)
    for e in range(np.uint64(indptr[v]), np.uint64(indptr[v + np.uint64(1)])):
        u = np.uint64(indices[e])
        c = np.int64(color[u])
        if c >= 0:
            taken[np.uint64(c)] = v
        elif c > place:  # before v: another thread works on it
            waiting[count] = u
            count += np.uint64(1)
    for i in range(count):
        taken[color_of(sync, np.uint64(waiting[i]), color)] = v
    free = np.uint64(0)
    while taken[free] == np.int64(v):
        free += np.uint64(1)
    atomic_store(color, v, color.dtype.type(free))


@kernel
def color_greedily(
    thread, threads, sync, indptr, indices, order, hubs, ticket, waiting, taken, color
):  # fmt: skip
    # Threads take the next of the order; the first of those that are taken waits for none. A vertex
    # of place p has -1 - p until it has its colour.
    n = order.size
    for p in range(n * thread // threads, n * (thread + 1) // threads):
        color[np.uint64(order[p])] = -1 - p
    barrier(sync, threads)
    turn = 0
    while True:
        if turn & 31 == 0:
            poll(sync)
        turn += 1
        first = atomic_add(ticket, 0, 1)
        stop = first + 1
        if first >= hubs:
            first = hubs + (first - hubs) * PIECE
            stop = min(first + PIECE, n)
            fetch(first, stop, indptr, indices, order, color)
        if first >= n:
            break
        for p in range(first, stop):
            v = np.uint64(order[p])
            color_one(sync, -1 - p, v, indptr, indices, waiting[thread], taken[thread], color)


@kernel
def choose_greedily(thread, threads, sync, indptr, indices, order, near, chosen):
    # one thread, the last of the order first; `near`: whether a neighbour is chosen
    for k in range(np.uint64(order.size)):
        if k & np.uint64(255) == 0:
            poll(sync)
        v = np.uint64(order[np.uint64(order.size) - np.uint64(1) - k])
        if near[v]:
            continue
        chosen[v] = True
        for e in range(np.uint64(indptr[v]), np.uint64(indptr[v + np.uint64(1)])):
            near[np.uint64(indices[e])] = True
