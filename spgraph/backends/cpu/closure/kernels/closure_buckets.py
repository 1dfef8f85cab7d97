# Part of closure.py: buckets of queued vertices by their values.
#
# A bucket of a thread is a linked list of blocks of entries: `heads` is its last block, `fills` the
# number of entries of that, `links` the block before a block (or the next free one); `free` has a
# row for each thread.

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
def push_entry(v, bucket, mine, heads, fills, links, entries, free, state):
    """Append v to a bucket of thread `mine`, if there is space."""
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
            return
        links[fresh] = heads[bucket]
        heads[bucket] = fresh
        fill = 0
    entries[np.uint64(heads[bucket]) * np.uint64(BLOCK) + np.uint64(fill)] = v
    fills[bucket] = fill + 1


@inner
def edges_of(block, size, links, entries, indptr):
    """About how much work a list of blocks is, of which the first has `size` entries: each vertex
    and each edge counts, as every fourth vertex has them. At least ALONE means much.
    """
    work = np.int64(0)
    while block >= 0 and work < ALONE:
        i = np.uint64(block) * np.uint64(BLOCK)
        stop = i + np.uint64(size)
        while i < stop:
            u = np.uint64(entries[i])
            work += 4 * (np.int64(indptr[u + np.uint64(1)]) - np.int64(indptr[u]) + 1)
            i += np.uint64(4)
        block = np.int64(links[block])
        size = np.int64(BLOCK)
    return work


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
