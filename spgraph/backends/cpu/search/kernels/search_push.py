# Part of search.py: a push level, along the out-edges of the frontier, by one thread or by all.

from spgraph.backends.cpu.device.prefetching import prefetch

# distance, in vertices of the queue, at which rows are prefetched; where no branch is mispredicted
AHEAD, MARKED_AHEAD = 6, 10


@inner
def fetch_row(queue, i, count, indptr, indices, values):
    """Start to fetch the row of vertex i of the queue, if it has so many."""
    if i < count:
        row = np.uint64(indptr[np.uint64(queue[i])])
        prefetch(indices, row)
        if VALUES and not ISO:
            prefetch(values, row)


@inner
def push_level(
    sync, indptr, indices, values, level, value, visited, depth, queue, count, fresh_queue
):
    """(vertices found, their edges) of a level by one thread. It needs no bitmap `fresh`: `level`
    tells which vertices this level has found.
    """
    found = 0
    edges = np.int64(0)
    for i in range(count):
        if i & 1023 == 0:
            poll(sync)
        u = np.uint64(queue[i])
        fetch_row(queue, i + AHEAD, count, indptr, indices, values)
        for e in range(np.uint64(indptr[u]), np.uint64(indptr[u + np.uint64(1)])):
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
    return found, edges


# Whether a neighbour is new is hard to predict on roads, where a level has few edges of which about
# half lead on: a mispredicted branch costs as much as all else. Where the search goes on for long,
# it looks at no bitmap but at one byte a vertex, `marks`: 0 where it is not visited, else one of
# three marks, of the vertex's level modulo 3. Every edge writes a byte and a place of the queue,
# and no branch depends on it. In a symmetric graph the neighbours of a vertex are of the level
# before, of its own and of the next one, which their marks tell apart: its parents are found when
# its own row is followed, without a look at their levels. On roads this takes a fifth to two fifths
# less time; where every row is alike, as in a whole grid, up to a fifth more.


@inner
def mark_of(depth):
    return np.uint8(1 + depth % 3)


@inner
def set_marks(visited, level, marks):
    """Those of what is visited, from the bitmap."""
    for w in range(np.uint64(visited.size)):
        for k in range(np.uint64(32)):
            marks[np.uint64(w) * np.uint64(32) + k] = 0
        bits = np.uint32(visited[w])
        while bits != 0:
            v = np.uint64(w) * np.uint64(32) + np.uint64(lowest_bit(bits))
            bits = np.uint32(bits & (bits - np.uint32(1)))
            marks[v] = mark_of(level[v])


@inner
def push_marked(sync, indptr, indices, level, value, marks, depth, queue, count, fresh_queue):
    """As `push_level`, with marks. It writes levels and parents of the vertices of the queue, not
    of those found.
    """
    found = np.int64(0)
    before, new = mark_of(depth + 1), mark_of(depth)
    for i in range(count):
        if i & 1023 == 0:
            poll(sync)
        u = np.uint64(queue[i])
        level[u] = depth - 1
        fetch_row(queue, i + MARKED_AHEAD, count, indptr, indices, indices)
        first, e = np.uint64(indptr[u]), np.uint64(indptr[u + np.uint64(1)])
        parent = u
        while e > first:  # backwards: the last parent to be met is the least
            e -= np.uint64(1)
            v = np.uint64(indices[e])
            mark = np.uint8(marks[v])
            marks[v] = new if mark == 0 else mark
            fresh_queue[found] = v  # at most as many as there are other vertices
            found += np.int64(mark == 0)
            parent = v if mark == before else parent
        if VALUES:
            value[u] = parent
    edges = np.int64(0)
    for i in range(found):
        edges += degree_of(indptr, np.uint64(fresh_queue[i]))
    return found, edges


@inner
def settle_marked(indptr, indices, level, value, visited, marks, depth, queue, count):
    """What other forms of a level expect: levels and parents of the queue's vertices, `visited`."""
    before = mark_of(depth + 2)
    for i in range(count):
        u = np.uint64(queue[i])
        level[u] = depth
        if VALUES:
            for e in range(np.uint64(indptr[u]), np.uint64(indptr[u + np.uint64(1)])):
                if marks[np.uint64(indices[e])] == before:
                    value[u] = indices[e]
                    break
    for w in range(np.uint64(visited.size)):
        bits = np.uint32(0)
        for k in range(np.uint64(32)):
            marked = np.uint32(marks[np.uint64(w) * np.uint64(32) + k] != 0)
            bits = np.uint32(bits | marked << np.uint32(k))
        visited[w] = bits


