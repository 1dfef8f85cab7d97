# The least fixed point of  x = x (+) x (+.x) A  by delta-stepping (Meyer and Sanders 2003), in one
# launch. Every thread runs `closure`. Thread 0 plans the rounds; small rounds it runs alone. The
# other threads are not even woken before the first round that is shared: the first launch is of one
# thread, and leaves the rest to the second.
#
# A vertex whose value improved is `queued` until its edges have been relaxed. Queued vertices are
# in buckets by their value, and the best bucket is processed first, in rounds, until nothing new is
# added to it. A vertex that moves to a better bucket leaves its old entry behind, which is skipped
# because the vertex is no longer queued. Vertices beyond the last bucket have no entry, nor have
# those for which a thread had no space: the buckets are filled again from the flags of the queued
# vertices when they are empty, or at once if a thread ran out of space.
#
# A bucket of a thread is a linked list of blocks of entries: `heads` is its last block, `fills` the
# number of entries of that, `links` the block before a block (or the next free one); `free` has a
# row for each thread. Preamble: SIGN (0: no order, one bucket), BUCKETS, BLOCK (entries), ALONE (a
# round of fewer edges is run by thread 0), HEAVY (the edges of a vertex with more are divided),
# ISO, multiply, add, IDENTITY.

from spgraph.backends.cpu.device.prefetching import prefetch

# distances, in entries, at which row pointers and then rows are prefetched
FAR_AHEAD, AHEAD = 12, 5
# positions of the shared words in `state`: those that several threads write have cache lines of
# their own
TICKET, BLOCKS, HEAVIES, BEYOND, NO_SPACE, DONE, BUCKET, ROUNDS = 0, 8, 16, 24, 32, 40, 41, 42
# whether to leave rounds that are worth sharing to another launch; whether one is planned
LEAVE, PLANNED = 43, 44
# flags of a vertex, in one byte, so that threads exchange one cache line instead of two; those of
# the eight vertices of a word
QUEUED, VISITED = np.uint8(1), np.uint8(2)
ALL_QUEUED = np.uint64(0x0101010101010101)
# values of DONE
CONVERGED, NOT_CONVERGED = 1, 2
# the words of a row of `free`: a list of freed blocks, the first and the end of those never used,
# the first of the thread's blocks
CHAIN, UNUSED, END, FIRST_BLOCK = 0, 1, 2, 3


@inner
def bucket_of(z, origin, scale, current):
    """The bucket of a value, at least the current one; BUCKETS for what lies beyond the last."""
    if SIGN == 0:
        return np.int64(0)
    distance = (np.float64(z) - origin) * scale
    if distance >= BUCKETS:
        return np.int64(BUCKETS)
    # NaN, the difference of two infinite values, fails both tests
    return max(np.int64(distance), current) if distance > 0 else current


