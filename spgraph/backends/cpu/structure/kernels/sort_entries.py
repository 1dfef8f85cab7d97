# Entries in any order, sorted by row and column, those of one position in the order given: a stable
# radix sort, first into buckets by the highest bits of the key row << column_bits | column, then
# each bucket, which fits a core's cache, by the lower bits, `digit` at a time in `passes` passes. A
# bucket's number is that of the key's highest bits, `shift` and up; the others are what is kept.
# Preamble: VALUES (False: positions only).


@inner
def key_of(rows, columns, column_bits, i):
    return np.uint64(rows[i]) << column_bits | np.uint64(columns[i])


@kernel
def count_entries(thread, threads, sync, rows, columns, column_bits, shift, counts, descents):
    # how many entries of this thread's share are in each bucket, and how many do not lie behind the
    # one before them
    mine = counts[thread]
    descending = 0
    first, last = rows.size * thread // threads, rows.size * (thread + 1) // threads
    before = key_of(rows, columns, column_bits, np.uint64(max(first - 1, 0)))
    for i in range(np.uint64(first), np.uint64(last)):
        if i & np.uint64(0xFFFF) == 0:
            poll(sync)
        key = key_of(rows, columns, column_bits, i)
        descending += (key <= before) & (i > np.uint64(0))
        mine[key >> shift] += 1
        before = key
    descents[thread] = descending


@inner
def to_buckets(
    thread, threads, sync, rows, columns, values, column_bits, shift, places, keys, held
):
    """Move this thread's share of the entries to their buckets: a key's lower bits, and a value."""
    low = (np.uint64(1) << shift) - np.uint64(1)
    first, last = rows.size * thread // threads, rows.size * (thread + 1) // threads
    for i in range(np.uint64(first), np.uint64(last)):
        if i & np.uint64(0xFFFF) == 0:
            poll(sync)
        key = key_of(rows, columns, column_bits, i)
        k = np.uint64(places[key >> shift])
        places[key >> shift] += 1
        keys[k] = key & low
        if VALUES:
            held[k] = values[i]


@inner
def by_digit(source, source_order, numbered, target, target_order, count, low, ends):
    """Sort `count` keys by the bits from `low` on for which `ends` has places; `numbered`: their
    order is 0, 1, ...
    """
    mask = np.uint64(ends.size - 1)
    ends[:] = 0
    for k in range(np.uint64(count)):
        ends[source[k] >> low & mask] += 1
    total = 0
    for d in range(ends.size):
        size = ends[d]
        ends[d] = total
        total += size
    for k in range(np.uint64(count)):
        key = source[k]
        place = np.uint64(ends[key >> low & mask])
        ends[key >> low & mask] += 1
        target[place] = key
        if VALUES:
            target_order[place] = k if numbered else source_order[k]


@inner
def write_bucket(keys, order, begin, high, values, spare, column_bits, z_ptr, z_ids):
    """Write a sorted bucket's columns, put its values in order, add the lengths of its rows to
    z_ptr; returns how many entries repeat the position of the one before. `high` is the part of
    the keys that all share.
    """
    mask = (np.uint64(1) << column_bits) - np.uint64(1)
    repeats = 0
    row = (high | keys[0]) >> column_bits
    length = 0
    shared = True  # the first and the last row may go on in other buckets
    for k in range(np.uint64(keys.size)):
        key = high | keys[k]
        if key >> column_bits != row:
            if shared:
                atomic_add(z_ptr, np.int64(row) + 1, length)
            else:
                z_ptr[row + np.uint64(1)] = length
            shared = False
            row = key >> column_bits
            length = 0
        length += 1
        if k > 0 and keys[k] == keys[k - np.uint64(1)]:
            repeats += 1
        z_ids[begin + k] = key & mask
        if VALUES:
            spare[k] = values[begin + np.uint64(order[k])]
    atomic_add(z_ptr, np.int64(row) + 1, length)
    if VALUES:
        for k in range(np.uint64(keys.size)):
            values[begin + k] = spare[k]
    return repeats


@kernel
def sort_entries(
    thread, threads, sync, rows, columns, values, column_bits, shift, digit, passes, places, starts,
    keys, spare_keys, spare_orders, spare_values, ends, ticket, repeats, z_ptr, z_ids, z,
):  # fmt: skip
    mine = ends[thread]
    to_buckets(
        *(thread, threads, sync, rows, columns, values, column_bits, shift, places[thread]),
        *(keys, z),
    )
    barrier(sync, threads)
    found = 0
    while True:
        poll(sync)
        bucket = atomic_add(ticket, 0, 1)
        if bucket >= starts.size - 1:
            break
        begin, count = starts[bucket], starts[bucket + 1] - starts[bucket]
        if count == 0:
            continue
        source, order = keys[begin : begin + count], spare_orders[thread, 1]
        for p in range(passes):
            target, target_order = spare_keys[thread, p & 1], spare_orders[thread, p & 1]
            low = np.uint64(p * digit)
            by_digit(source, order, p == 0, target, target_order, count, low, mine)
            source, order = target, target_order
        found += write_bucket(
            source[:count], order, np.uint64(begin), np.uint64(bucket) << shift, z,
            spare_values[thread], column_bits, z_ptr, z_ids,
        )  # fmt: skip
    atomic_add(repeats, 0, found)
