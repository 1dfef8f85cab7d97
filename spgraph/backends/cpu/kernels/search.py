# The masked level iteration  q<!seen> = q (+.x) A  until q is empty: one launch for a whole search.
# Every thread runs `search`; they meet at a barrier between the steps of a level. A level that is
# too small to share is thread 0's alone while the others wait.
#
# A vertex is settled in one level, by all edges that reach it from the frontier of that level: what
# a level finds is claimed in the bitmap `next`, and `seen` changes between levels only. Push walks
# the queue of the frontier, pull the rows of in-edges of the vertices that are still open; pull
# makes bitmaps, push queues, and each is turned into the other when the direction changes.
#
# Preamble: VALUES (False: levels only), FIRST (the first product decides), ISO, TRACE, multiply,
# add, IDENTITY, TERMINAL, TERMINAL_VALUE, pull_pays.

# where the shared counters lie in `state`: each on its own cache line
COUNT, EDGES, PROBES, TICKET, HEAVY_ONES, FILLED = 0, 8, 16, 24, 32, 40
# what thread 0 hands over after levels of its own, and in the end
DEPTH, LEFT, OPEN_EDGES, LEVELS, REACHED = 48, 49, 50, 51, 52
# the frontier edges below which one thread is faster than two that wait for each other
ALONE = 4096
# vertices of a queue, and words of a bitmap, that a thread takes at a time
VERTICES, WORDS = 64, 32
# found vertices that a thread holds back before it takes places in the queue
STAGE = 256
# a vertex with more edges than this is shared by all threads
HEAVY = 16384
# frontier edges that turning a bitmap back into a queue is worth
STAY = 4096


@njit(nogil=True, error_model="numpy")
def has_bit(bits, v):
    return bits[v >> np.uint64(5)] >> np.uint32(v & np.uint64(31)) & np.uint32(1) != 0


@njit(nogil=True, error_model="numpy")
def claim(bits, v, alone):
    """Set bit v; True for the one that finds it clear."""
    w = np.int64(v >> np.uint64(5))
    bit = np.uint32(np.uint32(1) << np.uint32(v & np.uint64(31)))
    if bits[w] & bit != 0:
        return False
    if alone:
        bits[w] |= bit
        return True
    return atomic_or(bits, w, bit) & bit == 0


@njit(nogil=True, error_model="numpy")
def combine(value, v, z):
    """value[v] = add(value[v], z), for threads that may do so at the same time."""
    while True:
        old = value[v]
        new = add(old, z)
        if new == old or compare_exchange(value, v, old, new):
            return


@njit(nogil=True, error_model="numpy")
def ends(z):
    """Whether no further product can change the sum z."""
    return FIRST or TERMINAL == 1 or (TERMINAL == 2 and z == TERMINAL_VALUE)


@njit(nogil=True, error_model="numpy")
def product(value, values, u, v, e):
    return multiply(value[u], values[0] if ISO else values[e], 0, u, u, v)


@njit(nogil=True, error_model="numpy")
def reach(u, v, e, values, value, seen, next_, alone):
    """The edge e from u in the frontier to v; True for the first that reaches v in this level."""
    if has_bit(seen, v):
        return False
    if not VALUES:
        return claim(next_, v, alone)
    if alone:
        if claim(next_, v, True):
            value[v] = product(value, values, u, v, e)
            return True
        if TERMINAL != 1:
            value[v] = add(value[v], product(value, values, u, v, e))
        return False
    if TERMINAL == 1:
        if claim(next_, v, False):
            value[v] = product(value, values, u, v, e)
            return True
        return False
    combine(value, np.int64(v), product(value, values, u, v, e))
    return claim(next_, v, False)


@njit(nogil=True, error_model="numpy")
def hand_on(stage, held, queue, state):
    """Put `held` staged vertices into the queue."""
    place = atomic_add(state, COUNT, held)
    for k in range(held):
        queue[place + k] = stage[k]


