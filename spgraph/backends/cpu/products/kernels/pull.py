# Row by row: z[i] = the sum of the products of the entries of row i and of u, for the rows that the
# mask allows. `ticket` counts the chunks that were taken, and the entries of z. Preamble: multiply,
# add, IDENTITY, TERMINAL, TERMINAL_VALUE, ISO, FLIP, MASKED, FULL.


@inner
def word_at(indptr, rows, target):
    """The first group of 32 rows with at least `target` rows and entries before it."""
    low = 0
    high = (rows + 31) // 32
    while low < high:
        middle = (low + high) // 2
        row = min(32 * middle, rows)
        if np.int64(indptr[row]) + row < target:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def pull(
    thread, threads, sync, indptr, indices, a, u_bits, u, mask, invert, chunks, ticket, z_bits, z
):
    rows = z.size
    steps = np.int64(indptr[rows]) + rows
    entries = 0
    while True:
        # chunks of about equal numbers of entries, taken dynamically: masks and early exits make
        # the work uneven
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk >= chunks:
            break
        first = word_at(indptr, rows, steps // chunks * chunk + min(chunk, steps % chunks))
        last = z_bits.size
        if chunk + 1 < chunks:
            last = word_at(
                indptr, rows, steps // chunks * (chunk + 1) + min(chunk + 1, steps % chunks)
            )
        for w in range(first, last):
            allowed = np.uint32(0xFFFFFFFF)
            if MASKED:
                allowed = mask[w] ^ invert
                if allowed == 0:
                    continue
            found = np.uint32(0)
            stop = np.int64(indptr[32 * w])
            for i in range(32 * w, min(32 * w + 32, rows)):
                start = stop
                stop = np.int64(indptr[i + 1])
                bit = np.uint32(1) << np.uint32(i & 31)
                if MASKED and allowed & bit == 0:
                    continue
                sum_ = IDENTITY
                hit = FULL and start < stop
                for p in range(np.uint64(start), np.uint64(stop)):
                    k = np.uint64(indices[p])
                    if not FULL:
                        if (u_bits[k >> np.uint64(5)] >> np.uint32(k & np.uint64(31))) & np.uint32(
                            1
                        ) == 0:
                            continue
                        hit = True
                    x = a[0] if ISO else a[p]
                    if FLIP:
                        value = multiply(u[k], x, 0, np.int64(k), np.int64(k), i)
                    else:
                        value = multiply(x, u[k], i, np.int64(k), np.int64(k), 0)
                    if TERMINAL == 1:
                        sum_ = value
                        break
                    sum_ = add(sum_, value)
                    if TERMINAL == 2 and sum_ == TERMINAL_VALUE:
                        break
                if hit:
                    entries += 1
                    found |= bit
                    z[i] = sum_
            z_bits[w] = found
    atomic_add(ticket, 1, entries)
