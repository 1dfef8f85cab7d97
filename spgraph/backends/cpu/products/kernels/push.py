# Entry by entry: the products of entry k of u with row k of the matrix are added to the result at
# the row's columns. Preamble: multiply, add, TERMINAL, TERMINAL_VALUE, ISO, FLIP, MASKED.


@inner
def product(x, y, k, j):
    """The product of an entry x of u at k with the matrix entry y at (k, j)."""
    if FLIP:
        return multiply(y, x, j, k, k, 0)
    return multiply(x, y, 0, k, k, j)


@inner
def sum_of_one(value):
    """The sum of one product: as in longer sums, min and max ignore NaN."""
    return value if TERMINAL == 1 else add(IDENTITY, value)


@inner
def settled(value):
    """Whether adding to `value` changes nothing."""
    if TERMINAL == 1:
        return True
    return TERMINAL == 2 and value == TERMINAL_VALUE


@kernel
def push(thread, threads, sync, indptr, indices, a, ids, u, mask, invert, splits, z_bits, z):
    # Every thread reads all rows, but writes only columns from low to high, multiples of 32: no
    # atomics are needed, and the products of a position are added in the order of u for any number
    # of threads.
    low = splits[thread]
    high = splits[thread + 1]
    whole = threads == 1
    for q in range(ids.size):
        if q & 255 == 0:
            poll(sync)
        k = np.int64(ids[q])
        x = u[q]
        start = np.int64(indptr[k])
        stop = np.int64(indptr[k + 1])
        if not whole and stop - start > 16:
            end = stop
            while start < end:
                middle = (start + end) // 2
                if indices[middle] < low:
                    start = middle + 1
                else:
                    end = middle
        for p in range(np.uint64(start), np.uint64(stop)):
            j = np.int64(indices[p])
            if not whole:
                if j < low:
                    continue
                if j >= high:
                    break
            w = np.uint64(j) >> np.uint64(5)
            bit = np.uint32(1) << np.uint32(j & 31)
            if MASKED and (mask[w] ^ invert) & bit == 0:
                continue
            y = a[0] if ISO else a[p]
            if z_bits[w] & bit == 0:
                z_bits[w] |= bit
                z[np.uint64(j)] = sum_of_one(product(x, y, k, j))
            elif not settled(z[np.uint64(j)]):
                z[np.uint64(j)] = add(z[np.uint64(j)], product(x, y, k, j))


@inner
def slot_of(table, keys, j):
    """The slot of `table` with the position of j in keys, or the free one (-1) for it."""
    slots = np.uint64(table.size - 1)
    # Fibonacci hashing: the high bits of a product with 2**64 / phi
    slot = (np.uint64(j) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32) & slots
    while table[slot] >= 0 and keys[np.uint64(table[slot])] != j:
        slot = (slot + np.uint64(1)) & slots
    return slot


@kernel
def push_few(
    thread, threads, sync, indptr, indices, a, ids, u, mask, invert, table, keys, z, counts
):
    # few edges: a hash table of positions in (keys, z) instead of a vector of full length
    present = np.int64(0)
    for q in range(ids.size):
        k = np.int64(ids[q])
        x = u[q]
        for p in range(np.uint64(indptr[k]), np.uint64(indptr[k + 1])):
            j = np.int64(indices[p])
            if MASKED:
                bit = np.uint32(1) << np.uint32(j & 31)
                if (mask[np.uint64(j) >> np.uint64(5)] ^ invert) & bit == 0:
                    continue
            y = a[0] if ISO else a[p]
            slot = slot_of(table, keys, j)
            at = np.uint64(table[slot])
            if table[slot] < 0:
                table[slot] = present
                keys[present] = j
                z[present] = sum_of_one(product(x, y, k, j))
                present += 1
            elif not settled(z[at]):
                z[at] = add(z[at], product(x, y, k, j))
    counts[thread] = present


@kernel
def push_few_values(thread, threads, sync, table, keys, z, wanted, values):
    # sorting the keys alone and then looking up their values is faster than sorting pairs
    for p in range(wanted.size):
        values[p] = z[table[slot_of(table, keys, np.int64(wanted[p]))]]
