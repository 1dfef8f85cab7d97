# z = f of every entry and its position.
# Preamble: f(value, i, j, scalar).


@kernel
def matrix_apply(thread, threads, sync, bounds, ticket, a_ptr, a_ids, a, a_keep, scalar, z):
    while True:
        poll(sync)
        chunk = atomic_add(ticket, 0, 1)
        if chunk >= bounds.size - 1:
            break
        for i in range(bounds[chunk], bounds[chunk + 1]):
            for p in range(np.uint64(a_ptr[i]), np.uint64(a_ptr[i + 1])):
                z[p] = f(a[p & a_keep], i, np.int64(a_ids[p]), scalar)
