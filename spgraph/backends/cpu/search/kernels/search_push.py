# Part of search.py: a push level, along the out-edges of the frontier, by one thread or by all.

# distance, in vertices of the queue, at which rows are prefetched; vertices of a level by which it
# is judged how predictable a graph is, which takes 2 ns for each
AHEAD, LOOKED_AT = 6, 512


@inner
def push_level(
    sync, indptr, indices, values, level, value, visited, depth, queue, count, fresh_queue, numbers
):
    """(vertices found, their edges, how many of the first LOOKED_AT vertices found another number
    of them than expected) of a level by one thread. It needs no bitmap `fresh`: `level` tells which
    vertices this level has found. A vertex is expected to find as many as the last one of as many
    edges after four others that found the same; `numbers` has them. About that is what a processor
    can predict, too.
    """
    found = 0
    edges, odd, last = np.int64(0), np.int64(0), np.uint64(0)
    for i in range(count):
        if i & 1023 == 1023:
            poll(sync)
        u = np.uint64(queue[i])
        fetch_row(queue, i + AHEAD, count, indptr, indices, values)
        before = found
        begin, end = np.uint64(indptr[u]), np.uint64(indptr[u + np.uint64(1)])
        for e in range(begin, end):
            v = np.uint64(indices[e])
            w = v >> np.uint64(5)
            bit = np.uint32(np.uint32(1) << np.uint32(v & np.uint64(31)))
            if visited[w] & bit == 0:
                visited[w] |= bit
                level[v] = depth
                if VALUES:
                    value[v] = sum_of_one(product(value, values, u, v, e))
                fresh_queue[found] = v
                found += 1
                edges += degree_of(indptr, v)
            elif VALUES and TERMINAL != 1 and level[v] == depth:
                value[v] = add(value[v], product(value, values, u, v, e))
        if i < LOOKED_AT:
            number = found - before
            at = (last + np.uint64(37) * (end - begin)) % np.uint64(STAGE)
            odd += np.int64(numbers[at] != number)
            numbers[at] = number
            last = (np.uint64(4) * last + np.uint64(min(number, 3))) % np.uint64(256)
    return found, edges, odd


@inner
def other_form(graph, levels, followed, odd, count, edges, open_edges, state):
    """MARK or THIN if a kernel for long searches should go on, else 0, from how many levels have
    been run, vertices in them followed, and `odd` ones among those (`push_level`), and the level to
    come.
    """
    if open_edges < WORTH_LEAVING or levels < LONG or followed < SEEN:
        return 0
    by_marks = not VALUES or (LEAST_ID and graph.symmetric)
    hard = ODD * odd >= followed
    thin = not TRACE and followed < THIN_LEVEL * levels and state[NOT_THIN] == 0
    grows = 2 * count * levels > 3 * followed  # above the mean of levels so far by half of it
    if thin and not grows and not (hard and by_marks):
        return THIN
    # others help with a level by marks
    if by_marks and state[UNMARKED] == 0 and (hard or (state[LEAVE] != 0 and edges >= SHARED)):
        return MARK
    return 0


@inner
def push_alone(threads, sync, graph, out, queues, numbers, state, direction, max_depth, trace):
    """Run levels by one thread, until one should be shared or pulled, or another kernel is to go on
    with them.
    """
    count, edges, turn = state[COUNT], state[EDGES], state[TURN]
    depth, left, open_edges = state[DEPTH], state[LEFT], state[OPEN_EDGES]
    size = graph.indices.size
    levels, followed, odd = 0, np.int64(0), np.int64(0)
    numbers[:] = -1
    since = nanoseconds() if TRACE else np.int64(0)
    while True:
        depth += 1
        poll_at_times(sync, depth, edges)
        found, found_edges, found_odd = push_level(
            *(sync, graph.indptr, graph.indices, graph.values, out.level, out.value, out.visited),
            *(depth, queues[turn], count, queues[1 - turn], numbers),
        )
        if TRACE:
            now = nanoseconds()
            record(trace, depth - 1, 1, count, edges, now - since)
            since = now
        turn = 1 - turn
        levels, followed, odd = levels + 1, followed + min(count, LOOKED_AT), odd + found_odd
        count, edges = found, found_edges
        left -= count
        open_edges -= edges
        if is_over(
            threads, state, count, edges, left, depth, max_depth, state[SHARE_FROM]
        ) or wants_pull(direction, True, edges, left, open_edges, graph.symmetric, size):
            break
        state[MORE] = other_form(graph, levels, followed, odd, count, edges, open_edges, state)
        if state[MORE] != 0:
            break
    state[COUNT], state[EDGES], state[TURN] = count, edges, turn
    state[DEPTH], state[LEFT], state[OPEN_EDGES] = depth, left, open_edges


