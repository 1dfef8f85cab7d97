# The masked level iteration  q<!visited> = q (+.x) A  until q is empty: one launch for a whole
# search. Every thread runs `search`, with a barrier between the steps of a level. Levels that are
# too small to share are run by thread 0 alone while the others wait; they are not even woken before
# the first that is shared: the first launch is of one thread, and leaves the rest to the second.
# Where a search goes on for long by one thread, it may be left to search_marked.py or
# search_thin.py.
#
# A vertex is settled in one level, by all edges that reach it from the frontier of that level: the
# vertices that a shared level finds are marked in bitmaps, in a push one for each thread, and
# `visited` changes only between levels. Push reads the queue of the frontier, pull the in-edges of
# the unvisited vertices; push makes queues, pull bitmaps, and each is converted to the other when
# the direction changes.
#
# Named tuples would cost a call 2 us as arguments: the kernel makes them. Preamble: VALUES (False:
# levels only), FIRST (the first product decides), LEAST_ID (values are the least ids of parents),
# ISO, TRACE, ALONE (probes below which a level is pulled by one thread), LONG and SEEN (the
# levels that it runs, and vertices in them, before it may leave the rest to search_marked.py or
# search_thin.py), WORTH_LEAVING (how many edges must be left then), ODD (marks pay where one vertex
# of so many finds another number than expected) or SHARED (where the level has so many edges, and
# other threads help), THIN_LEVEL (thin levels have fewer vertices on average), VERTICES (of a queue
# that a thread takes at a time), HEAVY (the edges of a vertex with more are divided), multiply,
# add, IDENTITY, TERMINAL, TERMINAL_VALUE, pull_pays, pull_pays_all, and the texts search_common.py,
# search_push.py and search_pull.py.

from collections import namedtuple

# what a search reads, out-edges for push and in-edges (t_...) for pull; `nonempty` has one bit per
# vertex: whether it has in-edges
Graph = namedtuple("Graph", "indptr indices values t_indptr t_indices t_values nonempty symmetric")
# what it writes; `visited` is a bitmap
Out = namedtuple("Out", "level value visited")

# words of a bitmap that a thread takes at a time
WORDS = 32
# found vertices that a thread buffers before it appends them to the queue
STAGE = 256


@inner
def claim(bits, v):
    """Set bit v; True for the one thread that finds it clear."""
    w = np.int64(v >> np.uint64(5))
    bit = np.uint32(np.uint32(1) << np.uint32(v & np.uint64(31)))
    return bits[w] & bit == 0 and atomic_or(bits, w, bit) & bit == 0


@inner
def ends(z):
    """Whether no further product can change the sum z."""
    return FIRST or TERMINAL == 1 or (TERMINAL == 2 and z == TERMINAL_VALUE)


@inner
def begin(graph, out, sources, source_values, findable, queue, state):
    """The sources are level 0."""
    indptr = graph.indptr
    edges = np.int64(0)
    covered = 0
    for i in range(sources.size):
        v = np.uint64(sources[i])
        queue[i] = v
        out.level[v] = 0
        if VALUES:
            out.value[v] = source_values[i]
        claim(out.visited, v)
        edges += degree_of(indptr, v)
        if has_bit(graph.nonempty, v):
            covered += 1
    state[COUNT], state[EDGES], state[DEPTH], state[FILLED] = sources.size, edges, 0, 0
    state[LEFT], state[OPEN_EDGES] = findable - covered, graph.indices.size - edges
    state[FINDABLE], state[TURN], state[BEGUN] = findable - covered, 0, 1


# These loops are functions of arrays: in the kernel, where arrays are members of a tuple, Numba
# takes each out of it again in every step.


@inner
def clear(bits, first_word, last_word):
    """No bit is set; it is here that each thread first touches its part of the bitmaps."""
    for w in range(np.uint64(first_word), np.uint64(last_word)):
        bits[w] = 0


