# Levels of a long search by marks, each by one thread or shared in rounds that other threads may
# join (rounds.py). The first text of search.py, which leaves to it searches that go on for long by
# one thread; its preamble is the same, with SHARED (edges of a level that other threads help with).
#
# Whether a neighbour is new is hard to predict on roads, where a level has few edges of which about
# half lead on: a mispredicted branch costs as much as all else. Where the search goes on for long,
# it looks at no bitmap but at one byte a vertex, `marks`: 0 where it is not visited, else one of
# three marks, of the vertex's level modulo 3. Every edge writes a byte and a place of the queue,
# and no branch depends on it. In a symmetric graph the neighbours of a vertex are of the level
# before, of its own and of the next one, which their marks tell apart: its parents are found when
# its own row is followed, without a look at their levels. On roads this takes a fifth to two fifths
# less time; where every row is alike, as in a whole grid, up to a fifth more.
#
# Threads that share a level need no further instructions for it: each has a queue of its own, a row
# of `queues`, for what it finds. Two that find a vertex at the same time both write the same mark,
# and have it both in their queues: then its row is followed twice, with the same results, and the
# number of those found is too great. So no search that they share ends by it; in the end marks are
# counted, and the one queue that is left, of at most all vertices, has each vertex once.

# the mark of a vertex that is in that queue already
SETTLED = 4
# distance, in vertices of the queue, at which rows are prefetched
MARKED_AHEAD = 10
# vertices of a queue that a thread takes at a time in a level that is shared
PIECE = 64
# positions in `team`, beside those of rounds.py, of what thread 0 writes: whether to leave levels
# that are worth sharing to another launch; whether there is one; whether this launch goes on from
# an earlier one; how many vertices are visited or findable; the level, and which queues are read
TEAM_LEAVE, PLANNED, GOES_ON, FINDABLE_IN_ALL, LEVEL, LEVEL_TURN = 64, 65, 66, 67, 68, 69
# from here on, the words of each thread: where the next piece of its queue begins and, in another
# cache line, how many vertices each of its two queues has, and how many edges the newer one
OF_THREAD, WORDS_OF_THREAD, FOUND, FOUND_EDGES = 80, 16, 8, 10


@inner
def mark_of(depth):
    return np.uint8(1 + depth % 3)


@inner
def set_marks(visited, level, marks):
    """Those of what is visited, from the bitmap; how many vertices that are."""
    count = np.int64(0)
    for w in range(np.uint64(visited.size)):
        for k in range(np.uint64(32)):
            marks[np.uint64(w) * np.uint64(32) + k] = 0
        bits = np.uint32(visited[w])
        while bits != 0:
            v = np.uint64(w) * np.uint64(32) + np.uint64(lowest_bit(bits))
            bits = np.uint32(bits & (bits - np.uint32(1)))
            marks[v] = mark_of(level[v])
            count += 1
    return count


@inner
def push_rows(
    sync, indptr, indices, level, value, marks, depth, queue, begin, stop, fresh_queue, found
):  # fmt: skip
    """As `push_level`, with marks, of a part of a queue; how many vertices `fresh_queue` has then.
    It writes levels and parents of the vertices of the queue, not of those found.
    """
    before, new = mark_of(depth + 1), mark_of(depth)
    for i in range(begin, stop):
        if i & 1023 == 1023:
            poll(sync)
        u = np.uint64(queue[i])
        level[u] = depth - 1
        fetch_row(queue, i + MARKED_AHEAD, stop, indptr, indices, indices)
        first, e = np.uint64(indptr[u]), np.uint64(indptr[u + np.uint64(1)])
        parent = u
        while e > first:  # backwards: the last parent to be met is the least
            e -= np.uint64(1)
            v = np.uint64(indices[e])
            mark = np.uint8(marks[v])
            marks[v] = new if mark == 0 else mark
            fresh_queue[found] = v  # at most as many as there are edges, or other vertices
            found += np.int64(mark == 0)
            parent = v if mark == before else parent
        if VALUES:
            value[u] = parent
    return found


@inner
def push_marked(
    shared, thread, sync, indptr, indices, level, value, marks, depth, queues, fresh_queue, turn,
    team
):  # fmt: skip
    """This thread's part of a level: pieces of its own queue, then of others', or all of them; and
    how much it finds.
    """
    threads = queues.shape[0]
    found, edges = np.int64(0), np.int64(0)
    for k in range(threads):
        owner = (thread + k) % threads
        at = OF_THREAD + WORDS_OF_THREAD * owner
        begin, count = np.int64(0), team[at + FOUND + turn]
        stop = count
        while begin < count:
            if shared:
                begin = atomic_add(team, at, PIECE)
                stop = min(begin + PIECE, count)
            found = push_rows(
                *(sync, indptr, indices, level, value, marks, depth, queues[owner], begin, stop),
                *(fresh_queue, found),
            )
            begin = stop if begin < count else count
    for i in range(found):
        edges += degree_of(indptr, np.uint64(fresh_queue[i]))
    at = OF_THREAD + WORDS_OF_THREAD * thread
    team[at + FOUND + 1 - turn], team[at + FOUND_EDGES] = found, edges


@inner
def begin_level(threads, turn, team):
    """Nothing of a level is taken yet, and nothing found."""
    for t in range(threads):
        at = OF_THREAD + WORDS_OF_THREAD * t
        team[at], team[at + FOUND + 1 - turn], team[at + FOUND_EDGES] = 0, 0, 0


