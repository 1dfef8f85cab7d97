# The least fixed point of  x = x (+) x (+.x) A  by delta-stepping (Meyer and Sanders 2003). Thread
# 0 plans rounds and takes part in all of them; the other threads, the helpers, take part in those
# that are worth it, and thread 0 never waits for one that has not come yet. They are not even woken
# before the first such round: the first launch is of one thread, and leaves the rest to the second.
#
# A vertex whose value improved is `queued` until its edges have been relaxed. Queued vertices are
# in buckets by their value, and the best bucket is processed first, in rounds, until nothing new is
# added to it. In a round a thread takes blocks of the bucket as it was, and then what it has added
# to the bucket itself, as long as that is little (bucket fusion: Y. Zhang and others, "Optimizing
# ordered graph algorithms with GraphIt", 2020). A vertex that moves to a better bucket leaves its
# old entry behind, which is skipped because the vertex is no longer queued. Vertices beyond the
# last bucket have no entry, nor have those for which a thread had no space: the buckets are filled
# again from the flags of the queued vertices when they are empty, or at once if a thread ran out of
# space.
#
# Preamble: SIGN (0: no order, one bucket), BUCKETS, BLOCK (entries), PARENTS
# (find for each vertex the least one that carries its value), ALONE (helpers are woken for a round
# of so many edges), SHARED (those that are awake help with one of so many), HEAVY (the edges of a
# vertex with more are divided), ISO, multiply, add, IDENTITY.

from spgraph.backends.cpu.device.atomics import let_others_run
from spgraph.backends.cpu.device.prefetching import prefetch

# distances, in entries, at which row pointers and then rows are prefetched
FAR_AHEAD, AHEAD = 12, 5
# positions of the shared words in `state`: those that several threads write have cache lines of
# their own
TICKET, HEAVIES, BEYOND, NO_SPACE, EPOCH, ACTIVE, HERE = 0, 8, 16, 24, 32, 40, 48
# what thread 0 alone writes: the end; the round; whether it consists of heavy vertices, and of how
# many pieces of work
DONE, BUCKET, ROUNDS, BLOCKS, EDGES, OF_HEAVY, COUNT, FINISHED = 56, 57, 58, 59, 60, 61, 62, 63
# whether to leave rounds that are worth sharing to another launch; whether one is planned
LEAVE, PLANNED = 64, 65
# how many helpers have given up waiting
GONE = 72
# flags of a vertex, in one byte, so that threads exchange one cache line instead of two; those of
# the eight vertices of a word. What belongs to a vertex is written by who has set LOCKED.
QUEUED, VISITED, LOCKED = np.uint8(1), np.uint8(2), np.uint8(4)
ALL_QUEUED = np.uint64(0x0101010101010101)
# values of DONE
CONVERGED, NOT_CONVERGED = 1, 2
# how many rounds over a bucket of its own a thread takes before others are asked
OWN_ROUNDS = 64
# into how many pieces a heavy vertex is divided
PIECES = 16
# nanoseconds that a helper waits for the next round before it leaves; and that a thread waits for
# another before it gives up its processor, which the other may need
PATIENCE, SPIN = 200_000, 5_000


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
def take(shared, sync, flags, u):
    """Whether u is queued; it is not any more. The mark is cleared before the value is read: a
    later improvement queues u again.
    """
    flag = flags[u]
    while flag & QUEUED != 0:
        if not shared:
            flags[u] = VISITED
            return True
        if flag & LOCKED == 0 and compare_exchange(flags, np.int64(u), flag, VISITED):
            return True
        poll(sync)
        flag = atomic_load(flags, np.int64(u))
    return False


@inner
def lock(sync, flags, v):
    """Wait until nobody else writes what belongs to v; returns v's flags. Whose operator raises
    while it has locked v never unlocks it, but makes the others leave where they poll.
    """
    flag = flags[v]
    while flag & LOCKED != 0 or not compare_exchange(flags, np.int64(v), flag, flag | LOCKED):
        poll(sync)
        flag = atomic_load(flags, np.int64(v))
    return flag


