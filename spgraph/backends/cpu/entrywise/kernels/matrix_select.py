# The entries for which f is true.
# Preamble: f(value, i, j, scalar).


@kernel
def matrix_select(
    thread, threads, sync, bounds, ticket, a_ptr, a_ids, a, a_keep, scalar, flags, sizes
):
    # flags[p] = whether entry p is selected, sizes[i + 1] = how many of row i are
    while True:
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk >= bounds.size - 1:
            break
        for i in range(bounds[chunk], bounds[chunk + 1]):
            selected = 0
            for p in range(np.uint64(a_ptr[i]), np.uint64(a_ptr[i + 1])):
                kept = bool(f(a[p & a_keep], i, np.int64(a_ids[p]), scalar))
                flags[p] = kept
                selected += kept
            sizes[i + 1] = selected


@kernel
def compress(thread, threads, sync, bounds, ticket, a_ptr, flags, z_ptr, source, target):
    # the flagged elements of source, without a branch on the flag, often mispredicted
    while True:
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk >= bounds.size - 1:
            break
        p = np.uint64(a_ptr[bounds[chunk]])
        k = np.uint64(z_ptr[bounds[chunk]])
        end = np.uint64(z_ptr[bounds[chunk + 1]])
        while k < end:
            target[k] = source[p]
            k += np.uint64(flags[p])
            p += np.uint64(1)