@inner
def relax(
    shared, heavy, thread, threads, sync, count, work, sizes, indptr, indices, values, value,
    flags, heads, fills, links, entries, free, heavies, origin, scale, current, state
):  # fmt: skip
    """This thread's part of a round: some of its `count` blocks, or a share of the edges of each of
    `count` heavy vertices.
    """
    mine = np.uint64(thread)
    place = np.int64(0)
    while True:
        poll(sync)
        if heavy or not shared:
            k = place
            place += 1
        else:
            k = atomic_add(state, TICKET, 1)
        if k >= count:
            break
        i, stop = np.uint64(k), np.uint64(k + 1)
        if not heavy:
            block = np.uint64(work[k])
            i = block * np.uint64(BLOCK)
            stop = i + np.uint64(sizes[block])
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
                degree = last - first
                last = first + degree * (thread + 1) // threads
                first += degree * thread // threads
            else:
                # the mark is cleared before the value is read: a later improvement queues u again
                flag = flags[u]
                if flag & QUEUED == 0:
                    continue
                if shared:
                    if not compare_exchange(flags, np.int64(u), flag, VISITED):
                        continue
                else:
                    flags[u] = VISITED
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
                new = add(old, z)
                if new != old:
                    if new != new and old != old:
                        # NaN on both sides: a monoid that omits NaN leaves the identity
                        new = add(old, add(IDENTITY, z))
                        if new != new:
                            continue
                    if shared:
                        while not compare_exchange(value, np.int64(v), old, new):
                            old = atomic_load(value, np.int64(v))
                            new = add(old, z)
                            if new == old:
                                break
                        if new == old:
                            continue
                    else:
                        value[v] = new
                elif old != IDENTITY or flags[v] != 0:
                    continue
                # v has a better value, or its first, which may equal the identity
                b = bucket_of(new, origin, scale, current)
                flag = flags[v]
                again = flag & QUEUED != 0
                if not again and not shared:
                    flags[v] = flag | QUEUED
                # fails, too, if another thread queued and took it meanwhile
                while not again and shared:
                    if compare_exchange(flags, np.int64(v), flag, flag | QUEUED):
                        break
                    flag = atomic_load(flags, np.int64(v))
                    again = flag & QUEUED != 0
                if again and bucket_of(old, origin, scale, current) == b:
                    continue
                if b >= BUCKETS:
                    state[BEYOND] = 1
                    continue
                bucket = mine * np.uint64(BUCKETS) + np.uint64(b)
                fill = fills[bucket]
                if fill == BLOCK:
                    fresh = free[mine, CHAIN]
                    if fresh >= 0:
                        free[mine, CHAIN] = links[fresh]
                    elif free[mine, UNUSED] < free[mine, END]:
                        fresh = free[mine, UNUSED]
                        free[mine, UNUSED] = fresh + 1
                    else:
                        state[NO_SPACE] = 1
                        continue
                    links[fresh] = heads[bucket]
                    heads[bucket] = fresh
                    fill = 0
                entries[np.uint64(heads[bucket]) * np.uint64(BLOCK) + np.uint64(fill)] = v
                fills[bucket] = fill + 1


@inner
def take_bucket(threads, current, heads, fills, links, work, sizes):
    """Move the blocks of the current bucket of all threads to `work`; returns their number."""
    blocks = np.int64(0)
    for t in range(threads):
        bucket = t * BUCKETS + current
        block = np.int64(heads[bucket])
        fill = np.int64(fills[bucket])
        while block >= 0:
            work[blocks] = block
            sizes[block] = fill
            fill = BLOCK
            blocks += 1
            block = links[block]
        heads[bucket] = -1
        fills[bucket] = BLOCK
    return blocks


@inner
def few_edges(blocks, work, sizes, entries, indptr):
    """Whether the work has fewer than about ALONE edges, by those of every fourth vertex."""
    edges = np.int64(0)
    for k in range(blocks):
        i = np.uint64(work[k]) * np.uint64(BLOCK)
        stop = i + np.uint64(sizes[work[k]])
        while i < stop:
            u = np.uint64(entries[i])
            edges += np.int64(indptr[u + np.uint64(1)]) - np.int64(indptr[u])
            i += np.uint64(4)
        if 4 * edges >= ALONE:
            return False
    return True


@inner
def free_blocks(blocks, work, links, free):
    """Return each block of the round to the free list of the thread that owns it."""
    each = free[0, END]
    for k in range(blocks):
        block = work[k]
        owner = block // each
        links[block] = free[owner, CHAIN]
        free[owner, CHAIN] = block


@inner
def best_of(value, flags, words):
    """(the best value of a queued vertex, whether there is one). Each of `words` is eight elements
    of `flags`.
    """
    best = value[0]
    some = False
    for w in range(words.size):
        if words[w] & ALL_QUEUED != 0:
            for v in range(8 * w, min(8 * w + 8, value.size)):
                if flags[v] & QUEUED != 0:
                    z = value[v]
                    if not some or (SIGN == 1 and z < best) or (SIGN == -1 and z > best):
                        best = z
                    some = True
    return best, some


