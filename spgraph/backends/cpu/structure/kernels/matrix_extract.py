# Extract rows and columns of a matrix. No preamble but the header.


@kernel
def take_rows(thread, threads, sync, bounds, ticket, a_ptr, rows, z_ptr, source, target):
    # row r of target is row rows[r] of source
    while True:
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk >= bounds.size - 1:
            break
        for r in range(bounds[chunk], bounds[chunk + 1]):
            k = np.uint64(z_ptr[r])
            start = np.uint64(a_ptr[rows[r]])
            for s in range(np.uint64(z_ptr[r + 1]) - k):
                target[k + s] = source[start + s]


@kernel
def count_columns(thread, threads, sync, bounds, ticket, a_ptr, a_ids, rows, wanted, sizes):
    # sizes[r + 1] = the number of entries of row rows[r] (no rows: r) in columns whose bit is set
    low = np.uint64(31)
    while True:
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk >= bounds.size - 1:
            break
        for r in range(bounds[chunk], bounds[chunk + 1]):
            i = np.int64(rows[r]) if rows.size else r
            found = 0
            for p in range(np.uint64(a_ptr[i]), np.uint64(a_ptr[i + 1])):
                j = np.uint64(a_ids[p])
                found += (wanted[j >> np.uint64(5)] >> np.uint32(j & low)) & np.uint32(1)
            sizes[r + 1] = found


@kernel
def take_columns(
    thread, threads, sync, bounds, ticket, a_ptr, a_ids, a, rows, target_of, z_ptr, z_ids, z
):
    # these entries, with the columns target_of (-1: dropped); z is empty for a pattern. There is no
    # branch on the target, because it would often be mispredicted.
    while True:
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk >= bounds.size - 1:
            break
        for r in range(bounds[chunk], bounds[chunk + 1]):
            i = np.int64(rows[r]) if rows.size else r
            p = np.uint64(a_ptr[i])
            k, end = np.uint64(z_ptr[r]), np.uint64(z_ptr[r + 1])
            if z.size:
                while k < end:
                    j = target_of[np.uint64(a_ids[p])]
                    z_ids[k] = j
                    z[k] = a[p]
                    k += np.uint64(j >= 0)
                    p += np.uint64(1)
            else:
                while k < end:
                    j = target_of[np.uint64(a_ids[p])]
                    z_ids[k] = j
                    k += np.uint64(j >= 0)
                    p += np.uint64(1)