@inner
def hand_on(stage, held, queue, state):
    """Append `held` buffered vertices to the queue."""
    place = atomic_add(state, COUNT, held)
    for k in range(held):
        queue[place + k] = stage[k]


@inner
def push_shared(
    thread, threads, sync, heavy, indptr, indices, values, value, visited, queue, count,
    level_edges, found, state
):  # fmt: skip
    """This thread's part of a level: some vertices of the queue or, if `heavy`, a share of the
    edges of every heavy vertex. What it finds is marked in `found`, a bitmap of its own: in one for
    all, whose few lines each thread would change all the time, a vertex costs up to 40 ns.
    """
    # a level of few vertices is divided evenly, too
    some = max(1, min(VERTICES, count // (4 * threads)))
    most = min(HEAVY, max(1024, level_edges // (2 * threads)))
    skipped = np.int64(0)
    begin = np.int64(0)
    while begin < count:
        stop = count
        if not heavy:
            poll(sync)
            begin = atomic_add(state, TICKET, some)
            stop = min(begin + some, count)
        for i in range(begin, stop):
            u = np.uint64(queue[i])
            first = np.int64(indptr[u])
            degree = degree_of(indptr, u)
            fetch_row(queue, i + AHEAD, stop, indptr, indices, values)
            last = first + degree
            if heavy:
                if degree <= most:
                    continue
                poll(sync)
                last = first + degree * (thread + 1) // threads
                first += degree * thread // threads
            elif degree > most:
                skipped += 1
                continue
            for e in range(np.uint64(first), np.uint64(last)):
                v = np.uint64(indices[e])
                w = v >> np.uint64(5)
                bit = np.uint32(np.uint32(1) << np.uint32(v & np.uint64(31)))
                if visited[w] & bit != 0:
                    continue
                if VALUES and TERMINAL == 1:
                    value[v] = product(value, values, u, v, e)
                elif VALUES:
                    # value[v] = add(value[v], z), which other threads may do at the same time
                    z = product(value, values, u, v, e)
                    while True:
                        old = value[v]
                        new = add(old, z)
                        if new == old or compare_exchange(value, np.int64(v), old, new):
                            break
                found[w] |= bit
        begin = stop
    atomic_add(state, SKIPPED, skipped)


@inner
def take_found(thread, threads, indptr, level, visited, depth, found, fresh_queue, stage, state):
    """Visit what all threads have found, in this thread's share of the words, and queue it."""
    held, edges, words = 0, np.int64(0), visited.size
    for begin in range(thread * WORDS, words, threads * WORDS):
        for w in range(np.uint64(begin), np.uint64(min(begin + WORDS, words))):
            bits = np.uint32(0)
            for t in range(np.uint64(threads)):
                bits = np.uint32(bits | found[t, w])
                found[t, w] = 0
            visited[w] |= bits
            while bits != 0:
                v = np.uint64(w) * np.uint64(32) + np.uint64(lowest_bit(bits))
                bits = np.uint32(bits & (bits - np.uint32(1)))
                level[v] = depth
                edges += degree_of(indptr, v)
                stage[held] = v
                held += 1
                if held == STAGE:
                    hand_on(stage, held, fresh_queue, state)
                    held = 0
    hand_on(stage, held, fresh_queue, state)
    atomic_add(state, EDGES, edges)
