# Levels of one thread, of a long search, by marks. The first text of search.py, which leaves to it
# searches that go on for long by one thread; its preamble is the same.
#
# Whether a neighbour is new is hard to predict on roads, where a level has few edges of which about
# half lead on: a mispredicted branch costs as much as all else. Where the search goes on for long,
# it looks at no bitmap but at one byte a vertex, `marks`: 0 where it is not visited, else one of
# three marks, of the vertex's level modulo 3. Every edge writes a byte and a place of the queue,
# and no branch depends on it. In a symmetric graph the neighbours of a vertex are of the level
# before, of its own and of the next one, which their marks tell apart: its parents are found when
# its own row is followed, without a look at their levels. On roads this takes a fifth to two fifths
# less time; where every row is alike, as in a whole grid, up to a fifth more.

# distance, in vertices of the queue, at which rows are prefetched
MARKED_AHEAD = 10


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


@kernel
def search_marked(
    thread, threads, sync, indptr, indices, symmetric, level, value, visited, queues, marks, state,
    direction, max_depth, trace
):  # fmt: skip
    """Levels up to one that should be shared or pulled, or to the end of the search."""
    count, edges, turn = state[COUNT], state[EDGES], state[TURN]
    depth, left, open_edges = state[DEPTH], state[LEFT], state[OPEN_EDGES]
    set_marks(visited, level, marks)
    since = nanoseconds() if TRACE else np.int64(0)
    while True:
        depth += 1
        found, found_edges = push_marked(
            *(sync, indptr, indices, level, value, marks, depth, queues[turn], count),
            queues[1 - turn],
        )
        if TRACE:
            now = nanoseconds()
            record(trace, depth - 1, 1, count, edges, now - since)
            since = now
        turn = 1 - turn
        count, edges = found, found_edges
        left -= count
        open_edges -= edges
        if is_over(threads, state, count, edges, left, depth, max_depth) or wants_pull(
            direction, True, edges, left, open_edges, symmetric, indices.size
        ):
            break
    settle_marked(indptr, indices, level, value, visited, marks, depth, queues[turn], count)
    state[COUNT], state[EDGES], state[TURN] = count, edges, turn
    state[DEPTH], state[LEFT], state[OPEN_EDGES] = depth, left, open_edges
