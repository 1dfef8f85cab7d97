# The least fixed point of  x = x (+) x (+.x) A  by delta-stepping (Meyer and Sanders 2003). Thread
# 0 plans rounds and takes part in all of them; the other threads, the helpers, take part in those
# that are worth it, and thread 0 never waits for one that has not come yet. They are not even woken
# before the first such round: the first launch is of one thread, and leaves the rest to the second.
#
# Whoever improves the value of a vertex puts an entry, the vertex and its value, into the bucket of
# the value. The best bucket is processed first, in rounds, until nothing new is added to it: the
# edges of a vertex are relaxed if its value is still that of the entry, and always where values
# have no total order: there others may need a part of the old value, in this round, for A.nrows
# rounds to be enough. In a round a thread takes its share of the blocks that the bucket had, most
# of which it has filled itself, then what others have not begun of theirs, and then what it has
# added to the bucket, as long as that is little (bucket fusion: Y. Zhang and others, "Optimizing
# ordered graph algorithms with GraphIt", 2020). So nobody has to know whether a vertex has an entry
# already, and a value is all that threads have to agree on, by one atomic instruction. Vertices
# beyond the last bucket have no entry but are `queued` (a bit each), and so are those for which a
# thread had no space: the buckets are filled again when they are empty, or at once if a thread ran
# out of space. With `leads_back` a vertex of one edge gets no entry: that leads back to where its
# value comes from.
#
# Preamble: SIGN (0: no order, one bucket), TOTAL (the lesser or the greater of two values is their
# sum), BUCKETS, BLOCK (entries), PARENTS (find for each vertex the least one that carries its
# value), ALONE (helpers are woken for a round of so many edges), SHARED (those that are awake help
# with one of so many), LAUNCH (blocks that a thread relaxes in the time of a launch), PATIENCE
# (nanoseconds that a helper waits for the next round before it leaves), HEAVY (the edges of a
# vertex with more are divided), ISO, multiply, add, IDENTITY.

from spgraph.backends.cpu.device.prefetching import prefetch

# distances, in entries, at which row pointers and then rows are prefetched
FAR_AHEAD, AHEAD = 12, 5
# positions of the shared words in `state`: those that several threads write have cache lines of
# their own
HEAVIES, BEYOND, NO_SPACE = 8, 16, 24
# what thread 0 alone writes: the end; the round; whether it consists of heavy vertices, and of how
# many pieces of work
DONE, BUCKET, ROUNDS, BLOCKS, EDGES, OF_HEAVY, COUNT = 56, 57, 58, 59, 60, 61, 62
# whether to leave rounds that are worth sharing to another launch; whether one is planned
LEAVE, PLANNED = 64, 65
# from here on, one cache line for each thread: the next piece of its share of a round
NEXT = 80
# in `parent`: a thread is writing the value and the parent of the vertex
LOCKED = -2
# values of NO_SPACE: a thread ran out of it; the buckets have not been filled yet
RAN_OUT, NOT_FILLED = 1, 2
# values of DONE
CONVERGED, NOT_CONVERGED = 1, 2
# how many rounds over a bucket of its own a thread takes before others are asked
OWN_ROUNDS = 64
# into how many pieces a heavy vertex is divided
PIECES = 16
# entries and edges between two polls, each of which takes as long as some twenty of them
POLL_AFTER = 1 << 14


@inner
def joined(old, z):
    """old (+) z; of NaN on both sides a monoid that omits NaN leaves the identity."""
    new = add(old, z)
    return add(old, add(IDENTITY, z)) if new != new and old != old else new


@inner
def differs(new, old):
    """Whether a value has changed; NaN has not changed if it stays NaN."""
    return new != old and (new == new or old == old)


@inner
def lock(sync, parent, v):
    """Wait until nobody else writes what belongs to v; returns v's parent."""
    locked = parent.dtype.type(LOCKED)
    before = atomic_load(parent, np.int64(v))
    while before == locked or not compare_exchange(parent, np.int64(v), before, locked):
        poll(sync)
        before = atomic_load(parent, np.int64(v))
    return before