@inner
def push_alone(
    threads, sync, graph, out, marks, queue, fresh_queue, state, direction, max_depth, trace
):  # fmt: skip
    """Run levels by one thread, until one should be shared or pulled."""
    count, edges = state[COUNT], state[EDGES]
    depth, left, open_edges = state[DEPTH], state[LEFT], state[OPEN_EDGES]
    levels = 0
    marked = False
    since = nanoseconds() if TRACE else np.int64(0)
    while True:
        if levels == LONG and (not VALUES or (LEAST_ID and graph.symmetric)):
            set_marks(out.visited, out.level, marks)
            marked = True
        depth += 1
        if marked:
            found, found_edges = push_marked(
                *(sync, graph.indptr, graph.indices, out.level, out.value, marks),
                *(depth, queue, count, fresh_queue),
            )
        else:
            found, found_edges = push_level(
                *(sync, graph.indptr, graph.indices, graph.values),
                *(out.level, out.value, out.visited, depth, queue, count, fresh_queue),
            )
        if TRACE:
            now = nanoseconds()
            record(trace, depth - 1, 1, count, edges, now - since)
            since = now
        queue, fresh_queue = fresh_queue, queue
        count, edges = found, found_edges
        left -= count
        open_edges -= edges
        levels += 1
        if count == 0 or edges == 0 or left <= 0 or depth >= max_depth:
            break
        if (threads > 1 or state[LEAVE] != 0) and edges >= ALONE:
            break
        if wants_pull(graph, direction, True, edges, left, open_edges):
            break
    if marked:
        settle_marked(
            *(graph.indptr, graph.indices, out.level, out.value, out.visited, marks),
            *(depth, queue, count),
        )
    state[COUNT], state[EDGES] = count, edges
    state[DEPTH], state[LEFT], state[OPEN_EDGES], state[LEVELS] = depth, left, open_edges, levels


@inner
def hand_on(stage, held, queue, state):
    """Append `held` buffered vertices to the queue."""
    place = atomic_add(state, COUNT, held)
    for k in range(held):
        queue[place + k] = stage[k]


@inner
def push_shared(
    thread, threads, sync, heavy, indptr, indices, values, level, value, visited, depth, queue,
    count, fresh_queue, fresh, stage, state
):  # fmt: skip
    """This thread's part of a level: some vertices of the queue or, if `heavy`, a share of the
    edges of every heavy vertex.
    """
    held = 0
    edges = np.int64(0)
    skipped = np.int64(0)
    begin = np.int64(0)
    while begin < count:
        stop = count
        if not heavy:
            poll(sync)
            begin = atomic_add(state, TICKET, VERTICES)
            stop = min(begin + VERTICES, count)
        for i in range(begin, stop):
            u = np.uint64(queue[i])
            first = np.int64(indptr[u])
            degree = degree_of(indptr, u)
            fetch_row(queue, i + AHEAD, stop, indptr, indices, values)
            last = first + degree
            if heavy:
                if degree <= HEAVY:
                    continue
                poll(sync)
                last = first + degree * (thread + 1) // threads
                first += degree * thread // threads
            elif degree > HEAVY:
                skipped += 1
                continue
            for e in range(np.uint64(first), np.uint64(last)):
                v = np.uint64(indices[e])
                if has_bit(visited, v):
                    continue
                if VALUES and TERMINAL != 1:
                    # value[v] = add(value[v], z), which other threads may do at the same time
                    z = product(value, values, u, v, e)
                    while True:
                        old = value[v]
                        new = add(old, z)
                        if new == old or compare_exchange(value, np.int64(v), old, new):
                            break
                if not claim(fresh, v):
                    continue
                if VALUES and TERMINAL == 1:
                    value[v] = product(value, values, u, v, e)
                level[v] = depth
                edges += degree_of(indptr, v)
                stage[held] = v
                held += 1
                if held == STAGE:
                    hand_on(stage, held, fresh_queue, state)
                    held = 0
        begin = stop
    hand_on(stage, held, fresh_queue, state)
    atomic_add(state, EDGES, edges)
    atomic_add(state, SKIPPED, skipped)