@inner
def count_level(threads, turn, team):
    """(vertices, edges) that the threads have found."""
    found, edges = np.int64(0), np.int64(0)
    for t in range(threads):
        at = OF_THREAD + WORDS_OF_THREAD * t
        found += team[at + FOUND + 1 - turn]
        edges += team[at + FOUND_EDGES]
    return found, edges


@inner
def settle_marked(indptr, indices, level, value, visited, marks, depth, queues, turn, team, queue):
    """What other forms of a level expect: the queues of all threads in one, levels and parents of
    its vertices, `visited`. Returns how many vertices there are in the queue, and visited.
    """
    before = mark_of(depth + 2)
    count = np.int64(0)
    for t in range(queues.shape[0]):
        for i in range(team[OF_THREAD + WORDS_OF_THREAD * t + FOUND + turn]):
            u = np.uint64(queues[t, i])
            if marks[u] == SETTLED:
                continue
            marks[u] = SETTLED
            queue[count] = u
            count += 1
            level[u] = depth
            if VALUES:
                for e in range(np.uint64(indptr[u]), np.uint64(indptr[u + np.uint64(1)])):
                    if marks[np.uint64(indices[e])] == before:
                        value[u] = indices[e]
                        break
    all_ = np.int64(0)
    for w in range(np.uint64(visited.size)):
        bits = np.uint32(0)
        for k in range(np.uint64(32)):
            marked = np.uint32(marks[np.uint64(w) * np.uint64(32) + k] != 0)
            bits = np.uint32(bits | marked << np.uint32(k))
            all_ += np.int64(marked)
        visited[w] = bits
    return count, all_


@inner
def start_marked(visited, level, marks, queue, queues, turn, state, team):
    """Set marks, and hand the frontier to thread 0, unless this launch goes on from another."""
    if team[GOES_ON] != 0:
        return
    team[FINDABLE_IN_ALL] = state[LEFT] + set_marks(visited, level, marks)
    for i in range(state[COUNT]):
        queues[0, i] = queue[i]
    team[OF_THREAD + FOUND + turn] = state[COUNT]
    team[GOES_ON] = 1


@inner
def leaves(threads, edges, team):
    """Whether to leave a level, and those after it, to a launch of more threads that are here."""
    return team[TEAM_LEAVE] != 0 and edges >= SHARED and atomic_load(team, GONE) == threads - 1


@inner
def is_shared(edges, team):
    """Whether a level is worth sharing, and somebody there to share it."""
    return edges >= SHARED and atomic_load(team, HERE) > atomic_load(team, GONE)


@kernel
def search_marked(
    thread, threads, sync, indptr, indices, symmetric, level, value, visited, all_queues, queues,
    marks, state, team, direction, max_depth, trace
):  # fmt: skip
    """Levels up to one that should be shared by search.py or pulled, or to the end of the search.
    Each thread has two `queues`; `all_queues` are those of search.py.
    """
    depth, turn, edges = state[DEPTH], state[TURN], state[EDGES]
    left, open_edges = state[LEFT], state[OPEN_EDGES]
    epoch, shared = np.int64(0), thread > 0
    if shared:
        atomic_add(team, HERE, 1)
    else:
        start_marked(visited, level, marks, all_queues[turn], queues[turn], turn, state, team)
    since = nanoseconds() if TRACE else np.int64(0)
    while True:
        if thread > 0:
            epoch = join_round(sync, epoch, team)
            if epoch < 0:
                atomic_add(team, GONE, 1)
                return
            depth, turn = team[LEVEL], team[LEVEL_TURN]
        else:
            team[PLANNED] = leaves(threads, edges, team)
            if team[PLANNED] != 0:
                break
            depth += 1
            poll_at_times(sync, depth, edges)
            begin_level(queues.shape[1], turn, team)
            team[LEVEL], team[LEVEL_TURN] = depth, turn
            shared = is_shared(edges, team)
            if shared:
                atomic_add(team, EPOCH, 1)
        push_marked(
            *(shared, thread, sync, indptr, indices, level, value, marks, depth, queues[turn]),
            *(queues[1 - turn, thread], turn, team),
        )
        if thread > 0:
            atomic_add(team, ACTIVE, -1)
            continue
        if shared:
            end_round(sync, team)
        found, found_edges = count_level(queues.shape[1], turn, team)
        if TRACE:
            now = nanoseconds()
            record(trace, depth - 1, 1, state[COUNT], edges, now - since)
            since = now
        turn = 1 - turn
        state[COUNT], edges = found, found_edges
        # of several threads it does not end by that number
        left = max(left - found, 1 if queues.shape[1] > 1 else 0)
        open_edges -= edges
        if is_over(threads, state, found, edges, left, depth, max_depth, ALONE) or wants_pull(
            direction, True, edges, left, open_edges, symmetric, indices.size
        ):
            state[COUNT], visits = settle_marked(
                *(indptr, indices, level, value, visited, marks, depth, queues[turn], turn, team),
                all_queues[turn],
            )
            left = team[FINDABLE_IN_ALL] - visits
            break
    atomic_store(team, FINISHED, 1)
    state[DEPTH], state[TURN], state[EDGES] = depth, turn, edges
    state[LEFT], state[OPEN_EDGES] = left, open_edges