# Inlined by force: it is called for every edge.
@inner(forceinline=True)
def improve(shared, sync, value, parent, visited, u, v, z):
    """Add z, which u brings, to v's value; returns (whether that has changed or is v's first, the
    value). A first value that is the identity is marked in `visited`, others show by themselves.
    """
    old = atomic_load(value, np.int64(v)) if PARENTS else value[v]
    new = joined(old, z)
    first = not PARENTS and not differs(old, IDENTITY) and not visited[v]
    better = differs(new, old) or first
    if not better:
        if not PARENTS:
            return False, new
        # who sees a value sees its parent, too, or LOCKED
        if z != old or 0 <= atomic_load(parent, np.int64(v)) <= u:
            return False, new
    if first and not differs(new, IDENTITY):
        visited[v] = True
    if PARENTS and shared:
        before = lock(sync, parent, v)
        old = value[v]
        new = joined(old, z)
        if not differs(new, old):
            least = z == old and not 0 <= before <= u
            atomic_store(parent, np.int64(v), parent.dtype.type(u) if least else before)
            return False, new
        atomic_store(value, np.int64(v), new)
        atomic_store(parent, np.int64(v), parent.dtype.type(u))
        return True, new
    if PARENTS:
        parent[v] = u
    elif shared:
        while not compare_exchange(value, np.int64(v), old, new):
            old = atomic_load(value, np.int64(v))
            new = joined(old, z)
            if not differs(new, old):
                return False, new
        return True, new
    value[v] = new
    return better, new


@inner
def take(thread, threads, taken, count, state):
    """(the next piece of work, `count` if none is left; how many shares are known to be taken). A
    thread begins with its own share, which has what it found itself: that is in its cache.
    """
    while taken < threads:
        owner = (thread + taken) % threads
        k = atomic_add(state, NEXT + 8 * owner, 1)
        if k < count * (owner + 1) // threads:
            return k, taken
        taken += 1
    return count, taken


@inner(forceinline=True)
def fetch_ahead(i, stop, entries, indptr, indices, values, value):
    """Prefetch what entries that come after entry i need."""
    if i + np.uint64(FAR_AHEAD) < stop:
        w = np.uint64(entries[i + np.uint64(FAR_AHEAD)])
        prefetch(indptr, w)
        prefetch(value, w)
        row = np.uint64(indptr[np.uint64(entries[i + np.uint64(AHEAD)])])
        prefetch(indices, row)
        if not ISO:
            prefetch(values, row)


@inner(forceinline=True)
def relax_edges(
    shared, mine, sync, u, x, first, last, indptr, indices, values, value, parent, visited, queued,
    heads, fills, links, entries, keys, free, leads_back, origin, scale, current, state
):  # fmt: skip
    """Bring x, the value of u, along the edges from first to last."""
    for e in range(np.uint64(first), np.uint64(last)):
        v = np.uint64(indices[e])
        z = multiply(x, values[0] if ISO else values[e], 0, u, u, v)
        better, new = improve(shared, sync, value, parent, visited, u, v, z)
        if not better:
            continue
        if leads_back and indptr[v + np.uint64(1)] - indptr[v] == 1:
            continue  # to u, which that improves no more
        b = bucket_of(new, origin, scale, current)
        if b >= BUCKETS:
            atomic_or(queued, np.int64(v >> np.uint64(3)), bit_of(v))
            state[BEYOND] = 1
            continue
        bucket = mine * np.uint64(BUCKETS) + np.uint64(b)
        if not push_entry(v, new, bucket, mine, heads, fills, links, entries, keys, free):
            atomic_or(queued, np.int64(v >> np.uint64(3)), bit_of(v))
            state[NO_SPACE] = RAN_OUT