@njit(nogil=True, error_model="numpy")
def wants_pull(direction, queued, edges, left, open_edges, m, symmetric):
    if direction != 0:
        return direction == 2
    work = float(edges if queued else edges + STAY)
    if VALUES and not FIRST:
        return pull_pays_all(work, float(open_edges))
    # out-edges of open vertices are their in-edges only in a symmetric graph
    return pull_pays(work, float(left), float(open_edges if symmetric else m), float(m))


@njit(nogil=True, error_model="numpy")
def push_alone(
    threads,
    queue,
    next_queue,
    count,
    edges,
    depth,
    left,
    open_edges,
    m,
    indptr,
    indices,
    values,
    symmetric,
    level,
    value,
    seen,
    next_,
    state,
    direction,
    max_depth,
    trace,
):
    """Levels of one thread, until one is worth sharing or pulling."""
    levels = 0
    since = nanoseconds() if TRACE else np.int64(0)
    while True:
        found = 0
        found_edges = np.int64(0)
        for i in range(count):
            u = np.uint64(queue[i])
            for e in range(np.uint64(indptr[u]), np.uint64(indptr[u + np.uint64(1)])):
                v = np.uint64(indices[e])
                if reach(u, v, e, values, value, seen, next_, True):
                    level[v] = depth + 1
                    next_queue[found] = v
                    found += 1
                    found_edges += indptr[v + np.uint64(1)] - indptr[v]
        for i in range(found):
            w = np.uint64(next_queue[i]) >> np.uint64(5)
            seen[w] |= next_[w]
            next_[w] = 0
        if TRACE:
            now = nanoseconds()
            record(trace, depth, 1, count, edges, now - since)
            since = now
        queue, next_queue = next_queue, queue
        count, edges = found, found_edges
        left -= count
        open_edges -= edges
        depth += 1
        levels += 1
        if count == 0 or edges == 0 or left <= 0 or depth >= max_depth:
            break
        if threads > 1 and edges >= ALONE:
            break
        if wants_pull(direction, True, edges, left, open_edges, m, symmetric):
            break
    state[COUNT] = count
    state[EDGES] = edges
    state[DEPTH] = depth
    state[LEFT] = left
    state[OPEN_EDGES] = open_edges
    state[LEVELS] = levels


@njit(nogil=True, error_model="numpy")
def record(trace, depth, direction, frontier, edges, elapsed):
    if depth < trace.shape[0]:
        trace[depth, 0] = direction
        trace[depth, 1] = frontier
        trace[depth, 2] = edges
        trace[depth, 3] = elapsed


@njit(nogil=True, error_model="numpy")
def push_shared(
    thread,
    threads,
    queue,
    count,
    next_queue,
    depth,
    indptr,
    indices,
    values,
    level,
    value,
    seen,
    next_,
    stage,
    state,
):
    """This thread's part of a level."""
    held = 0
    edges = np.int64(0)
    heavy = False
    while True:
        begin = atomic_add(state, TICKET, VERTICES)
        if begin >= count:
            break
        for i in range(begin, min(begin + VERTICES, count)):
            u = np.uint64(queue[i])
            start = np.uint64(indptr[u])
            stop = np.uint64(indptr[u + np.uint64(1)])
            if stop - start > np.uint64(HEAVY):
                heavy = True
                continue
            for e in range(start, stop):
                v = np.uint64(indices[e])
                if reach(u, v, e, values, value, seen, next_, False):
                    level[v] = depth
                    edges += indptr[v + np.uint64(1)] - indptr[v]
                    stage[held] = v
                    held += 1
                    if held == STAGE:
                        hand_on(stage, held, next_queue, state)
                        held = 0
    if heavy:
        atomic_add(state, HEAVY_ONES, np.int64(1))
    hand_on(stage, held, next_queue, state)
    atomic_add(state, EDGES, edges)


