# Levels of a search in which each has a few vertices, as on a path, a ladder or a caterpillar, by
# one thread. The first text of search.py, which leaves such levels to it; its preamble is the same,
# with FEW (vertices that may wait in the queue, of one level and the next).
#
# Beginning and ending a level takes as long as several vertices. Here nobody tells levels apart:
# the queue has all vertices one behind the other, and each is of one level more than the one that
# finds it. Where levels become wide, the queue ends within two of them: the whole first one is
# handed back, as if nothing of it had been followed.

# edges of a vertex at most; rows followed between two polls
SHORT, ROWS = 64, 256
# levels below which such a part of a search was not worth its launch
WORTH_IT = 256


@inner
def push_thin(sync, indptr, indices, values, level, value, visited, queue, count, left, max_depth):
    """Follow rows in the order of the queue, appending to it what they find, while few vertices
    wait in it and none of them has many edges. Returns how far the queue has been followed, its
    end, and the edges followed.
    """
    i, end, followed = np.uint64(0), np.uint64(count), np.uint64(0)
    all_, few = end + np.uint64(left), np.uint64(FEW)
    while end < all_ and end - i - np.uint64(1) < few:  # none or many fail
        poll(sync)
        # each row is of one level more than the one before at most
        rows = min(np.int64(ROWS), max_depth - np.int64(level[np.uint64(queue[i])]))
        if rows <= 0:
            break
        stop = i + np.uint64(rows)
        while i < stop and end - i - np.uint64(1) < few:
            u = np.uint64(queue[i])
            first, last = np.uint64(indptr[u]), np.uint64(indptr[u + np.uint64(1)])
            if last - first > np.uint64(SHORT):
                return i, end, followed
            i += np.uint64(1)
            followed += last - first
            depth = level[u] + 1
            for e in range(first, last):
                v = np.uint64(indices[e])
                w = v >> np.uint64(5)
                bit = np.uint32(np.uint32(1) << np.uint32(v & np.uint64(31)))
                if visited[w] & bit == 0:
                    visited[w] |= bit
                    level[v] = depth
                    if VALUES:
                        value[v] = sum_of_one(product(value, values, u, v, e))
                    queue[end] = v
                    end += np.uint64(1)
                elif VALUES and TERMINAL != 1 and level[v] == depth:
                    value[v] = add(value[v], product(value, values, u, v, e))
    return i, end, followed


@inner
def whole_level(indptr, level, value, visited, queue, i, end, followed, fresh_queue):
    """Make the level of position i of the queue the frontier in `fresh_queue`, of which nothing has
    been followed. Returns its vertices and edges, the edges of levels before it, and its end.
    """
    depth = level[np.uint64(queue[i])]
    while level[np.uint64(queue[end - np.uint64(1)])] != depth:  # nothing found of the next level
        end -= np.uint64(1)
        v = np.uint64(queue[end])
        visited[v >> np.uint64(5)] ^= np.uint32(np.uint32(1) << np.uint32(v & np.uint64(31)))
        if VALUES and TERMINAL != 1:
            value[v] = IDENTITY
    while i > 0 and level[np.uint64(queue[i - np.uint64(1)])] == depth:
        i -= np.uint64(1)
        followed -= np.uint64(degree_of(indptr, np.uint64(queue[i])))
    count, edges = np.int64(end - i), np.int64(0)
    for k in range(count):
        fresh_queue[k] = queue[i + np.uint64(k)]
        edges += degree_of(indptr, np.uint64(fresh_queue[k]))
    return count, edges, np.int64(followed), np.int64(end)


@kernel
def search_thin(
    thread, threads, sync, indptr, indices, values, level, value, visited, queues, state, max_depth
):
    """Levels up to one that is not thin, or to the end of the search."""
    turn, count, left = state[TURN], state[COUNT], state[LEFT]
    queue, began = queues[turn], state[DEPTH]
    i, end, followed = push_thin(
        *(sync, indptr, indices, values, level, value, visited, queue, count, left, max_depth)
    )
    found = np.int64(end) - count
    deepest = np.int64(level[np.uint64(queue[end - np.uint64(1)])])
    if i < end:
        state[DEPTH] = level[np.uint64(queue[i])]
    # nothing leads on, or all is found and nothing else leads to the last of it
    if i == end or (found == left and state[DEPTH] == deepest):
        state[COUNT], state[EDGES], state[LEFT] = 0, 0, left - found
        return
    last, edges, before, all_ = whole_level(
        *(indptr, level, value, visited, queue, i, end, followed, queues[1 - turn])
    )
    # of the edges of vertices found those of the first level are none
    state[OPEN_EDGES] -= before + edges - state[EDGES]
    state[COUNT], state[EDGES], state[LEFT] = last, edges, left - (all_ - count)
    state[TURN], state[NOT_THIN] = 1 - turn, state[DEPTH] - began < WORTH_IT