@inner(forceinline=True)
def relax_block(
    shared, heavy, piece, mine, sync, i, stop, indptr, indices, values, value, parent, visited,
    queued, heads, fills, links, entries, keys, free, heavies, leads_back, origin, scale, current,
    state
):  # fmt: skip
    """The edges of the entries from i to stop; of a heavy vertex, heavies[i], one piece of them.
    Returns how many entries and edges that were.
    """
    followed = np.int64(stop - i)
    while i < stop:
        u = np.uint64(heavies[i] if heavy else entries[i])
        first, last = np.int64(indptr[u]), np.int64(indptr[u + np.uint64(1)])
        if not heavy:
            fetch_ahead(i, stop, entries, indptr, indices, values, value)
        x, at = value[u], i
        i += np.uint64(1)
        if heavy:
            degree = last - first
            last = first + degree * (piece + 1) // PIECES
            first += degree * piece // PIECES
        else:
            if TOTAL and differs(x, keys[at]):
                continue
            if shared and last - first > HEAVY:
                number = atomic_add(state, HEAVIES, 1)
                if number < heavies.size:
                    heavies[number] = u
                    continue
        followed += last - first
        relax_edges(
            *(shared, mine, sync, u, x, first, last, indptr, indices, values, value, parent),
            *(visited, queued, heads, fills, links, entries, keys, free, leads_back, origin, scale),
            *(current, state),
        )
    return followed


