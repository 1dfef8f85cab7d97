# Part of closure.py: buckets of vertices by their values.
#
# A bucket of a thread is a linked list of blocks of entries, each a vertex in `entries` and the
# value that it had in `keys`: `heads` is the last block, `fills` the number of entries of that,
# `links` the block before a block (or the next free one); `free` has a row for each thread.

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
def push_entry(v, key, bucket, mine, heads, fills, links, entries, keys, free):
    """Append v and its value to a bucket of thread `mine`; False if there is no space."""
    fill = fills[bucket]
    if fill == BLOCK:
        fresh = free[mine, CHAIN]
        if fresh >= 0:
            free[mine, CHAIN] = links[fresh]
        elif free[mine, UNUSED] < free[mine, END]:
            fresh = free[mine, UNUSED]
            free[mine, UNUSED] = fresh + 1
        else:
            return False
        links[fresh] = heads[bucket]
        heads[bucket] = fresh
        fill = 0
    at = np.uint64(heads[bucket]) * np.uint64(BLOCK) + np.uint64(fill)
    entries[at] = v
    keys[at] = key
    fills[bucket] = fill + 1
    return True


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
def bit_of(v):
    """The bit of v in its byte of `queued`."""
    return np.uint8(np.uint64(1) << (v & np.uint64(7)))


@inner
def queue_entries(value, queued, heads, fills, links, entries, keys):
    """Queue every vertex that has an entry with its value."""
    for bucket in range(heads.size):
        block, size = np.int64(heads[bucket]), np.int64(fills[bucket])
        while block >= 0:
            for i in range(block * BLOCK, block * BLOCK + size):
                v = np.uint64(entries[i])
                if not differs(value[v], keys[i]):
                    queued[v >> np.uint64(3)] |= bit_of(v)
            block, size = np.int64(links[block]), np.int64(BLOCK)


@inner
def best_of(value, queued):
    """(the best value of a queued vertex, whether there is one)."""
    best = value[0]
    some = False
    for w in range(queued.size):
        bits = np.uint64(queued[w])
        while bits != 0:
            z = value[8 * w + np.int64(lowest_bit(bits))]
            bits &= bits - np.uint64(1)
            if not some or (SIGN == 1 and z < best) or (SIGN == -1 and z > best):
                best = z
            some = True
    return best, some


@inner
def fill_buckets(value, queued, heads, fills, links, entries, keys, free, origin, scale):
    """Move the queued vertices to the buckets of thread 0, and empty the others'; returns 1 if some
    vertices are beyond the last bucket.
    """
    heads[:] = -1
    fills[:] = BLOCK
    owner = 0
    for t in range(free.shape[0]):
        free[t, CHAIN], free[t, UNUSED] = -1, free[t, FIRST_BLOCK]
    beyond = np.int64(0)
    for w in range(queued.size):
        bits = np.uint64(queued[w])
        while bits != 0:
            v = 8 * w + np.int64(lowest_bit(bits))
            bits &= bits - np.uint64(1)
            b = bucket_of(value[v], origin, scale, np.int64(0))
            if b >= BUCKETS:
                beyond = 1
                continue
            queued[w] ^= bit_of(np.uint64(v))
            if fills[b] == BLOCK:
                # the blocks of all threads together suffice for every vertex
                while free[owner, UNUSED] == free[owner, END]:
                    owner += 1
                block = free[owner, UNUSED]
                free[owner, UNUSED] = block + 1
                links[block] = heads[b]
                heads[b] = block
                fills[b] = 0
            at = heads[b] * BLOCK + fills[b]
            entries[at], keys[at] = v, value[v]
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
