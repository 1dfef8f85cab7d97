# The masked level iteration  q<!visited> = q (+.x) A  until q is empty: one launch for a whole
# search. Every thread runs `search`, with a barrier between the steps of a level. Levels that are
# too small to share are run by thread 0 alone while the others wait; they are not even woken before
# the first that is shared: the first launch is of one thread, and leaves the rest to the second.
#
# A vertex is settled in one level, by all edges that reach it from the frontier of that level: the
# vertices that a shared level finds are marked in the bitmap `fresh`, and `visited` changes only
# between levels. Push reads the queue of the frontier, pull the in-edges of the unvisited vertices;
# push makes queues, pull bitmaps, and each is converted to the other when the direction changes.
#
# Named tuples would cost a call 2 us as arguments: the kernel makes them. Preamble: VALUES (False:
# levels only), FIRST (the first product decides), LEAST_ID (values are the least ids of parents),
# ISO, TRACE, ALONE (frontier edges below which a level is pushed by thread 0), LONG (levels that
# thread 0 runs before it marks vertices), VERTICES (of a queue that a thread takes at a time),
# HEAVY (the edges of a vertex with more are divided), multiply, add, IDENTITY, TERMINAL,
# TERMINAL_VALUE, pull_pays, pull_pays_all.

from collections import namedtuple

# what a search reads, out-edges for push and in-edges (t_...) for pull; `nonempty` has one bit per
# vertex: whether it has in-edges
Graph = namedtuple("Graph", "indptr indices values t_indptr t_indices t_values nonempty symmetric")
# what it writes; `visited` is a bitmap
Out = namedtuple("Out", "level value visited")

# positions of the shared counters in `state`: each has a cache line of its own
COUNT, EDGES, PROBES, TICKET, SKIPPED, FILLED = 0, 8, 16, 24, 32, 40
# what thread 0 reports after levels that it ran alone, and at the end
DEPTH, LEFT, OPEN_EDGES, LEVELS, VISITED, FINDABLE = 48, 49, 50, 51, 52, 53
# whether to leave levels that are worth sharing to another launch; whether there are such
LEAVE, MORE = 54, 55
# words of a bitmap that a thread takes at a time
WORDS = 32
# found vertices that a thread buffers before it appends them to the queue
STAGE = 256
# cost of converting a bitmap to a queue, in edges of the frontier
TO_QUEUE = 4096


@inner
def has_bit(bits, v):
    return bits[v >> np.uint64(5)] >> np.uint32(v & np.uint64(31)) & np.uint32(1) != 0


@inner
def claim(bits, v):
    """Set bit v; True for the one thread that finds it clear."""
    w = np.int64(v >> np.uint64(5))
    bit = np.uint32(np.uint32(1) << np.uint32(v & np.uint64(31)))
    return bits[w] & bit == 0 and atomic_or(bits, w, bit) & bit == 0


@inner
def degree_of(indptr, v):
    return np.int64(indptr[v + np.uint64(1)]) - np.int64(indptr[v])


@inner
def product(value, values, u, v, e):
    return multiply(value[u], values[0] if ISO else values[e], 0, u, u, v)


@inner
def sum_of_one(z):
    """The sum of one product: as in longer sums, min and max ignore NaN."""
    return z if TERMINAL == 1 else add(IDENTITY, z)


@inner
def ends(z):
    """Whether no further product can change the sum z."""
    return FIRST or TERMINAL == 1 or (TERMINAL == 2 and z == TERMINAL_VALUE)


@inner
def wants_pull(graph, direction, queued, edges, left, open_edges):
    if direction != 0:
        return direction == 2
    work = float(edges if queued else edges + TO_QUEUE)
    if VALUES and not FIRST:
        return pull_pays_all(work, float(open_edges))
    # out-edges of open vertices are their in-edges only in a symmetric graph
    bound = open_edges if graph.symmetric else graph.indices.size
    return pull_pays(work, float(left), float(bound), float(graph.indices.size))


@inner
def record(trace, depth, direction, frontier, edges, elapsed):
    if depth < trace.shape[0]:
        trace[depth, 0] = direction
        trace[depth, 1] = frontier
        trace[depth, 2] = edges
        trace[depth, 3] = elapsed


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
    state[FINDABLE], state[LEVELS] = findable - covered, 0


@inner
def to_queue(frontier, fresh, first_word, last_word, queue, stage, state):
    """Convert the bitmap `frontier` to a queue, and clear the bitmap `fresh`."""
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


# These loops are functions of arrays: in the kernel, where arrays are members of a tuple, Numba
# takes each out of it again in every step.


@inner
def clear(visited, frontier, fresh, first_word, last_word):
    """Nothing is visited; it is here that each thread first touches its part of the bitmaps."""
    for w in range(np.uint64(first_word), np.uint64(last_word)):
        visited[w] = 0
        frontier[w] = 0
        fresh[w] = 0


@inner
def fill(value, visited, first_word, last_word):
    """Once per search: values that several threads combine start from the identity."""
    for v in range(np.uint64(first_word * 32), np.uint64(min(last_word * 32, value.size))):
        if not has_bit(visited, v):
            value[v] = IDENTITY


