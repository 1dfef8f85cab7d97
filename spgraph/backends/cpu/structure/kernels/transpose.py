# The transpose by a stable counting sort in two steps: entries are moved to their bucket, a range
# of 2**shift columns, and then within it, in the cache, to their column.
# Preamble: VALUES (False: ids only).


@kernel
def transpose(
    thread, threads, sync, bounds, ptr, ids, a, shift, counts, starts, rows, columns, values,
    ticket, z_ptr, z_ids, z,
):  # fmt: skip
    one = np.uint64(1)
    mine = counts[thread]
    for p in range(np.uint64(ptr[bounds[thread]]), np.uint64(ptr[bounds[thread + 1]])):
        mine[np.uint64(ids[p]) >> shift] += 1
    barrier(sync, threads)
    if thread == 0:
        total = np.int64(0)
        for bucket in range(starts.size - 1):
            starts[bucket] = total
            for t in range(threads):
                count = counts[t, bucket]
                counts[t, bucket] = total
                total += count
        starts[starts.size - 1] = total
        z_ptr[0] = 0
    barrier(sync, threads)
    for i in range(bounds[thread], bounds[thread + 1]):
        if i & 1023 == 0:
            poll(sync)
        for p in range(np.uint64(ptr[i]), np.uint64(ptr[i + 1])):
            bucket = np.uint64(ids[p]) >> shift
            k = np.uint64(mine[bucket])
            mine[bucket] += 1
            rows[k] = i
            columns[k] = ids[p]
            if VALUES:
                values[k] = a[p]
    barrier(sync, threads)
    while True:
        poll(sync)
        bucket = atomic_add(ticket, 0, 1)
        if bucket >= starts.size - 1:
            break
        first = np.uint64(bucket) << shift
        last = min(first + (one << shift), np.uint64(z_ptr.size - 1))
        # z_ptr[j + 1] is first the number of entries of column j, then the position of its next
        # entry, and in the end the end of the column
        for j in range(first, last):
            z_ptr[j + one] = 0
        for p in range(np.uint64(starts[bucket]), np.uint64(starts[bucket + 1])):
            z_ptr[np.uint64(columns[p]) + one] += 1
        next_ = starts[bucket]
        for j in range(first, last):
            count = z_ptr[j + one]
            z_ptr[j + one] = next_
            next_ += count
        for p in range(np.uint64(starts[bucket]), np.uint64(starts[bucket + 1])):
            j = np.uint64(columns[p]) + one
            k = np.uint64(z_ptr[j])
            z_ptr[j] += 1
            z_ids[k] = rows[p]
            if VALUES:
                z[k] = values[p]