@inner
def to_bitmap(thread, threads, queue, count, bits):
    """Set the bits of the vertices of a queue."""
    for i in range(count * thread // threads, count * (thread + 1) // threads):
        claim(bits, np.uint64(queue[i]))


@inner
def to_queue(thread, threads, sync, frontier, fresh, queue, stage, state):
    """Convert the bitmap `frontier` to a queue, and clear the bitmap `fresh`."""
    first_word, last_word = fresh.size * thread // threads, fresh.size * (thread + 1) // threads
    if thread == 0:
        state[COUNT] = 0
    barrier(sync, threads)
    held = 0
    for w in range(first_word, last_word):
        bits = np.uint32(frontier[w])
        fresh[w] = 0
        while bits != 0:
            stage[held] = np.int64(w) * 32 + np.int64(lowest_bit(bits))
            bits = np.uint32(bits & (bits - np.uint32(1)))
            held += 1
            if held == STAGE:
                hand_on(stage, held, queue, state)
                held = 0
    hand_on(stage, held, queue, state)
    barrier(sync, threads)


@inner
def fill(value, visited, first_word, last_word):
    """Once per search: values that several threads combine start from the identity."""
    for v in range(np.uint64(first_word * 32), np.uint64(min(last_word * 32, value.size))):
        if not has_bit(visited, v):
            value[v] = IDENTITY


@inner
def join(visited, fresh, first_word, last_word):
    """The vertices found by a pull are visited from now on."""
    for w in range(np.uint64(first_word), np.uint64(last_word)):
        visited[w] |= fresh[w]


@inner
def share_level(
    thread, threads, sync, graph, out, pull, depth, count, edges, queue, fresh_queue, frontier,
    fresh, found, stages, state
):  # fmt: skip
    """This thread's part of a level; the counts of what all threads find are in `state`."""
    words = out.visited.size
    first_word, last_word = words * thread // threads, words * (thread + 1) // threads
    if not pull and state[FILLED] == 0:
        clear(found[thread], 0, words)
        if VALUES and TERMINAL != 1:
            fill(out.value, out.visited, first_word, last_word)
    if thread == 0:
        state[COUNT], state[EDGES], state[PROBES] = 0, 0, 0
        state[TICKET], state[SKIPPED] = 0, 0
    barrier(sync, threads)
    if pull:
        pull_shared(
            *(sync, graph.indptr, graph.t_indptr, graph.t_indices, graph.t_values),
            *(graph.nonempty, out.level, out.value, out.visited, depth, frontier, fresh, state),
        )
        barrier(sync, threads)
        join(out.visited, fresh, first_word, last_word)
        return
    if thread == 0:
        state[FILLED] = 1
    for heavy in range(2):
        push_shared(
            *(thread, threads, sync, heavy, graph.indptr, graph.indices, graph.values),
            *(out.value, out.visited, queue, count, edges, found[thread], state),
        )
        barrier(sync, threads)
        if state[SKIPPED] == 0:
            break
    take_found(
        *(thread, threads, graph.indptr, out.level, out.visited, depth, found, fresh_queue),
        *(stages[thread], state),
    )
    barrier(sync, threads)


@inner
def start(
    thread, threads, sync, graph, out, sources, source_values, findable, bitmaps, queue, state
):  # fmt: skip
    """Begin a search, unless this launch goes on from an earlier one."""
    if state[BEGUN] != 0:
        return
    words = out.visited.size
    first_word, last_word = words * thread // threads, words * (thread + 1) // threads
    clear(bitmaps[0], first_word, last_word)
    clear(bitmaps[1], first_word, last_word)
    clear(out.visited, first_word, last_word)
    barrier(sync, threads)
    if thread == 0:
        begin(graph, out, sources, source_values, findable, queue, state)
    barrier(sync, threads)


@inner
def is_left(direction, pull, edges, left, open_edges, symmetric, size, state):
    """Whether to leave this level and the rest to a launch of all threads."""
    if state[LEAVE] == 0:
        return False
    if pull:
        shares = probes_of(edges, left, open_edges, symmetric, size) >= ALONE
    else:
        shares = edges >= state[SHARE_FROM]
    if shares or direction == 2:
        state[MORE] = SHARE  # what else to know is in `state` already
        return True
    if pull:  # little is left; and another launch would look for a queue
        state[LEAVE] = 0
    return False


@kernel
def search(
    thread, threads, sync, indptr, indices, values, t_indptr, t_indices, t_values, nonempty,
    symmetric, findable, level, value, visited, sources, source_values, bitmaps, queues, stages,
    state, direction, max_depth, trace
):  # fmt: skip
    """All levels, or those up to one that is left to another launch."""
    graph = Graph(indptr, indices, values, t_indptr, t_indices, t_values, nonempty, symmetric)
    out = Out(level, value, visited)
    start(
        *(thread, threads, sync, graph, out, sources, source_values, findable, bitmaps, queues[0]),
        state,
    )
    frontier, fresh, turn = bitmaps[0], bitmaps[1], state[TURN]
    queue, fresh_queue = queues[turn], queues[1 - turn]
    count, edges, depth = state[COUNT], state[EDGES], state[DEPTH]
    left, open_edges = state[LEFT], state[OPEN_EDGES]
    queued = True  # the frontier lies in `queue`, else in `frontier`
    while count > 0 and edges > 0 and left > 0 and depth < max_depth:
        since = nanoseconds() if TRACE else np.int64(0)
        pull = wants_pull(direction, queued, edges, left, open_edges, symmetric, indices.size)
        if is_left(direction, pull, edges, left, open_edges, symmetric, indices.size, state):
            return
        barrier(sync, threads)  # all threads have read the counters
        if pull and queued:
            to_bitmap(thread, threads, queue, count, fresh)  # which is clear
            frontier, fresh = fresh, frontier
        elif not pull and not queued:
            to_queue(thread, threads, sync, frontier, fresh, queue, stages[thread], state)
        queued = not pull
        if queued and (threads == 1 or edges < state[SHARE_FROM]):
            if thread == 0:
                state[DEPTH], state[LEFT], state[OPEN_EDGES] = depth, left, open_edges
                state[TURN] = turn
                push_alone(
                    *(threads, sync, graph, out, queues, stages[0], state, direction, max_depth),
                    trace,
                )
            barrier(sync, threads)
            if state[MORE] != 0:
                return
            depth, left, open_edges = state[DEPTH], state[LEFT], state[OPEN_EDGES]
            turn = state[TURN]
            queue, fresh_queue = queues[turn], queues[1 - turn]
        else:
            depth += 1
            share_level(
                *(thread, threads, sync, graph, out, pull, depth, count, edges, queue),
                *(fresh_queue, frontier, fresh, bitmaps[2:], stages, state),
            )
            if TRACE and thread == 0:
                examined, way = (state[PROBES], 2) if pull else (edges, 1)
                record(trace, depth - 1, way, count, examined, nanoseconds() - since)
            if pull:
                frontier, fresh = fresh, frontier
            else:
                queue, fresh_queue, turn = fresh_queue, queue, 1 - turn
            left -= state[COUNT]
            open_edges -= state[EDGES]
        count, edges = state[COUNT], state[EDGES]
    if thread == 0:
        state[DEPTH] = depth
        state[VISITED] = sources.size + state[FINDABLE] - left