@inner
def relax(
    shared, heavy, thread, sync, count, work, sizes, indptr, indices, values, value, parent, flags,
    heads, fills, links, entries, free, heavies, origin, scale, current, state
):  # fmt: skip
    """This thread's part of a round: some of its `count` blocks, or pieces of heavy vertices; then
    its own bucket.
    """
    mine = np.uint64(thread)
    own = mine * np.uint64(BUCKETS) + np.uint64(current)
    place, rounds = np.int64(0), np.int64(0)
    chain, size = np.int64(-1), np.int64(0)
    while True:
        poll(sync)
        k = place
        if shared and k < count:
            k = atomic_add(state, TICKET, 1)
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
        while i < stop:
            u = np.uint64(heavies[i] if heavy else entries[i])
            first, last = np.int64(indptr[u]), np.int64(indptr[u + np.uint64(1)])
            if not heavy and i + np.uint64(FAR_AHEAD) < stop:
                w = np.uint64(entries[i + np.uint64(FAR_AHEAD)])
                prefetch(indptr, w)
                prefetch(flags, w)
                row = np.uint64(indptr[np.uint64(entries[i + np.uint64(AHEAD)])])
                prefetch(indices, row)
                if not ISO:
                    prefetch(values, row)
            i += np.uint64(1)
            if heavy:
                degree, piece = last - first, k % PIECES
                last = first + degree * (piece + 1) // PIECES
                first += degree * piece // PIECES
            else:
                if not take(shared, sync, flags, u):
                    continue
                if shared and last - first > HEAVY:
                    at = atomic_add(state, HEAVIES, 1)
                    if at < heavies.size:
                        heavies[at] = u
                        continue
            x = value[u]
            for e in range(np.uint64(first), np.uint64(last)):
                v = np.uint64(indices[e])
                z = multiply(x, values[0] if ISO else values[e], 0, u, u, v)
                old = value[v]
                new = joined(old, z)
                # v has a better value, or its first, which may equal the identity
                if not differs(new, old) and (old != IDENTITY or flags[v] != 0):
                    if PARENTS:
                        if z != old or atomic_load(value, np.int64(v)) != z or parent[v] <= u:
                            continue
                    else:
                        continue
                flag = flags[v]
                if shared:
                    flag = lock(sync, flags, v)
                    old = value[v]
                    new = joined(old, z)
                    if not differs(new, old) and (old != IDENTITY or flag != 0):
                        if PARENTS and z == old and parent[v] > u:
                            parent[v] = u
                        atomic_store(flags, np.int64(v), flag)
                        continue
                elif PARENTS and new == old:
                    parent[v] = u
                    continue
                if PARENTS:  # the parent first: who sees the value may rely on it
                    parent[v] = u
                    atomic_store(value, np.int64(v), new)
                else:
                    value[v] = new
                atomic_store(flags, np.int64(v), flag | QUEUED)
                b = bucket_of(new, origin, scale, current)
                if flag & QUEUED != 0 and bucket_of(old, origin, scale, current) == b:
                    continue
                if b >= BUCKETS:
                    state[BEYOND] = 1
                    continue
                bucket = mine * np.uint64(BUCKETS) + np.uint64(b)
                push_entry(v, bucket, mine, heads, fills, links, entries, free, state)
        if block >= 0:
            chain = np.int64(links[block])
            size = np.int64(BLOCK)
            links[block] = free[mine, CHAIN]
            free[mine, CHAIN] = block


@inner
def plan(
    threads, indptr, value, flags, words, heads, fills, links, entries, free, work, sizes, origins,
    scale, state
):  # fmt: skip
    """Write the next round to `work` and `state`, or the end."""
    current, rounds = state[BUCKET], state[ROUNDS]
    bucket = np.int64(BUCKETS)
    if state[NO_SPACE] == 0:
        bucket = next_bucket(threads, current, heads)
    if bucket == BUCKETS:
        best, some = value[0], False
        if state[NO_SPACE] != 0 or state[BEYOND] != 0:
            best, some = best_of(value, flags, words)
        if not some:
            state[DONE] = CONVERGED
            return
        origins[0] = np.float64(best)
        state[BEYOND] = fill_buckets(
            *(value, flags, words, heads, fills, links, entries, free, origins[0], scale)
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
def end_round(sync, state):
    """Wait for those helpers that take part."""
    atomic_add(state, EPOCH, 1)
    until = nanoseconds() + SPIN
    while atomic_add(state, ACTIVE, 0) != 0:
        poll(sync)
        if nanoseconds() > until:
            let_others_run()


@inner
def join_round(sync, seen, state):
    """Wait for a round after that of epoch `seen`; returns its epoch, or -1 at the end."""
    since = nanoseconds()
    while atomic_load(state, FINISHED) == 0:
        epoch = atomic_load(state, EPOCH)
        if epoch % 2 == 1 and epoch != seen:
            atomic_add(state, ACTIVE, 1)
            if atomic_add(state, EPOCH, 0) == epoch:
                return epoch
            atomic_add(state, ACTIVE, -1)
        poll(sync)
        waited = nanoseconds() - since
        if waited > PATIENCE:
            break
        if waited > SPIN:
            let_others_run()
    return np.int64(-1)


@kernel
def closure(
    thread, threads, sync, indptr, indices, values, value, parent, flags, words, heads, fills,
    links, entries, free, work, sizes, heavies, origins, scale, state
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
                        *(free.shape[0], indptr, value, flags, words, heads, fills, links, entries),
                        *(free, work, sizes, origins, scale, state),
                    )
                if state[DONE] != 0:
                    break
                gone = atomic_load(state, GONE)
                if state[LEAVE] != 0 and gone == threads - 1 and state[EDGES] >= ALONE:
                    state[PLANNED] = 1
                    break
                # helpers that have been woken will come to a round that takes long enough
                here = atomic_load(state, HERE) > gone
                shared = threads > 1 and state[EDGES] >= (SHARED if here else ALONE)
            state[TICKET] = 0
            if shared:
                atomic_add(state, EPOCH, 1)
        relax(
            *(shared, state[OF_HEAVY] != 0, thread, sync, state[COUNT], work, sizes, indptr),
            *(indices, values, value, parent, flags, heads, fills, links, entries, free, heavies),
            *(origins[0], scale, state[BUCKET], state),
        )
        if thread > 0:
            atomic_add(state, ACTIVE, -1)
    if thread == 0:
        atomic_store(state, FINISHED, 1)