@njit(nogil=True, error_model="numpy")
def push_heavy(
    thread,
    threads,
    queue,
    count,
    next_queue,
    depth,
    indptr,
    indices,
    values,
    level,
    value,
    seen,
    next_,
    stage,
    state,
):
    """This thread's share of the edges of every heavy vertex."""
    held = 0
    edges = np.int64(0)
    for i in range(count):
        u = np.uint64(queue[i])
        start = np.int64(indptr[u])
        degree = np.int64(indptr[u + np.uint64(1)]) - start
        if degree <= HEAVY:
            continue
        begin = np.uint64(start + degree * thread // threads)
        end = np.uint64(start + degree * (thread + 1) // threads)
        for e in range(begin, end):
            v = np.uint64(indices[e])
            if reach(u, v, e, values, value, seen, next_, False):
                level[v] = depth
                edges += indptr[v + np.uint64(1)] - indptr[v]
                stage[held] = v
                held += 1
                if held == STAGE:
                    hand_on(stage, held, next_queue, state)
                    held = 0
    hand_on(stage, held, next_queue, state)
    atomic_add(state, EDGES, edges)


@njit(nogil=True, error_model="numpy")
def pull_shared(
    n_words,
    nonempty,
    depth,
    indptr,
    t_indptr,
    t_indices,
    t_values,
    level,
    value,
    seen,
    frontier,
    next_,
    state,
):
    """This thread's part of a level: words of open vertices."""
    count = np.int64(0)
    edges = np.int64(0)
    probes = np.int64(0)
    while True:
        begin = atomic_add(state, TICKET, WORDS)
        if begin >= n_words:
            break
        for w in range(begin, min(begin + WORDS, n_words)):
            open_ = np.uint32(nonempty[w] & ~seen[w])
            bits = np.uint32(0)
            while open_ != 0:
                place = lowest_bit(open_)
                open_ = np.uint32(open_ & (open_ - np.uint32(1)))
                v = np.uint64(w) * np.uint64(32) + np.uint64(place)
                hit = False
                for e in range(np.uint64(t_indptr[v]), np.uint64(t_indptr[v + np.uint64(1)])):
                    u = np.uint64(t_indices[e])
                    if TRACE:
                        probes += 1
                    if has_bit(frontier, u):
                        if not VALUES:
                            hit = True
                            break
                        z = product(value, t_values, u, v, e)
                        if hit:
                            z = add(value[v], z)
                        value[v] = z
                        hit = True
                        if ends(z):
                            break
                if hit:
                    bits = np.uint32(bits | np.uint32(1) << np.uint32(place))
                    level[v] = depth
                    count += 1
                    edges += indptr[v + np.uint64(1)] - indptr[v]
            next_[w] = bits
    atomic_add(state, COUNT, count)
    atomic_add(state, EDGES, edges)
    atomic_add(state, PROBES, probes)


@njit(nogil=True, cache=True, error_model="numpy")
def search(
    thread,
    threads,
    sync,
    n,
    m,
    indptr,
    indices,
    values,
    t_indptr,
    t_indices,
    t_values,
    symmetric,
    nonempty,
    findable,
    sources,
    source_values,
    level,
    value,
    seen,
    bitmaps,
    queues,
    stages,
    state,
    direction,
    max_depth,
    trace,
):
    n_words = seen.size
    frontier, next_ = bitmaps[0], bitmaps[1]
    queue, next_queue = queues[0], queues[1]
    stage = stages[thread]
    first_word = n_words * thread // threads
    last_word = n_words * (thread + 1) // threads

    if thread == 0:
        edges = np.int64(0)
        covered = 0
        for i in range(sources.size):
            v = np.uint64(sources[i])
            queue[i] = v
            level[v] = 0
            if VALUES:
                value[v] = source_values[i]
            claim(seen, v, True)
            edges += indptr[v + np.uint64(1)] - indptr[v]
            if has_bit(nonempty, v):
                covered += 1
        state[COUNT] = sources.size
        state[EDGES] = edges
        state[LEFT] = findable - covered
    barrier(sync, threads)
    count = state[COUNT]
    edges = state[EDGES]
    findable = state[LEFT]
    left = findable
    open_edges = np.int64(m) - edges
    depth = np.int64(0)
    queued = True  # the frontier lies in `queue`, else in `frontier`
    since = nanoseconds() if TRACE else np.int64(0)
    while count > 0 and edges > 0 and left > 0 and depth < max_depth:
        pull = wants_pull(direction, queued, edges, left, open_edges, m, symmetric)
        barrier(sync, threads)  # everybody has read the counters
        if not pull and not queued:
            if thread == 0:
                state[COUNT] = 0
            barrier(sync, threads)
            held = 0
            for w in range(first_word, last_word):
                bits = np.uint32(frontier[w])
                next_[w] = 0
                while bits != 0:
                    stage[held] = np.int64(w) * 32 + np.int64(lowest_bit(bits))
                    bits = np.uint32(bits & (bits - np.uint32(1)))
                    held += 1
                    if held == STAGE:
                        hand_on(stage, held, queue, state)
                        held = 0
            hand_on(stage, held, queue, state)
            barrier(sync, threads)
        elif pull and queued:
            # `next_` is clear: its bits become the frontier's
            for i in range(count * thread // threads, count * (thread + 1) // threads):
                claim(next_, np.uint64(queue[i]), threads == 1)
            frontier, next_ = next_, frontier
        queued = not pull
        if not pull and (threads == 1 or edges < ALONE):
            if thread == 0:
                push_alone(
                    threads,
                    queue,
                    next_queue,
                    count,
                    edges,
                    depth,
                    left,
                    open_edges,
                    m,
                    indptr,
                    indices,
                    values,
                    symmetric,
                    level,
                    value,
                    seen,
                    next_,
                    state,
                    direction,
                    max_depth,
                    trace,
                )
                if TRACE:
                    since = nanoseconds()
            barrier(sync, threads)
            count = state[COUNT]
            edges = state[EDGES]
            depth = state[DEPTH]
            left = state[LEFT]
            open_edges = state[OPEN_EDGES]
            if state[LEVELS] % 2 == 1:
                queue, next_queue = next_queue, queue
            continue
        if VALUES and TERMINAL != 1 and not pull and state[FILLED] == 0:
            # threads that combine at the same time start from the identity; once a search
            for w in range(first_word, last_word):
                for v in range(np.int64(w) * 32, min(np.int64(w) * 32 + 32, n)):
                    if not has_bit(seen, np.uint64(v)):
                        value[v] = IDENTITY
        if thread == 0:
            state[COUNT] = 0
            state[EDGES] = 0
            state[PROBES] = 0
            state[TICKET] = 0
            state[HEAVY_ONES] = 0
        barrier(sync, threads)
        if pull:
            pull_shared(
                n_words,
                nonempty,
                depth + 1,
                indptr,
                t_indptr,
                t_indices,
                t_values,
                level,
                value,
                seen,
                frontier,
                next_,
                state,
            )
        else:
            if thread == 0:
                state[FILLED] = 1
            push_shared(
                thread,
                threads,
                queue,
                count,
                next_queue,
                depth + 1,
                indptr,
                indices,
                values,
                level,
                value,
                seen,
                next_,
                stage,
                state,
            )
            barrier(sync, threads)
            if state[HEAVY_ONES] > 0:
                push_heavy(
                    thread,
                    threads,
                    queue,
                    count,
                    next_queue,
                    depth + 1,
                    indptr,
                    indices,
                    values,
                    level,
                    value,
                    seen,
                    next_,
                    stage,
                    state,
                )
        barrier(sync, threads)
        # what was found is seen from now on
        for w in range(first_word, last_word):
            seen[w] |= next_[w]
            if not pull:
                next_[w] = 0
        if TRACE and thread == 0:
            now = nanoseconds()
            if pull:
                record(trace, depth, 2, count, state[PROBES], now - since)
            else:
                record(trace, depth, 1, count, edges, now - since)
            since = now
        if pull:
            frontier, next_ = next_, frontier
        else:
            queue, next_queue = next_queue, queue
        count = state[COUNT]
        edges = state[EDGES]
        left -= count
        open_edges -= edges
        depth += 1
        barrier(sync, threads)
    if thread == 0:
        state[DEPTH] = depth
        state[REACHED] = sources.size + findable - left