@inner
def join(visited, fresh, first_word, last_word, keep):
    """The vertices found in a level are visited from now on; `fresh` is kept or cleared."""
    for w in range(np.uint64(first_word), np.uint64(last_word)):
        visited[w] |= fresh[w]
        if not keep:
            fresh[w] = 0


@kernel
def search(
    thread, threads, sync, indptr, indices, values, t_indptr, t_indices, t_values, nonempty,
    symmetric, findable, level, value, visited, sources, source_values, bitmaps, queues, stages,
    marks, state, direction, max_depth, trace
):  # fmt: skip
    graph = Graph(indptr, indices, values, t_indptr, t_indices, t_values, nonempty, symmetric)
    out = Out(level, value, visited)
    frontier, fresh = bitmaps[0], bitmaps[1]
    queue, fresh_queue = queues[0], queues[1]
    stage = stages[thread]
    words = out.visited.size
    first_word, last_word = words * thread // threads, words * (thread + 1) // threads

    if state[MORE] == 0:
        clear(out.visited, frontier, fresh, first_word, last_word)
        barrier(sync, threads)
        if thread == 0:
            begin(graph, out, sources, source_values, findable, queue, state)
        barrier(sync, threads)
    elif state[LEVELS] % 2 == 1:  # thread 0 has run some levels already
        queue, fresh_queue = fresh_queue, queue
    count, edges, depth = state[COUNT], state[EDGES], state[DEPTH]
    left, open_edges = state[LEFT], state[OPEN_EDGES]
    queued = True  # the frontier lies in `queue`, else in `frontier`
    since = nanoseconds() if TRACE else np.int64(0)
    while count > 0 and edges > 0 and left > 0 and depth < max_depth:
        pull = wants_pull(graph, direction, queued, edges, left, open_edges)
        if state[LEAVE] != 0:
            # a pull that pays makes at most about 4 probes for each edge of the frontier
            if edges >= ALONE or (pull and (direction == 2 or 4 * edges >= ALONE)):
                state[MORE] = 1  # what else to know is in `state` already
                break
            if pull:  # little is left; and another launch would look for a queue
                state[LEAVE] = 0
        barrier(sync, threads)  # all threads have read the counters
        if not pull and not queued:
            if thread == 0:
                state[COUNT] = 0
            barrier(sync, threads)
            to_queue(frontier, fresh, first_word, last_word, queue, stage, state)
            barrier(sync, threads)
        elif pull and queued:
            # `fresh` is clear: it becomes the bitmap of the frontier
            for i in range(count * thread // threads, count * (thread + 1) // threads):
                claim(fresh, np.uint64(queue[i]))
            frontier, fresh = fresh, frontier
        queued = not pull
        if not pull and (threads == 1 or edges < ALONE):
            if thread == 0:
                state[DEPTH], state[LEFT], state[OPEN_EDGES] = depth, left, open_edges
                push_alone(
                    *(threads, sync, graph, out, marks, queue, fresh_queue, state, direction),
                    *(max_depth, trace),
                )
            barrier(sync, threads)
            count, edges, depth = state[COUNT], state[EDGES], state[DEPTH]
            left, open_edges = state[LEFT], state[OPEN_EDGES]
            if state[LEVELS] % 2 == 1:
                queue, fresh_queue = fresh_queue, queue
            if TRACE:
                since = nanoseconds()
            continue
        if VALUES and TERMINAL != 1 and not pull and state[FILLED] == 0:
            fill(out.value, out.visited, first_word, last_word)
        if thread == 0:
            state[COUNT], state[EDGES], state[PROBES] = 0, 0, 0
            state[TICKET], state[SKIPPED] = 0, 0
        barrier(sync, threads)
        depth += 1
        if pull:
            pull_shared(
                *(sync, graph.indptr, graph.t_indptr, graph.t_indices, graph.t_values),
                *(graph.nonempty, out.level, out.value, out.visited, depth, frontier, fresh, state),
            )
        else:
            if thread == 0:
                state[FILLED] = 1
            push_shared(
                *(thread, threads, sync, False, graph.indptr, graph.indices, graph.values),
                *(out.level, out.value, out.visited, depth, queue, count, fresh_queue),
                *(fresh, stage, state),
            )
            barrier(sync, threads)
            if state[SKIPPED] > 0:
                push_shared(
                    *(thread, threads, sync, True, graph.indptr, graph.indices, graph.values),
                    *(out.level, out.value, out.visited, depth, queue, count, fresh_queue),
                    *(fresh, stage, state),
                )
        barrier(sync, threads)
        join(out.visited, fresh, first_word, last_word, pull)
        if TRACE and thread == 0:
            now = nanoseconds()
            examined = state[PROBES] if pull else edges
            record(trace, depth - 1, 2 if pull else 1, count, examined, now - since)
            since = now
        if pull:
            frontier, fresh = fresh, frontier
        else:
            queue, fresh_queue = fresh_queue, queue
        count, edges = state[COUNT], state[EDGES]
        left -= count
        open_edges -= edges
        barrier(sync, threads)
    if thread == 0:
        state[DEPTH] = depth
        state[VISITED] = sources.size + state[FINDABLE] - left