@inner
def relax(
    shared, heavy, thread, sync, count, work, sizes, indptr, indices, values, value, parent,
    visited, queued, heads, fills, links, entries, keys, free, heavies, leads_back, origin, scale,
    current, state
):  # fmt: skip
    """This thread's part of a round: some of its `count` blocks, or pieces of heavy vertices; then
    its own bucket.
    """
    mine = np.uint64(thread)
    own = mine * np.uint64(BUCKETS) + np.uint64(current)
    place, rounds, taken = np.int64(0), np.int64(0), np.int64(0)
    chain, size = np.int64(-1), np.int64(0)
    unpolled = np.int64(POLL_AFTER)
    while True:
        if unpolled >= POLL_AFTER:
            poll(sync)
            unpolled = np.int64(0)
        k = place
        if shared:
            k, taken = take(np.int64(thread), free.shape[0], taken, count, state)
        place = k + 1
        block = np.int64(-1)
        if k < count:
            if heavy:
                i = np.uint64(k // PIECES)
                stop = i + np.uint64(1)
            else:
                i = np.uint64(work[k]) * np.uint64(BLOCK)
                stop = i + np.uint64(sizes[work[k]])
        else:
            if chain < 0:
                chain, size = np.int64(heads[own]), np.int64(fills[own])
                if heavy or chain < 0 or rounds == OWN_ROUNDS:
                    break
                if edges_of(chain, size, links, entries, indptr) >= ALONE:
                    break
                rounds += 1
                heads[own] = -1
                fills[own] = BLOCK
            block = chain
            i = np.uint64(block) * np.uint64(BLOCK)
            stop = i + np.uint64(size)
        unpolled += relax_block(
            *(shared, heavy, k % PIECES, mine, sync, i, stop, indptr, indices, values, value),
            *(
                parent,
                visited,
                queued,
                heads,
                fills,
                links,
                entries,
                keys,
                free,
                heavies,
                leads_back,
            ),
            *(origin, scale, current, state),
        )
        if block >= 0:
            chain, size = np.int64(links[block]), np.int64(BLOCK)
            links[block] = free[mine, CHAIN]
            free[mine, CHAIN] = block


@inner
def plan(
    threads, indptr, value, queued, heads, fills, links, entries, keys, free, work, sizes, origins,
    scale, state
):  # fmt: skip
    """Write the next round to `work` and `state`, or the end."""
    current, rounds = state[BUCKET], state[ROUNDS]
    bucket = np.int64(BUCKETS)
    if state[NO_SPACE] == 0:
        bucket = next_bucket(threads, current, heads)
    if bucket == BUCKETS:
        best, some = value[0], False
        if state[NO_SPACE] == RAN_OUT:
            queue_entries(value, queued, heads, fills, links, entries, keys)
        if state[NO_SPACE] != 0 or state[BEYOND] != 0:
            best, some = best_of(value, queued)
        if not some:
            state[DONE] = CONVERGED
            return
        origins[0] = np.float64(best)
        state[BEYOND] = fill_buckets(
            *(value, queued, heads, fills, links, entries, keys, free, origins[0], scale)
        )
        # after running out of space the same bucket may continue, and so does its count of rounds
        rounds = rounds if state[NO_SPACE] != 0 else np.int64(0)
        state[NO_SPACE] = 0
        bucket = current = next_bucket(threads, np.int64(0), heads)
    rounds = rounds + 1 if bucket == current else np.int64(1)
    state[BUCKET], state[ROUNDS] = bucket, rounds
    if rounds > value.size:
        state[DONE] = NOT_CONVERGED
        return
    state[HEAVIES], state[EDGES] = 0, 0
    for t in range(threads):
        at = t * BUCKETS + bucket
        block, size = np.int64(heads[at]), np.int64(fills[at])
        state[EDGES] += edges_of(block, size, links, entries, indptr)
    state[BLOCKS] = take_bucket(threads, bucket, heads, fills, links, work, sizes)
    state[COUNT], state[OF_HEAVY] = state[BLOCKS], 0


@inner
def wants_helpers(threads, gone, state):
    """Whether the round is worth a launch that brings back the helpers that have left: all of them,
    or so many that those that stay would take longer by the time of a launch.
    """
    if gone == threads - 1:
        return state[EDGES] >= ALONE
    return state[BLOCKS] * gone >= LAUNCH * threads * (threads - gone)


@kernel
def closure(
    thread, threads, sync, indptr, indices, values, value, parent, visited, queued, heads,
    fills, links, entries, keys, free, work, sizes, heavies, origins, leads_back, scale, state
):  # fmt: skip
    shared = thread > 0
    epoch = np.int64(0)
    if shared:
        atomic_add(state, HERE, 1)
    while True:
        if thread > 0:
            epoch = join_round(sync, epoch, state)
            if epoch < 0:
                atomic_add(state, GONE, 1)
                break
        else:
            if shared:
                end_round(sync, state)
            if shared and state[HEAVIES] > 0 and state[OF_HEAVY] == 0:
                state[COUNT], state[OF_HEAVY] = min(state[HEAVIES], heavies.size) * PIECES, 1
            else:
                if state[PLANNED] != 0:
                    state[PLANNED] = 0
                else:
                    free_blocks(state[BLOCKS], work, links, free)
                    plan(
                        *(free.shape[0], indptr, value, queued, heads, fills, links, entries, keys),
                        *(free, work, sizes, origins, scale, state),
                    )
                if state[DONE] != 0:
                    break
                gone = atomic_load(state, GONE)
                if state[LEAVE] != 0 and wants_helpers(threads, gone, state):
                    state[PLANNED] = 1
                    break
                # helpers that have been woken will come to a round that takes long enough
                here = atomic_load(state, HERE) > gone
                shared = threads > 1 and state[EDGES] >= (SHARED if here else ALONE)
            for t in range(threads):
                state[NEXT + 8 * t] = state[COUNT] * t // threads
            if shared:
                atomic_add(state, EPOCH, 1)
        relax(
            *(shared, state[OF_HEAVY] != 0, thread, sync, state[COUNT], work, sizes, indptr),
            *(indices, values, value, parent, visited, queued, heads, fills, links, entries, keys),
            *(free, heavies, leads_back, origins[0], scale, state[BUCKET], state),
        )
        if thread > 0:
            atomic_add(state, ACTIVE, -1)
    if thread == 0:
        atomic_store(state, FINISHED, 1)
        if state[DONE] != 0:
            for v in range(np.uint64(value.size)):
                visited[v] = visited[v] or differs(value[v], IDENTITY)