@inner
def fill_buckets(value, flags, words, heads, fills, links, entries, free, origin, scale):
    """Fill the buckets of thread 0 with all queued vertices, and empty the others'; returns 1 if
    some vertices are beyond the last bucket.
    """
    heads[:] = -1
    fills[:] = BLOCK
    owner = 0
    for t in range(free.shape[0]):
        free[t, CHAIN], free[t, UNUSED] = -1, free[t, FIRST_BLOCK]
    beyond = np.int64(0)
    for w in range(words.size):
        if words[w] & ALL_QUEUED == 0:
            continue
        for v in range(8 * w, min(8 * w + 8, value.size)):
            if flags[v] & QUEUED == 0:
                continue
            b = bucket_of(value[v], origin, scale, np.int64(0))
            if b >= BUCKETS:
                beyond = 1
                continue
            if fills[b] == BLOCK:
                # the blocks of all threads together suffice for every vertex
                while free[owner, UNUSED] == free[owner, END]:
                    owner += 1
                block = free[owner, UNUSED]
                free[owner, UNUSED] = block + 1
                links[block] = heads[b]
                heads[b] = block
                fills[b] = 0
            entries[heads[b] * BLOCK + fills[b]] = v
            fills[b] += 1
    return beyond


@inner
def next_bucket(threads, current, heads):
    """The first bucket from the current one on that is not empty; BUCKETS if there is none."""
    while current < BUCKETS:
        for t in range(threads):
            if heads[t * BUCKETS + current] >= 0:
                return current
        current += 1
    return current


@inner
def plan(
    threads, indptr, value, flags, words, heads, fills, links, entries, free, work, sizes, origins,
    scale, state
):  # fmt: skip
    """Write the next step to `work` and `state`: the blocks of a round, or the end. True if thread
    0 should run it alone.
    """
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
            return False
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
        return False
    state[TICKET], state[HEAVIES] = 0, 0
    state[BLOCKS] = take_bucket(threads, bucket, heads, fills, links, work, sizes)
    if threads == 1 and state[LEAVE] == 0:
        return True
    return few_edges(state[BLOCKS], work, sizes, entries, indptr)


@kernel
def closure(
    thread, threads, sync, indptr, indices, values, value, flags, words, heads, fills,
    links, entries, free, work, sizes, heavies, origins, scale, state
):  # fmt: skip
    heavy = False
    while True:
        # the same on all threads
        alone = False
        if not heavy:
            if thread == 0 and state[PLANNED] != 0:
                state[PLANNED] = 0
            elif thread == 0:
                alone = plan(
                    *(threads, indptr, value, flags, words, heads, fills, links, entries, free),
                    *(work, sizes, origins, scale, state),
                )
                if state[LEAVE] != 0 and not alone and state[DONE] == 0:
                    state[PLANNED] = 1
                    break
            if not alone:
                barrier(sync, threads)
            if state[DONE] != 0:
                break
        many = min(state[HEAVIES], heavies.size) if heavy else state[BLOCKS]
        relax(
            *(not alone, heavy, thread, threads, sync, many, work, sizes),
            *(indptr, indices, values, value, flags, heads, fills, links, entries, free),
            *(heavies, origins[0], scale, state[BUCKET], state),
        )
        if not alone:
            barrier(sync, threads)
            heavy = not heavy and state[HEAVIES] > 0
        if thread == 0 and not heavy:
            free_blocks(state[BLOCKS], work, links, free)


@kernel
def dag_edges(
    thread, threads, sync, indptr, indices, values, value, bits, parts, fresh_indptr, fresh_indices,
    counts
):  # fmt: skip
    """The entries (i, j) of this thread's rows with value[i] * A[i, j] == value[j]: how many lie
    before the end of each row, and their columns, from where A has those of its first row.
    """
    top, bottom = parts[thread], parts[thread + 1]
    base = np.uint64(indptr[top])
    count = np.uint64(0)
    full = bits.size == 0
    for i in range(np.uint64(top), np.uint64(bottom)):
        if i & np.uint64(1023) == 0:
            poll(sync)
        if full or bits[i >> np.uint64(5)] >> np.uint32(i & np.uint64(31)) & np.uint32(1) != 0:
            x = value[i]
            for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
                j = np.uint64(indices[e])
                if multiply(x, values[0] if ISO else values[e], 0, i, i, j) != value[j]:
                    continue
                bit = np.uint32(j & np.uint64(31))
                if not full and bits[j >> np.uint64(5)] >> bit & np.uint32(1) == 0:
                    continue
                fresh_indices[base + count] = j
                count += np.uint64(1)
        fresh_indptr[i + np.uint64(1)] = count
    counts[thread] = count
